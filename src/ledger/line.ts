// Calls that wait for credits which running calls of their account hold: a line for each account, first come, first
// served. A line is tried when this process has freed credits of its account, and when one statement for all lines
// finds that another process has. A try is one statement for the first calls of the line, so waiting costs the same
// however many wait.
import type { Credits } from '../kernel/credits.ts'
import { CLIENT_CLOSED } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { Reserved, Short } from './operation.ts'

interface WaitingCall {
  /** `isDue`: its time is up, and it takes what is there. */
  readonly attempt: (isDue: boolean) => Promise<Reserved>
  readonly signal: AbortSignal
}

interface LinesOptions {
  readonly world: World
  /** How long a call waits. */
  readonly waitMs: number
  /** What each of these accounts has available. */
  readonly look: (accounts: readonly string[]) => Promise<ReadonlyArray<{ account: string; available: Credits }>>
}

interface Entry extends WaitingCall {
  readonly untilMs: number
  readonly resolve: (reserved: Reserved) => void
  readonly reject: (error: unknown) => void
  isTried: boolean
}

interface Line {
  readonly account: string
  readonly entries: Entry[]
  /** The last answer, for a call that finds the line full. */
  told: Short | undefined
  available: Credits | undefined
  /** A try is under way; `isWoken`: another one is due after it. */
  isTrying: boolean
  isWoken: boolean
  cancelTimer: () => void
}

const WAITING_MAX = 256
/** Calls in one try. */
const TRIED_MAX = 32
const LOOK_EVERY_MS = 250

export function isCrowded(reserved: Reserved): reserved is Short {
  return reserved.outcome === 'short' && reserved.running !== undefined
}

function isHeld(result: PromiseSettledResult<Reserved> | undefined): boolean {
  return result?.status === 'fulfilled' && result.value.outcome === 'held'
}

export function createLines({ world, waitMs, look }: LinesOptions) {
  const lines = new Map<string, Line>()
  let isLooking = false

  function lookLater(): void {
    if (isLooking || lines.size === 0) return
    isLooking = true
    world.after(LOOK_EVERY_MS, async () => {
      const found = await look([...lines.keys()]).catch(() => [])
      for (const { account, available } of found) {
        const line = lines.get(account)
        if (line && line.available !== available) {
          line.available = available
          wake(line)
        }
      }
      isLooking = false
      lookLater()
    })
  }

  function wake(line: Line): void {
    line.isWoken = true
    if (!line.isTrying) void serve(line)
  }

  async function serve(line: Line): Promise<void> {
    line.isTrying = true
    while (line.isWoken && line.entries.length > 0) {
      line.isWoken = false
      const nowMs = world.elapsedMs()
      const tried = line.entries.slice(0, TRIED_MAX)
      for (const entry of tried) entry.isTried = true
      const results = await Promise.allSettled(tried.map((entry) => entry.attempt(nowMs >= entry.untilMs)))
      const staying = tried.filter((entry, at) => !isAnswered(line, entry, results[at]!, nowMs)) // one for each
      line.entries.splice(0, tried.length, ...staying)
      // Whoever was behind a call that got nothing may fit now.
      line.isWoken ||= staying.length === 0 || (staying[0] !== tried[0] && !isHeld(results[0]))
    }
    line.isTrying = false
    setTimer(line)
  }

  function isAnswered(line: Line, entry: Entry, result: PromiseSettledResult<Reserved>, nowMs: number): boolean {
    entry.isTried = false
    if (result.status === 'rejected') entry.reject(result.reason)
    else if (!isCrowded(result.value)) entry.resolve(result.value)
    else {
      line.told = result.value
      if (entry.signal.aborted) entry.reject(CLIENT_CLOSED)
      else if (nowMs >= entry.untilMs) entry.resolve(result.value)
      else return false
    }
    return true
  }

  /** For the first of the line, whose time is up first. */
  function setTimer(line: Line): void {
    line.cancelTimer()
    const [first] = line.entries
    if (first) line.cancelTimer = world.after(Math.max(0, first.untilMs - world.elapsedMs()), () => wake(line))
    else if (lines.get(line.account) === line) lines.delete(line.account)
  }

  function added(account: string, told: Short | undefined): Line {
    const none = { available: undefined, isTrying: false, isWoken: false, cancelTimer() {} }
    const line: Line = { account, entries: [], told, ...none }
    lines.set(account, line)
    return line
  }

  function leave(line: Line, entry: Entry): void {
    // The answer of a try that is under way decides.
    const at = entry.isTried ? -1 : line.entries.indexOf(entry)
    if (at < 0) return
    line.entries.splice(at, 1)
    entry.reject(CLIENT_CLOSED)
    if (at === 0) wake(line)
  }

  return {
    /** By account: a new call waits behind those of its account that wait. */
    waiting: lines as ReadonlyMap<string, Line>,
    /** Rejects with CLIENT_CLOSED when the caller leaves. */
    async wait(account: string, { attempt, signal }: WaitingCall, told?: Short): Promise<Reserved> {
      if (signal.aborted) throw CLIENT_CLOSED
      const line = lines.get(account)
      const last = told ?? line?.told
      if (last && line && line.entries.length >= WAITING_MAX) return last
      return join(line ?? added(account, told), { attempt, signal })
    },
    /** This process may have freed credits of the account. */
    freed(account: string): void {
      const line = lines.size > 0 ? lines.get(account) : undefined
      if (line) wake(line)
    },
  }

  function join(line: Line, { attempt, signal }: WaitingCall): Promise<Reserved> {
    const { promise, resolve, reject } = Promise.withResolvers<Reserved>()
    const entry = { attempt, signal, untilMs: world.elapsedMs() + waitMs, resolve, reject, isTried: false }
    line.entries.push(entry)
    if (line.entries.length === 1 && !line.isTrying) setTimer(line)
    lookLater()
    const left = () => leave(line, entry)
    signal.addEventListener('abort', left, { once: true })
    return promise.finally(() => signal.removeEventListener('abort', left))
  }
}
