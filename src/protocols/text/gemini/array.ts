// The stream of callers who did not ask for server-sent events: one JSON array, whose elements come as they are made.
import type { Fault } from '../../../kernel/fault.ts'
import { bytesOf, SseDecoder } from '../../../upstream/sse.ts'
import type { StreamRelay, StreamState } from '../../protocol.ts'

export class ArrayRelay implements StreamRelay {
  readonly encoding = 'utf8'
  readonly contentType = 'application/json; charset=utf-8'
  /** Space between elements means nothing. */
  readonly keepAlive = '\n'
  private readonly relay: StreamRelay
  private readonly decoder = new SseDecoder()
  private begun = false

  constructor(relay: StreamRelay) {
    this.relay = relay
  }

  get state(): StreamState {
    return this.relay.state
  }

  push(chunk: Buffer): string {
    return this.elements(this.relay.push(chunk))
  }

  end(): string {
    return this.elements(this.relay.end())
  }

  /** Asked for more than once: what it says must not depend on that. */
  finish(): string {
    return this.last(this.relay.finish(''))
  }

  fail(fault: Fault, requestId: string): string {
    return this.last(this.relay.fail(fault, requestId))
  }

  private elements(sent: Buffer | string | undefined): string {
    let out = ''
    for (const { data } of sent === undefined ? [] : this.decoder.push(bytesOf(sent, this.relay.encoding))) {
      out += `${this.begun ? ',\n' : '['}${data}`
      this.begun = true
    }
    return out
  }

  private last(sent: string): string {
    const elements = new SseDecoder().push(Buffer.from(sent)).map(({ data }) => data)
    return `${this.begun ? ',\n' : '['}${elements.join(',\n')}]`
  }
}
