// The types of the HTTP client: the call that an adapter makes, and the reply.
import { Fault } from '../kernel/fault.ts'

/** A token as the value of the `authorization` header. */
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
  /** From the start to the end of the answer, without the time in which our backpressure holds the vendor. */
  readonly totalMs: number
}

export interface UpstreamReply {
  readonly status: number
  /** Lower-case names; a repeated header is joined with a comma. */
  readonly headers: Readonly<Record<string, string>>
  /** The whole body; more than `bytesMax` is the fault upstream_garbled. */
  read(bytesMax: number): Promise<Buffer>
  /**
   * Hands over each piece as it arrives, and resolves at the clean end of the answer. While the promise returned by
   * `onData` is pending, the vendor's socket is not read and the vendor's deadlines are suspended. If the consumer
   * holds the vendor for the whole total deadline, or until the vendor hangs up, it gets a fault that says so
   * (`isHeldBack`).
   */
  pipe(onData: (chunk: Buffer) => Promise<void> | undefined): Promise<void>
  /** All of it is in memory: nothing can break it off any more. Absent: nobody knows. */
  readonly isHere?: boolean
  /** From now on the call's signal no longer aborts the answer. */
  letGo(): void
  /** Closes the connection now. A running read or pipe rejects. Safe to call at any time, any number of times. */
  abort(): void
}

/** Whether an answer broke off because its consumer was too slow. */
export function isHeldBack(error: unknown): boolean {
  return error instanceof Fault && error.details.internal?.heldBack === true
}

export interface Upstream {
  /**
   * Resolves when the vendor's headers have arrived. Rejects with upstream_timeout, upstream_failed (connection
   * refused, reset, DNS) or, when `signal` fires, with the signal's reason. Redirects are never followed.
   */
  send(call: HttpCall, options: { deadlines: Deadlines; signal: AbortSignal }): Promise<UpstreamReply>
  close(): Promise<void>
}
