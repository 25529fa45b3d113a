// Makes the table of list prices from the presets and signs it with a key that is kept elsewhere: npm run price-table
// -- --key <file>. The list prices of the table before stay in it, so that a cost that follows the list can be told
// from one that was set by hand.
import { createPrivateKey, sign } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readPresets } from '../src/catalog/preset.ts'
import { listPrice } from '../src/extensions/connection/connection.ts'
import { readPriceTable } from '../src/extensions/prices/price-table.ts'

const { values } = parseArgs({ options: { key: { type: 'string' }, made: { type: 'string' } } })
if (values.key === undefined) throw new Error('Say where the private key is: --key <file>.')
const key = createPrivateKey(await readFile(values.key))

type Known = { usd: object[]; earlier?: object[][] }
const FILE = join(import.meta.dirname, '../src/extensions/prices/price-table.json')
const before = await readFile(FILE, 'utf8').then(
  (text) => JSON.parse(text) as { vendors: Record<string, Record<string, Known>> },
  () => ({ vendors: {} as Record<string, Record<string, Known>> }),
)
const EARLIER_MAX = 20

const vendors: Record<string, object> = {}
for (const { name, models, prices } of await readPresets()) {
  if (!prices) continue
  const rows = Object.entries(models).flatMap(([model, { type, usd }]) => {
    const tiers = listPrice({ usd }, '1')?.tiers
    if (!tiers) return []
    const known = before.vendors[name]?.[model]
    const isSame = JSON.stringify(known?.usd) === JSON.stringify(tiers)
    const earlier = [...(known && !isSame ? [known.usd] : []), ...(known?.earlier ?? [])].slice(0, EARLIER_MAX)
    return [[model, { type, usd: tiers, ...prices, ...(earlier.length > 0 ? { earlier } : {}) }]]
  })
  if (rows.length > 0) vendors[name] = Object.fromEntries(rows)
}
const made = values.made ?? new Date().toISOString().slice(0, 10)
const bytes = Buffer.from(`${JSON.stringify({ format: 1, made, vendors }, null, 2)}\n`)
const signature = sign(null, bytes, key).toString('base64')
// Throws if this is not the key of releases: see RELEASE_KEYS in src/extensions/prices/price-table.ts.
readPriceTable(bytes, { signature })
await writeFile(FILE, bytes)
await writeFile(`${FILE}.sig`, `${signature}\n`)
console.log(`wrote ${FILE} and its signature`)
