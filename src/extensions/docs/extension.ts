// The documentation that the gateway serves: guides, reference, the API with runnable examples, OpenAPI and llms.txt.
import type { WebServer } from '../../api/server/server.ts'
import { endpointsOf } from '../../catalog/index.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import type { Config } from '../../config.ts'
import { defineExtension } from '../../extension.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import { VERSION } from '../../kernel/version.ts'
import type { DocsOptions } from './docs.ts'
import { mountDocs } from './routes.ts'

interface Core {
  readonly config: Pick<Config, 'PUBLIC_URL'>
  readonly catalog: CatalogStore
  readonly branding: Pick<Branding, 'get'>
}

interface Place {
  readonly app: WebServer
  readonly operator: () => NonNullable<DocsOptions['operator']>
}

export const docs = defineExtension<Core, object, Place>({
  name: 'docs',
  endpoints({ config, catalog, branding }: Core, { app, operator }: Place) {
    mountDocs(app, {
      version: VERSION,
      serverUrl: config.PUBLIC_URL ?? '/',
      catalog,
      sockets: catalog.current.sockets,
      brand: branding.get,
      endpoints: () => endpointsOf(catalog.current),
      // Put together later, and asked for by readers only.
      get operator() {
        return operator()
      },
    })
  },
})
