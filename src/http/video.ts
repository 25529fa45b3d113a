// Video creation and jobs: the five endpoints over the job engine.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { admit, rateHeaders } from '../admission/admit.ts'
import type { Principal } from '../admission/api-key.ts'
import { hashRequest, readIdempotencyKey, replay } from '../admission/idempotency.ts'
import type { Model } from '../catalog/document.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import type { Catalog, CatalogStore } from '../catalog/store.ts'
import type { JobEngine } from '../jobs/engine.ts'
import { JOB_STATUSES, type JobRow, type JobStatus } from '../jobs/job.ts'
import { viewJob, viewListedJob } from '../jobs/job-view.ts'
import { isByTokens } from '../jobs/settle.ts'
import { newJobId, storeRequest } from '../jobs/stored-request.ts'
import { asFault, Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson } from '../kernel/json.ts'
import type { PathDeps } from '../pipeline/call.ts'
import type { Ask } from '../protocols/protocol.ts'
import { readModelName } from '../protocols/text.ts'
import { checkVideoBody } from '../protocols/video-task/body.ts'
import { readVideoRequest, type VideoRequest } from '../protocols/video-task/request.ts'
import { ANY_MODEL } from '../protocols/video-task/rules.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import type { Caller } from './caller.ts'
import { type Handlers, onPath } from './routes.ts'
import { jsonBody, rawQuery } from './server.ts'

export interface VideoDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly engine: JobEngine
  readonly guard: Pick<GuardedFetch, 'check'>
  readonly strictErrors: boolean
}

const LIST_DEFAULT = 20
const LIST_MAX = 100
const KEEP_ALIVE_MS = 15_000

export function videoHandlers(deps: VideoDeps): Handlers {
  const { engine, path } = deps
  const view = (job: JobRow) => viewJob(job, engine.results)

  /** The caller's own job. Ids cannot be guessed, so that the contract's 20001 for others' jobs tells nobody anything. */
  async function ownJob(request: FastifyRequest): Promise<JobRow> {
    const { id } = request.params as { id: string }
    const job = /^\d{1,30}$/.test(id) ? await engine.jobs.find(id) : undefined
    if (!job) throw new Fault('job_unknown')
    if (job.account_id !== request.principal!.accountId)
      throw new Fault('access_denied', { message: 'This job belongs to another account.' })
    return job
  }

  return {
    video(request, reply, spec) {
      const now = deps.catalog.current
      const json = readJson(checkVideoBody(jsonBody(request)))
      const { video, ask, model } = videoAsk(json, now, request.principal!)
      onPath(request, reply, deps, (out) => create(request, out, spec, { json, video, ask, model, catalog: now }, deps))
    },

    async jobs(request, reply) {
      const { rows, more } = await engine.jobs.list(request.principal!.accountId, readListQuery(rawQuery(request)))
      return send(reply, request, rows.map(view), {
        hasMore: more,
        ...(more ? { nextBefore: rows.at(-1)!.id } : {}),
      })
    },

    'jobs/{id}': async (request, reply) => send(reply, request, view(await ownJob(request))),

    'jobs/{id}/cancel': async (request, reply) => {
      const job = await ownJob(request)
      return send(reply, request, view(job.status === 'CANCELLED' ? job : await engine.cancel(job)))
    },

    async 'jobs/{id}/events'(request, reply) {
      const job = await ownJob(request)
      if (request.method === 'HEAD') return reply.header('content-type', 'text/event-stream').send()
      onPath(request, reply, deps, (out) => relayEvents(job, out, engine, view, path))
    },
  }
}

/** An account's jobs for the console, a page at a time. */
export async function listJobs(
  engine: JobEngine,
  account: string,
  filter: { status?: string | undefined; cursor?: string | undefined; limit: number },
) {
  const { rows, more } = await engine.jobs.list(account, {
    limit: filter.limit,
    ...(filter.status === undefined ? {} : { status: filter.status as JobStatus }),
    ...(filter.cursor === undefined ? {} : { before: filter.cursor }),
  })
  return {
    items: rows.map((job) => viewListedJob(job, engine.results)),
    next: more ? rows.at(-1)!.id : null,
  }
}

export interface VideoAsk {
  readonly video: VideoRequest
  readonly ask: Ask
  readonly model: Model
}

/** What is wrong with the body is said first; a model that is no video model, or not this key's, does not exist here. */
export function videoAsk(json: JsonText, catalog: Catalog, principal: Principal): VideoAsk {
  const uid = readModelName(json)
  const model = Object.hasOwn(catalog.document.models, uid) ? catalog.document.models[uid] : undefined
  const offered = model?.enabled && model.type === 'video' && (principal.models?.has(uid) ?? true)
  if (!model || !offered) {
    readVideoRequest(json, ANY_MODEL)
    throw new Fault('model_unknown')
  }
  const video = readVideoRequest(json, model.traits, isByTokens(model.pricing))
  const ask: Ask = {
    product: uid,
    stream: false,
    price: video.price,
    worst: video.worst,
    open() {
      throw new Fault('internal', { internal: { why: 'a video is asked for by its job' } })
    },
  }
  return { video, ask, model }
}

