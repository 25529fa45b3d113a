// Whom the console shows and lets do what, and what it refuses.

import { fixtureText } from '../../test/fixture.ts'
import { assert, BY, before, started, test, words } from '../../test/gateway.ts'
import {
  type Ask,
  asBrowser,
  joined,
  makeAccount,
  OPERATOR_TOKEN,
  PASSWORD,
  setUpOperator,
  startOperatorServer,
  tokenOf,
} from '../../test/operator-server.ts'
import { release } from '../../test/settlement.ts'
import type { NewKey } from '../admission/views.ts'
import type { LinkView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import type { AccountView, AttemptLog, Overview, UsageDetail } from '../ledger/views.ts'
import type { Found } from '../reports/views.ts'

const server = started(() => startOperatorServer())
let operator: ReturnType<typeof asBrowser>
/** What the playground hands on to the API. */
before(async () => {
  server.app.dispatch = ({ url, method }, response, player) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ data: { account: player?.accountId, member: player?.place?.[':member'], url, method } }),
    )
  }
  operator = await setUpOperator(server)
})
const accountOf = (name: string) => makeAccount(server, { name, credits: '10' })
const join = (account: string, email: string, role: 'owner' | 'member') =>
  joined(server, `/accounts/${account}/invites`, { email, role })

/**
 * The statuses for operator, owner, member and outsider, and what gives them, in this order, with bars between. Every
 * role on every route: roles.test.ts. The content of a call is deleted once: what may still be on its way is deleted
 * with it.
 */
const MATRIX = fixtureText('console-matrix.txt')

