// The video vendor's task API: create, look, list, cancel, and the files that it makes.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isRecord, type Json, parseJson, string } from './json.ts'
import { clip } from './media.ts'
import { misbehave } from './misbehave.ts'
import { paint } from './picture.ts'
import type { Room, RoomContext } from './room.ts'
import { hash } from './seed.ts'
import { readTriggers } from './trigger.ts'
import { promptOf, readOrder } from './video-order.ts'
import { packTask, statusOf, taskObject, unpackTask, type VideoTask } from './video-task.ts'

/** Lifelike waiting, at speed 1. A real vendor takes minutes; nobody wants to watch a simulation for that long. */
const QUEUED_MS = 2_000
const RUNNING_MS = 8_000
/** The oldest are forgotten beyond this, as the vendor forgets after a week. */
const TASKS_MAX = 100_000

const TASKS = '/ark/contents/generations/tasks'

/** A room of its own for each sandbox, because it remembers its tasks. */
export function openVideoRoom(): Room {
  const tasks = new Map<string, VideoTask>()
  return {
    name: 'video-task',
    match: (_method, path) => path === TASKS || path.startsWith(`${TASKS}/`) || path.startsWith('/ark/files/'),
    serve(req, res, ctx) {
      const id = ctx.path.slice(TASKS.length + 1)
      if (ctx.path.startsWith('/ark/files/')) return sendFile(req, res, ctx, tasks)
      if (req.method === 'POST' && id === '') return create(res, ctx, tasks)
      if (req.method === 'GET') return id === '' ? listTasks(ctx, tasks) : show(res, ctx, tasks, id)
      if (req.method === 'DELETE' && id !== '') return remove(res, ctx, tasks, id)
      ctx.json(405, arkError(405, 'This method is not allowed here.'))
    },
  }
}

const CODES: Readonly<Record<number, string>> = {
  400: 'InvalidParameter',
  401: 'AuthenticationError',
  402: 'AccountOverdueError',
  403: 'AccessDenied',
  404: 'ResourceNotFound',
  429: 'QuotaExceeded',
  500: 'InternalServiceError',
  503: 'ServerOverloaded',
}

function arkError(status: number, message: string, param: string | null = null, code: string | null = null): Json {
  const own = code ?? CODES[status] ?? (status < 500 ? 'InvalidParameter' : 'InternalServiceError')
  return {
    error: { code: own, message, param: param ?? '', type: status < 500 ? 'BadRequest' : 'InternalServerError' },
  }
}

async function create(res: ServerResponse, ctx: RoomContext, tasks: Map<string, VideoTask>): Promise<void> {
  const body = parseJson((await ctx.body()).toString('utf8'))
  if (!isRecord(body)) return ctx.json(400, arkError(400, 'The request body is not valid JSON.'))
  const prompt = promptOf(body)
  ctx.call.model = string(body.model)
  const { headers } = ctx.call
  const triggers = readTriggers({ texts: [prompt, string(body.model)], headers, query: ctx.query, memory: ctx.memory })
  if (await misbehave(res, ctx, triggers, arkError)) return
  if (triggers.has('submit-500'))
    return ctx.json(500, arkError(500, 'The service failed before it took the task (simulated).'))
  if (triggers.has('reject')) {
    const message = 'The request failed because the input text may contain sensitive information (simulated).'
    return ctx.json(400, arkError(400, message, null, 'InputTextSensitiveContentDetected'))
  }
  try {
    const order = readOrder(body)
    const nowMs = ctx.world.nowMs()
    const made: Omit<VideoTask, 'id'> = {
      model: string(body.model),
      owner: ownerOf(ctx),
      order,
      // References may be large; the film shows none of them.
      body: { ...body, content: [] },
      triggers,
      createdSeconds: Math.floor(nowMs / 1000),
      createdMs: ctx.world.elapsedMs(),
      queuedMs: triggers.number('queued-ms') ?? QUEUED_MS / ctx.speed,
      runningMs: triggers.number('running-ms') ?? RUNNING_MS / ctx.speed,
      cancelled: false,
      deleted: false,
      polls: 0,
    }
    const task: VideoTask = { ...made, id: `cgt-${stamp(nowMs)}-${packTask(made, ctx.world.bytes(4).toString('hex'))}` }
    tasks.set(task.id, task)
    const oldest = tasks.keys().next().value
    if (tasks.size > TASKS_MAX && oldest !== undefined) tasks.delete(oldest)
    ctx.log.submitted(string(headers['x-client-token']) || string(headers['idempotency-key']) || prompt)
    // From here on the vendor has the task, whatever its caller hears.
    if (triggers.has('submit-timeout')) return ctx.gone()
    if (triggers.has('submit-cut')) return ctx.cut()
    if (triggers.has('submit-lost'))
      return ctx.json(500, arkError(500, 'The service failed after it took the task (simulated).'))
    ctx.json(200, { id: task.id })
  } catch (error) {
    ctx.refuse(error, arkError)
  }
}

/** 20261115030828 */
function stamp(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/\D/g, '').slice(0, 14)
}

function ownerOf(ctx: RoomContext): string {
  return hash(string(ctx.call.headers.authorization)).toString(36)
}