interface Creation extends VideoAsk {
  readonly json: JsonText
  readonly catalog: Catalog
}

/** The hold and the job's row are one statement: after it the job will be worked on, whatever happens to this process. */
async function create(
  request: FastifyRequest,
  out: Caller,
  spec: EndpointSpec,
  { json, video, ask, model, catalog }: Creation,
  { path, engine, guard }: VideoDeps,
): Promise<void> {
  const principal = request.principal!
  const key = readIdempotencyKey(request.headers['idempotency-key'] as string | undefined)
  const idempotency = key === undefined ? undefined : { key, requestHash: hashRequest(spec.id, json.text) }
  if (video.callbackUrl !== undefined) await guard.check(video.callbackUrl, { signal: out.signal })
  const startedMs = path.world.elapsedMs()
  const seen = path.monitor.begin({
    requestId: request.id,
    principal,
    ask,
    door: spec.id,
    startedMs,
    callerHeaders: {},
  })
  const id = newJobId(path.world)
  const { text, apart } = storeRequest(video, path.world)
  try {
    if (apart !== undefined) await engine.jobs.keepBody(id, apart)
    const admitted = await admit(
      {
        requestId: request.id,
        principal,
        ask,
        catalog,
        product: model,
        ...(idempotency ? { idempotency } : {}),
        job: {
          id,
          input: JSON.stringify(video.input),
          request: text,
          ...(video.callbackUrl === undefined ? {} : { callback: video.callbackUrl }),
        },
      },
      path.ledger,
    )
    if (admitted === 'replay') {
      if (apart !== undefined) await engine.jobs.dropBody(id)
      await replay({ principal, ...(idempotency ? { idempotency } : {}), out }, path.database)
      seen.end({ status: 200, outcome: 'replayed', charged: 0n })
      return
    }
    engine.created(id)
    seen.held(admitted.held)
    out.send(
      200,
      { 'content-type': JSON_TYPE, ...(admitted.rate ? rateHeaders(admitted.rate) : {}) },
      JSON.stringify({ success: true, data: { jobId: id, status: 'PENDING' }, requestId: request.id }),
    )
    seen.end({ status: 200, outcome: 'accepted', charged: 0n })
  } catch (error) {
    // When it is not known whether the row was made, the body stays; a job that is given up takes it along.
    if (apart !== undefined && asFault(error).kind !== 'unavailable')
      await engine.jobs.dropBody(id).catch(() => undefined)
    seen.end({ status: asFault(error).status, outcome: 'refused', charged: 0n })
    throw error
  }
}

/** One event for the status now and for each that follows; the stream ends with the job. */
async function relayEvents(
  job: JobRow,
  out: Caller,
  engine: JobEngine,
  view: (job: JobRow) => object,
  { world }: PathDeps,
): Promise<void> {
  out.startStream({ 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' })
  const frame = (row: JobRow) => `event: status\nid: ${row.status}\ndata: ${JSON.stringify(view(row))}\n\n`
  if (hasEnded(job)) return out.end(frame(job))
  await new Promise<void>((resolve) => {
    let cancel: () => void = () => {}
    const stayAlive = () => {
      void out.write(': keep-alive\n\n')
      cancel = world.after(KEEP_ALIVE_MS, stayAlive)
    }
    const stop = engine.events.listen(job, (row) => {
      if (!hasEnded(row)) return void out.write(frame(row))
      end()
      out.end(frame(row))
    })
    function end() {
      stop()
      cancel()
      resolve()
    }
    out.signal.addEventListener('abort', end)
    void out.write(frame(job))
    cancel = world.after(KEEP_ALIVE_MS, stayAlive)
    if (out.signal.aborted) end()
  })
}

const hasEnded = ({ status }: JobRow) => status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED'

function readListQuery(query: string): { status?: JobStatus; before?: string; limit: number } {
  const params = new URLSearchParams(query)
  const status = params.get('status')?.toUpperCase()
  const before = params.get('before')
  const limit = params.get('limit')
  if (status !== undefined && !(JOB_STATUSES as readonly string[]).includes(status))
    throw invalid(`"status" must be one of ${JOB_STATUSES.join(', ')}.`, 'status')
  if (before !== null && !/^\d{1,30}$/.test(before)) throw invalid('"before" must be the id of a job.', 'before')
  if (limit !== null && !(/^\d{1,3}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= LIST_MAX))
    throw invalid(`"limit" must be a whole number from 1 to ${LIST_MAX}.`, 'limit')
  return {
    limit: limit === null ? LIST_DEFAULT : Number(limit),
    ...(status === undefined ? {} : { status: status as JobStatus }),
    ...(before === null ? {} : { before }),
  }
}

const JSON_TYPE = 'application/json; charset=utf-8'

function send(reply: FastifyReply, request: FastifyRequest, data: unknown, more: object = {}): FastifyReply {
  return reply
    .header('content-type', JSON_TYPE)
    .header('cache-control', 'no-store')
    .send(JSON.stringify({ success: true, data, ...more, requestId: request.id }))
}