test('operators do everything; owners and members what is theirs; nobody anything of another account', async () => {
  const [mine, theirs] = [await accountOf('Mine'), await accountOf('Theirs')]
  const owner = await join(mine, 'owner@mine.example', 'owner')
  const member = await join(mine, 'member@mine.example', 'member')
  const outsider = await join(theirs, 'owner@theirs.example', 'owner')
  const key = await owner<{ id: string; prefix: string }>('POST', `/accounts/${mine}/keys`, { name: 'k' })
  const keyOf = async () => (await owner<{ id: string }>('POST', `/accounts/${mine}/keys`, { name: 'k' })).data.id
  const call = { id: '01call', account: mine, key: key.data.id, product: 'alpha-5.4', catalogVersion: 1 }
  await server.ledger.reserve({ ...call, want: 5n, floor: 5n, tokens: 1 })
  const attemptLog: AttemptLog = {
    heldMs: 1,
    attempts: [
      {
        vendor: 'textworks',
        route: 1,
        startMs: 1,
        ms: 2,
        status: 401,
        fault: 'upstream_failed',
        phase: null,
        cause: null,
        retried: false,
        stopped: 'exhausted',
        vendorError: 'no such key',
        fix: 'the credential',
      },
    ],
    fault: { name: 'upstream_failed', code: 50000, status: 502, blame: 'vendor', message: 'The vendor failed.' },
  }
  await server.ledger.resolve(release(mine, call.id, { key: call.key, cost: 7n, vendor: 'textworks', attemptLog }))
  const attemptSeenBy = async (ask: Ask) =>
    (await ask<UsageDetail>('GET', '/usage/req_01call')).data.attemptLog?.attempts[0]
  assert.deepEqual(
    [(await attemptSeenBy(operator))?.vendor, (await attemptSeenBy(operator))?.vendorError],
    ['textworks', 'no such key'],
  )
  for (const person of [owner, member]) {
    const seen = await attemptSeenBy(person)
    assert.deepEqual([seen?.status, seen?.vendor, seen?.vendorError, seen?.fix], [401, undefined, undefined, undefined])
  }
  // What a call cost us, and the margin, is for operators alone: in a row, in its detail and in the overview.
  const costSeenBy = async (ask: Ask) => [
    (await ask<UsageDetail>('GET', '/usage/req_01call')).data.cost,
    (await ask<Page<UsageDetail>>('GET', `/accounts/${mine}/usage`)).data.items.map(({ cost }) => cost),
    (await ask<Overview>('GET', `/accounts/${mine}/overview`)).data.margin?.cost,
  ]
  assert.deepEqual(await costSeenBy(operator), ['0.000007', ['0.000007'], '0.000007'])
  for (const person of [owner, member]) assert.deepEqual(await costSeenBy(person), [undefined, [undefined], undefined])
  // So is who answered it.
  const vendorSeenBy = async (ask: Ask) => [
    (await ask<UsageDetail>('GET', '/usage/req_01call')).data.vendor,
    (await ask<Page<UsageDetail>>('GET', `/accounts/${mine}/usage`)).data.items.map(({ vendor }) => vendor),
  ]
  assert.deepEqual(await vendorSeenBy(operator), ['textworks', ['textworks']])
  for (const person of [owner, member]) assert.deepEqual(await vendorSeenBy(person), [undefined, [undefined]])
  const traceSeenBy = async (ask: Ask) => (await ask<UsageDetail>('GET', '/usage/req_01call')).data.trace
  assert.equal(await traceSeenBy(operator), 'https://traces.example/search?id=req_01call')
  for (const person of [owner, member]) assert.equal(await traceSeenBy(person), undefined)
  const document = server.catalog.current.input
  const people = Object.entries({ operator, owner, member, outsider })
  const calls = MATRIX.trim().split('\n')
  for (const [expected, call] of calls.flatMap((line) =>
    line
      .slice(17)
      .split(' | ')
      .map((one) => [line, one] as const),
  ))
    for (const [index, [who, browser]] of people.entries()) {
      const [, method = '', path = '', given] = /^(\w+) (\S+)(?: (.*))?$/.exec(call) ?? assert.fail(call)
      const made = path.includes('{new}') ? await keyOf() : ''
      const url = path.replace('{mine}', `/accounts/${mine}`).replace('{key}', key.data.id).replace('{new}', made)
      const body =
        given === '{document}' ? { document } : given && JSON.parse(given.replace('{sha256}', 'ab'.repeat(32)))
      const { status, error, text } = await browser(method, url, body)
      assert.equal(status, Number(expected.split(' ')[index]), `${method} ${url} as ${who}: ${text}`)
      if (status === 403) assert.equal(error?.code, 20001)
      assert.equal((await asBrowser(server)(method, url, body)).status, 401, 'without a session')
    }
  const found = async (browser: typeof owner, q: string) =>
    (await browser<Page<Found>>('GET', `/search?q=${q}`)).data.items.map(({ kind, account }) => [kind, account])
  assert.deepEqual(await found(owner, 'req_01call'), [['call', mine]])
  assert.deepEqual(await found(outsider, 'req_01call'), [], 'nothing of another account is found')
  assert.deepEqual(await found(outsider, key.data.id), [])
  assert.deepEqual(await found(owner, key.data.id), [['key', mine]])
  assert.deepEqual(await found(outsider, 'mine'), [])
  assert.deepEqual(await found(owner, key.data.prefix), [['key', mine]])
  assert.deepEqual(await found(outsider, key.data.prefix), [])
  assert.deepEqual(await found(owner, 'tg_live_'), [], 'what all keys begin with finds none')
  const ofMembers = async (browser: typeof owner) =>
    (await found(browser, '.example')).filter(([kind]) => kind === 'member').map(([, account]) => account)
  assert.ok((await ofMembers(owner)).length > 0)
  assert.deepEqual(new Set(await ofMembers(owner)), new Set([mine]))
  assert.deepEqual(await ofMembers(member), [], 'members do not see the list of members')
  assert.ok((await ofMembers(operator)).length > (await ofMembers(owner)).length)
  const [vendor = ''] = Object.keys(server.catalog.current.document.vendors)
  const isVendor = ([kind]: readonly (string | null)[]) => kind === 'vendor'
  assert.ok((await found(operator, vendor)).some(isVendor))
  assert.ok(!(await found(owner, vendor)).some(isVendor), 'vendors are the operator’s')
  assert.deepEqual(await found(owner, 'alpha-5.4'), [['model', null]])
  const offer = (enabled: boolean) =>
    server.catalog.amend(
      async (current) => ({
        ...current,
        models: { ...current.models, 'alpha-5.4': { ...current.models['alpha-5.4']!, enabled } },
      }),
      BY,
      '',
    )
  await offer(false)
  assert.deepEqual(await found(owner, 'alpha-5.4'), [], 'what is not offered is found by operators alone')
  assert.deepEqual(await found(operator, 'alpha-5.4'), [['model', null]])
  await offer(true)
  const seen = async (browser: typeof owner) =>
    (await browser<Page<AccountView>>('GET', '/accounts?limit=200')).data.items.map(({ name }) => name)
  assert.deepEqual(await seen(owner), ['Mine'])
  assert.deepEqual(await seen(outsider), ['Theirs'])
  assert.deepEqual(new Set(await seen(operator)), new Set(['Mine', 'Theirs', 'New']))
  const played = await owner<object>('POST', `/accounts/${mine}/play/v1/chat-completions?a=b`, {})
  const [person] = await server.sql<{ id: string }>(`select id from person where email = 'owner@mine.example'`)
  assert.deepEqual(played.data, { account: mine, member: person!.id, url: '/v1/chat-completions?a=b', method: 'POST' })
})

