// The client of the vendors' task APIs. Polls of many tasks are batched into one request, so that ten thousand open
// jobs cost a vendor some dozen requests a second and not a thousand.

import { type CatalogStore, catalogFor, findProduct } from '../catalog/store.ts'
import { type Batch, createBatch } from '../kernel/batch.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import { NEVER } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { BYOK } from '../ledger/operation.ts'
import type { VideoOrder } from '../protocols/media/video-task/request.ts'
import {
  cancelCall,
  createCall,
  findMarked,
  groupTasks,
  LOOK_TASKS_MAX,
  listCall,
  readCreated,
  readTask,
  readTasks,
  showCall,
  showManyCall,
  type Task,
  type TaskMark,
} from '../protocols/media/video-task/task.ts'
import { loggedIn, vendorCall } from '../protocols/vendor-call.ts'
import { byokKeyFault, describe, type Refusal, refusal, retryAfterSeconds } from '../protocols/vendor-fault.ts'
import { readErrorBody } from '../protocols/vendor-words.ts'
import { withCredential } from '../routing/credential-state.ts'
import { byByokKey, type Candidate, type RouteSources, routeRequest, routesFor } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import type { HttpCall, Upstream } from '../upstream/call.ts'
import type { ByokKeys, OwnUse } from '../upstream/credentials/byok-keys.ts'
import type { Logins } from '../upstream/login.ts'
import { type ClaimedJob, readStoredRequest } from './job.ts'

/** The route and credential of a job's task. */
export interface TaskPlace extends Candidate {
  /** The job's account, for a submission. Absent for polls, which count as the gateway's own calls. */
  readonly account?: string
}

/** The vendor has certainly not accepted it. */
export interface Refused {
  readonly outcome: 'refused'
  /** Set when a retry is pointless. */
  readonly fault?: Fault
  /** The vendor's temporary error; a retry may succeed. */
  readonly forNow?: Fault
  readonly waitMs?: number
  /** A problem that the operator must fix. */
  readonly ours?: string
  /** The credential was disabled, so another one may succeed. */
  readonly credentialDisabled?: boolean
  /** The vendor refused the account's own key. */
  readonly byok?: boolean
}

type Submission =
  | { readonly outcome: 'accepted'; readonly taskId: string }
  | Refused
  /** The vendor may or may not have accepted it. */
  | { readonly outcome: 'unknown'; readonly why: Readonly<Record<string, unknown>> }
  /** `begin` returned false, so nothing was sent. */
  | { readonly outcome: 'stopped' }

export type VendorTasks = ReturnType<typeof createVendorTasks>

interface VendorTasksDeps {
  readonly upstream: Upstream
  readonly logins: Logins
  readonly vendors: Vendors
  readonly world: World
}

const BODY_BYTES_MAX = 8_000_000
const LOOKS_AT_ONCE = 4
const SEARCH_PAGES_MAX = 50
const WAIT_SECONDS_MAX = 600

const STOPPED = new Error('not begun')

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** Set unless the status is 2xx. */
  readonly refused: Refusal | undefined
}

