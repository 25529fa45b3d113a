// Products: sells the operations of an OpenAPI document as endpoints of the gateway.
import { readFile } from 'node:fs/promises'
import type { Applied, CurrentView, ImportedView, ProductPresetView } from '../../catalog/views.ts'
import { CliError, type Command, flag, type Invocation, takes, text, told } from '../../cli/command.ts'
import { list } from '../../cli/table.ts'
import { checked, isInForce } from '../../cli/vendors.ts'
import type { Page } from '../../kernel/view.ts'

async function readText(call: Invocation): Promise<string> {
  const [file = '-'] = call.args
  if (file === '-') return call.input()
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(`${file} cannot be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}.`)
  })
}

/** `call=0.1,row=0.01` */
function readRates(given: string): Record<string, string> {
  const pairs = given.split(',').map((part) => part.split('='))
  if (pairs.some(({ length }) => length !== 2))
    throw new CliError(`"${given}" is not a price: write call=0.1, or call=0.1,row=0.01.`, 2)
  return Object.fromEntries(pairs)
}

/** `results:50`, or `results:limit` if the parameter `limit` says how many. */
function readRows(given: string): { path: string; most: string | number } {
  const [path = '', most = ''] = given.split(':')
  if (path === '' || most === '') throw new CliError(`"${given}" is not a list: write results:50, or results:limit.`, 2)
  return { path, most: /^\d+$/.test(most) ? Number(most) : most }
}

function priceOf(call: Invocation): object | undefined {
  const [price, rows, metered, bytes, seconds] = ['price', 'rows', 'expression', 'bytes-max', 'timeout'].map((name) =>
    text(call, name),
  )
  if (price === undefined) return undefined
  return {
    rates: readRates(price),
    ...(rows === undefined ? {} : { rows: readRows(rows) }),
    ...(metered === undefined ? {} : { metered }),
    ...(bytes === undefined ? {} : { bytesMax: Number(bytes) }),
    ...(seconds === undefined ? {} : { timeoutSeconds: Number(seconds) }),
  }
}

/** The value of the environment variable in --key-env. */
function keyOf(call: Invocation): string | undefined {
  const variable = text(call, 'key-env')
  if (variable === undefined) return undefined
  const value = call.settings.environment?.(variable)
  if (value === undefined) throw new CliError(`${variable} is not in this environment.`)
  return value
}

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
            ...{ product, id, title, address: route.replace(' ', ` /v1/${product}`), price: rates.join(',') },
            ...{ vendor: routes.map((one) => one.vendor).join(', '), sold: enabled ? 'yes' : 'switched off' },
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
  {
    name: 'products presets',
    summary:
      'Lists the products that come with the gateway as presets, with list prices. None was tried against its vendor.',
    async run(call) {
      const { items } = await call.api.call<Page<ProductPresetView>>('GET', '/products/presets')
      const rows = items.flatMap(({ name, noted, operations }) =>
        operations.map(({ id, title, usd }) => ({
          ...{ name, id, title, noted },
          usd:
            usd === null
              ? 'not known'
              : Object.entries(usd)
                  .map(([unit, rate]) => `${rate} per ${unit}`)
                  .join(', '),
        })),
      )
      return list(
        rows,
        { PRESET: 'name', OPERATION: 'id', TITLE: 'title', DOLLARS: 'usd', NOTED: 'noted' },
        'There are none.',
      )
    },
  },
  {
    name: 'products add',
    summary: 'Sells a product from a preset.',
    args: ['preset'],
    about:
      'Without --price the list prices apply, times --credits-per-dollar. Without the value of its credential only test keys are answered, with examples.',
    options: {
      price: takes('rates', 'Such as call=0.5, for all of its operations.'),
      'credits-per-dollar': takes('number', 'What a dollar of the list price is in credits. Default: 100.'),
      'key-env': takes('variable', 'The environment variable with the credential to store.'),
    },
    async run(call) {
      const [preset = ''] = call.args
      const [credits, value, price] = [text(call, 'credits-per-dollar'), keyOf(call), priceOf(call)]
      const applied = call.api.call<Applied>('POST', '/products', {
        ...{ id: preset, preset, vendor: { credential: value === undefined ? {} : { value } } },
        ...(price ? { price } : {}),
        ...(credits === undefined ? {} : { creditsPerDollar: Number(credits) }),
      })
      return told(applied, isInForce)
    },
  },
  {
    name: 'products read',
    summary: 'Lists the operations of an OpenAPI document that can be sold.',
    args: ['file'],
    about: 'Changes nothing. "-" reads standard input.',
    async run(call) {
      const document = await readText(call)
      const read = await call.api.call<ImportedView>('POST', '/products/read', { document })
      const rows = read.operations.map(({ id, route, title, problem }) => ({
        id,
        route,
        title,
        problem: problem ?? '',
      }))
      return list(
        rows,
        { ID: 'id', ROUTE: 'route', TITLE: 'title', PROBLEM: 'problem' },
        'The document has no operations.',
      )
    },
  },
  {
    name: 'products import',
    summary: 'Sells operations of an OpenAPI document below /v1/<product>.',
    args: ['product', 'file'],
    about:
      'The document is OpenAPI 3.0 or 3.1, as JSON or YAML. The prices are in credits. An existing product of this name is replaced. "-" reads standard input.',
    options: {
      choose: takes('ids', 'Operations, as "products read" lists them, with commas. Default: all.'),
      price: takes('rates', 'Such as call=0.1, call=0,row=0.01 or call=0,byte=5 (a million bytes).'),
      rows: takes('list:most', 'The list whose items are rows, and the most: a number or a parameter.'),
      expression: takes('cel', 'Counts the units, for a price with metered=….'),
      'bytes-max': takes('count', 'The largest answer, for a price with byte=….'),
      timeout: takes('seconds', 'How long the vendor may take for an answer.'),
      url: takes('address', 'Where the API is. Default: the server that the document names.'),
      credential: takes(
        'name',
        'The name of the stored credential. Without its value only test keys are answered, with examples.',
      ),
      'key-env': takes('variable', 'The environment variable with the value to store.'),
      trusted: flag('Takes rules of the catalog under "x-tollgate" from it: only for documents that you wrote.'),
      'dry-run': flag('Shows what would change.'),
    },
    async run(call) {
      const [id = ''] = call.args
      const document = await readText({ ...call, args: call.args.slice(1) })
      const [choose, url, name] = ['choose', 'url', 'credential'].map((one) => text(call, one))
      const [value, price] = [keyOf(call), priceOf(call)]
      const body = {
        ...{ id, document, trusted: call.values.trusted === true },
        ...(choose === undefined ? {} : { operations: choose.split(',').map((one) => one.trim()) }),
        ...(price ? { price } : {}),
        vendor: {
          ...(url === undefined ? {} : { baseUrl: url }),
          credential: { ...(name === undefined ? {} : { name }), ...(value === undefined ? {} : { value }) },
        },
      }
      if (call.values['dry-run'] === true) return checked(call.api.call('POST', '/products?dryRun=true', body))
      return told(call.api.call<Applied>('POST', '/products', body), isInForce)
    },
  },
  {
    name: 'products remove',
    summary: 'Stops selling a product. Its vendor is removed too if nothing else uses it.',
    args: ['product'],
    options: { 'dry-run': flag('Shows what would change.') },
    async run(call) {
      const path = `/products/${encodeURIComponent(call.args[0] ?? '')}`
      if (call.values['dry-run'] === true) return checked(call.api.call('DELETE', `${path}?dryRun=true`))
      return told(call.api.call<Applied>('DELETE', path), isInForce)
    },
  },
]