test('whoever comes without a session reaches only what visitors may', async () => {
  assert.deepEqual(
    server.resources.visitor.map(({ method, path }) => `${method} ${path}`),
    [
      'GET /setup',
      'POST /setup',
      'POST /login',
      'GET /invites/{token}',
      'POST /invites/{token}',
      'POST /login/code',
      'POST /public/password',
      'POST /login/link',
      'GET /public/branding',
      'GET /login',
      'POST /login/sso',
      'POST /login/sso/finish',
      'POST /login/connect',
      'POST /login/passkey/options',
      'POST /login/passkey',
      'GET /public/sign-up',
      'POST /public/sign-up',
      'GET /public/sign-up/{token}',
      'POST /public/sign-up/{token}',
    ],
  )
  const cookies = [
    '',
    '__Host-tg_s=',
    `__Host-tg_s=${'x'.repeat(43)}`,
    "__Host-tg_s=' or 1=1 --",
    '__Host-tg_s=\u00e9',
    `tg_s=${'x'.repeat(43)}`,
  ]
  for (const { method, path } of [...server.resources.operator, ...server.resources.session])
    for (const cookie of cookies) {
      const url = `${server.url}/console/api${path.replaceAll(/\{\w+\}/g, 'x')}`
      const { status } = await fetch(url, {
        method,
        headers: { 'sec-fetch-site': 'same-origin', ...(cookie ? { cookie } : {}) },
      })
      assert.equal(status, 401, `${method} ${path} ${cookie}`)
    }
  for (const { method, path } of server.resources.operator) {
    const url = `${server.url}/admin/v1${path.replaceAll(/\{\w+\}/g, 'x')}`
    assert.equal((await fetch(url, { method })).status, 401, `${method} ${path}`)
  }
})

test('a field that a resource does not name is refused, and nothing changes', async () => {
  const account = await accountOf('Strict')
  const owner = await join(account, 'owner@strict.example', 'owner')
  const key = await owner<{ id: string }>('POST', `/accounts/${account}/keys`, { name: 'k' })
  const state = () =>
    server.sql(`select (select json_agg(a) from account a) as a, (select json_agg(k order by id) from api_key k) as k,
      (select json_agg(p order by id) from person p) as p, (select json_agg(m order by person_id) from membership m) as m,
      (select count(*) from invite) as i, (select count(*) from transfer) as t, (select count(*) from audit) as audit`)
  const before = await state()
  const extras: object[] = [
    { operator: true },
    { role: 'operator' },
    { id: 'acc_1' },
    { account_id: 'acc_1' },
    { accountId: 'acc_1' },
    { balance: '9999' },
    { posted: 9999 },
    { digest: 'x' },
    { key: 'tg_live_x' },
    { revokedAt: null },
    { allowed_routes: ['*'] },
    { constructor: { prototype: {} } },
  ]
  const bodies: Array<[typeof owner, string, string, object]> = [
    [operator, 'POST', '/accounts', { name: 'x' }],
    [operator, 'PATCH', `/accounts/${account}`, { name: 'x' }],
    [operator, 'PATCH', `/accounts/${account}`, { limits: { concurrency: 1, unknown: 1 } }],
    [operator, 'POST', `/accounts/${account}/credits`, { amount: 1 }],
    [operator, 'PATCH', '/limits', {}],
    [owner, 'POST', `/accounts/${account}/keys`, { name: 'x' }],
    [owner, 'PATCH', `/keys/${key.data.id}`, { name: 'x' }],
    [owner, 'POST', `/keys/${key.data.id}/rotate`, {}],
    [owner, 'DELETE', `/keys/${key.data.id}`, {}],
    [owner, 'POST', `/accounts/${account}/invites`, { email: 'a@example.com', role: 'member' }],
    [owner, 'POST', '/password', { current: PASSWORD, next: 'moss grows on quiet violins' }],
    [operator, 'PUT', '/catalog', { document: server.catalog.current.input }],
    [operator, 'POST', '/catalog/rollback', { version: 1 }],
    [operator, 'PATCH', '/models/alpha-5.4', { enabled: true }],
    [operator, 'PUT', '/vendors/textworks/credential', { value: 'x' }],
  ]
  for (const [browser, method, path, body] of bodies)
    for (const extra of extras) {
      const { status, text } = await browser(method, path, { ...body, ...extra })
      // A field that the resource does have is no extra; its value is then wrong, or it is the same.
      assert.equal(status, 400, `${method} ${path} ${JSON.stringify(extra)}: ${text}`)
    }
  assert.equal((await owner('PATCH', `/keys/${key.data.id}`, '{"name":"x","__proto__":{"operator":true}}')).status, 400)
  assert.equal((await owner('PATCH', `/keys/${key.data.id}`, '{"name":"x","name":"y"}')).status, 400)
  assert.equal((await owner('GET', `/accounts/${account}/usage?acount=x`)).status, 400)
  assert.equal((await owner('GET', `/accounts/${account}/usage?limit=1&limit=2`)).status, 400)
  assert.deepEqual(await state(), before)
})

