// Codex over a WebSocket, the program itself: it warms up, sends only what is new, and falls back to HTTP by itself
// only where it must.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentSetups, modelsFor, offeredModels } from '../../src/extensions/agents/setup/programs.ts'
import { assert, none, test, testGateway } from '../gateway.ts'
import { installed, runProgram } from '../sdk/cache.ts'

const RUN_MS_MAX = 60_000
const upgrades: string[] = []
const posts: string[] = []
const g = testGateway({
  hook(app) {
    app.server.on('upgrade', ({ url = '' }) => upgrades.push(url))
    app.server.on('request', ({ method = '', url = '' }) => posts.push(`${method} ${url}`))
  },
})

for (const version of ['0.166.0', '0.162.1'])
  test(`Codex ${version} asks its model and calls a tool over one WebSocket`, async (t) => {
    const program = await installed(t, `@openai/codex@${version}`, '@openai/codex/bin/codex.js')
    if (program === undefined) return
    const home = join(g.config.TOLLGATE_DATA, version)
    const { models } = g.gateway.catalog.current.document
    const setup = agentSetups({ url: g.url, ...modelsFor(offeredModels(models)) }).find(({ name }) => name === 'codex')
    await mkdir(join(home, '.codex'), { recursive: true })
    await writeFile(join(home, '.codex', 'config.toml'), setup!.files[0]!.text)
    const { id, key } = await g.account({ credits: 100_000_000_000n })
    g.sandbox.seen.clear()
    upgrades.length = 0
    posts.length = 0
    const ran = await runProgram(
      process.execPath,
      [
        program,
        'exec',
        '--json',
        '--skip-git-repo-check',
        '--sandbox',
        'read-only',
        '[[tool=keyword_suggestions]] Which keywords go with toll gates?',
      ],
      {
        cwd: home,
        timeoutMs: RUN_MS_MAX,
        env: { PATH: process.env.PATH, HOME: home, CODEX_HOME: join(home, '.codex'), TOLLGATE_KEY: key },
      },
    )
    const events = ran.out.split('\n').flatMap((text) => (text.startsWith('{') ? [JSON.parse(text)] : []))
    assert.equal(events.at(-1)?.type, 'turn.completed', `${ran.out}\n${ran.err}`)
    assert.ok(upgrades.length > 0 && upgrades.every((url) => url.startsWith('/v1/responses')), String(upgrades))
    none(posts, (one) => one.startsWith('POST /v1/responses'))
    await g.settled()
    const rows = await g.sql<{ endpoint: string; charged: bigint }>(
      'select endpoint, charged from usage where account_id = $1 order by id',
      [id],
    )
    assert.deepEqual([...new Set(rows.map(({ endpoint }) => endpoint))].sort(), [
      'mcp:keyword_suggestions',
      'responses',
    ])
    // What was said before stands in what the vendor got, though Codex sent it once.
    const sizes = g.sandbox.seen.calls.flatMap(({ stream, bodyBytes }) => (stream ? [bodyBytes] : []))
    assert.ok(sizes.length >= 2 && sizes.every((bytes, at) => at === 0 || bytes > sizes[at - 1]!), String(sizes))
  })
