// Commands of products.
import type { Commands } from '../../operator/command.ts'

export const PRODUCT_COMMANDS: Commands = {
  'GET /products/presets': {
    usage:
      'products presets: Lists the products that come with the gateway as presets, with list prices. None was tried against its vendor.',
    columns: 'PRESET=name, OPERATIONS=operations.id, title, DOLLARS=operations.usd, noted',
  },
  'POST /products/read': {
    usage: 'products read <file>: Lists the operations of an OpenAPI document that can be sold.',
    about: 'Changes nothing. "-" reads standard input.',
    words: '{title}, at {server|no public address}',
    tables: { operations: 'id, route, title, problem' },
    without: ['operations', 'trusted'],
  },
  'POST /products': [
    {
      usage: 'products add <preset>: Sells a product from a preset.',
      about:
        'Without --price the list prices apply, times --credits-per-dollar. Without the value of its credential only test keys are answered, with examples.',
      set: { id: '{preset}' },
      without: [
        'title',
        'description',
        'document',
        'trusted',
        'operations',
        'entries',
        'prices',
        'note',
        'dryRun',
        'vendor.name',
        'vendor.baseUrl',
        'vendor.auth',
        'vendor.credential.name',
        'price.rows',
        'price.metered',
        'price.bytesMax',
        'price.timeoutSeconds',
        'price.cacheSeconds',
      ],
    },
    {
      usage: 'products import <product> <file>: Sells operations of an OpenAPI document below /v1/<product>.',
      about:
        'The document is OpenAPI 3.0 or 3.1, as JSON or YAML. The prices are in credits. An existing product of this name is replaced. "-" reads standard input.',
      without: [
        'title',
        'description',
        'preset',
        'creditsPerDollar',
        'entries',
        'prices',
        'note',
        'vendor.name',
        'vendor.auth',
        'price.cacheSeconds',
      ],
    },
  ],
  'DELETE /products/{id}': {
    usage: 'products remove <product>: Stops selling a product. Its vendor is removed too if nothing else uses it.',
    without: ['note'],
  },
}
