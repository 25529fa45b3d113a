// Google's own SDKs for Python and Go, two versions of each, unchanged, in front of the real gateway.
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CatalogInput } from '../../src/catalog/document.ts'
import { assert, test, testGateway } from '../gateway.ts'
import { goProgram, pythonWith, runProgram } from '../sdk/cache.ts'
import { openAllDoors } from '../sdk/families.ts'

const SDK = join(import.meta.dirname, '..', 'sdk')
const PYTHON = { '3.1': 'genai-newest.txt', '1.75': 'genai-before.txt' }
const GO = ['v1.77.0', 'v1.40.0']
const RUN_MS_MAX = 120_000
let key: string
const g = testGateway(
  {
    catalog(document: CatalogInput) {
      // Both read the same document; the one is stricter about what a test may leave out.
      openAllDoors(document as Parameters<typeof openAllDoors>[0])
      document.vendors.google = { baseUrl: 'sandbox/google', credential: 'DELTA_API_KEY' }
      const routes = [{ vendor: 'google', protocol: 'gemini' as const }]
      document.models['from-google'] = { ...document.models['delta-3.8-flash']!, routes }
    },
  },
  async () => {
    key = (await g.account({ credits: 100_000_000_000n })).key
  },
)

/** Nothing of the machine's settings, such as a proxy or somebody's key. */
const environment = () => ({ PATH: process.env.PATH, HOME: g.config.TOLLGATE_DATA, GATEWAY: g.url, GATEWAY_KEY: key })

for (const [version, list] of Object.entries(PYTHON))
  test(`google-genai ${version} for Python answers, streams and calls functions`, async (t) => {
    const found = await pythonWith(join(SDK, 'python', list))
    if ('missing' in found) {
      console.log(`google-genai ${version} for Python was not tested: ${found.missing}`)
      return t.skip(found.missing)
    }
    const script = join(SDK, 'python', 'genai_sdk.py')
    const { out, err, code } = await runProgram(found.python, [script], { env: environment(), timeoutMs: RUN_MS_MAX })
    assert.equal(code, 0, err)
    const checks = out.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
    assert.ok(checks.length > 0)
    for (const { name, trace } of checks) await t.test(name, () => assert.equal(trace, null, trace ?? ''))
  })

for (const version of GO)
  test(`genai ${version} for Go answers and streams`, async (t) => {
    const found = await goProgram(`google.golang.org/genai@${version}`, (directory) =>
      copyFile(join(SDK, 'go', 'main.go'), join(directory, 'main.go')),
    )
    if ('missing' in found) {
      console.log(`genai ${version} for Go was not tested: ${found.missing}`)
      return t.skip(found.missing)
    }
    const { out, err } = await runProgram(found.program, [], { env: environment(), timeoutMs: RUN_MS_MAX })
    assert.equal(out, 'done\n', err)
  })
