// What an operator does to sell any API as a product: reading its OpenAPI document, choosing operations, prices and
// credential.
import type { CatalogStore } from '../../catalog/store.ts'
import { defineExtension } from '../../extension.ts'
import { withCommands } from '../../operator/command.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { PRODUCT_COMMANDS } from './commands.ts'
import { productSection } from './product.ts'
import { productResources } from './resources.ts'

interface Core {
  readonly catalog: CatalogStore
  readonly credentials: Credentials
}

export const products = defineExtension<Core>({
  name: 'products',
  catalog: productSection,
  resources: (all) => withCommands(productResources(all), PRODUCT_COMMANDS),
})
