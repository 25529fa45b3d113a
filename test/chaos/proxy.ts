// A TCP proxy that does to a connection what networks do: delay, stall, reset, cut short, slice. Every fault holds for
// the connections that are open and for those to come, until `heal`.

import type { AddressInfo } from 'node:net'
import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net'

export interface ChaosProxy {
  readonly port: number
  readonly connections: number
  /** Every piece arrives so much later, in both directions. */
  delay(ms: number): void
  /** Nothing arrives any more, and nobody is told. */
  stall(): void
  /** Open connections are reset; new ones too, while `refuse` holds. */
  reset(): void
  /** New connections are reset as soon as they are made. */
  refuse(): void
  /** Pieces are cut to this size. */
  slice(bytes: number): void
  /** The connection is reset after so many more bytes of the server's. */
  truncate(bytes: number): void
  /** Called with each piece of the client's before it is forwarded; true resets the connection after forwarding it. */
  cutAfter: ((piece: Buffer) => boolean) | undefined
  heal(): void
  close(): Promise<void>
}

type Pair = { readonly client: Socket; readonly server: Socket }

/** `target` is a port of a host, or the path of a unix socket. */
export async function startProxy(target: NetConnectOpts): Promise<ChaosProxy> {
  const pairs = new Set<Pair>()
  let delayMs = 0
  let stalled = false
  let refused = false
  let sliceBytes = Number.POSITIVE_INFINITY
  let bytesLeft = Number.POSITIVE_INFINITY
  let held: Array<() => void> = []

  function kill({ client, server }: Pair): void {
    // One that is being closed cannot be reset any more: Node would leave its handle open, and the process would never
    // end.
    if (client.writableEnded) client.destroy()
    else client.resetAndDestroy()
    server.destroy()
  }

  /** Pieces keep their order: each waits for the one before it. */
  function carry(pair: Pair, from: Socket, to: Socket, toClient: boolean): void {
    let turn: Promise<void> = Promise.resolve()
    const pass = (run: () => void) => {
      turn = turn.then(async () => {
        if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
        while (stalled) await new Promise<void>((resolve) => held.push(resolve))
        run()
      })
    }
    from.on('data', (piece: Buffer) => {
      const cut = !toClient && proxy.cutAfter?.(piece) === true
      if (!to.writable) return
      if (
        delayMs === 0 &&
        !stalled &&
        sliceBytes === Number.POSITIVE_INFINITY &&
        bytesLeft === Number.POSITIVE_INFINITY &&
        !cut
      )
        return pass(() => {
          if (!to.write(piece)) {
            from.pause()
            to.once('drain', () => from.resume())
          }
        })
      pass(() => {
        for (let at = 0; at < piece.length; at += sliceBytes) {
          let part = piece.subarray(at, Math.min(piece.length, at + sliceBytes))
          if (toClient && part.length >= bytesLeft) {
            part = part.subarray(0, bytesLeft)
            to.write(part, () => kill(pair))
            return
          }
          if (toClient) bytesLeft -= part.length
          to.write(part)
        }
        if (cut) kill(pair)
      })
    })
    from.on('end', () => pass(() => to.end()))
    from.on('close', () => pass(() => to.destroy()))
    from.on('error', () => to.destroy())
  }

  const listener = createServer((client) => {
    client.on('error', () => {})
    if (refused) return client.resetAndDestroy()
    client.setNoDelay(true)
    const server = connect(target)
    server.setNoDelay(true)
    const pair: Pair = { client, server }
    pairs.add(pair)
    client.once('close', () => pairs.delete(pair))
    carry(pair, client, server, false)
    carry(pair, server, client, true)
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))

  const proxy: ChaosProxy = {
    port: (listener.address() as AddressInfo).port,
    get connections() {
      return pairs.size
    },
    cutAfter: undefined,
    delay(ms) {
      delayMs = ms
    },
    stall() {
      stalled = true
    },
    reset() {
      for (const pair of pairs) kill(pair)
    },
    refuse() {
      refused = true
    },
    slice(bytes) {
      sliceBytes = bytes
    },
    truncate(bytes) {
      bytesLeft = bytes
    },
    heal() {
      delayMs = 0
      stalled = false
      refused = false
      sliceBytes = Number.POSITIVE_INFINITY
      bytesLeft = Number.POSITIVE_INFINITY
      proxy.cutAfter = undefined
      for (const resume of held) resume()
      held = []
    },
    async close() {
      proxy.heal()
      proxy.reset()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
  return proxy
}
