// One task of the simulated video vendor. Its state is not kept by timers but read off the clock, so that ten thousand
// waiting tasks cost nothing.

import type { World } from '../src/kernel/world.ts'
import { type Json, list, number, parseJson, string } from './json.ts'
import { RATIOS } from './media.ts'
import { Triggers } from './trigger.ts'
import type { ClipOrder } from './video-order.ts'

const FRAMES_PER_SECOND = 24

type TaskStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired'

export interface VideoTask {
  readonly id: string
  readonly model: string
  /** A hash of the credential that created it: the vendor shows a task to nobody else. */
  readonly owner: string
  readonly order: ClipOrder
  readonly body: Json
  readonly triggers: Triggers
  /** Unix seconds. */
  readonly createdSeconds: number
  /** From the world's monotonic clock. */
  readonly createdMs: number
  readonly queuedMs: number
  readonly runningMs: number
  /** What callers did to it. */
  cancelled: boolean
  deleted: boolean
  /** How often it was looked at. */
  polls: number
}

export function statusOf(task: VideoTask, nowMs: number): TaskStatus {
  const { triggers } = task
  const age = nowMs - task.createdMs
  if (task.cancelled) return 'cancelled'
  if (age < task.queuedMs) return 'queued'
  if (triggers.has('cancelled')) return 'cancelled'
  if (age < task.queuedMs + task.runningMs || triggers.has('stuck')) return 'running'
  if (triggers.has('fail')) return 'failed'
  return triggers.has('expire') ? 'expired' : 'succeeded'
}

const FAILURES: Readonly<Record<string, string>> = {
  OutputVideoSensitiveContentDetected:
    'The request failed because the output video may contain sensitive information (simulated).',
  InternalServiceError: 'The service encountered an unexpected internal error (simulated).',
}

/** The task as the vendor's API shows it. */
export function taskObject(task: VideoTask, nowMs: number, baseUrl: string): Json {
  const status = statusOf(task, nowMs)
  const { order, body, triggers } = task
  const changedMs = { queued: 0, running: task.queuedMs }[status as string] ?? task.queuedMs + task.runningMs
  return {
    id: task.id,
    model: task.model,
    status: triggers.has('odd-status') && status === 'running' ? 'postprocessing' : status,
    error: failure(status, triggers),
    created_at: task.createdSeconds,
    updated_at: task.createdSeconds + Math.floor(changedMs / 1000),
    ...(status === 'succeeded' ? result(task, baseUrl) : {}),
    seed: order.seed,
    resolution: order.resolution,
    ratio: order.ratio,
    duration: order.seconds,
    framespersecond: FRAMES_PER_SECOND,
    service_tier: 'default',
    execution_expires_after: body.execution_expires_after ?? 172_800,
    generate_audio: body.generate_audio ?? true,
    ...(body.safety_identifier === undefined ? {} : { safety_identifier: body.safety_identifier }),
    draft: false,
  }
}

function failure(status: TaskStatus, triggers: Triggers): Json | null {
  if (status === 'failed') {
    const code = triggers.find('fail')?.value || 'OutputVideoSensitiveContentDetected'
    return { code, message: FAILURES[code] ?? `The task failed with ${code} (simulated).` }
  }
  return status === 'expired'
    ? { code: 'TaskExpired', message: 'The task was not finished in time (simulated).' }
    : null
}

function result(task: VideoTask, baseUrl: string): Json {
  const url = `${baseUrl}/ark/files/${task.id}`
  const { triggers } = task
  // The real vendor signs its addresses and lets them die after a day.
  const signed = 'X-Tos-Expires=86400&X-Tos-Signature=simulated'
  const frame = task.body.return_last_frame === true ? { last_frame_url: `${url}.png?${signed}` } : {}
  const tokens = triggers.has('zero-usage') ? 0 : (triggers.number('bad-usage') ?? clipTokens(task.order))
  const usage = triggers.has('no-usage') ? {} : { usage: { completion_tokens: tokens, total_tokens: tokens } }
  return { content: { video_url: `${url}.mp4?${signed}`, ...frame }, ...usage }
}

/** Pixels on the shorter side. */
const SHORT_SIDE: Readonly<Record<string, number>> = { '480p': 480, '720p': 720, '1080p': 1080, '4k': 2160 }

/** The vendor's formula: pixels of all frames, and one frame more, by 1024. */
function clipTokens({ ratio, resolution, seconds }: ClipOrder): number {
  const short = SHORT_SIDE[resolution] ?? 720
  const [across = 16, down = 9] = ratio.split(':').map(Number)
  const long = Math.round((short * Math.max(across, down)) / Math.min(across, down))
  return Math.floor((short * long * (seconds * FRAMES_PER_SECOND + 1)) / 1024)
}

/** What of a prompt the name of a task keeps. */
const PROMPT_CHARS_MAX = 120
const SECONDS_MAX = 30

/**
 * The last part of a task's id holds the task itself: a vendor does not forget its tasks when it restarts, and the
 * sandbox, which keeps nothing on disk, must not either.
 */
export function packTask(task: Omit<VideoTask, 'id'>, nonce: string): string {
  const { model, owner, order, createdSeconds, queuedMs, runningMs } = task
  const triggers = task.triggers.all.map(({ name, value, rest }) => [name, value, rest])
  const { prompt, ratio, resolution, seconds, seed } = order
  const last = task.body.return_last_frame === true
  const fields = [
    nonce,
    owner,
    model,
    createdSeconds,
    queuedMs,
    runningMs,
    prompt.slice(0, PROMPT_CHARS_MAX),
    ratio,
    resolution,
    seconds,
    seed,
    last,
    triggers,
  ]
  return Buffer.from(JSON.stringify(fields)).toString('base64url')
}

/** The task of an id that another sandbox gave out; undefined when it is not one. */
export function unpackTask(id: string, world: World): VideoTask | undefined {
  const fields = list(parseJson(Buffer.from(id.split('-').slice(2).join('-'), 'base64url').toString('utf8')))
  if (fields.length !== 13) return undefined
  const [, owner, model, createdSeconds, queuedMs, runningMs, prompt, ratio, resolution, seconds, seed, last, packed] =
    fields
  const created = number(createdSeconds) ?? 0
  // An id can be made up, so nothing in it may cost more than a real order.
  const length = Math.min(SECONDS_MAX, Math.max(1, Math.round(number(seconds) ?? 5)))
  return {
    id,
    model: string(model),
    owner: string(owner),
    order: {
      prompt: string(prompt),
      ratio: RATIOS.includes(string(ratio)) ? string(ratio) : '16:9',
      resolution: string(resolution),
      seconds: length,
      seed: number(seed) ?? 0,
    },
    body: { return_last_frame: last === true },
    triggers: new Triggers(
      list(packed).map((own) => ({
        name: string(list(own)[0]),
        value: string(list(own)[1]),
        rest: string(list(own)[2]),
      })),
    ),
    createdSeconds: created,
    createdMs: world.elapsedMs() - (world.nowMs() - created * 1000),
    queuedMs: number(queuedMs) ?? 0,
    runningMs: number(runningMs) ?? 0,
    cancelled: false,
    deleted: false,
    polls: 0,
  }
}
