// The client for Python: its whole surface against the real gateway, its types, and the examples of its guide.
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { assert, before, started, startGateway, type TestContext, temporary, test } from '../gateway.ts'
import { ISSUER } from '../invoice-shapes.ts'
import { pythonWith, runProgram } from '../sdk/cache.ts'
import { consoleSnippets, RUN } from './console-snippets.ts'
import { examplesIn, WEBHOOK_SECRET, webhookRequest } from './examples.ts'

const ROOT = resolve(import.meta.dirname, '..', '..')
const SOURCES = join(ROOT, 'clients', 'python', 'src')
const SCRIPTS = join(import.meta.dirname, 'python')
const RUN_MS_MAX = 150_000
/** The least that the package itself needs. */
const PYTHON_MINOR_MIN = 10

let key: string
const found = await pythonWith(join(ROOT, 'test', 'sdk', 'python', 'tools.txt'), PYTHON_MINOR_MIN)

const g = started(startGateway)
const room = temporary('python-')
before(async () => {
  const account = await g.account({ credits: 1_000_000_000_000n })
  key = account.key
  const sold = { provider: 'simulated', currency: 'EUR', pricePerCredit: '0.01', minimum: '1', maximum: '9' }
  const set = await g.operator('PATCH', `/accounts/${account.id}/purse-payments`, { ...sold, issuer: ISSUER })
  assert.equal(set.status, 200)
})

function interpreter(t: TestContext): string | undefined {
  if ('python' in found) return found.python
  console.log(`The client for Python was not tested: ${found.missing}`)
  t.skip(found.missing)
  return undefined
}

async function run(python: string, args: readonly string[], env: Record<string, string> = {}) {
  // What Python compiles stays with the environment, and out of the checkout.
  const compiled = { PYTHONPATH: SOURCES, PYTHONPYCACHEPREFIX: join(dirname(dirname(python)), 'pycache') }
  return runProgram(python, args, {
    cwd: room,
    env: { PATH: process.env.PATH, HOME: room, ...compiled, ...env },
    timeoutMs: RUN_MS_MAX,
  })
}

const linesOf = (out: string): Array<{ name: string; trace: string | null; said?: string; seconds?: number }> =>
  out
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

test('the whole client for Python works', async (t) => {
  const python = interpreter(t)
  if (python === undefined) return
  const poor = (await g.account({ credits: 1n })).key
  const hook = webhookRequest().init
  const { out, err, code } = await run(python, [join(SCRIPTS, 'surface.py')], {
    GATEWAY: g.url,
    GATEWAY_KEY: key,
    POOR_KEY: poor,
    HOOK_BODY: hook.body,
    HOOK_HEADERS: JSON.stringify(hook.headers),
    HOOK_SECRET: WEBHOOK_SECRET,
  })
  assert.equal(code, 0, err)
  const checks = linesOf(out)
  assert.ok(checks.length >= 12)
  t.diagnostic(checks.map(({ name, seconds }) => `${name} ${seconds} s`).join(', '))
  for (const { name, trace } of checks) await t.test(name, () => assert.equal(trace, null, trace ?? ''))
})

test('the package, the examples of guide and console and right values pass mypy’s strict check, and wrong values do not', async (t) => {
  const python = interpreter(t)
  if (python === undefined) return
  await cp(join(SCRIPTS, 'wrong.py'), join(room, 'wrong.py'))
  const snippets = await consoleSnippets('python', { origin: g.url, userId: '1' })
  const examples = [...(await examplesIn('03-typed-clients.md', 'py')), ...snippets.map(({ code }) => code)]
  const files = await Promise.all(
    examples.map(async (code, index) => {
      const file = join(room, `typed_${index + 1}.py`)
      await writeFile(file, code)
      return file
    }),
  )
  // What it has found out about the packages of others is kept beside them.
  const cache = join(dirname(dirname(python)), 'mypy-cache')
  await mkdir(cache, { recursive: true })
  const flags = ['--strict', '--scripts-are-modules', '--cache-dir', cache]
  // Whatever the examples import of the package is checked with them, and that is all of it.
  const { code, out } = await run(python, ['-m', 'mypy', ...flags, join(room, 'wrong.py'), ...files], {
    MYPYPATH: SOURCES,
  })
  assert.equal(code, 0, out)
})

test('every example of its guide and of the console runs', async (t) => {
  const python = interpreter(t)
  if (python === undefined) return
  const examples = await examplesIn('03-typed-clients.md', 'py')
  assert.equal(examples.length, 12)
  const user = (await (await g.call('/v1/social/users?username=walker137', key)).json()) as { data: { id: string } }
  const snippets = await consoleSnippets('python', { origin: g.url, userId: user.data.id })
  const chosen = snippets.filter(({ name }) => RUN.test(name)).map(({ code }) => code)
  const files = await Promise.all(
    [...examples, ...chosen].map(async (code, index) => {
      const file = join(room, `example_${index + 1}.py`)
      await writeFile(file, code)
      return file
    }),
  )
  await cp(join(import.meta.dirname, 'types', 'harbour.png'), join(room, 'harbour.png'))
  const { out, err, code } = await run(
    python,
    [join(SCRIPTS, 'run_examples.py'), JSON.stringify(webhookRequest().init), ...files],
    { TOLLGATE_URL: g.url, TOLLGATE_KEY: key, WEBHOOK_SECRET },
  )
  assert.equal(code, 0, err)
  for (const { name, trace, said } of linesOf(out)) {
    assert.equal(trace, null, `${name}: ${trace}`)
    assert.notEqual(said?.trim(), '', name)
  }
  assert.equal(linesOf(out).length, files.length)
})
