import { type CoreParts, defineExtension } from '../../extension.ts'
import { withCommands } from '../../operator/command.ts'
import { PRODUCT_COMMANDS } from './commands.ts'
import { productSection } from './product.ts'
import { productResources } from './resources.ts'

type Core = Pick<CoreParts, 'catalog' | 'credentials'>

export const products = defineExtension<Core>({
  name: 'products',
  catalog: productSection,
  resources: (all) => withCommands(productResources(all), PRODUCT_COMMANDS),
})
