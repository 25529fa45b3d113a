import { once } from 'node:events'
import { connect } from 'node:net'
import { assert, test } from '../../../test/kit.ts'
import { Fault } from '../../kernel/fault.ts'
import { silentLog } from '../../kernel/log.ts'
import { realWorld } from '../../kernel/world.ts'
import { createServer } from './server.ts'

const HANDSHAKE =
  'GET /socket HTTP/1.1\r\nhost: here\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

test('a handshake whose ledger is away gets 503, said at once or later, and the process lives on', async () => {
  const app = createServer({ world: realWorld, log: silentLog, strictErrors: false })
  app.router.add('/socket', ['GET'], { run: () => undefined, upgrade: () => undefined })
  const url = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  try {
    const away = () => {
      throw new Fault('unavailable', { retryAfterSeconds: 1 })
    }
    for (const by of [away, async () => away()]) {
      app.divert(by)
      const socket = connect(Number(url.port), url.hostname)
      socket.write(HANDSHAKE)
      const [answer] = (await once(socket, 'data')) as [Buffer]
      assert.match(answer.toString(), /^HTTP\/1\.1 503 [\s\S]*retry-after: 1/)
      socket.destroy()
    }
  } finally {
    await app.close()
  }
})
