// The list of products on the command line, from the catalog.
import type { CurrentView } from '../../catalog/views.ts'
import type { Command } from '../../cli/command.ts'
import { list } from '../../cli/table.ts'

export const PRODUCT_COMMANDS: readonly Command[] = [
  {
    name: 'products list',
    summary: 'Lists the products that are sold, with the price of each operation.',
    async run(call) {
      const { document } = await call.api.call<CurrentView>('GET', '/catalog')
      const rows = Object.entries(document.products ?? {}).flatMap(([product, { operations }]) =>
        Object.entries(operations).map(([id, { route, title }]) => {
          const { pricing, routes = [], enabled = true } = document.endpoints[`${product}/${id}`] ?? {}
          const rates = Object.entries(pricing?.tiers.at(-1) ?? {}).map(([unit, rate]) => `${unit}=${rate}`)
          return {
            product,
            id,
            title,
            address: route.replace(' ', ` /v1/${product}`),
            price: rates.join(','),
            vendor: routes.map((one) => one.vendor).join(', '),
            sold: enabled ? 'yes' : 'switched off',
          }
        }),
      )
      return list(
        rows,
        { PRODUCT: 'product', OPERATION: 'id', ADDRESS: 'address', PRICE: 'price', VENDOR: 'vendor', SOLD: 'sold' },
        'No products yet. Sell one with: tollgate products import, or tollgate products add.',
      )
    },
  },
]
