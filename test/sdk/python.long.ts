// The official SDKs for Python, three majors of each, and frameworks above them, unchanged, in front of the real
// gateway.
import { join } from 'node:path'
import { assert, test, testGateway } from '../gateway.ts'
import { pythonWith, runProgram } from './cache.ts'
import { openAllDoors } from './families.ts'

/**
 * What can be installed side by side, with all that it needs, is in python/<set>.txt; and which scripts run with it.
 */
const SETS = {
  newest: {
    openai_sdk: 'openai 3.49',
    anthropic_sdk: 'anthropic 2.8',
    langchain_sdk: 'LangChain',
    pydantic_ai_sdk: 'pydantic-ai',
    openai_agents_sdk: 'openai-agents',
  },
  before: { openai_sdk: 'openai 2.54', anthropic_sdk: 'anthropic 1.17', llama_index_sdk: 'LlamaIndex' },
  oldest: { openai_sdk: 'openai 1.109', anthropic_sdk: 'anthropic 0.125' },
  mcp: { mcp_sdk: 'mcp 2.3' },
}

const SCRIPTS = join(import.meta.dirname, 'python')
const SCRIPT_MS_MAX = 120_000
let key: string
const g = testGateway({ catalog: openAllDoors }, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
})

async function check(python: string, script: string): Promise<Array<{ name: string; trace: string | null }>> {
  const { out, err, code } = await runProgram(python, [join(SCRIPTS, `${script}.py`)], {
    // Nothing of the machine's settings, such as a proxy or somebody's key.
    env: { PATH: process.env.PATH, HOME: g.config.TOLLGATE_DATA, GATEWAY: g.url, GATEWAY_KEY: key },
    timeoutMs: SCRIPT_MS_MAX,
  })
  assert.equal(code, 0, err)
  return out
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
}

// Side by side, since most of the time goes into starting Python.
test('SDKs and frameworks for Python work unchanged', { concurrency: 2 }, async (t) => {
  const environments = await Promise.all(Object.keys(SETS).map((set) => pythonWith(join(SCRIPTS, `${set}.txt`))))
  await Promise.all(
    Object.values(SETS).flatMap((scripts, i) =>
      Object.entries(scripts).map(([script, title]) =>
        t.test(`${title} for Python`, async (each) => {
          const found = environments[i]!
          if ('missing' in found) {
            console.log(`${title} for Python was not tested: ${found.missing}`)
            return each.skip(found.missing)
          }
          const checks = await check(found.python, script)
          assert.ok(checks.length > 0)
          for (const { name, trace } of checks)
            await each.test(`${title}: ${name}`, () => assert.equal(trace, null, trace ?? ''))
        }),
      ),
    ),
  )
})
