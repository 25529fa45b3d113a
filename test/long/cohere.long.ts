// Cohere's own SDKs, LangChain and the AI SDK, unchanged, rerank through the gateway.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assert, test, testGateway } from '../gateway.ts'
import { npmPackages, pythonWith, type Ran, runProgram } from '../sdk/cache.ts'

let key: string
const g = testGateway({}, async () => {
  key = (await g.account()).key
})
const environment = () => ({ PATH: process.env.PATH, HOME: g.config.TOLLGATE_DATA, GATEWAY: g.url, GATEWAY_KEY: key })

/** Each program prints the indices of the documents, best first, and what an error of the gateway looks like to it. */
function checkRan({ code, out, err }: Ran) {
  assert.equal(code, 0, err)
  const { ranked, refusal } = JSON.parse(out.trim().split('\n').at(-1)!) as { ranked: number[]; refusal: string }
  assert.deepEqual(ranked, [1, 2])
  assert.match(refusal, /no rerank model/)
}

const WORK = `
const documents = ['A recipe for onion soup.', 'The gate opens at dawn.', 'The gate is closed.']
const query = 'When does the gate open? The gate opens at'
const { GATEWAY, GATEWAY_KEY } = process.env
`
const PROGRAMS: Record<string, { packages: string[]; code: string }> = {
  'cohere-ai 8': {
    packages: ['cohere-ai@8.1.0'],
    code: `import { CohereClientV2 } from 'cohere-ai'
${WORK}
const client = new CohereClientV2({ environment: GATEWAY, token: GATEWAY_KEY })
const { results } = await client.rerank({ model: 'alpha-rerank-1', query, documents, topN: 2 })
const refusal = await client.rerank({ model: 'alpha-5.4', query, documents }).catch((error) => error.message)
console.log(JSON.stringify({ ranked: results.map(({ index }) => index), refusal }))`,
  },
  'the AI SDK': {
    packages: ['@ai-sdk/cohere@4.0.52', 'ai@7.0.169', 'zod@4.6.7'],
    code: `import { createCohere } from '@ai-sdk/cohere'
import { rerank } from 'ai'
${WORK}
const cohere = createCohere({ baseURL: GATEWAY + '/v2', apiKey: GATEWAY_KEY })
const { ranking } = await rerank({ model: cohere.reranking('alpha-rerank-1'), query, documents, topN: 2 })
const refused = rerank({ model: cohere.reranking('alpha-5.4'), query, documents, maxRetries: 0 })
const refusal = await refused.catch((error) => error.message)
console.log(JSON.stringify({ ranked: ranking.map(({ originalIndex }) => originalIndex), refusal }))`,
  },
}

for (const [title, { packages, code }] of Object.entries(PROGRAMS))
  test(`${title} reranks through the gateway, and says why it was refused`, async (t) => {
    const made = await npmPackages(packages)
    if ('missing' in made) {
      console.log(`${title} was not tested: ${made.missing}`)
      return t.skip(made.missing)
    }
    const file = join(made.directory, 'rerank.mjs')
    await writeFile(file, code)
    checkRan(await runProgram(process.execPath, [file], { env: environment(), timeoutMs: 120_000 }))
  })

const PYTHON = join(import.meta.dirname, '../sdk/python')
for (const [script, title] of Object.entries({ cohere_sdk: 'cohere', langchain_cohere_sdk: 'LangChain' }))
  test(`${title} for Python reranks through the gateway, and says why it was refused`, async (t) => {
    const found = await pythonWith(join(PYTHON, 'cohere.txt'))
    if ('missing' in found) {
      console.log(`${title} for Python was not tested: ${found.missing}`)
      return t.skip(found.missing)
    }
    const file = join(PYTHON, `${script}.py`)
    checkRan(await runProgram(found.python, [file], { env: environment(), timeoutMs: 120_000 }))
  })
