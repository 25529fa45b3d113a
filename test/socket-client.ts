// A WebSocket client for tests: what it has heard, and a wait for what it will hear.
import { WebSocket } from 'ws'
import { not, until } from './until.ts'

export interface TestSocket {
  readonly ws: WebSocket
  readonly events: any[]
  /** The code and reason by which it ended. */
  ended: { code: number; reason: string } | undefined
  send(event: unknown): void
  /** The next event of these types that was not waited for yet. */
  next(...types: string[]): Promise<any>
  closed(): Promise<{ code: number; reason: string }>
}

export async function openSocket(
  url: string,
  options: { key?: string; headers?: Record<string, string>; protocols?: string[] } = {},
): Promise<TestSocket> {
  const { key, headers = {}, protocols = [] } = options
  const auth: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const ws = new WebSocket(url.replace(/^http/, 'ws'), protocols, { headers: { ...auth, ...headers } })
  let seen = 0
  const socket: TestSocket = {
    ws,
    events: [],
    ended: undefined,
    send: (event) => ws.send(typeof event === 'string' ? event : JSON.stringify(event)),
    async next(...types) {
      const find = () => socket.events.findIndex(({ type }, at) => at >= seen && types.includes(type))
      await until(() => find() >= 0 || socket.ended !== undefined)
      const at = find()
      if (at < 0)
        throw new Error(`ended without ${types}: ${JSON.stringify([socket.ended, socket.events.slice(seen)])}`)
      seen = at + 1
      return socket.events[at]
    },
    async closed() {
      await until(() => socket.ended, not(undefined))
      return socket.ended!
    },
  }
  ws.on('message', (data) => socket.events.push(JSON.parse(String(data))))
  ws.on('close', (code, reason) => {
    socket.ended = { code, reason: String(reason) }
  })
  await new Promise<void>((resolve, reject) => {
    ws.once('open', resolve)
    ws.once('unexpected-response', (_request, response) => {
      let body = ''
      response.on('data', (piece) => {
        body += piece
      })
      response.on('end', () => reject(new Error(`${response.statusCode} ${body}`)))
    })
    ws.once('error', reject)
  })
  ws.on('error', () => undefined)
  return socket
}
