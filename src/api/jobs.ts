// A caller's own jobs: to list, to look at, to follow and to cancel.
import { maySee, type Principal } from '../admission/api-key.ts'
import { JOB_STATUSES, type JobStatus } from '../catalog/generation-answers.ts'
import type { JobEngine } from '../jobs/engine.ts'
import { type JobRow, viewJob, viewListedJob, viewVideo } from '../jobs/job.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { HandlersOf, RequestContext } from './api.ts'
import type { Caller } from './server/caller.ts'
import { rawQuery } from './server/server.ts'

const LIST_DEFAULT = 20
const LIST_MAX = 100
const KEEP_ALIVE_MS = 15_000

export function jobHandlers(deps: {
  readonly world: World
  readonly engine: JobEngine
}): HandlersOf<'jobs' | 'jobs/{id}' | 'jobs/{id}/cancel' | 'jobs/{id}/events' | 'videos/{id}' | 'videos/{id}/content'> {
  const { engine, world } = deps
  const view = (job: JobRow) => viewJob(job, engine.results)

  // The same job has its id with a prefix where the openai SDK reads it.
  const ownJob = (request: RequestContext) =>
    findOwnJob(engine, request.principal, request.param('id').replace(/^video_/, ''))

  return {
    async jobs(request, out) {
      const viewer = request.principal
      const page = { ...readListQuery(rawQuery(request)), viewer }
      const { rows, more } = await engine.jobs.list(viewer.accountId, page)
      return send(out, request, rows.map(view), { hasMore: more, ...(more ? { nextBefore: rows.at(-1)!.id } : {}) })
    },

    'jobs/{id}': async (request, out) => send(out, request, view(await ownJob(request))),

    'jobs/{id}/cancel': async (request, out) => {
      const job = await ownJob(request)
      return send(out, request, view(job.status === 'CANCELLED' ? job : await engine.cancel(job)))
    },

    async 'jobs/{id}/events'(request, out) {
      const job = await ownJob(request)
      if (request.method === 'HEAD') return out.send(200, { 'content-type': 'text/event-stream' }, '')
      await relayEvents(job, out, { engine, world, view })
    },

    'videos/{id}': async (request, out) => {
      const body = JSON.stringify(viewVideo(await ownJob(request)))
      out.send(200, { 'content-type': JSON_TYPE, 'cache-control': 'no-store' }, body)
    },

    'videos/{id}/content': async (request, out) => {
      const variant = new URLSearchParams(rawQuery(request)).get('variant') ?? 'video'
      if (variant !== 'video') throw invalid('"variant" must be video.', 'variant')
      const { status, files } = await ownJob(request)
      const [file] = (status === 'COMPLETED' && files) || []
      if (!file) throw new Fault('conflict', { message: `There is no video yet: its job is ${status}.` })
      // The file may be large, and is served where all files are.
      out.send(302, { location: engine.results.url(file.video), 'cache-control': 'no-store' }, '')
    },
  }
}

/**
 * A job that the caller's key sees. Ids cannot be guessed, so that the contract's 20001 for others' jobs tells nobody
 * anything.
 */
export async function findOwnJob(engine: Pick<JobEngine, 'jobs'>, viewer: Principal, id: string): Promise<JobRow> {
  const job = /^\d{1,30}$/.test(id) ? await engine.jobs.find(id) : undefined
  if (!job) throw new Fault('job_unknown')
  if (job.account_id !== viewer.accountId)
    throw new Fault('access_denied', { message: 'This job belongs to another account.' })
  if (!maySee(viewer, job)) throw new Fault('job_unknown')
  return job
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
  return { items: rows.map((job) => viewListedJob(job, engine.results)), next: more ? rows.at(-1)!.id : null }
}

/** One event for the status now and for each that follows; the stream ends with the job. */
async function relayEvents(
  job: JobRow,
  out: Caller,
  { engine, world, view }: { engine: JobEngine; world: World; view: (job: JobRow) => object },
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

export const hasEnded = ({ status }: JobRow) => status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED'

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

function send(out: Caller, request: RequestContext, data: unknown, more: object = {}): void {
  const body = JSON.stringify({ success: true, data, ...more, requestId: request.id })
  out.send(200, { 'content-type': JSON_TYPE, 'cache-control': 'no-store' }, body)
}