/** A task that this sandbox took, or that one before it did. */
function recall(ctx: RoomContext, tasks: Map<string, VideoTask>, id: string): VideoTask | undefined {
  const task = tasks.get(id) ?? unpackTask(id, ctx.world)
  if (task) tasks.set(id, task)
  return task?.deleted ? undefined : task
}

/** A task is lost to those who did not create it, and when a trigger loses it after its time in the queue. */
function findTask(ctx: RoomContext, tasks: Map<string, VideoTask>, id: string): VideoTask | undefined {
  const task = recall(ctx, tasks, id)
  if (!task || task.owner !== ownerOf(ctx)) return undefined
  return task.triggers.has('lost') && ctx.world.elapsedMs() - task.createdMs >= task.queuedMs ? undefined : task
}

function unknown(ctx: RoomContext, id: string): void {
  ctx.json(404, arkError(404, `The specified resource ${id} is not found.`, 'id'))
}

async function show(res: ServerResponse, ctx: RoomContext, tasks: Map<string, VideoTask>, id: string): Promise<void> {
  const { headers } = ctx.call
  const own = readTriggers({ texts: [], headers, query: ctx.query, memory: ctx.memory })
  if (await misbehave(res, ctx, own, arkError)) return
  const task = findTask(ctx, tasks, id)
  if (!task) return unknown(ctx, id)
  task.polls++
  if (task.polls <= (task.triggers.number('poll-500') ?? 0))
    return ctx.json(500, arkError(500, 'Simulated failure of a poll.'))
  if (task.polls <= (task.triggers.number('poll-429') ?? 0))
    return ctx.json(429, arkError(429, 'Simulated rate limit of polls.'), { 'retry-after': '1' })
  if (task.polls <= (task.triggers.number('poll-stall') ?? 0)) return ctx.gone()
  ctx.json(200, taskObject(task, ctx.world.elapsedMs(), ctx.baseUrl))
}

function listTasks(ctx: RoomContext, tasks: Map<string, VideoTask>): void {
  const { query } = ctx
  const nowMs = ctx.world.elapsedMs()
  const ids = query.getAll('filter.task_ids').flatMap((value) => value.split(','))
  const status = query.get('filter.status')
  const model = query.get('filter.model')
  const named = ids.length === 0 ? [...tasks.keys()] : ids
  const found = named
    .map((id) => findTask(ctx, tasks, id))
    .filter((task) => task !== undefined)
    .filter((task) => (status === null || statusOf(task, nowMs) === status) && (model === null || task.model === model))
  const size = Math.min(500, Math.max(1, Number(query.get('page_size')) || 10))
  const page = Math.max(1, Number(query.get('page_num')) || 1)
  // The newest first.
  const shown = found.reverse().slice((page - 1) * size, page * size)
  ctx.json(200, { items: shown.map((task) => taskObject(task, nowMs, ctx.baseUrl)), total: found.length })
}

async function remove(res: ServerResponse, ctx: RoomContext, tasks: Map<string, VideoTask>, id: string): Promise<void> {
  const own = readTriggers({ texts: [], headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
  if (await misbehave(res, ctx, own, arkError)) return
  const task = findTask(ctx, tasks, id)
  if (!task) return unknown(ctx, id)
  const status = statusOf(task, ctx.world.elapsedMs())
  if (status === 'running') {
    return ctx.json(
      409,
      arkError(409, 'A running task cannot be cancelled or deleted.', 'id', 'InvalidAction.RunningTaskDeletion'),
    )
  }
  if (status === 'queued') task.cancelled = true
  else task.deleted = true
  ctx.json(200, {})
}

/** Files need no credential: their address is the secret. */
async function sendFile(
  req: IncomingMessage,
  res: ServerResponse,
  ctx: RoomContext,
  tasks: Map<string, VideoTask>,
): Promise<void> {
  const [, id = '', extension] = ctx.path.match(/^\/ark\/files\/(.+)\.(mp4|png)$/) ?? []
  const task = recall(ctx, tasks, id)
  if (!task || task.triggers.has('no-file') || statusOf(task, ctx.world.elapsedMs()) !== 'succeeded') {
    return ctx.json(404, arkError(404, 'There is no such file, or it has expired.'))
  }
  const { ratio, seconds } = task.order
  const [bytes, type] = extension === 'png' ? [await lastFrame(task), 'image/png'] : [clip(ratio, seconds), 'video/mp4']
  res.writeHead(200, { 'content-type': type, 'content-length': bytes.length, 'accept-ranges': 'none' })
  if (req.method === 'HEAD') return void res.end()
  if (!task.triggers.has('cut-file')) return void res.end(bytes)
  await new Promise((resolve) => res.write(bytes.subarray(0, bytes.length / 2), resolve))
  await ctx.pause(5)
  ctx.cut()
}

function lastFrame({ model, order }: VideoTask): Promise<Buffer> {
  const { prompt, ratio, resolution, seed } = order
  const [across = 16, down = 9] = ratio.split(':').map(Number)
  const size = { width: across * 48, height: down * 48 }
  return paint({ ...size, prompt, model, format: 'png', quality: resolution, seed, references: [], note: 'last frame' })
}
