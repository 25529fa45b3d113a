// The configurations that LiteLLM publishes in its package: each becomes a valid catalog, and what is left out says
// why; without its table of prices and with it.
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { type CatalogInput, checkDocument } from '../../src/catalog/document.ts'
import { readPresets } from '../../src/catalog/preset.ts'
import { readDefaultCatalog } from '../../src/compose.ts'
import { importLitellm } from '../../src/extensions/importers/litellm.ts'
import { readPriceTable } from '../../src/extensions/importers/litellm-costs.ts'
import { createReport } from '../../src/extensions/importers/report.ts'
import { assert, test } from '../kit.ts'
import { pythonWith } from '../sdk/cache.ts'

test('every configuration in LiteLLM’s package becomes a valid catalog, and what is left out says why', async (t) => {
  const made = await pythonWith(join(import.meta.dirname, 'python', 'litellm.txt'), 10)
  if ('missing' in made) {
    console.log(`LiteLLM's configurations were not tried: ${made.missing}`)
    return t.skip(made.missing)
  }
  const home = join(made.python, '..', '..', 'lib')
  let table: string | undefined
  for await (const path of glob(`${home}/python3*/site-packages/litellm/model_prices*.json`)) table = path
  const current = (await readDefaultCatalog()) as CatalogInput // It is valid.
  const options = { presets: await readPresets(), markup: '1', creditsPerDollar: '100', replace: false }
  for (const prices of [undefined, (await readPriceTable(table, undefined))?.table]) {
    const counts = { files: 0, taken: 0, left: 0 }
    for await (const path of glob(`${home}/python3*/site-packages/litellm/proxy/**/*.yaml`)) {
      const config = parse(await readFile(path, 'utf8'), { uniqueKeys: false })
      if (!config?.model_list) continue
      counts.files += 1
      const { lines, say } = createReport()
      const checked = checkDocument(importLitellm(config, current, { ...options, prices, say }))
      assert.deepEqual(checked.ok ? [] : checked.problems, [], path)
      for (const index of config.model_list.keys()) {
        const about = lines.filter(({ at }) => at === `model_list[${index}]` || at.startsWith(`model_list[${index}].`))
        assert.ok(about.length > 0, `${path} says nothing of entry ${index}`)
        const isLeft = about.some(({ at, what }) => at === `model_list[${index}]` && what === 'left')
        counts[isLeft ? 'left' : 'taken'] += 1
      }
    }
    t.diagnostic(`${prices ? 'with' : 'without'} the table: ${JSON.stringify(counts)}`)
    assert.ok(counts.files > 20 && counts.taken > 20, JSON.stringify(counts))
  }
})
