// What the sandbox has seen, for tests that ask what really reached a vendor: how often, with what, and how it ended.
import type { IncomingHttpHeaders } from 'node:http'

/** `finished`: all was sent. `aborted`: the client went away first. `cut`: a trigger broke the connection. */
type CallOutcome = 'open' | 'finished' | 'aborted' | 'cut'

export interface SeenCall {
  readonly number: number
  readonly room: string
  readonly method: string
  /** With the query. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** From the world's monotonic clock. */
  readonly startedMs: number
  endedMs: number | undefined
  outcome: CallOutcome
  status: number
  model: string | undefined
  stream: boolean
  /** The body as it came, where it is text of at most 64 KiB. */
  body: string | undefined
  bodyBytes: number
  /** Pieces of a streamed answer that were written. */
  chunks: number
}

export interface SandboxLog {
  /** All requests so far, those to /__sandbox/ aside. */
  readonly requests: number
  readonly openConnections: number
  readonly connections: number
  /** Requests whose answer has not ended. */
  readonly openCalls: number
  readonly finished: number
  readonly aborted: number
  readonly cut: number
  readonly byRoom: Readonly<Record<string, number>>
  /** Video submissions and other effects, by client token or, without one, by prompt. */
  readonly submissions: Readonly<Record<string, number>>
  /** The newest calls, oldest first; bounded. */
  readonly calls: readonly SeenCall[]
  /** Forgets calls and counts, but not connections. */
  clear(): void
}

const CALLS_MAX = 256

export class CallLog implements SandboxLog {
  requests = 0
  openConnections = 0
  connections = 0
  openCalls = 0
  finished = 0
  aborted = 0
  cut = 0
  byRoom: Record<string, number> = {}
  submissions: Record<string, number> = {}
  calls: SeenCall[] = []

  clear(): void {
    this.requests = this.openCalls
    this.finished = 0
    this.aborted = 0
    this.cut = 0
    this.byRoom = {}
    this.submissions = {}
    this.calls = this.calls.filter((call) => call.outcome === 'open')
  }

  connectionOpened(): void {
    this.connections++
    this.openConnections++
  }

  connectionClosed(): void {
    this.openConnections--
  }

  callStarted(call: SeenCall): void {
    this.requests++
    this.openCalls++
    this.byRoom[call.room] = (this.byRoom[call.room] ?? 0) + 1
    this.calls.push(call)
    if (this.calls.length > CALLS_MAX * 2) this.calls.splice(0, CALLS_MAX)
  }

  callEnded(call: SeenCall, outcome: Exclude<CallOutcome, 'open'>, endedMs: number): void {
    if (call.outcome !== 'open') return
    call.outcome = outcome
    call.endedMs = endedMs
    this.openCalls--
    this[outcome]++
  }

  submitted(token: string): void {
    this.submissions[token] = (this.submissions[token] ?? 0) + 1
  }

  /**
   * What another process may read at /__sandbox/log: credentials are shortened, because a user may have sent a real
   * one.
   */
  toJSON(): unknown {
    const { requests, openConnections, connections, openCalls, finished, aborted, cut, byRoom, submissions } = this
    return {
      requests,
      openConnections,
      connections,
      openCalls,
      finished,
      aborted,
      cut,
      byRoom,
      submissions,
      calls: this.calls.map((call) => ({ ...call, headers: hideSecrets(call.headers) })),
    }
  }
}

const SECRET_HEADERS = ['authorization', 'x-api-key', 'cookie', 'api-key']

function hideSecrets(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const shown: IncomingHttpHeaders = { ...headers }
  for (const name of SECRET_HEADERS) {
    const value = shown[name]
    if (typeof value === 'string') shown[name] = `…${value.slice(-4)}`
  }
  return shown
}