export function createVendorTasks(deps: VendorTasksDeps) {
  const looks = new Map<string, Batch<string, Task | undefined>>()
  /** Vendors that cannot show several tasks in one request. */
  const oneByOne = new Set<string>()

  async function ask(call: HttpCall, place: TaskPlace, begin?: () => Promise<boolean>): Promise<Reply> {
    const { vendorName, vendor, target, account = '' } = place
    // The circuit breaker judges only calls with the gateway's credentials.
    const isOwn = place.credential === BYOK
    const { upstream, logins, vendors, world } = deps
    let heard = false
    let leave: (() => void) | undefined
    try {
      // A submission is never aborted, not even by a shutdown: its answer says whether there is a task.
      const entered = vendors.enter(vendorName, vendor, NEVER)
      leave = entered instanceof Promise ? await entered : entered
      if (begin && !(await begin())) throw STOPPED
      const startedMs = world.elapsedMs()
      const send = async () => {
        const used = await loggedIn(target, { logins, world, isForeign: isOwn })
        const got = await upstream.send(vendorCall(call, used), { deadlines: vendor.timeouts, signal: NEVER })
        return { got, isStale: got.status === 401 && used.dropToken?.() === true }
      }
      const first = await send()
      // The token of a login may end early: once more with another.
      if (first.isStale) await first.got.read(BODY_BYTES_MAX)
      const reply = first.isStale ? (await send()).got : first.got
      const body = await reply.read(BODY_BYTES_MAX)
      const { status, headers } = reply
      heard = true
      const refused = status >= 200 && status < 300 ? undefined : refusal(status, readErrorBody(body), target.model, {})
      const latencyMs = world.elapsedMs() - startedMs
      if (!isOwn) {
        const answer = { status, latencyMs, refusal: judged(place, reply, refused), product: target.model }
        vendors.answered(vendorName, account, answer)
      }
      return { status, headers, body, refused }
    } catch (error) {
      if (leave && error instanceof Fault && error.blame === 'vendor') {
        heard = true
        if (!isOwn) vendors.failed(vendorName, account, error.kind, target.model)
      }
      throw error
    } finally {
      leave?.()
      if (!heard && !isOwn) vendors.undecided(vendorName, account)
    }
  }

  /**
   * The refusal as it counts against the vendor. If one of several credentials is rejected, only that credential is
   * disabled.
   */
  function judged(
    place: TaskPlace,
    { status, headers }: Pick<Reply, 'status' | 'headers'>,
    refused: Refusal | undefined,
  ) {
    const { credentials } = deps.vendors
    if (!place.credentials) return refused
    const { account = '' } = place
    if (refused === undefined) credentials.succeeded(place, account)
    if (refused?.credential === undefined) return refused
    credentials.disable(place, account, { why: refused.credential, status, seconds: retryAfterSeconds(headers) })
    return { vendorsFault: false }
  }

  async function lookAtOne(taskId: string, place: TaskPlace): Promise<Task | undefined> {
    const reply = await ask(showCall(taskId, place.target), place)
    if (reply.status === 404) return undefined
    return readTask(okBody(reply, place), place.target)
  }

  async function lookAtMany(ids: readonly string[], place: TaskPlace): Promise<Array<Task | undefined | Error>> {
    const one = (id: string) => lookAtOne(id, place).catch((error: Error) => error)
    if (ids.length === 1 || oneByOne.has(place.vendorName)) return Promise.all(ids.map(one))
    const reply = await ask(showManyCall(ids, place.target), place)
    if (reply.status === 400 || reply.status === 404 || reply.status === 405 || reply.status === 501) {
      oneByOne.add(place.vendorName)
      return Promise.all(ids.map(one))
    }
    const found = new Map(readTasks(okBody(reply, place), place.target).map((task) => [task.id, task]))
    // A task missing from the list may still exist, so it is polled on its own.
    return Promise.all(ids.map((id) => found.get(id) ?? one(id)))
  }

  async function lookAtAll(ids: readonly string[], place: TaskPlace): Promise<Array<Task | undefined | Error>> {
    const groups = groupTasks(ids).map((group) =>
      lookAtMany(group, place).catch((error: Error) => group.map(() => error)),
    )
    return (await Promise.all(groups)).flat()
  }

  return {
    /** `begin` is called when the vendor has a free slot, before anything is sent. False stops the submission. */
    async submit(
      order: VideoOrder,
      place: TaskPlace,
      mark: Pick<TaskMark, 'token' | 'seed'>,
      begin: () => Promise<boolean>,
    ): Promise<Submission> {
      let reply: Reply
      try {
        reply = await ask(createCall(order, place.target, mark), place, begin)
      } catch (error) {
        if (error === STOPPED) return { outcome: 'stopped' }
        if (!(error instanceof Fault)) throw error
        // Refused by the gateway itself, or never sent: the vendor has not received it.
        const unheard = error.details.internal?.sent === false || error.kind === 'upstream_unavailable'
        return unheard ? { outcome: 'refused' } : { outcome: 'unknown', why: kindOf(error) }
      }
      const { status, headers, body, refused } = reply
      if (!refused) {
        try {
          return { outcome: 'accepted', taskId: readCreated(body) }
        } catch (error) {
          return { outcome: 'unknown', why: kindOf(asFault(error)) }
        }
      }
      const waitSeconds = retryAfterSeconds(headers)
      const wait = waitSeconds === undefined ? {} : { waitMs: Math.min(waitSeconds, WAIT_SECONDS_MAX) * 1000 }
      const { fault, ours } = refused
      const told = asFault(describe(fault, { paidRequest: { product: 'the model' }, target: place.target }))
      const busy = fault.kind === 'upstream_rate_limited' || fault.kind === 'upstream_unavailable'
      const forNow = busy ? { forNow: told } : {}
      if (place.credentials && refused.credential) return { outcome: 'refused', credentialDisabled: true, ...forNow }
      const ofByokKey = place.credential === BYOK ? byokKeyFault(refused, place.vendorName) : undefined
      if (ofByokKey) {
        const said = ofByokKey.kind === 'byok_key_limited' ? { forNow: ofByokKey } : { fault: ofByokKey }
        return { outcome: 'refused', byok: true, ...said, ...wait }
      }
      // The cause is our credential or our account at the vendor: a retry may succeed.
      if (ours !== undefined) return { outcome: 'refused', ours, ...wait }
      if (busy) return { outcome: 'refused', ...forNow, ...wait }
      if (fault.blame === 'caller' && fault.kind !== 'conflict') return { outcome: 'refused', fault: told }
      return { outcome: 'unknown', why: { status } }
    },

    /**
     * Undefined: there is no such task. Rejects when the vendor gives no usable answer, which says nothing about the
     * task.
     */
    look(taskId: string, place: TaskPlace): Promise<Task | undefined> {
      const name = `${place.vendorName} ${place.target.baseUrl} ${place.target.secret ?? ''}`
      let batch = looks.get(name)
      if (!batch) {
        batch = createBatch<string, Task | undefined>({
          flush: (ids) => lookAtAll(ids, place) as Promise<Array<Task | Error>>,
          flushesMax: LOOKS_AT_ONCE,
          sizeMax: LOOK_TASKS_MAX,
        })
        looks.set(name, batch)
        const look = batch.run(taskId)
        // Accounts use and change their own keys, so an idle batch is removed.
        void batch.idle().then(() => looks.delete(name))
        return look
      }
      return batch.run(taskId)
    },

    /** The task that carries the mark, if the vendor has one. */
    async search(mark: TaskMark, place: TaskPlace): Promise<Task | undefined> {
      for (let page = 1; page <= SEARCH_PAGES_MAX; page++) {
        const reply = await ask(listCall(place.target, page), place)
        // A vendor without a list cannot be searched.
        if (reply.status === 404 || reply.status === 405 || reply.status === 501) return undefined
        const { task, more } = findMarked(okBody(reply, place), mark, place.target)
        if (task || !more) return task
      }
      return undefined
    },

    /** True: the task is cancelled. False: the vendor does not allow it. */
    async cancel(taskId: string, place: TaskPlace): Promise<boolean> {
      // The same request deletes a finished task and its result, so only a queued task is cancelled.
      const task = await lookAtOne(taskId, place)
      if (task?.status === 'cancelled') return true
      if (task?.status !== 'queued') return false
      const { status } = await ask(cancelCall(taskId, place.target), place)
      if (status >= 500) throw new Fault('upstream_failed', { internal: { status } })
      return status < 300
    },
  }
}

