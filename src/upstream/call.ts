// The vocabulary of the one HTTP client: what adapters ask for, and what comes back.
import { Fault } from '../kernel/fault.ts'

/** A token as the header `authorization` bears it. */
export const bearer = (token: string) => `Bearer ${token}`

export interface HttpCall {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Several pieces are sent one after the other, without being joined in memory. */
  readonly body?: string | Buffer | ReadonlyArray<string | Buffer>
}

export interface Deadlines {
  readonly connectMs: number
  /** From sending to the answer's headers. */
  readonly firstByteMs: number
  /** Between two pieces of the answer. */
  readonly idleMs: number
  /** From the start to the end of the answer, without the time in which this side keeps the vendor waiting. */
  readonly totalMs: number
}

export interface UpstreamReply {
  readonly status: number
  /** Lower-case names; a repeated header is joined with a comma. */
  readonly headers: Readonly<Record<string, string>>
  /** The whole body; more than `bytesMax` is the fault upstream_garbled. */
  read(bytesMax: number): Promise<Buffer>
  /**
   * Hands over each piece as it arrives, and resolves at the clean end of the answer. While the promise that
   * `onData` returns is pending, nothing more is read from the vendor's socket, and the vendor's time stands still. A
   * consumer that keeps the vendor waiting for the whole of its time, or until it hangs up, gets a fault that says so
   * (`isHeldBack`).
   */
  pipe(onData: (chunk: Buffer) => Promise<void> | undefined): Promise<void>
  /** From now on the call's signal no longer cuts the answer. */
  letGo(): void
  /** Cuts the connection now. A running read or pipe rejects. Safe to call at any time, any number of times. */
  abort(): void
}

/** Whether an answer broke off because whoever reads it was too slow. */
export function isHeldBack(error: unknown): boolean {
  return error instanceof Fault && error.details.internal?.heldBack === true
}

export interface Upstream {
  /**
   * Resolves when the vendor's headers are here. Rejects with upstream_timeout, upstream_failed (connection refused,
   * reset, DNS) or, when `signal` fires, with the signal's reason. Redirects are never followed.
   */
  send(call: HttpCall, options: { deadlines: Deadlines; signal: AbortSignal }): Promise<UpstreamReply>
  close(): Promise<void>
}
