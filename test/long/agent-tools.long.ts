// Claude Code, set up by the files that `tollgate agent-setup` writes and nothing else: the text model and the tools.
// Codex so: codex-socket.long.ts.
import { mkdir, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { agentSetups, modelsFor, offeredModels } from '../../src/extensions/agents/setup/programs.ts'
import { assert, test, testGateway } from '../gateway.ts'
import { installed, runProgram } from '../sdk/cache.ts'

const CLAUDE = '@anthropic-ai/claude-code@2.1.325'
const RUN_MS_MAX = 60_000

const g = testGateway()

/** A project with the files of a setup, and who spends there. */
async function project(name: string): Promise<{ path: string; id: string; key: string }> {
  const path = join(g.config.TOLLGATE_DATA, name)
  const { models } = g.gateway.catalog.current.document
  const setup = agentSetups({ url: g.url, ...modelsFor(offeredModels(models)) }).find((one) => one.name === name)
  for (const file of setup!.files) {
    // The home of a person is the project's directory here.
    const target = join(path, file.path.replace('~/', ''))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, file.text)
  }
  return { path, ...(await g.account({ credits: 100_000_000_000n })) }
}

const endpointsOf = async (account: string) => {
  await g.settled()
  const rows = await g.sql<{ endpoint: string }>(
    'select distinct endpoint from usage where account_id = $1 order by endpoint',
    [account],
  )
  return rows.map(({ endpoint }) => endpoint)
}

test('Claude Code, as agent-setup sets it up, asks its model and calls a tool of the gateway', async (t) => {
  const program = await installed(t, CLAUDE, `@anthropic-ai/claude-code-${platform()}-${arch()}/claude`)
  if (program === undefined) return
  const { path, id, key } = await project('claude-code')
  const tool = 'mcp__tollgate__keyword_suggestions'
  const ran = await runProgram(
    program,
    [
      '-p',
      `[[tool=${tool}]] Which keywords go with toll gates?`,
      '--output-format',
      'json',
      '--mcp-config',
      '.mcp.json',
      '--strict-mcp-config',
      '--allowedTools',
      tool,
    ],
    {
      cwd: path,
      timeoutMs: RUN_MS_MAX,
      env: {
        PATH: process.env.PATH,
        HOME: path,
        TOLLGATE_KEY: key,
        ANTHROPIC_AUTH_TOKEN: key,
        // Else it looks for tools by a search of its own, which a simulated model does not know.
        ENABLE_TOOL_SEARCH: 'false',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_MAX_RETRIES: '0',
        DISABLE_AUTOUPDATER: '1',
      },
    },
  )
  const line = ran.out.split('\n').find((text) => text.startsWith('{'))
  assert.ok(line, `${ran.out}\n${ran.err}`)
  const { is_error: failed, num_turns: turns, result } = JSON.parse(line)
  assert.equal(failed, false, result)
  assert.equal(turns, 2)
  assert.deepEqual(await endpointsOf(id), ['mcp:keyword_suggestions', 'messages'])
})
