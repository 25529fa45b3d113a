// Codex and Claude Code, the programs themselves, in front of the real gateway.
import { mkdir } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { assert, test, testGateway } from '../gateway.ts'
import { installed, type Ran, runProgram } from '../sdk/cache.ts'

const CODEX = '@openai/codex@0.166.0'
const CLAUDE = '@anthropic-ai/claude-code@2.1.325'
const RUN_MS_MAX = 60_000
let key: string
let home: string
const g = testGateway({}, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
  home = join(g.config.TOLLGATE_DATA, 'home')
  await mkdir(home)
})

/** With nothing of the machine's settings, such as a proxy or somebody's key. */
const run = (program: string, args: readonly string[], env: Record<string, string>): Promise<Ran> =>
  runProgram(program, args, { cwd: home, timeoutMs: RUN_MS_MAX, env: { PATH: process.env.PATH, HOME: home, ...env } })

const calls = async <T>(work: () => Promise<T>): Promise<[T, number]> => {
  const before = g.sandbox.seen.requests
  const done = await work()
  return [done, g.sandbox.seen.requests - before]
}

test('Codex answers, calls a tool and goes on with its result, and says what was wrong', async (t) => {
  const program = await installed(t, CODEX, '@openai/codex/bin/codex.js')
  if (program === undefined) return
  const provider = `{name="tollgate",base_url="${g.url}/v1",env_key="CALLER_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}`
  const codex = async (prompt: string, model = 'alpha-5.4') => {
    const settings = ['-c', 'model_provider=tollgate', '-c', `model_providers.tollgate=${provider}`]
    const ran = await run(
      process.execPath,
      [program, 'exec', '--json', '--skip-git-repo-check', '--sandbox', 'read-only', '-m', model, ...settings, prompt],
      { CODEX_HOME: home, CALLER_KEY: key },
    )
    const events = ran.out.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
    return { ...ran, events, kinds: events.map(({ type, item }) => item?.type ?? type) }
  }

  const [answer, asked] = await calls(() => codex('Say hello.'))
  assert.equal(answer.code, 0, answer.err)
  assert.ok(answer.kinds.includes('agent_message') && answer.kinds.at(-1) === 'turn.completed', answer.out)
  assert.equal(asked, 1)

  const [tool, turns] = await calls(() => codex('What is the goal? Use get_goal.'))
  assert.equal(tool.kinds.at(-1), 'turn.completed', tool.out)
  assert.equal(turns, 2)

  const unknown = await codex('Say hello.', 'nope')
  assert.notEqual(unknown.code, 0)
  assert.match(unknown.out, /does not exist/)
  const cut = await codex('A story. [[cut=4]] [[chunks=20]]')
  assert.equal(cut.kinds.at(-1), 'turn.failed', cut.out)
})

test('Claude Code answers, calls tools, also its web search, and says what was wrong', async (t) => {
  const program = await installed(t, CLAUDE, `@anthropic-ai/claude-code-${platform()}-${arch()}/claude`)
  if (program === undefined) return
  const model = 'beta-sonnet-4-6'
  const claude = async (prompt: string, tool: string, over: Record<string, string> = {}) => {
    const ran = await run(
      program,
      // It may use this one tool only: the sandbox calls what it is told to call.
      ['-p', prompt, '--output-format', 'json', '--tools', tool, '--allowedTools', tool],
      {
        ANTHROPIC_BASE_URL: `${g.url}/beta`,
        ANTHROPIC_AUTH_TOKEN: key,
        ANTHROPIC_MODEL: model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_MAX_RETRIES: '0',
        DISABLE_AUTOUPDATER: '1',
        ...over,
      },
    )
    const line = ran.out.split('\n').find((text) => text.startsWith('{'))
    assert.ok(line, `${ran.out}\n${ran.err}`)
    return JSON.parse(line) as { is_error: boolean; result: string; num_turns: number }
  }

  const answer = await claude('Say hello.', 'Read')
  assert.equal(answer.is_error, false, answer.result)
  assert.match(answer.result, /sandbox/i)

  const tool = await claude('Look at the file notes.txt. Use Read.', 'Read')
  assert.equal(tool.is_error, false, tool.result)
  assert.equal(tool.num_turns, 2)

  const [search, asked] = await calls(() => claude('What is new about toll gates? Use WebSearch.', 'WebSearch'))
  assert.equal(search.is_error, false, search.result)
  assert.doesNotMatch(search.result, /no price/)
  assert.equal(asked, 3)

  assert.equal((await claude('Say hello.', 'Read', { ANTHROPIC_MODEL: 'nope' })).is_error, true)
  const poor = await claude('Say hello.', 'Read', { ANTHROPIC_AUTH_TOKEN: (await g.account({ credits: 1n })).key })
  assert.match(poor.result, /402|credit/i)
})
