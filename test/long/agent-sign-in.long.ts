// From `tollgate agent` to the first answer, with the programs themselves: the person signs in by a code, and no key is
// made or stored.
import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { assert, test, testGateway } from '../gateway.ts'
import { type asBrowser, joined } from '../operator-server.ts'
import { installed, runProgram } from '../sdk/cache.ts'
import { everyKind } from '../sdk/families.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const FIRST_ANSWER_MS_MAX = 60_000
const RUN_MS_MAX = 120_000
const CODE = /code (\S+)\.\n/

let account: string
let person: ReturnType<typeof asBrowser>
const g = testGateway({ catalog: everyKind }, async () => {
  account = (await g.account({ credits: 100_000_000_000n })).id
  person = await joined(g, `/accounts/${account}/invites`, { email: 'owner@home.example', role: 'owner' })
})

/** `tollgate agent …` as a person types it; the code that it shows is typed into the console at once. */
async function setUp(agent: string, home: string, model: string): Promise<void> {
  const args = [join(ROOT, 'bin', 'tollgate.js'), 'agent', agent, '--gateway', g.url, '--model', model]
  const child = spawn(process.execPath, args, { cwd: home, env: environment(home) })
  let said = ''
  let answered: Promise<unknown> | undefined
  child.stdout.on('data', (piece: Buffer) => {
    said += piece
  })
  child.stderr.on('data', (piece: Buffer) => {
    said += piece
    const code = CODE.exec(said)?.[1]
    if (code !== undefined) answered ??= person('POST', '/device/allow', { code, account, models: null })
  })
  const ended = await new Promise((resolve) => child.once('close', resolve))
  await answered
  assert.equal(ended, 0, said)
}

async function tokenOf(home: string): Promise<string> {
  const args = [join(ROOT, 'bin', 'tollgate.js'), 'token']
  const { out } = await runProgram(process.execPath, args, { cwd: home, timeoutMs: RUN_MS_MAX, env: environment(home) })
  return out.trim()
}

const environment = (home: string) => ({ PATH: process.env.PATH, HOME: home, CODEX_HOME: join(home, '.codex') })

interface Case {
  readonly agent: string
  readonly version: string
  readonly path: string
  readonly model: string
  command(program: string): [string, readonly string[]]
  readonly env?: Record<string, string>
  /** The variable in which it takes the token of `tollgate token`. Absent: it runs the command itself. */
  readonly variable?: string
}

const QUIET = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', CLAUDE_CODE_MAX_RETRIES: '0', DISABLE_AUTOUPDATER: '1' }
const CASES: readonly Case[] = [
  {
    agent: 'claude-code',
    version: '@anthropic-ai/claude-code@2.1.325',
    model: 'beta-sonnet-5',
    path: `@anthropic-ai/claude-code-${platform()}-${arch()}/claude`,
    command: (program) => [program, ['-p', 'Hello']],
    env: QUIET,
  },
  {
    agent: 'codex',
    version: '@openai/codex@0.166.0',
    model: 'alpha-5.4',
    path: '@openai/codex/bin/codex.js',
    command: (program) => [process.execPath, [program, 'exec', '--json', '--skip-git-repo-check', 'Hello']],
  },
  {
    agent: 'gemini-cli',
    version: '@google/gemini-cli@0.61.0',
    model: 'delta-own',
    path: '@google/gemini-cli/bundle/gemini.js',
    command: (program) => [process.execPath, [program, '--prompt', 'Hello']],
    env: { CI: '1', NO_COLOR: '1', GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    variable: 'GOOGLE_API_KEY',
  },
  {
    agent: 'opencode',
    version: 'opencode-ai@1.18.33',
    model: 'alpha-5.4',
    path: `opencode-${platform()}-${arch()}/bin/opencode`,
    command: (program) => [program, ['run', 'Hello']],
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    },
    variable: 'TOLLGATE_KEY',
  },
  {
    agent: 'qwen-code',
    version: '@qwen-code/qwen-code@0.24.4',
    model: 'alpha-5.4',
    path: '@qwen-code/qwen-code/cli-entry.js',
    command: (program) => [process.execPath, [program, '--prompt', 'Hello']],
    env: { CI: '1', NO_COLOR: '1' },
    variable: 'OPENAI_API_KEY',
  },
  {
    agent: 'continue',
    version: '@continuedev/cli@1.5.47',
    model: 'alpha-5.4',
    path: '@continuedev/cli/dist/cn.js',
    command: (program) => [process.execPath, [program, '-p', 'Hello', '--config', '.continue/models/tollgate.yaml']],
    env: { CI: '1', CONTINUE_TELEMETRY_ENABLED: '0' },
    variable: 'TOLLGATE_KEY',
  },
]

for (const { agent, version, path, model, command, env, variable } of CASES)
  test(`${version} answers within a minute of "tollgate agent ${agent}", by a sign-in without a key`, async (t) => {
    const program = await installed(t, version, path)
    if (program === undefined) return
    const home = join(g.config.TOLLGATE_DATA, `signed-in-${agent}`)
    await mkdir(home, { recursive: true })
    await writeFile(join(home, 'notes.txt'), 'Toll gates are raised at noon.\n')
    const startedMs = Date.now()
    await setUp(agent, home, model)
    const token = variable === undefined ? {} : { [variable]: await tokenOf(home) }
    const [file, args] = command(program)
    const ran = await runProgram(file, args, {
      cwd: home,
      timeoutMs: RUN_MS_MAX,
      env: { ...environment(home), ...env, ...token },
    })
    const tookMs = Date.now() - startedMs
    const said = `${ran.out.slice(-3000)}\n${ran.err.slice(-2000)}`
    assert.equal(ran.code, 0, said)
    assert.match(ran.out, /simulated|sandbox|reports/i, said)
    assert.ok(tookMs < FIRST_ANSWER_MS_MAX, `${tookMs} ms`)
    console.log(`${agent}: ${Math.round(tookMs / 100) / 10} s from the command to the first answer`)
    const { items } = (await person<{ items: { client: string | null }[] }>('GET', `/accounts/${account}/keys`)).data
    assert.ok(items.some(({ client }) => client?.startsWith('Tollgate on ')))
  })
