// Programs of others, unchanged, in front of the real gateway: their own metadata, users and session headers are the
// labels of their calls.
import { mkdir } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { UsageView } from '../../src/ledger/views.ts'
import { assert, pluck, type TestContext, test, testGateway } from '../gateway.ts'
import { installed, npmPackages, pythonWith, runProgram } from '../sdk/cache.ts'
import { everyKind } from '../sdk/families.ts'
import { type Passed, passing } from './passing.ts'

const RUN_MS_MAX = 120_000
const PYTHON = join(import.meta.dirname, '..', 'sdk', 'python')
const g = testGateway({ catalog: everyKind }, async () => {})

/** What the programs send: they talk to the gateway through this. */
const { seen, between } = passing(g)

type Labelled = { readonly labels: UsageView['labels']; readonly client: string }

/** The calls of an account, the first first, with what was sent for them in the words of the programs. */
async function told(t: TestContext, account: string, from: number): Promise<Labelled[]> {
  for (const { path, headers, body: text } of seen.slice(from)) {
    if (text === '') continue
    const body = JSON.parse(text) as Record<string, unknown>
    const sent = Object.entries(headers).filter(([name]) =>
      /session|conversation|thread|user-agent|tollgate/.test(name),
    )
    const members = { user: body.user, safety_identifier: body.safety_identifier, metadata: body.metadata }
    t.diagnostic(`${path} ${JSON.stringify(Object.fromEntries(sent))} ${JSON.stringify(members)}`)
  }
  await g.settled()
  const { data } = await g.operator<{ items: UsageView[] }>('GET', `/accounts/${account}/usage`)
  return data.items.map(({ labels, client }) => ({ labels, client })).reverse()
}

const environment = (key: string, home: string) => ({
  PATH: process.env.PATH,
  HOME: home,
  GATEWAY: between.url,
  GATEWAY_KEY: key,
  TOLLGATE_KEY: key,
})

async function homeOf(name: string): Promise<string> {
  const home = join(g.config.TOLLGATE_DATA, `home-${name}`)
  await mkdir(home, { recursive: true })
  return home
}

function skipped(t: TestContext, what: string, missing: string): void {
  console.log(`${what} was not tested: ${missing}`)
  t.skip(missing)
}

const SCRIPTS: readonly (readonly [script: string, list: string, expected: readonly UsageView['labels'][]])[] = [
  [
    'labels_sdk.py',
    'newest.txt',
    [
      { program: 'openai-chat', user: 'u-1' },
      { program: 'openai-responses', user: 'u-2' },
      { user: 'u-3' },
      { program: 'langchain-openai', user: 'u-4' },
      { user: 'u-5' },
    ],
  ],
  ['labels_genai.py', 'genai-newest.txt', [{ program: 'google-genai', session: 'g-1' }]],
]
for (const [script, list, expected] of SCRIPTS)
  test(`${script}: the SDKs for Python and LangChain send their metadata as labels`, async (t) => {
    const found = await pythonWith(join(PYTHON, list))
    if ('missing' in found) return skipped(t, script, found.missing)
    const { id, key } = await g.account({ credits: 100_000_000_000n })
    const from = seen.length
    const env = environment(key, await homeOf(script))
    const { out, err, code } = await runProgram(found.python, [join(PYTHON, script)], { env, timeoutMs: RUN_MS_MAX })
    assert.equal(code, 0, err)
    for (const line of out.split('\n').filter(Boolean)) assert.equal(JSON.parse(line).trace, null, line)
    assert.deepEqual(pluck(await told(t, id, from), 'labels'), expected)
  })

