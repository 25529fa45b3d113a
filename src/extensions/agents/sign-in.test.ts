// `tollgate login`, `token`, `logout` and `agent`: what a person types where an agent runs.

import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf, type Given } from '../../../test/command-line.ts'
import { startGateway, type TestGateway } from '../../../test/gateway.ts'
import { after, assert, atOnce, before, temporary, test } from '../../../test/kit.ts'
import { type asBrowser, joined } from '../../../test/operator-server.ts'
import { realWorld, type World } from '../../kernel/world.ts'

let g: TestGateway
let person: ReturnType<typeof asBrowser>
let account: string
const home = temporary('tollgate-sign-in-')
const CHAT = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }
before(async () => {
  g = await startGateway()
  account = (await g.account()).id
  person = await joined(g, `/accounts/${account}/invites`, { email: 'owner@home.example', role: 'owner' })
})
after(() => g.close())

/** Its waits are short, and its clock is the test's. */
const worldAt = (aheadMs = 0): World => ({
  ...realWorld,
  nowMs: () => realWorld.nowMs() + aheadMs,
  after: (ms, run) => realWorld.after(ms / 100, run),
})

const commandLine = commandLineOf(() => g, {
  token: undefined,
  codexHome: join(home, 'codex'),
  program: ['node', '/opt/toll gate'],
})

async function run(args: string[], { file = 'login.json', ...given }: Given & { readonly file?: string } = {}) {
  const said = await commandLine.run(args, { world: worldAt(), loginFile: join(home, file), ...given })
  return { ...said, out: said.out.trim() }
}

/** The person opens the link and answers. */
const answering = (answer: 'allow' | 'refuse') => (text: string) => {
  const code = /code (\S+)\.$/m.exec(text)?.[1]
  if (code === undefined) return undefined
  assert.match(text, new RegExp(`${g.url}/console/device\\?user_code=${code}`))
  return person('POST', `/device/${answer}`, { code, ...(answer === 'allow' ? { account, models: null } : {}) })
}

const login = (file: string) => run(['login', g.url], { file, seen: answering('allow') })
const chat = async (token: string) => (await g.call('/v1/chat/completions', token, CHAT)).status
const kept = async (file: string) => JSON.parse(await readFile(join(home, file), 'utf8'))

test('a sign-in shows a code and a link, is kept for its person only, and gives a token that calls models', async () => {
  const { code, out, err } = await login('first.json')
  assert.equal(code, 0, err)
  assert.equal(out, `You are signed in at ${g.url}.`)
  assert.equal((await stat(join(home, 'first.json'))).mode & 0o777, 0o600)
  const { out: token } = await run(['token'], { file: 'first.json' })
  assert.match(token, /^[\w-]{43}$/)
  assert.equal(await chat(token), 200)
  assert.equal((await run(['token'], { file: 'first.json' })).out, token, 'while it lasts')
})

test('a token is renewed before it ends, by one of several processes, and when the clock was put back', async () => {
  await login('renewed.json')
  const { out: first } = await run(['token'], { file: 'renewed.json' })
  const later = { file: 'renewed.json', world: worldAt(50 * 60_000) }
  const tokens = new Set((await atOnce(5, () => run(['token'], later))).map(({ out }) => out))
  assert.equal(tokens.size, 1)
  const [renewed = ''] = tokens
  assert.notEqual(renewed, first)
  const back = await run(['token'], { file: 'renewed.json', world: worldAt(-86_400_000) })
  assert.notEqual(back.out, renewed, 'nobody knows how old a token from the future is')
  for (const token of [first, renewed, back.out]) assert.equal(await chat(token), 200)
})

test('a lock that a dead process left does not keep a person out', async () => {
  await login('locked.json')
  await writeFile(join(home, 'locked.json.lock'), '999999999')
  assert.equal((await run(['token'], { file: 'locked.json', world: worldAt(50 * 60_000) })).code, 0)
})

test('signing out ends the tokens, and a sign-in that was ended elsewhere says how to begin again', async () => {
  await login('out.json')
  const { out: token } = await run(['token'], { file: 'out.json' })
  assert.equal(await chat(token), 200)
  assert.equal((await run(['logout'], { file: 'out.json' })).code, 0)
  assert.equal(await chat(token), 401)
  assert.match((await run(['token'], { file: 'out.json' })).err, /not signed in.*tollgate login/)

  await login('ended.json')
  const { refreshToken, clientId } = (await kept('ended.json')).gateways[g.url]
  await fetch(`${g.url}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ token: refreshToken, client_id: clientId }),
  })
  const ended = await run(['token'], { file: 'ended.json', world: worldAt(50 * 60_000) })
  assert.deepEqual([ended.code, ended.out], [1, ''])
  assert.match(ended.err, /has ended. Sign in again: tollgate login/)
})

test('a denied sign-in, an address that is none, a gateway that is away and a broken file are one sentence each', async () => {
  const denied = await run(['login', g.url], { file: 'denied.json', seen: answering('refuse') })
  assert.deepEqual([denied.code, /denied in the console/.test(denied.err)], [1, true], denied.err)
  assert.match((await run(['login', 'not an address'])).err, /is not the address of a gateway/)
  assert.match(
    (await run(['login', 'http://127.0.0.1:1'])).err,
    /does not answer at http:\/\/127\.0\.0\.1:1 \(the address/,
  )
  await writeFile(join(home, 'broken.json'), '{')
  assert.match((await run(['token'], { file: 'broken.json' })).err, /cannot be read. Remove it/)
  assert.match((await run(['token', '--gateway', 'https://other.example'])).err, /not signed in at https:\/\/other/)
})

test('an agent is set up with the sign-in of its person: its files hold a command and no secret', async () => {
  const directory = join(home, 'project')
  const { code, out, err } = await run(['agent', 'claude-code', '--write', directory], {
    file: 'agent.json',
    seen: answering('allow'),
  })
  assert.equal(code, 0, err)
  assert.match(out, /Wrote .*settings\.local\.json/)
  const settings = JSON.parse(await readFile(join(directory, '.claude', 'settings.local.json'), 'utf8'))
  assert.equal(settings.apiKeyHelper, `node '/opt/toll gate' token --gateway ${g.url}`)
  const again = await run(['agent', 'codex'], { file: 'agent.json' })
  assert.equal(again.err, '', 'who is signed in is not asked again')
  const config = await readFile(join(home, 'codex', 'config.toml'), 'utf8')
  assert.match(config, /\[model_providers\.tollgate\.auth\]\ncommand = "node"\nargs = \["\/opt\/toll gate","token"/)
  assert.doesNotMatch(config, /env_key|bearer_token/)
  const { accessToken } = (await kept('agent.json')).gateways[g.url]
  for (const text of [config, JSON.stringify(settings)]) assert.ok(!text.includes(accessToken))
  assert.match((await run(['agent', 'emacs'], { file: 'agent.json' })).err, /There is no setup for "emacs"/)
})
