// The coding agents that `tollgate agent-setup` names, the programs themselves, set up by what that command writes:
// each with a model of every kind, and two versions of each. With TOLLGATE_TEST_UPDATE=1 what they ask is recorded for
// the ordinary tests.

import { mkdir, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { agentSetups } from '../../src/extensions/agents/setup/programs.ts'
import { commandLineOf } from '../command-line.ts'
import { assert, test, testGateway } from '../gateway.ts'
import { installed, pythonWith, type Ran, runProgram } from '../sdk/cache.ts'
import { EVERY_FORMAT, EVERY_KIND, everyKind } from '../sdk/families.ts'
import { type Passed, passing } from './passing.ts'

const RUN_MS_MAX = 120_000
const FIXTURES = join(import.meta.dirname, '..', 'fixtures', 'agents')

let key: string
const g = testGateway({ catalog: everyKind }, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
})

/** What the agents send to the gateway: they talk to it through this. */
const { seen, between } = passing(g)

type Desk = { readonly program: string; readonly home: string; readonly model: string }

interface Agent {
  /** The newest first; the others meet one model of each format. */
  readonly versions: readonly string[]
  /** Why it cannot be run anywhere. */
  readonly never?: string
  find(t: Parameters<typeof installed>[0], version: string): Promise<string | undefined>
  /** One step; `resume` goes on with the conversation before it. */
  ask(desk: Desk, prompt: string, resume?: boolean): Promise<Ran>
  /** Makes the sandbox call a tool of this agent. Absent: it has none. */
  readonly tool?: string
}

/** Nothing of the machine's settings, such as a proxy or somebody's key. */
const run = ({ home }: Desk, program: string, args: readonly string[], env: Record<string, string> = {}) =>
  runProgram(program, args, {
    cwd: home,
    timeoutMs: RUN_MS_MAX,
    env: { PATH: process.env.PATH, HOME: home, TOLLGATE_KEY: key, ...env },
  })

const UNTRIED = 'its files are written by the command, and the program is not run here yet'
const EDITOR = 'it is an editor with a window; its tools are the ones that the tests of src/extensions/agents run'

const AGENTS: Readonly<Record<string, Agent>> = {
  codex: {
    versions: ['@openai/codex@0.166.0', '@openai/codex@0.162.1'],
    find: (t, version) => installed(t, version, '@openai/codex/bin/codex.js'),
    tool: 'What is the goal? Use get_goal.',
    ask(desk, prompt, resume) {
      const how = ['--json', '--skip-git-repo-check']
      const args = resume ? ['exec', 'resume', '--last', ...how, prompt] : ['exec', ...how, prompt]
      return run(desk, process.execPath, [desk.program, ...args])
    },
  },
  'claude-code': {
    versions: ['@anthropic-ai/claude-code@2.1.325', '@anthropic-ai/claude-code@2.1.321'],
    find: (t, version) => installed(t, version, `@anthropic-ai/claude-code-${platform()}-${arch()}/claude`),
    tool: 'Look at the file notes.txt. Use Read.',
    ask: (desk, prompt, resume) =>
      run(desk, desk.program, ['-p', prompt, ...(resume ? ['--continue'] : []), '--allowedTools', 'Read'], {
        ANTHROPIC_AUTH_TOKEN: key,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_MAX_RETRIES: '0',
        DISABLE_AUTOUPDATER: '1',
      }),
  },
  opencode: {
    versions: ['opencode-ai@1.18.33', 'opencode-ai@1.18.29'],
    find: (t, version) => installed(t, version, `opencode-${platform()}-${arch()}/bin/opencode`),
    tool: 'List the files by name. Use glob.',
    ask: (desk, prompt, resume) =>
      run(desk, desk.program, ['run', ...(resume ? ['--continue'] : []), prompt], {
        // It fetches lists, plugins and language servers, which no answer depends on.
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        XDG_CACHE_HOME: join(g.config.TOLLGATE_DATA, 'cache'),
      }),
  },
  aider: {
    // The ones before it need a package that has no wheel.
    versions: ['aider-0.86.2'],
    async find(t, version) {
      const found = await pythonWith(join(import.meta.dirname, 'python', `${version}.txt`))
      if ('python' in found) return found.python
      console.log(`${version} was not tested: ${found.missing}`)
      t.skip(found.missing)
      return undefined
    },
    ask: (desk, prompt, resume) =>
      run(
        desk,
        desk.program,
        [
          '-m',
          'aider',
          '--message',
          prompt,
          '--no-git',
          '--yes-always',
          '--no-check-update',
          '--analytics-disable',
          // Without it, aider asks again for as long as an answer holds no edit of a file.
          '--chat-mode',
          'ask',
          '--no-show-model-warnings',
          '--no-show-release-notes',
          ...(resume ? ['--restore-chat-history'] : []),
        ],
        { OPENAI_API_KEY: key, LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
      ),
  },
  'gemini-cli': {
    versions: ['gemini-cli'],
    never: 'agent-sign-in.long.ts runs it',
    find: async () => undefined,
    ask: never,
  },
  'qwen-code': { versions: ['qwen-code'], never: UNTRIED, find: async () => undefined, ask: never },
  continue: { versions: ['continue'], never: UNTRIED, find: async () => undefined, ask: never },
  cursor: { versions: ['cursor'], never: EDITOR, find: async () => undefined, ask: never },
  vscode: { versions: ['vscode'], never: EDITOR, find: async () => undefined, ask: never },
}

function never(): Promise<Ran> {
  throw new Error('It cannot be run.')
}

/** A person's empty home, set up by the command for this model. */
async function setUp(agent: string, program: string, model: string, nth: number): Promise<Desk> {
  const home = join(g.config.TOLLGATE_DATA, `${agent}-${nth}`, model)
  await mkdir(home, { recursive: true })
  await writeFile(join(home, 'notes.txt'), 'Toll gates are raised at noon.\n')
  const { codexHome } = readConfig({ CODEX_HOME: join(home, '.codex') })
  const command = ['agent-setup', agent, '--model', model, '--gateway', between.url, '--write', home]
  const { code, all } = await commandLineOf(() => g, { dataDirectory: home, codexHome }).run(command)
  assert.equal(code, 0, all)
  return { program, home, model }
}

const TEXT_CHARS_MAX = 48
const LIST_MAX = 12

/**
 * A request as it was, but for its length: texts are cut, and of a list of tools only the first of each kind and group
 * are kept.
 */
function shortened(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length > TEXT_CHARS_MAX && !/^[\w+/=-]+$|^\{/.test(value)
      ? `${value.slice(0, TEXT_CHARS_MAX)}…`
      : value
  if (Array.isArray(value)) {
    const kinds = new Map<string, number>()
    return value
      .filter((entry) => {
        const kind = String(entry?.type ?? '')
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
        return (kinds.get(kind) ?? 0) <= LIST_MAX
      })
      .map(shortened)
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shortened(inner)]))
}

