// The vendor's task API: which requests to send, and how to read its tasks. Pure functions: the network, the clock and
// the money are elsewhere.

import type { FaultName } from '../../../kernel/fault.ts'
import { given, isObject, type Json, jsonIn, objectOf, objects, text } from '../../../kernel/json.ts'
import { readCount } from '../../../meter/usage.ts'
import type { HttpCall } from '../../../upstream/call.ts'
import { garbled, type Target } from '../../protocol.ts'
import { scrub, withoutSecrets } from '../../vendor-words.ts'
import type { VideoOrder } from './request.ts'

/** The time after which the vendor abandons a task. The gateway's own deadline is later. */
const EXPIRES_AFTER_SECONDS = 86_400
/** The most tasks in one status request. */
export const LOOK_TASKS_MAX = 100
const LIST_PAGE_SIZE = 100
const TASK_ID_CHARS_MAX = 8_000
/** The maximum length of the address of a status request for several tasks; servers reject longer ones. */
const QUESTION_CHARS_MAX = 6_000

const TASK_STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const
type TaskStatus = (typeof TASK_STATUSES)[number]

/** Marks by which a task is recognised if its id is unknown. */
export interface TaskMark {
  /** Sent as `safety_identifier`, which vendors return. */
  readonly token: string
  /** A random seed of ours, practically unique; undefined if the caller chose the seed. */
  readonly seed?: number
  readonly model: string
  /** Unix seconds; our task cannot be older. */
  readonly sinceSeconds: number
}

export interface Task {
  readonly id: string
  /** Undefined: an unknown status, so nothing can be concluded. */
  readonly status: TaskStatus | undefined
  readonly word: string
  readonly videoUrl?: string
  readonly lastFrameUrl?: string
  readonly outputTokens?: number
  readonly seconds?: number
  readonly resolution?: string
  readonly failure?: TaskFailure
}

interface TaskFailure {
  readonly kind: FaultName
  /** The vendor's error name, such as OutputVideoSensitiveContentDetected. */
  readonly reason?: string
  readonly message?: string
}

const path = '/contents/generations/tasks'

export function createCall(order: VideoOrder, target: Target, mark: Pick<TaskMark, 'token' | 'seed'>): HttpCall {
  const body = {
    model: target.model,
    ...order,
    ...(mark.seed === undefined ? {} : { seed: mark.seed }),
    execution_expires_after: EXPIRES_AFTER_SECONDS,
    safety_identifier: mark.token,
  }
  return {
    method: 'POST',
    url: `${target.baseUrl}${path}`,
    headers: { 'content-type': 'application/json', 'x-client-token': mark.token },
    body: JSON.stringify(body),
  }
}

export function showCall(taskId: string, target: Target): HttpCall {
  return { method: 'GET', url: `${target.baseUrl}${path}/${encodeURIComponent(taskId)}`, headers: {} }
}

/** Requests the status of several tasks. */
export function showManyCall(taskIds: readonly string[], target: Target): HttpCall {
  const ids = taskIds.map((id) => `&filter.task_ids=${encodeURIComponent(id)}`).join('')
  return { method: 'GET', url: `${target.baseUrl}${path}?page_num=1&page_size=${taskIds.length}${ids}`, headers: {} }
}

/** Splits tasks into groups that fit into one status request. */
export function groupTasks(taskIds: readonly string[]): string[][] {
  const groups: string[][] = []
  let chars = Number.POSITIVE_INFINITY
  for (const id of taskIds) {
    chars += id.length + 20
    if (chars > QUESTION_CHARS_MAX || groups.at(-1)!.length >= LOOK_TASKS_MAX) {
      groups.push([])
      chars = id.length + 20
    }
    groups.at(-1)!.push(id)
  }
  return groups
}

/** Lists the newest tasks of a model, one page at a time. */
export function listCall(target: Target, page: number): HttpCall {
  return {
    method: 'GET',
    url: `${target.baseUrl}${path}?page_num=${page}&page_size=${LIST_PAGE_SIZE}&filter.model=${encodeURIComponent(target.model)}`,
    headers: {},
  }
}

