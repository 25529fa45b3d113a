// The API, put together: every endpoint of the catalog's list with what answers there.
import type { ApiKeys } from '../admission/api-key.ts'
import type { Overload } from '../telemetry/overload.ts'
import { accountHandlers } from './account.ts'
import { type Api, createApi, createRefused, mountApi } from './api.ts'
import { jobHandlers } from './jobs.ts'
import { paidHandler } from './paid.ts'
import type { WebServer } from './server/server.ts'

type Parts = Omit<Parameters<typeof createApi>[1], 'keys' | 'admit' | 'refused'> &
  Parameters<typeof accountHandlers>[0] &
  Parameters<typeof jobHandlers>[0] &
  Parameters<typeof paidHandler>[0] & {
    readonly apiKeys: ApiKeys
    readonly overload: Overload
    readonly refusals: Parameters<typeof createRefused>[0]
    readonly monitor: Parameters<typeof createRefused>[1]
  }

export function openApi(app: WebServer, parts: Parts): Api {
  const { apiKeys: keys, overload, refusals, monitor } = parts
  const api = createApi(app, { ...parts, keys, admit: overload.admit, refused: createRefused(refusals, monitor) })
  mountApi(api, {
    paid: paidHandler(parts),
    catalog: parts.catalog,
    free: { ...accountHandlers(parts), ...jobHandlers(parts) },
  })
  return api
}