/** The fields for the log. */
function kindOf({ kind, details }: Fault): Readonly<Record<string, unknown>> {
  return { fault: kind, ...details.internal }
}

function okBody({ status, body, refused }: Reply, { vendorName }: TaskPlace): Buffer {
  if (!refused) return body
  const kind = status === 429 ? 'upstream_rate_limited' : status < 500 ? 'upstream_failed' : 'upstream_unavailable'
  throw new Fault(kind, { internal: { vendor: vendorName, status } })
}

// The route and the credential by which a job's task is made and later polled.

interface PlaceDeps {
  readonly catalog: CatalogStore
  readonly routes: RouteSources
  readonly byokKeys: Pick<ByokKeys, 'of'>
}

/**
 * Vendors show a task only to the credential that made it, so a job keeps its route and credential. If that credential
 * was removed, another credential of the vendor is used; it sees the task if it belongs to the same vendor account.
 */
export async function placeOf(job: ClaimedJob, deps: PlaceDeps): Promise<TaskPlace> {
  const candidates = await candidatesOf(job, deps)
  const ofRoute = candidates.filter((candidate) => candidate.number === job.route)
  const place = ofRoute.find((one) => (one.credential === BYOK) === (job.credential === BYOK)) ?? ofRoute[0]
  if (!place) throw new Fault('internal', { internal: { why: 'the route is gone', job: job.id, route: job.route } })
  const credential = place.credentials?.find(({ name }) => name === job.credential) ?? place.credentials?.[0]
  return credential ? withCredential(place, credential) : place
}