async function record(agent: string, step: string, { home, model }: Desk): Promise<void> {
  if (process.env.TOLLGATE_TEST_UPDATE !== '1' || model !== EVERY_KIND[0]) return
  const found = seen.findLast(({ path }) => /\/(?:responses|messages|chat\/completions)(?:\?.*)?$/.test(path))
  assert.ok(found, `${agent} has asked nothing`)
  await mkdir(FIXTURES, { recursive: true })
  const body = found.body.replaceAll(home, '/home/someone')
  const kept = { path: found.path, body: shortened(JSON.parse(body)) }
  await writeFile(join(FIXTURES, `${agent}-${step}.json`), `${JSON.stringify(kept, null, 1)}\n`)
}

/** Asks, and says how many requests that took. */
async function step(agent: Agent, desk: Desk, prompt: string, resume?: boolean): Promise<Passed[]> {
  const before = seen.length
  const ran = await agent.ask(desk, prompt, resume)
  const said = `${desk.model}: ${prompt}\n${ran.out.slice(-3000)}\n${ran.err.slice(-2000)}`
  const asked = seen.slice(before).filter(({ path }) => /responses|messages|completions/.test(path))
  for (const { path, status, body } of asked) assert.equal(status, 200, `${path} ${body.slice(0, 500)}\n${said}`)
  assert.equal(ran.code, 0, said)
  assert.match(ran.out, /simulated|sandbox|reports/i, said)
  assert.ok(asked.length > 0, said)
  return asked.filter(({ path }) => !path.includes('count_tokens'))
}

async function converse(name: string, agent: Agent, desk: Desk): Promise<void> {
  const hello = await step(agent, desk, 'Hello')
  // A greeting is answered: it is no reason to call tools again and again, which a new account would pay with its
  // welcome.
  assert.ok(hello.length <= 2, `${name} ${desk.model}: ${hello.length} requests for a greeting`)
  await record(name, 'text', desk)
  if (agent.tool !== undefined) {
    const turns = await step(agent, desk, agent.tool)
    assert.ok(turns.length >= 2 && turns.length <= 4, `${name} ${desk.model}: ${turns.length} requests for one tool`)
    await record(name, 'tool', desk)
  }
  const resumed = await step(agent, desk, 'Thank you, that is all.', true)
  assert.ok(
    resumed.some(({ body }) => body.includes(agent.tool ?? 'Hello') && body.includes('that is all')),
    `${name} ${desk.model}: the conversation did not go on`,
  )
  await record(name, 'resume', desk)
}

test('every agent that agent-setup names has a test here', () => {
  const named = agentSetups({ url: '', model: () => '', limits: () => ({}) }).map(({ name }) => name)
  assert.deepEqual(Object.keys(AGENTS).sort(), named.sort())
})

for (const [name, agent] of Object.entries(AGENTS))
  for (const [nth, version] of agent.versions.entries())
    test(`${version} answers, calls a tool and resumes with every kind of model`, async (t) => {
      if (agent.never !== undefined) {
        console.log(`${name} was not tested: ${agent.never}`)
        return t.skip(agent.never)
      }
      const program = await agent.find(t, version)
      if (program === undefined) return
      for (const model of nth === 0 ? EVERY_KIND : EVERY_FORMAT)
        await t.test(model, async () => converse(name, agent, await setUp(name, program, model, nth)))
    })
