// Talks to the vendors' task APIs. Looks at many tasks are gathered into one question, so that ten thousand open jobs cost
// a vendor some dozen requests a second and not a thousand.

import { asFault, Fault } from '../kernel/fault.ts'
import { NEVER } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { type Batch, createBatch } from '../ledger/batch.ts'
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
import { vendorCall } from '../protocols/protocol.ts'
import { byokKeyFault, describe, type Refusal, refusal, retryAfterSeconds } from '../protocols/vendor-fault.ts'
import { readErrorBody } from '../protocols/vendor-words.ts'
import type { Candidate } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import type { HttpCall, Upstream } from '../upstream/call.ts'

/** Where the tasks of a job are. */
export interface TaskPlace extends Candidate {
  /** Whose job it is, where one is submitted; questions are the gateway's own. */
  readonly account?: string
}

/** The vendor has certainly not taken it. */
export interface Refused {
  readonly outcome: 'refused'
  /** Set when it never will. */
  readonly fault?: Fault
  /** What it says while it takes none; another time it may. */
  readonly forNow?: Fault
  readonly waitMs?: number
  /** What the operator must mend. */
  readonly ours?: string
  /** The credential was put aside. */
  readonly aside?: boolean
  /** It does not take the account's own key. */
  readonly byok?: boolean
}

type Submission =
  | { readonly outcome: 'accepted'; readonly taskId: string }
  | Refused
  /** Nobody knows. */
  | { readonly outcome: 'unknown'; readonly why: Readonly<Record<string, unknown>> }
  /** It was not to be begun after all. */
  | { readonly outcome: 'stopped' }

export interface VendorTasks {
  /** `begin` is called when the vendor has a place for it, and before anything is sent; false stops it. */
  submit(
    order: VideoOrder,
    place: TaskPlace,
    mark: Pick<TaskMark, 'token' | 'seed'>,
    begin: () => Promise<boolean>,
  ): Promise<Submission>
  /** Undefined: there is no such task. Rejects when the vendor gives no answer, which is no verdict. */
  look(taskId: string, place: TaskPlace): Promise<Task | undefined>
  /** The task that bears the mark, if the vendor has one. */
  search(mark: TaskMark, place: TaskPlace): Promise<Task | undefined>
  /** True: it is cancelled. False: the vendor does not allow it. */
  cancel(taskId: string, place: TaskPlace): Promise<boolean>
}

interface VendorTasksDeps {
  readonly upstream: Upstream
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
  /** Set where the status is no success. */
  readonly refused: Refusal | undefined
}

export function createVendorTasks(deps: VendorTasksDeps): VendorTasks {
  const looks = new Map<string, Batch<string, Task | undefined>>()
  /** Vendors that do not take questions about several tasks. */
  const oneByOne = new Set<string>()

  async function ask(call: HttpCall, place: TaskPlace, begin?: () => Promise<boolean>): Promise<Reply> {
    const { vendorName, vendor, target, account = '' } = place
    // The breaker is about the gateway's credentials.
    const isOwn = place.credential === BYOK
    const { upstream, vendors, world } = deps
    let heard = false
    let leave: (() => void) | undefined
    try {
      // A submission is never cut short: whatever stops the gateway, its answer is worth waiting for.
      const entered = vendors.enter(vendorName, vendor, NEVER)
      leave = entered instanceof Promise ? await entered : entered
      if (begin && !(await begin())) throw STOPPED
      const startedMs = world.elapsedMs()
      const reply = await upstream.send(vendorCall(call, target), { deadlines: vendor.timeouts, signal: NEVER })
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
      if (leave && error instanceof Fault && error.blame === 'upstream') {
        heard = true
        if (!isOwn) vendors.failed(vendorName, account, error.kind, target.model)
      }
      throw error
    } finally {
      leave?.()
      if (!heard && !isOwn) vendors.undecided(vendorName, account)
    }
  }

  /** As it counts against the vendor: what it has against one of several credentials puts that one aside. */
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
    credentials.putAside(place, account, { why: refused.credential, status, seconds: retryAfterSeconds(headers) })
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
    // Whether one that the list leaves out is really gone, only a question about itself can tell.
    return Promise.all(ids.map((id) => found.get(id) ?? one(id)))
  }

  async function lookAtAll(ids: readonly string[], place: TaskPlace): Promise<Array<Task | undefined | Error>> {
    const groups = groupTasks(ids).map((group) =>
      lookAtMany(group, place).catch((error: Error) => group.map(() => error)),
    )
    return (await Promise.all(groups)).flat()
  }

  return {
    async submit(order, place, mark, begin) {
      let reply: Reply
      try {
        reply = await ask(createCall(order, place.target, mark), place, begin)
      } catch (error) {
        if (error === STOPPED) return { outcome: 'stopped' }
        if (!(error instanceof Fault)) throw error
        // Refused by our own side, or never sent: the vendor has not heard of it.
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
      if (place.credentials && refused.credential) return { outcome: 'refused', aside: true, ...forNow }
      const ofByokKey = place.credential === BYOK ? byokKeyFault(refused, place.vendorName) : undefined
      if (ofByokKey) {
        const said = ofByokKey.kind === 'byok_key_limited' ? { forNow: ofByokKey } : { fault: ofByokKey }
        return { outcome: 'refused', byok: true, ...said, ...wait }
      }
      // Our credential, our account, its load: another time it may well take it.
      if (ours !== undefined) return { outcome: 'refused', ours, ...wait }
      if (busy) return { outcome: 'refused', ...forNow, ...wait }
      if (fault.blame === 'caller' && fault.kind !== 'conflict') return { outcome: 'refused', fault: told }
      return { outcome: 'unknown', why: { status } }
    },

    look(taskId, place) {
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
        // Accounts bring keys of their own, and change them: what is not in use is not remembered.
        void batch.idle().then(() => looks.delete(name))
        return look
      }
      return batch.run(taskId)
    },

    async search(mark, place) {
      for (let page = 1; page <= SEARCH_PAGES_MAX; page++) {
        const reply = await ask(listCall(place.target, page), place)
        // A vendor without a list cannot be searched.
        if (reply.status === 404 || reply.status === 405 || reply.status === 501) return undefined
        const { task, more } = findMarked(okBody(reply, place), mark, place.target)
        if (task || !more) return task
      }
      return undefined
    },

    async cancel(taskId, place) {
      // What has ended would be removed by the same request, and its result with it: only what waits is cancelled.
      const task = await lookAtOne(taskId, place)
      if (task?.status === 'cancelled') return true
      if (task?.status !== 'queued') return false
      const { status } = await ask(cancelCall(taskId, place.target), place)
      if (status >= 500) throw new Fault('upstream_failed', { internal: { status } })
      return status < 300
    },
  }
}

/** What the log may say of it. */
function kindOf({ kind, details }: Fault): Readonly<Record<string, unknown>> {
  return { fault: kind, ...details.internal }
}

function okBody({ status, body, refused }: Reply, { vendorName }: TaskPlace): Buffer {
  if (!refused) return body
  const kind = status === 429 ? 'upstream_rate_limited' : status < 500 ? 'upstream_failed' : 'upstream_unavailable'
  throw new Fault(kind, { internal: { vendor: vendorName, status } })
}
