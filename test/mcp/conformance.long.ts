// The protocol's official conformance suite: against the gateway itself, and, for the scenarios that presuppose the
// suite's own tools, against the same door with those tools behind it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, assert, before, startGateway, type TestGateway, test } from '../gateway.ts'
import { installed, runProgram } from '../sdk/cache.ts'
import { startExampleServer } from './example-server.ts'
import { startKeyProxy } from './key-proxy.ts'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const RUN_MS_MAX = 120_000

/** What the gateway passes with its own tools, resources and prompts. */
const ITSELF = {
  '2026-07-28':
    'tools-list resources-list prompts-list server-sse-multiple-streams sep-2164-resource-not-found dns-rebinding-protection caching http-header-validation input-required-result-missing-input-response input-required-result-unsupported-methods input-required-result-ignore-extra-params input-required-result-validate-input',
  '2025-11-25':
    'server-initialize ping tools-list resources-list prompts-list dns-rebinding-protection server-sse-multiple-streams server-session-lifecycle server-sse-polling',
}

const NO_TASKS = 'tasks are an extension that is not offered: videos have jobs, which are followed with wait_for_video'
const NO_PUSH = 'a stateless server cannot ask a client of this revision: its answer would be a request of its own'
const NO_LOGGING = 'log messages are deprecated and not offered; what happened stands in the result'
/** What no server of ours passes, and why. */
const NOT_APPLICABLE: Record<string, Record<string, string>> = {
  '2026-07-28': {
    'completion-complete': 'completions are not offered: no argument of a prompt has a closed list of values',
    'http-custom-header-server-validation': 'no tool takes an argument from a header (x-mcp-header)',
    ...Object.fromEntries(
      'lifecycle capability-negotiation wire-fields request-state-removal mrtr-input request-headers dispatch-and-envelope required-task-error mrtr-composition'
        .split(' ')
        .map((name) => [`tasks-${name}`, NO_TASKS]),
    ),
  },
  '2025-11-25': {
    'completion-complete': 'completions are not offered: no argument of a prompt has a closed list of values',
    'logging-set-level': NO_LOGGING,
    'tools-call-with-logging': NO_LOGGING,
    'tools-call-sampling': NO_PUSH,
    'tools-call-elicitation': NO_PUSH,
    'elicitation-sep1034-defaults': NO_PUSH,
    'elicitation-sep1330-enums': NO_PUSH,
    'resources-subscribe': 'resources change with the catalog only, and a stateless server has no stream to say so',
    'resources-unsubscribe': 'there is nothing to unsubscribe from',
  },
}

let g: TestGateway
let example: Awaited<ReturnType<typeof startExampleServer>>
let proxy: Awaited<ReturnType<typeof startKeyProxy>>
before(async () => {
  g = await startGateway()
  const { key } = await g.account()
  proxy = await startKeyProxy(g.url, key)
  example = await startExampleServer()
})
after(async () => {
  await proxy.close()
  await example.close()
  await g.settled()
  await g.close()
})

/** Each scenario of a revision with whether it passed, from the summary that the suite prints. */
async function run(program: string, url: string, revision: string): Promise<Map<string, boolean>> {
  const directory = await mkdtemp(join(tmpdir(), 'conformance-'))
  const { out, err } = await runProgram(
    process.execPath,
    [program, 'server', '--url', `${url}/mcp`, '--requirements', revision, '-o', directory],
    { cwd: directory, timeoutMs: RUN_MS_MAX },
  )
  await rm(directory, { recursive: true, force: true })
  const summary = out.slice(out.indexOf('=== SUMMARY ==='))
  const lines = [...summary.matchAll(/^([✓✗]) ([\w-]+): \d+ passed/gm)]
  assert.ok(lines.length > 20, `${out.slice(-2000)}\n${err}`)
  return new Map(lines.map(([, mark, name]) => [name!, mark === '✓']))
}

for (const [revision, own] of Object.entries(ITSELF))
  test(`the conformance suite of ${revision} passes, but for what is not offered`, async (t) => {
    const program = await installed(t, SUITE, '@modelcontextprotocol/conformance/dist/index.js')
    if (program === undefined) return
    const [itself, mounted] = await Promise.all([
      run(program, proxy.url, revision),
      run(program, example.url, revision),
    ])
    const reasons = NOT_APPLICABLE[revision]!
    for (const name of own.split(' ')) assert.equal(itself.get(name), true, `${name} fails against the gateway itself`)
    const failed = [...mounted].filter(([, passed]) => !passed).map(([name]) => name)
    assert.deepEqual(failed.sort(), Object.keys(reasons).sort())
    for (const [name, why] of Object.entries(reasons)) t.diagnostic(`${name} does not apply: ${why}`)
  })