export function cancelCall(taskId: string, target: Target): HttpCall {
  return { method: 'DELETE', url: `${target.baseUrl}${path}/${encodeURIComponent(taskId)}`, headers: {} }
}

/** Reads the id of a task that the vendor has accepted. */
export function readCreated(body: Buffer): string {
  const id = text(parse(body).id)
  if (!id || id.length > TASK_ID_CHARS_MAX) throw garbled('the answer to a creation has no id')
  return id
}

export function readTask(body: Buffer, target: Target): Task {
  return taskOf(parse(body), target)
}

export function readTasks(body: Buffer, target: Target): Task[] {
  return itemsOf(body).map((item) => taskOf(item, target))
}

/** Finds the task with the mark. `more`: it may be on a later page. */
export function findMarked(body: Buffer, mark: TaskMark, target: Target): { task: Task | undefined; more: boolean } {
  const items = itemsOf(body)
  const found = items.find((item) => bears(item, mark))
  const oldest = items.at(-1)?.created_at
  const tooOld = typeof oldest === 'number' && oldest < mark.sinceSeconds - CLOCKS_APART_SECONDS
  return { task: found && taskOf(found, target), more: !found && !tooOld && items.length >= LIST_PAGE_SIZE }
}

/** Tolerance for a difference between the vendor's clock and ours. */
const CLOCKS_APART_SECONDS = 300

function bears(item: Json, mark: TaskMark): boolean {
  const token = text(item.safety_identifier)
  if (token !== undefined && token !== '') return token === mark.token
  // A vendor that does not return the token still returns the seed.
  return (
    mark.seed !== undefined &&
    item.seed === mark.seed &&
    typeof item.created_at === 'number' &&
    item.created_at >= mark.sinceSeconds - CLOCKS_APART_SECONDS
  )
}

function taskOf(item: Json, target: Target): Task {
  const id = text(item.id)
  if (id === undefined) throw garbled('a task has no id')
  const word = text(item.status) ?? ''
  const status = TASK_STATUSES.find((known) => known === word)
  const content = objectOf(item.content)
  const usage = objectOf(item.usage)
  const seconds = typeof item.duration === 'number' && item.duration > 0 ? Math.ceil(item.duration) : undefined
  return {
    id,
    status,
    word: /^[a-z_]{1,30}$/i.test(word) ? word : 'other',
    ...given({
      videoUrl: text(content.video_url),
      lastFrameUrl: text(content.last_frame_url),
      outputTokens: readCount(usage.completion_tokens),
      seconds: readCount(seconds),
      resolution: /^\d{1,5}[pk]$/.exec(text(item.resolution)?.toLowerCase() ?? '')?.[0],
      failure: status === 'failed' || status === 'expired' ? failureOf(item.error, status, target) : undefined,
    }),
  }
}

/** Errors about content and parameters are the caller's fault; all others are the vendor's. */
const CALLERS = /sensitive|invalid|input|copyright|policy|moderation|unsupported|missing/i

function failureOf(error: unknown, status: 'failed' | 'expired', target: Target): TaskFailure {
  const given = objectOf(error)
  const code = text(given.code)?.slice(0, 200) ?? ''
  // Only a plain error name that contains no secret.
  const reason = /^[a-z_.-]{1,100}$/i.test(code) && withoutSecrets(code, target) === code ? code : undefined
  const said = text(given.message)
  const kind = status === 'expired' ? 'upstream_timeout' : CALLERS.test(code) ? 'upstream_invalid' : 'upstream_failed'
  return {
    kind,
    ...(reason ? { reason } : {}),
    ...(kind === 'upstream_invalid' && said
      ? { message: scrub(said, { paidRequest: { product: 'the model' }, target }) }
      : {}),
  }
}

function itemsOf(body: Buffer): Json[] {
  const { items } = parse(body)
  // The member may be missing from an empty page.
  if (items === undefined || items === null) return []
  if (!Array.isArray(items)) throw garbled('the list of tasks has no items')
  return objects(items)
}

function parse(body: Buffer): Json {
  const value = jsonIn(body.toString('utf8'))
  if (isObject(value)) return value
  throw garbled('the body is not a JSON object')
}
