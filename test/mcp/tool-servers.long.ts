// Foreign MCP servers that nobody here wrote, behind the gateway: the official example server with its tools paid, and
// the official conformance suite against tools that are another server's.

import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, freePort, test, testGateway, until } from '../gateway.ts'
import { installed, runProgram } from '../sdk/cache.ts'
import { connect } from './client.ts'
import { startExampleServer } from './example-server.ts'
import { startKeyProxy } from './key-proxy.ts'

const EVERYTHING = '@modelcontextprotocol/server-everything@2026.8.31'
const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const PRICE = { unit: 'credits', tiers: [{ call: '0.5' }] }

const g = testGateway()

async function sellAll(name: string, url: string, pricing: object = PRICE): Promise<string[]> {
  const { status, data } = await g.operator<any>('PUT', `/tool-servers/${name}`, { url })
  assert.equal(status, 200, JSON.stringify(data))
  assert.equal(data.error, null)
  for (const { tool, digest } of data.tools)
    if (digest) {
      const chosen = await g.operator('PUT', `/tool-servers/${name}/tools`, { tool, digest, pricing })
      assert.equal(chosen.status, 200, JSON.stringify(chosen.data))
    }
  return data.tools.map(({ tool }: { tool: string }) => tool)
}

test('tools of the official example server are called and paid, its errors are not, and its sessions are kept apart', async (t) => {
  const program = await installed(t, EVERYTHING, '@modelcontextprotocol/server-everything/dist/index.js')
  if (program === undefined) return
  const port = await freePort()
  const child = spawn(process.execPath, [program, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: 'ignore',
  })
  t.after(() => child.kill())
  const url = `http://127.0.0.1:${port}/mcp`
  await until(() =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )
  const tools = await sellAll('everything', url)
  assert.ok(tools.includes('echo') && tools.includes('get-sum'), tools.join())
  const { key, id } = await g.account()
  const client = await connect(g.url, key)
  const call = async (name: string, args: Record<string, unknown>) =>
    (await client.callTool({ name, arguments: args })) as any
  assert.match(JSON.stringify(await call('echo', { message: 'hello' })), /Echo: hello/)
  assert.match(JSON.stringify(await call('get-sum', { a: 2, b: 3 })), /is 5/)
  const image = await call('get-tiny-image', {})
  assert.ok(image.content.some(({ type }: any) => type === 'image'))
  const structured = await call('get-structured-content', { location: 'Chicago' })
  assert.equal(typeof structured.structuredContent.temperature, 'number', JSON.stringify(structured))
  assert.equal((await call('get-sum', { a: 'two', b: 3 })).isError, true)
  await client.close()
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n - 4n * 500_000n)
})

/** Scenarios about tools whose results the gateway relays. */
const RELAYED =
  'tools-list tools-call-simple-text tools-call-image tools-call-audio tools-call-embedded-resource tools-call-mixed-content tools-call-error json-schema-2020-12'

/**
 * What only the server itself could answer: prompts, resources, questions to the user, progress and log messages are
 * not relayed; tasks and completions are not offered.
 */
const NOT_RELAYED =
  /^(prompts-get|resources-(read|templates|subscribe|unsubscribe)|input-required|elicitation|tools-call-(sampling|elicitation|with-logging|with-progress)|logging|completion|tasks-|server-stateless|http-custom-header)/

for (const revision of ['2026-07-28', '2025-11-25'])
  test(`the conformance suite of ${revision} passes through the gateway with the tools of a registered server`, async (t) => {
    const program = await installed(t, SUITE, '@modelcontextprotocol/conformance/dist/index.js')
    if (program === undefined) return
    const example = await startExampleServer()
    t.after(() => example.close())
    const name = `suite-${revision.slice(0, 4)}`
    await sellAll(name, `${example.url}/mcp`)
    const { key, id } = await g.account()
    const proxy = await startKeyProxy(g.url, key)
    t.after(() => proxy.close())
    const directory = await mkdtemp(join(tmpdir(), 'conformance-'))
    const { out, err } = await runProgram(
      process.execPath,
      [program, 'server', '--url', `${proxy.url}/mcp`, '--requirements', revision, '-o', directory],
      { cwd: directory, timeoutMs: 180_000 },
    )
    await rm(directory, { recursive: true, force: true })
    const summary = new Map(
      [...out.matchAll(/^([✓✗]) ([\w-]+): \d+ passed/gm)].map(([, mark, scenario]) => [scenario!, mark === '✓']),
    )
    t.diagnostic([...summary].map(([scenario, passed]) => `${passed ? '✓' : '✗'} ${scenario}`).join(' '))
    for (const scenario of RELAYED.split(' '))
      assert.equal(summary.get(scenario), true, `${scenario}\n${out.slice(-3000)}\n${err.slice(-500)}`)
    const failed = [...summary].flatMap(([scenario, passed]) =>
      passed || NOT_RELAYED.test(scenario) ? [] : [scenario],
    )
    assert.deepEqual(failed, [])
    assert.equal((await g.operator('DELETE', `/tool-servers/${name}`)).status, 200)
    await g.settled()
    assert.ok((await g.balance(id)).posted < 1_000_000_000n, 'the calls were paid')
  })
