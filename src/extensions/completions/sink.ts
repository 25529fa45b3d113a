// The legacy completions: chats on the path of all calls, and a sink that turns their answers into completions.
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { BufferedSink, type ResponseSink } from '../../pipeline/response-sink.ts'
import { CompletionEvents, completionOf } from './conversion.ts'

export class CompletionSink implements ResponseSink {
  readonly #out: ResponseSink
  readonly #events = new CompletionEvents()

  constructor(out: ResponseSink) {
    this.#out = out
  }

  get signal(): AbortSignal {
    return this.#out.signal
  }

  get started(): boolean {
    return this.#out.started
  }

  send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    const bytes = Buffer.from(body)
    // An answer to HEAD is empty; a replayed stream comes whole.
    if (bytes.length === 0) this.#out.send(status, headers, bytes)
    else if (bytes[0] === 0x7b) this.#out.send(status, headers, completionOf([bytes]))
    else this.#out.send(status, headers, this.#events.push(bytes) + this.#events.end())
  }

  startStream(headers: Record<string, string>): void {
    this.#out.startStream(headers)
  }

  write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
    const events = this.#events.push(piece, encoding)
    return events === '' ? undefined : this.#out.write(events)
  }

  end(piece: string | Buffer): void {
    this.#out.end(this.#events.push(piece) + this.#events.end())
  }

  destroy(): void {
    this.#out.destroy()
  }
}

/**
 * Several prompts: each is a call of its own, and they are answered together. One that fails fails all, after the
 * others have ended.
 */
export async function completeAll(
  out: ResponseSink,
  calls: readonly ((sink: ResponseSink) => Promise<void>)[],
): Promise<void> {
  const sinks = calls.map(() => new BufferedSink(out.signal, Number.POSITIVE_INFINITY))
  const ended = await Promise.allSettled(calls.map((call, at) => call(sinks[at]!))) // One sink for each call.
  for (const one of ended) if (one.status === 'rejected') throw one.reason
  const charged = sinks.reduce((sum, { headers }) => sum + (parseCredits(headers[CHARGE]) ?? 0n), 0n)
  const headers = { ...sinks[0]?.headers, [CHARGE]: formatCredits(charged) }
  out.send(200, headers, completionOf(sinks.map(({ body }) => body)))
}

const CHARGE = 'x-tollgate-charge'
