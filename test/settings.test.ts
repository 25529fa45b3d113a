// Settings as people give them: by export, by copying an example, by a typo.
import { globSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ConfigError, readConfig } from '../src/config.ts'
import { assert, listen, test, words } from './kit.ts'
import { runProgram } from './sdk/cache.ts'

const ROOT = resolve(import.meta.dirname, '..')
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

function run(args: string[], env: Record<string, string>) {
  return runProgram(process.execPath, [join(ROOT, 'bin', 'tollgate.js'), ...args], {
    env: { PATH: process.env.PATH, TOLLGATE_DATA: join(tmpdir(), 'no-such-data'), ...env },
  })
}

test('every variable that the guides tell callers to export leaves the commands as they are', async () => {
  const pages = ['README.md', ...globSync(['docs/guides/*.md', 'examples/**/*.*'], { cwd: ROOT })]
  const names = new Set(
    pages.flatMap((path) => [...textOf(path).matchAll(/\bTOLLGATE_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => name)),
  )
  assert.ok(names.has('TOLLGATE_KEY'))
  const { warnings } = readConfig({ TOLLGATE_KEY: 'tg_live_x' })
  assert.deepEqual(warnings, [])
  for (const name of names)
    try {
      assert.deepEqual(readConfig({ [name]: '1' }).warnings, [], name)
    } catch (error) {
      assert.ok(error instanceof ConfigError, name) // A setting, and 1 is no value for it.
    }
  const { code, out, err } = await run(['doctor'], { TOLLGATE_KEY: 'tg_live_x' })
  assert.deepEqual([code, err], [1, ''])
  assert.match(out, /Tollgate does not answer/)
})

test('a variable that looks like a setting and is none gets a warning with the name that was meant, and the command runs', async () => {
  const { out, err } = await run(['doctor'], { TOLLGATE_WORKER: '2', TOLLGATE_PORT: 'tcp://10.0.0.1:80' })
  assert.match(err, /^tollgate: TOLLGATE_WORKER is no setting and is ignored; did you mean TOLLGATE_WORKERS\?$/m)
  assert.match(err, /^tollgate: TOLLGATE_PORT is no setting and is ignored; did you mean PORT\?$/m)
  assert.match(out, /Tollgate does not answer/)
  const [far] = readConfig({ TOLLGATE_SOMETHING_ELSE_ENTIRELY: '1' }).warnings
  assert.match(far!, /ignored; docs\/reference\/configuration\.md lists the settings/)
})

test('the sandbox takes its port from PORT, as the gateway does', async () => {
  await using taken = await listen((_, response) => response.end())
  const { code, err } = await run(['sandbox'], { PORT: String(taken.port) })
  assert.equal(code, 1)
  assert.match(err, new RegExp(String(taken.port)), 'it is taken')
})

test('by default only this machine reaches the gateway', () => {
  assert.equal(readConfig({}).HOST, '127.0.0.1')
})

test('the sample values of secret.example.yaml are refused by name, and a sample credential is none', async () => {
  const samples = Object.fromEntries(
    [...textOf('deploy/kubernetes/secret.example.yaml').matchAll(/^ {2}([A-Z0-9_]+): (\S+)$/gm)].map(
      ([, name, value]) => [name!, value!],
    ),
  )
  assert.deepEqual(
    Object.keys(samples).sort(),
    words(`
    DATABASE_URL OPENAI_API_KEY TOLLGATE_OPERATOR_TOKEN TOLLGATE_S3_ACCESS_KEY_ID TOLLGATE_S3_SECRET_ACCESS_KEY
    TOLLGATE_SECRET
  `),
  )
  const { OPENAI_API_KEY: credential, ...settings } = samples
  for (const [name, value] of Object.entries(settings))
    assert.throws(
      () => readConfig({ TOLLGATE_SECRET: 'x'.repeat(40), [name]: value }),
      new RegExp(`${name}: is the sample of secret.example.yaml`),
    )
  assert.equal(readConfig({ OPENAI_API_KEY: credential }).vendorKeys.get('OPENAI_API_KEY'), undefined)
  const { code, err } = await run(['serve'], samples)
  assert.equal(code, 1)
  assert.match(err, /TOLLGATE_SECRET: is the sample/)
})

test('what the gateway itself is set up by is no credential that a vendor could be sent', () => {
  const own = {
    TOLLGATE_SECRET: 'x'.repeat(40),
    TOLLGATE_OPERATOR_TOKEN: 'y'.repeat(40),
    TOLLGATE_LATER: 'z',
    PGPASSWORD: 'p',
    DATABASE_URL: 'postgres://tollgate:secret@127.0.0.1:5432/tollgate',
    HOME: '/root',
    PATH: '/bin',
    POSTGRES_PASSWORD: 'p',
    SSH_AUTH_SOCK: 's',
    AWS_SECRET_ACCESS_KEY: 'a',
    MY_PRIVATE_KEY: 'k',
  }
  const theirs = { OPENAI_API_KEY: 'sk-1', MY_VENDOR_KEY_2: 'sk-2', AWS_BEARER_TOKEN_BEDROCK: 'sk-3', HF_TOKEN: 'sk-4' }
  const { vendorKeys } = readConfig({ ...own, ...theirs })
  for (const name of Object.keys(own)) assert.equal(vendorKeys.get(name), undefined, name)
  for (const [name, value] of Object.entries(theirs)) assert.equal(vendorKeys.get(name), value, name)
})

test('a proxy that is no address or range is refused in a sentence', () => {
  for (const good of ['127.0.0.1', '10.0.0.0/8, 172.16.0.0/12', 'fd00::/8 ::1', 'loopback,uniquelocal'])
    assert.equal(readConfig({ TOLLGATE_TRUST_PROXY: good }).TOLLGATE_TRUST_PROXY, good)
  for (const bad of ['proxy.internal', '10.0.0.0/33', '10.0.0', '10.0.0.0/8/8', 'true', '10.0.0.0/x'])
    assert.throws(() => readConfig({ TOLLGATE_TRUST_PROXY: bad }), /TOLLGATE_TRUST_PROXY: must be addresses or ranges/)
})