test('text that cannot be stored or shown is refused with 400', async () => {
  const account = await accountOf('Text')
  const bad = ['nul \u0000', 'half \ud800', '\udc00 half', 'line\nbreak', 'bell \u0007', '', '   ', 'x'.repeat(101)]
  bad.push('turned \u202egnp.exe', 'isolated \u2066', 'line\u2028separator', 'no character \uffff')
  for (const name of bad) {
    const body = `{"name":${JSON.stringify(name)}}`
    assert.equal((await operator('POST', '/accounts', body)).status, 400, body)
    assert.equal((await operator('PATCH', `/accounts/${account}`, body)).status, 400, body)
    assert.equal((await operator('POST', `/accounts/${account}/keys`, body)).status, 400, body)
  }
  for (const q of ['%00', '%ED%A0%80', '%', '%0A'])
    assert.equal((await operator('GET', `/accounts?q=${q}`)).status, 400, q)
  for (const id of ['%00', 'a%20b', '..%2f..', '%ED%A0%80', `${'x'.repeat(150)}`, "'%20or%201=1"]) {
    const { status } = await operator('GET', `/accounts/${id}`)
    assert.ok(status === 404 || status === 400, `${id}: ${status}`)
    assert.ok([400, 404].includes((await operator('DELETE', `/keys/${id}`)).status), id)
    assert.ok([400, 404].includes((await operator('GET', `/usage/${id}`)).status), id)
  }
  const amounts = words('NaN 1e309 "1e3" -0.0000001 "0.0000001" 99999999999999 "١٢" true null [1] {} "" 0')
  for (const amount of amounts)
    assert.equal((await operator('POST', `/accounts/${account}/credits`, `{"amount":${amount}}`)).status, 400, amount)
  const limits = ['-1', '1.5', '"5"', '1e400', '9007199254740993', '[]']
  for (const value of limits)
    assert.equal(
      (await operator('PATCH', `/accounts/${account}`, `{"limits":{"concurrency":${value}}}`)).status,
      400,
      value,
    )
  const keys = [
    { models: [] },
    { models: ['unknown-model'] },
    { models: ['__proto__'] },
    { expiresAt: '2020-01-01T00:00:00Z' },
    { expiresAt: 'tomorrow' },
    { ipRanges: ['10.0.0.0/33'] },
    { ipRanges: ['example.com'] },
    { ipRanges: [] },
  ]
  for (const key of keys)
    assert.equal(
      (await operator('POST', `/accounts/${account}/keys`, { name: 'x', ...key })).status,
      400,
      JSON.stringify(key),
    )
  const deep = `{"name":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
  assert.equal((await operator('POST', '/accounts', deep)).status, 400)
  assert.equal((await operator('POST', '/accounts', `{"name":"${'x'.repeat(400_000)}"}`)).status, 413)
  const unstored = await server.sql<{ balance: bigint }>('select posted as balance from account where id = $1', [
    account,
  ])
  assert.equal(unstored[0]?.balance, 10_000_000n)
})

test('no secret is ever in the database, the audit or the log', async () => {
  const account = await accountOf('Canary')
  const password = 'canary passphrase of nobody'
  const invited = await operator<LinkView>('POST', `/accounts/${account}/invites`, {
    email: 'canary@example.com',
    role: 'owner',
  })
  const browser = asBrowser(server)
  await browser('POST', `/invites/${tokenOf(invited.data.link)}`, { password })
  const session = /tg_s=([\w-]+)/.exec(browser.cookie)![1]!
  const { data: key } = await browser<NewKey>('POST', `/accounts/${account}/keys`, { name: 'c' })
  const { data: rotated } = await browser<NewKey>('POST', `/keys/${key.id}/rotate`, {})
  await operator('PUT', '/vendors/textworks/credential', { value: 'sk-canary-of-the-vendor' })
  await browser('POST', '/login', { email: 'canary@example.com', password: `${password} wrong` })
  await browser('POST', '/password', { current: password, next: `${password} two` })
  const reset = await operator<LinkView>('POST', '/password-link', { email: 'canary@example.com' })
  const secrets = [password, session, key.key, rotated.key, 'sk-canary-of-the-vendor', OPERATOR_TOKEN]
  secrets.push(tokenOf(invited.data.link), tokenOf(reset.data.link), /tg_s=([\w-]+)/.exec(browser.cookie)![1]!)
  const tables = await server.sql<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public'`,
  )
  let dump = ''
  for (const { name } of tables) dump += JSON.stringify(await server.sql(`select t::text from ${name} t`))
  const everything = dump + server.logged()
  assert.ok(dump.includes('canary@example.com'), 'the dump has the rows')
  for (const secret of secrets) {
    const forms = [
      secret,
      Buffer.from(secret).toString('hex'),
      Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    ]
    for (const form of forms) assert.ok(!everything.includes(form), `${secret} is in the clear`)
  }
})
