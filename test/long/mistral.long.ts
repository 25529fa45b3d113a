// Mistral's own SDK, unchanged, reads documents through the gateway.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assert, test, testGateway } from '../gateway.ts'
import { npmPackages, runProgram } from '../sdk/cache.ts'

let key: string
const g = testGateway({}, async () => {
  key = (await g.account()).key
})

const CODE = `import { Mistral } from '@mistralai/mistralai'
const client = new Mistral({ serverURL: process.env.GATEWAY, apiKey: process.env.GATEWAY_KEY })
const ask = (more) => client.ocr.process({
  model: 'alpha-ocr-1',
  document: { type: 'document_url', documentUrl: 'https://example.com/a.pdf' },
  ...more,
})
const all = await ask({ includeImageBase64: true })
const some = await ask({ pages: '0-1', tableFormat: 'html', imageLimit: 2 })
const image = await ask({ document: { type: 'image_url', imageUrl: 'https://example.com/a.png' } })
const refusal = await ask({ model: 'alpha-5.4' }).catch((error) => error.message)
console.log(JSON.stringify({
  counts: [all, some, image].map(({ pages, usageInfo }) => [pages.length, usageInfo.pagesProcessed]),
  first: all.pages[0].markdown, refusal,
}))`

test('the SDK of Mistral reads documents through the gateway, and says why it was refused', async (t) => {
  const made = await npmPackages(['@mistralai/mistralai@2.7.0'])
  if ('missing' in made) {
    console.log(`The SDK was not tested: ${made.missing}`)
    return t.skip(made.missing)
  }
  const file = join(made.directory, 'ocr.mjs')
  await writeFile(file, CODE)
  const env = { PATH: process.env.PATH, HOME: g.config.TOLLGATE_DATA, GATEWAY: g.url, GATEWAY_KEY: key }
  const { code, out, err } = await runProgram(process.execPath, [file], { env, timeoutMs: 120_000 })
  assert.equal(code, 0, err)
  const { counts, first, refusal } = JSON.parse(out.trim().split('\n').at(-1)!)
  assert.deepEqual(counts, [
    [3, 3],
    [2, 2],
    [1, 1],
  ])
  assert.match(first, /# Page 1/)
  assert.match(refusal, /no ocr model/)
})
