// Conversations on WebSockets, in which each response is a call of its own: Realtime, and the Responses protocol.
import { type Api, mountFree, mountSocket } from '../../api/api.ts'
import type { PaidDeps } from '../../api/paid.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { defineExtension } from '../../extension.ts'
import type { Secrets } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'
import { createByteBudget } from '../../upstream/budget.ts'
import { CLIENT_SECRETS, SOCKETS } from './endpoints.ts'
import { clientSecretHandlers } from './realtime/client-secret-routes.ts'
import { createClientSecrets } from './realtime/client-secrets.ts'
import { realtimeSocket } from './realtime/socket.ts'
import { responseSocket } from './response-socket.ts'

interface Core {
  readonly world: World
  readonly secrets: Secrets
  readonly catalog: CatalogStore
}

interface Place extends Omit<PaidDeps, 'catalog'> {
  readonly api: Api
}

/** Of what was said on the sockets of a process. */
const REMEMBERED_BYTES_MAX = 64 * 1024 * 1024

export const sockets = defineExtension({
  name: 'sockets',
  entries: Object.values(CLIENT_SECRETS),
  sockets: Object.values(SOCKETS),
  open: ({ world, secrets }: Core) => ({
    clientSecrets: createClientSecrets(secrets.key('client-secret'), world),
    // What does not fit at once is not remembered.
    remembered: createByteBudget({ world, bytesMax: REMEMBERED_BYTES_MAX, queueMax: 0 }),
  }),
  accountIn: ({ clientSecrets }, token) => clientSecrets.accountIn(token),
  endpoints({ catalog, clientSecrets, remembered }, { api, ...calls }: Place) {
    const deps = { ...calls, catalog, clientSecrets, remembered }
    mountFree(api, CLIENT_SECRETS, clientSecretHandlers(deps))
    mountSocket(api, SOCKETS.realtime, realtimeSocket(deps))
    mountSocket(api, SOCKETS['responses/socket'], responseSocket(deps))
  },
})
