import { assert, atOnce, before, started, test } from '../../test/kit.ts'
import { asOperator, joined, makeAccount, OPERATOR_TOKEN, startOperatorServer } from '../../test/operator-server.ts'
import type { AuditView } from '../database/audit.ts'
import { type Permission, RIGHTS, roleMay } from '../identity/roles.ts'
import { createTokens } from '../identity/tokens.ts'
import type { MemberView, NewToken, OperatorView, TokenView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import { realWorld as world } from '../kernel/world.ts'

let mine = ''
let theirs = ''
let key = ''
const server = started(startOperatorServer)
before(async () => {
  const ask = asOperator(server)
  mine = await makeAccount(server, { name: 'Mine' })
  theirs = await makeAccount(server, { name: 'Theirs' })
  key = (await ask<{ id: string }>('POST', `/accounts/${mine}/keys`, { name: 'k' })).data.id
})

const bearing =
  (token: string) =>
  <T>(method: string, path: string, body?: unknown) =>
    asOperator(server)<T>(method, path, body, { authorization: `Bearer ${token}` })
const make = async (scopes: readonly string[], account?: string, more: object = {}) => {
  const path = account === undefined ? '/tokens' : `/accounts/${account}/tokens`
  const { data, text } = await asOperator(server)<NewToken>('POST', path, { name: 'a token', scopes, ...more })
  assert.ok(data, text)
  return data
}
/** By the operator token, so that nobody's role bounds them. */
const tokenOf = async (scopes: readonly string[], account?: string) => bearing((await make(scopes, account)).token)

const follow = (path: string, email: string, role: string) => joined(server, path, { email, role })

test('a token does on every route what its scopes name, and nothing else', async (t) => {
  const all = RIGHTS.map(({ permission }) => permission)
  const tokens = new Map<
    Permission,
    Record<'only' | 'allBut' | 'inMine' | 'inTheirs', ReturnType<typeof bearing> | undefined>
  >()
  for (const right of all) {
    const ofOwner = roleMay('owner', right)
    const [only, allBut, inMine, inTheirs] = await Promise.all([
      tokenOf([right]),
      tokenOf(all.filter((other) => other !== right)),
      ofOwner ? tokenOf([right], mine) : undefined,
      ofOwner ? tokenOf([right], theirs) : undefined,
    ])
    tokens.set(right, { only, allBut, inMine, inTheirs })
  }
  const wrong: string[] = []
  let asked = 0
  for (const entry of server.resources.operator) {
    const right = entry.access as Permission // None of these is for visitors: roles.test.ts.
    const path = entry.path
      .replace('/accounts/{id}', `/accounts/${mine}`)
      .replace('/keys/{id}', `/keys/${key}`)
      .replace('{month}', '2026-10')
      .replaceAll(/\{\w+\}/g, 'none')
    const body = entry.method === 'GET' ? undefined : { nothingTakesThis: 1 }
    const inAccount = entry.account !== undefined || entry.own === true
    // What is looked up first to know whose it is may not be there: then nobody learns more.
    const isLookedUp = entry.account !== undefined && !entry.path.startsWith('/accounts/{id}') && !path.includes(key)
    const tried = tokens.get(right)!
    for (const [name, ask] of Object.entries(tried)) {
      if (!ask) continue
      const { status } = await ask(entry.method, path, body)
      const may = name === 'only' || (name === 'inMine' && inAccount) || (name === 'inTheirs' && entry.own === true)
      const isRight = may
        ? [200, 400, 404, 409, 429].includes(status)
        : status === 403 || (isLookedUp && status === 404)
      if (!isRight) wrong.push(`${entry.method} ${path} (${right}) with ${name}: ${status}`)
      asked += 1
    }
  }
  t.diagnostic(`${asked} calls with ${tokens.size * 4} tokens`)
  assert.deepEqual(wrong, [])
  await server.sql('delete from access_token where not is_first')
})

test('a token is shown once, listed, used, and revoked at once in every process', async () => {
  const { token, id } = await make(['keys:read'], mine)
  assert.match(token, /^tg_acc_[\w-]{43}$/)
  assert.match((await make(['*'])).token, /^tg_op_[\w-]{43}$/)
  const ask = bearing(token)
  assert.equal((await ask('GET', `/accounts/${mine}/keys`)).status, 200)
  assert.equal((await ask('GET', `/accounts/${theirs}/keys`)).status, 403)
  assert.equal((await ask('POST', `/accounts/${mine}/keys`, { name: 'x' })).status, 403)
  const { text, data } = await asOperator(server)<Page<TokenView>>('GET', `/accounts/${mine}/tokens`)
  assert.ok(!text.includes(token))
  const row = data.items.find((one) => one.id === id)!
  assert.deepEqual(
    [row.scopes, row.last4, row.lastIp, row.lastUsedAt !== null, row.createdBy],
    [['keys:read'], token.slice(-4), '127.0.0.1', true, 'operator token'],
  )
  const elsewhere = createTokens({ ...server, world, pepper: server.secrets.key('access-token') })
  assert.equal((await elsewhere.use(token, '127.0.0.1')).account, mine)
  assert.equal((await asOperator(server)('DELETE', `/tokens/${id}`)).status, 404, 'it is of an account')
  assert.equal((await asOperator(server)('DELETE', `/accounts/${mine}/tokens/${id}`)).status, 200)
  assert.equal((await ask('GET', `/accounts/${mine}/keys`)).status, 401)
  await assert.rejects(elsewhere.use(token, '127.0.0.1'), /revoked/)
  const dump = JSON.stringify(await server.sql('select t::text from access_token t'))
  const audit = (await asOperator(server)('GET', '/audit?limit=200')).text
  for (const text of [dump, audit, server.logged()]) assert.ok(!text.includes(token.slice(7)))
})

test('a token ends at its time, and is used only from its addresses', async () => {
  const { token, id } = await make(['accounts:read'], undefined, {
    expiresAt: new Date(Date.now() + 60_000).toISOString(),
  })
  assert.equal((await bearing(token)('GET', '/accounts')).status, 200)
  await server.sql('update access_token set expires_at = now() where id = $1', [id])
  const late = await bearing(token)('GET', '/accounts')
  assert.deepEqual([late.status, late.error?.message], [401, 'This token has expired.'])
  const near = await make(['accounts:read'], undefined, { ipRanges: ['127.0.0.0/8'] })
  assert.equal((await bearing(near.token)('GET', '/accounts')).status, 200)
  const far = await make(['accounts:read'], undefined, { ipRanges: ['10.0.0.0/8', '2001:db8::/32'] })
  assert.equal((await bearing(far.token)('GET', '/accounts')).status, 403)
  const refused: object[] = [
    { expiresAt: '2020-01-01T00:00:00Z' },
    { ipRanges: ['10.0.0.0/33'] },
    { ipRanges: [] },
    { scopes: [] },
    { scopes: ['keys:own'] },
    { scopes: ['nothing'] },
    { scopes: ['keys:'] },
    { name: '' },
    { account: mine },
  ]
  for (const more of refused)
    assert.equal(
      (await asOperator(server)('POST', '/tokens', { name: 'x', scopes: ['keys'], ...more })).status,
      400,
      JSON.stringify(more),
    )
  const inAccount = (scopes: string[]) => asOperator(server)('POST', `/accounts/${mine}/tokens`, { name: 'x', scopes })
  assert.equal((await inAccount(['vendors:read'])).status, 400, 'no right of an account')
  assert.equal(
    (await asOperator(server)('POST', '/accounts/acc_none/tokens', { name: 'x', scopes: ['keys'] })).status,
    404,
  )
})

test('a token makes none that may do more than it, nor than whoever made it', async () => {
  const small = await tokenOf(['tokens:write', 'keys:read'])
  const asks: [string[], number][] = [
    [['keys:read'], 200],
    [['keys'], 403],
    [['accounts:read'], 403],
    [['*'], 403],
  ]
  for (const [scopes, status] of asks)
    assert.equal((await small('POST', '/tokens', { name: 'x', scopes })).status, status, scopes.join())
  const ofAccount = await tokenOf(['tokens:write', 'keys:read'], mine)
  assert.equal((await ofAccount('POST', '/tokens', { name: 'x', scopes: ['keys:read'] })).status, 403)
  assert.equal(
    (await ofAccount('POST', `/accounts/${theirs}/tokens`, { name: 'x', scopes: ['keys:read'] })).status,
    403,
  )
  assert.equal((await ofAccount('POST', `/accounts/${mine}/tokens`, { name: 'x', scopes: ['*'] })).status, 403)
  assert.equal(
    (await ofAccount('POST', `/accounts/${mine}/invites`, { email: 'a@b.example', role: 'viewer' })).status,
    403,
  )
  const inviter = await tokenOf(['members:write'], mine)
  assert.equal(
    (await inviter('POST', `/accounts/${mine}/invites`, { email: 'a@b.example', role: 'viewer' })).status,
    403,
  )
})

test('a token may do no more than its maker may now, and ends with them', async () => {
  const owner = await follow(`/accounts/${mine}/invites`, 'owner@tokens.example', 'owner')
  await follow(`/accounts/${mine}/invites`, 'second@tokens.example', 'owner')
  const made = (await owner<NewToken>('POST', `/accounts/${mine}/tokens`, { name: 'own', scopes: ['*'] })).data
  assert.equal(made.createdBy, 'owner@tokens.example')
  const ask = bearing(made.token)
  const child = bearing(
    ((await ask('POST', `/accounts/${mine}/tokens`, { name: 'child', scopes: ['keys'] })).data as NewToken).token,
  )
  const makeKey = async (by: typeof ask) => (await by('POST', `/accounts/${mine}/keys`, { name: 'k' })).status
  assert.deepEqual([await makeKey(ask), await makeKey(child)], [200, 200])
  assert.equal((await ask('POST', `/accounts/${mine}/suspend`, { reason: 'x' })).status, 403, 'no more than an owner')
  const members = (await owner<Page<MemberView>>('GET', `/accounts/${mine}/members`)).data.items
  const id = members.find(({ email }) => email === 'owner@tokens.example')?.userId
  const operate = asOperator(server)
  await operate('PATCH', `/accounts/${mine}/members/${id}`, { role: 'viewer' })
  assert.deepEqual([await makeKey(ask), await makeKey(child)], [403, 403])
  assert.equal((await ask('GET', `/accounts/${mine}/keys`)).status, 200, 'a viewer reads')
  await operate('DELETE', `/accounts/${mine}/members/${id}`)
  assert.equal((await ask('GET', `/accounts/${mine}/keys`)).status, 401)

  const operator = await follow('/operator-invites', 'op@tokens.example', 'operator')
  const finance = await follow('/operator-invites', 'fin@tokens.example', 'finance')
  assert.equal((await finance('POST', '/tokens', { name: 'x', scopes: ['accounts:read'] })).status, 403)
  const all = bearing((await operator<NewToken>('POST', '/tokens', { name: 'all', scopes: ['*'] })).data.token)
  const ofAccount = (await operator<NewToken>('POST', `/accounts/${mine}/tokens`, { name: 'a', scopes: ['*'] })).data
  assert.equal((await all('GET', '/audit')).status, 200)
  assert.equal((await bearing(ofAccount.token)('GET', `/accounts/${mine}/keys`)).status, 200)
  assert.equal((await bearing(ofAccount.token)('POST', `/accounts/${mine}/credits`, { amount: 1 })).status, 403)
  const staff = (await operate<Page<OperatorView>>('GET', '/operators')).data.items
  const who = staff.find(({ email }) => email === 'op@tokens.example')?.userId
  await follow('/operator-invites', 'op2@tokens.example', 'operator')
  await operate('PATCH', `/operators/${who}`, { role: 'finance' })
  assert.equal((await all('GET', '/audit')).status, 403, 'finance does not read the audit')
  assert.equal((await all('GET', '/margins')).status, 200)
  await operate('DELETE', `/operators/${who}`)
  assert.equal((await all('GET', '/margins')).status, 401)
  const audit = (await operate<Page<{ actor: string; token: string | null }>>('GET', '/audit?action=key.create')).data
    .items
  assert.ok(audit.some((row) => row.actor === 'owner@tokens.example' && row.token === 'own'))
})

test('a token makes no way in for anybody who may do more than it, and hands out no such role by a login provider', async () => {
  await follow('/operator-invites', 'boss@ways.example', 'operator')
  await follow(`/accounts/${mine}/invites`, 'member@ways.example', 'member')
  const nobody = await follow(`/accounts/${theirs}/invites`, 'nobody@ways.example', 'member')
  const { data } = await asOperator(server)<Page<MemberView>>('GET', `/accounts/${theirs}/members`)
  const id = data.items.find(({ email }) => email === 'nobody@ways.example')?.userId
  await asOperator(server)('DELETE', `/accounts/${theirs}/members/${id}`)
  assert.equal((await nobody('GET', '/session')).status, 401)
  const ways = [
    ['/login-links', 'login-links'],
    ['/second-factor-resets', 'login-links'],
    ['/password-link', 'password-links'],
  ] as const
  for (const [path, scope] of ways) {
    const small = await tokenOf([scope])
    const status = async (by: typeof small, email: string) => (await by('POST', path, { email })).status
    for (const email of ['boss@ways.example', 'member@ways.example'])
      assert.equal(await status(small, email), 403, `${path} for ${email}`)
    assert.equal(await status(small, 'nobody@ways.example'), 200, path)
    const asMuch = await tokenOf([
      scope,
      ...RIGHTS.filter((one) => one.roles.has('member')).map((one) => one.permission),
    ])
    assert.equal(await status(asMuch, 'member@ways.example'), 200, `${path}: it has all rights of a member`)
    assert.equal(await status(asMuch, 'boss@ways.example'), 403)
    assert.equal(await status(await tokenOf(['*']), 'boss@ways.example'), 200)
  }
  const small = await tokenOf(['login-providers'])
  const provider = { name: 'P', issuer: 'https://93.184.215.14', clientId: 'x' }
  const groups = [{ group: 'g', account: null, role: 'support' }]
  const domains = [{ domain: 'ways.example', account: mine, role: 'viewer', ssoOnly: false }]
  const put = async (by: typeof small, more: object) =>
    (await by('PUT', '/login-providers/ways', { ...provider, ...more })).status
  assert.deepEqual([await put(small, { groups }), await put(small, { domains }), await put(small, {})], [403, 403, 403])
  assert.equal(await put(await tokenOf(['*']), { groups }), 200)
  assert.equal(await put(small, {}), 403, 'it takes no such role away, and names no other issuer for it')
  assert.equal((await small('DELETE', '/login-providers/ways')).status, 403)
  assert.equal((await small('PUT', '/login-policy', { secondFactorRoles: ['operator'] })).status, 403)
  assert.equal((await asOperator(server)('DELETE', '/login-providers/ways')).status, 200)
  for (const domain of ['gmail.com', 'co.uk', 'onmicrosoft.com', 'github.io'])
    assert.equal(await put(await tokenOf(['*']), { domains: [{ domain, account: mine, role: 'viewer' }] }), 400, domain)
})

test('what a token makes ends no later than it does, and is used from nowhere else', async () => {
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const later = new Date(Date.now() + 7_200_000).toISOString()
  const parent = bearing(
    (await make(['tokens', 'keys'], undefined, { expiresAt: until, ipRanges: ['127.0.0.0/8', 'fd00::/8'] })).token,
  )
  const child = async (more: object) => {
    const { status, data } = await parent('POST', '/tokens', { name: 'child', scopes: ['keys:read'], ...more })
    return { status, ...(data as NewToken | undefined) }
  }
  const plain = await child({})
  assert.deepEqual([plain.status, plain.expiresAt, plain.ipRanges], [200, until, ['127.0.0.0/8', 'fd00::/8']])
  const narrow = await child({ ipRanges: ['127.1.0.0/16', 'fd00::1'] })
  assert.deepEqual([narrow.status, narrow.ipRanges, narrow.expiresAt], [200, ['127.1.0.0/16', 'fd00::1'], until])
  const beyond: object[] = [
    { expiresAt: later },
    { ipRanges: ['0.0.0.0/0'] },
    { ipRanges: ['127.0.0.0/7'] },
    { ipRanges: ['127.0.0.1', '10.0.0.1'] },
    { ipRanges: ['::/0'] },
    { ipRanges: ['::ffff:127.0.0.0/104'] },
  ]
  for (const more of beyond) assert.equal((await child(more)).status, 403, JSON.stringify(more))
  const nulls = await child({ expiresAt: null, ipRanges: null })
  assert.deepEqual([nulls.status, nulls.expiresAt, nulls.ipRanges], [200, until, ['127.0.0.0/8', 'fd00::/8']])
})

test('the token of the first start is one of them: listed, revoked for good, and each process takes its own', async () => {
  const { items } = (await asOperator(server)<Page<TokenView>>('GET', '/tokens')).data
  const first = items.find(({ isFirst }) => isFirst)!
  assert.deepEqual([first.name, first.scopes, first.last4], ['operator token', ['*'], OPERATOR_TOKEN.slice(-4)])
  const other = createTokens({ ...server, world, pepper: server.secrets.key('access-token') })
  await other.adopt('tg_op_the-token-of-another-machine')
  assert.equal((await other.use('tg_op_the-token-of-another-machine', '127.0.0.1')).role, 'operator')
  await assert.rejects(other.use(OPERATOR_TOKEN, '127.0.0.1'), /not valid/)
  assert.equal((await bearing('tg_op_the-token-of-another-machine')('GET', '/accounts')).status, 401)
  const spare = (await make(['*'])).token
  assert.equal((await asOperator(server)('DELETE', `/tokens/${first.id}`)).status, 200)
  assert.equal((await asOperator(server)('GET', '/accounts')).status, 401)
  const restarted = createTokens({ ...server, world, pepper: server.secrets.key('access-token') })
  await restarted.adopt(OPERATOR_TOKEN)
  await assert.rejects(restarted.use(OPERATOR_TOKEN, '127.0.0.1'), /revoked/)
  assert.equal((await bearing(spare)('GET', '/accounts')).status, 200)
  await server.sql('update access_token set revoked_at = null where id = $1', [first.id])
})

test('a token that is revoked takes along what it made, and what those made; one that is revoked makes nothing more', async () => {
  const { data: account } = await asOperator(server)<{ id: string }>('POST', '/accounts', { name: 'Tokens' })
  const parent = await make(['tokens', 'keys:read', 'accounts:read'])
  const makeBy = async (token: string, path: string) => {
    const { data, status } = await bearing(token)<NewToken>('POST', path, {
      name: 'made',
      scopes: ['tokens', 'keys:read'],
    })
    return { ...data, status }
  }
  const child = await makeBy(parent.token, '/tokens')
  const grandchild = await makeBy(child.token, `/accounts/${account.id}/tokens`)
  const other = await make(['tokens'])
  assert.deepEqual([child.status, grandchild.status], [200, 200])
  // Whatever is made at the same moment is revoked too, or is not made.
  const [racing] = await Promise.all([
    atOnce(8, () => makeBy(child.token, '/tokens')),
    asOperator(server)('DELETE', `/tokens/${parent.id}`),
  ])
  for (const { token } of [parent, child, grandchild, ...racing.filter(({ status }) => status === 200)]) {
    const { status, error } = await bearing(token)('GET', '/tokens')
    assert.deepEqual([status, error?.message], [401, 'This token was revoked.'])
  }
  for (const { status } of racing) assert.ok(status === 200 || status === 401, String(status))
  assert.equal((await bearing(other.token)('GET', '/tokens')).status, 200)
  const audit = await asOperator(server)<Page<AuditView>>('GET', `/audit?object=${grandchild.id}&action=token.revoke`)
  assert.equal(audit.data.items.length, 1)
})