/**
 * The hold, made when the job was created, decides whether the account's own key or the gateway's credentials may be
 * used.
 */
async function candidatesOf(job: ClaimedJob, deps: PlaceDeps): Promise<Candidate[]> {
  const catalog = catalogFor(job.account_id, await deps.catalog.at(job.catalog_version))
  const product = findProduct(catalog, job.product)
  if (!product) return []
  const { routes, routing } = product
  const { byok, routes: allowed } = readStoredRequest(job.request)
  const able = routesFor({}, product, catalog.document)
  const pool = allowed ? able.filter((route) => allowed.includes(routes.indexOf(route) + 1)) : able
  const candidates = routeRequest({ product: job.product }, { routes, routing, pool }, catalog.document, deps.routes)
  if (!byok) return candidates
  const keys = await deps.byokKeys.of(job.account_id)
  const own = ownUseOf(() => keys?.use(product, catalog, product.routes))
  if (own) return byByokKey(candidates, { ...own, fallback: byok.fallback })
  // The account's key was removed. A task that it may have made can be polled only with the gateway's credentials. They
  // may make a new task only if the account allows the fallback, because otherwise the hold covers just the fee. A
  // refused submission has made no task.
  const mayBeMade = job.task_id !== null || job.submit_age_ms !== null
  return byok.fallback || mayBeMade ? candidates : []
}

/** A key that can no longer be decrypted counts as removed. */
function ownUseOf(use: () => OwnUse | undefined): OwnUse | undefined {
  try {
    return use()
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** Prefers a usable route other than the one that has just refused. */
export async function chooseRoute(
  job: ClaimedJob,
  deps: PlaceDeps & { readonly vendors: Vendors },
): Promise<Candidate | undefined> {
  const { vendors } = deps
  const { credential } = job
  // A fault of one of several credentials does not count against its route.
  const wasAside = ({ vendorName, credentials }: Candidate) =>
    credentials !== undefined && credential !== null && vendors.credentials.health(vendorName, credential).why !== null
  const isSame = (one: Candidate) => (one.credential === BYOK) === (credential === BYOK)
  const refused = (one: Candidate) => Number(one.number === job.route && isSame(one) && !wasAside(one))
  const givesWay = (one: Candidate) =>
    Number(one.credential !== BYOK && vendors.givesWay(one.vendorName, job.account_id) !== undefined)
  const rank = (one: Candidate) => refused(one) + givesWay(one)
  for (const candidate of (await candidatesOf(job, deps)).toSorted((a, b) => rank(a) - rank(b))) {
    if (candidate.credential === BYOK) return candidate
    const usable = candidate.credentials ? vendors.credentials.choose(candidate, job.account_id) : candidate
    if (!(usable instanceof Fault) && vendors.available(candidate.vendorName, job.account_id)) return usable
  }
  return undefined
}