test('LangChain for JavaScript in front of the Gemini format sends the headers that it is given', async (t) => {
  const packages = await npmPackages(['@langchain/google-genai@2.3.2', '@langchain/core@1.2.13'])
  if ('missing' in packages) return skipped(t, 'LangChain', packages.missing)
  const { id, key } = await g.account({ credits: 100_000_000_000n })
  const from = seen.length
  const entry = pathToFileURL(join(packages.directory, 'node_modules/@langchain/google-genai/dist/index.js')).href
  const program = `const { ChatGoogleGenerativeAI } = await import(${JSON.stringify(entry)})
    const options = { model: 'delta-3.8-flash', apiKey: process.env.GATEWAY_KEY, baseUrl: process.env.GATEWAY + '/gemini', maxRetries: 0 }
    const model = new ChatGoogleGenerativeAI({ ...options, customHeaders: { 'x-tollgate-tags': 'program=langchain-js' } })
    const { content } = await model.invoke('Hello')
    if (!content) throw new Error('It said nothing.')`
  const env = environment(key, await homeOf('langchain'))
  const ran = await runProgram(process.execPath, ['--input-type=module', '-e', program], { env, timeoutMs: RUN_MS_MAX })
  assert.equal(ran.code, 0, ran.err)
  assert.deepEqual(pluck(await told(t, id, from), 'labels'), [{ program: 'langchain-js' }])
})

test('Claude Code’s session and user are labels, and its name is the client', async (t) => {
  const name = `@anthropic-ai/claude-code-${platform()}-${arch()}/claude`
  const program = await installed(t, '@anthropic-ai/claude-code@2.1.325', name)
  if (program === undefined) return
  const { id, key } = await g.account({ credits: 100_000_000_000n })
  const from = seen.length
  const home = await homeOf('claude')
  const env = {
    ...environment(key, home),
    ANTHROPIC_BASE_URL: between.url,
    ANTHROPIC_AUTH_TOKEN: key,
    ANTHROPIC_MODEL: 'beta-sonnet-5',
    ANTHROPIC_SMALL_FAST_MODEL: 'beta-haiku-4-5',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    CLAUDE_CODE_MAX_RETRIES: '0',
    DISABLE_AUTOUPDATER: '1',
  }
  const ran = await runProgram(program, ['-p', 'Hello'], { env, cwd: home, timeoutMs: RUN_MS_MAX })
  assert.equal(ran.code, 0, ran.out + ran.err)
  const calls = await told(t, id, from)
  checkAgent(calls, 'claude-code', seen.slice(from))
  // Nobody is logged in, so it is the device.
  for (const { labels } of calls) assert.match(labels?.user ?? '', /^[0-9a-f]{64}$/)
})

test('Codex’ session is a label, and its name is the client', async (t) => {
  const program = await installed(t, '@openai/codex@0.166.0', '@openai/codex/bin/codex.js')
  if (program === undefined) return
  const { id, key } = await g.account({ credits: 100_000_000_000n })
  const from = seen.length
  const home = await homeOf('codex')
  const provider = `{ name = "gate", base_url = "${between.url}/v1", env_key = "TOLLGATE_KEY", wire_api = "responses", request_max_retries = 0 }`
  const settings = [
    '-c',
    'model_provider="gate"',
    '-c',
    `model_providers.gate=${provider}`,
    '-c',
    'model="alpha-5.4"',
    '--skip-git-repo-check',
  ]
  const args = [program, 'exec', '--json', ...settings, 'Hello']
  const ran = await runProgram(process.execPath, args, {
    env: environment(key, home),
    cwd: home,
    timeoutMs: RUN_MS_MAX,
  })
  assert.equal(ran.code, 0, ran.out + ran.err)
  checkAgent(await told(t, id, from), 'codex', seen.slice(from))
})

/** All calls of one run are of one session, and it is the one that a header of the program names. */
function checkAgent(calls: readonly Labelled[], client: string, sent: readonly Passed[]): void {
  assert.ok(calls.length > 0, 'it called nothing')
  const sessions = new Set(calls.map(({ labels }) => labels?.session))
  assert.equal(sessions.size, 1, JSON.stringify(calls))
  const [session = ''] = sessions
  assert.match(session, /^[\w-]{8,64}$/)
  assert.ok(
    sent.some(({ headers }) =>
      Object.entries(headers).some(([name, value]) => /session/.test(name) && value === session),
    ),
    'the session is none of its headers',
  )
  for (const call of calls) assert.equal(call.client, client)
}
