// The caller's end of a call: what the path needs of it, whatever the web framework.

export interface ResponseSink {
  /** Aborts when the caller is gone, with the reason that nobody listens any more. */
  readonly signal: AbortSignal
  /** The headers have left: from here on a fault can only be told inside the answer. */
  readonly started: boolean
  /** A whole answer at once. */
  send(status: number, headers: Record<string, string>, body: string | Buffer): void
  startStream(headers: Record<string, string>): void
  /** Undefined while the caller keeps up; else a promise that resolves when it has read on, or has gone. */
  write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined
  end(piece: string | Buffer): void
  /** Cuts the connection: for a caller that does not read. */
  destroy(): void
}
