// Conversations on WebSockets, in which each response is a call of its own: Realtime, and the Responses protocol.
import { type Api, mountFree } from '../../api/api.ts'
import type { PaidDeps } from '../../api/paid.ts'
import type { WebServer } from '../../api/server/server.ts'
import { type CoreParts, defineExtension } from '../../extension.ts'
import { type ByteBudget, createByteBudget } from '../../upstream/budget.ts'
import { createSockets } from './caller-sockets.ts'
import { CLIENT_SECRETS, SOCKETS } from './endpoints.ts'
import { mountSocket } from './handshake.ts'
import { clientSecretHandlers } from './realtime/client-secret-routes.ts'
import { createClientSecrets } from './realtime/client-secrets.ts'
import { realtimeSocket } from './realtime/socket.ts'
import { responseSocket } from './response-socket.ts'

type Core = Pick<CoreParts, 'world' | 'secrets' | 'catalog' | 'config' | 'log'> & {
  readonly budget: Pick<ByteBudget, 'open'>
}

interface Place extends Omit<PaidDeps, 'catalog'> {
  readonly api: Api
  readonly app: WebServer
}

/** Of what was said on the sockets of a process. */
const REMEMBERED_BYTES_MAX = 64 * 1024 * 1024

export const sockets = defineExtension({
  name: 'sockets',
  entries: Object.values(CLIENT_SECRETS),
  sockets: Object.values(SOCKETS),
  open: ({ world, secrets, config, budget }: Core) => ({
    sockets: createSockets({ world, budget, socketsMax: config.TOLLGATE_SOCKETS_MAX }),
    clientSecrets: createClientSecrets(secrets.key('client-secret'), world),
    // What does not fit at once is not remembered.
    remembered: createByteBudget({ world, bytesMax: REMEMBERED_BYTES_MAX, queueMax: 0 }),
  }),
  accountIn: ({ clientSecrets }, token) => clientSecrets.accountIn(token),
  endpoints({ catalog, clientSecrets, remembered, sockets, world, log }, { api, app, ...calls }: Place) {
    app.upgraded = sockets
    const place = { api, sockets, world, log }
    const deps = { ...calls, catalog, clientSecrets, remembered }
    mountFree(api, CLIENT_SECRETS, clientSecretHandlers(deps))
    mountSocket(place, SOCKETS.realtime, realtimeSocket(deps))
    mountSocket(place, SOCKETS['responses/socket'], responseSocket(deps))
  },
})
