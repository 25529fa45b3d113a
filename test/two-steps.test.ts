// F84: an attacker with one scope, or one role, tries all routes that let it in, twice: the second time with whatever
// the first time gave (tokens, links, codes, a login provider, a secret that signs webhooks). Afterwards nothing may
// have moved that its rights do not cover. That routes let in exactly the scopes and roles of the table is tested in
// src/operator/roles.test.ts and tokens.test.ts.
import { createHmac, randomBytes } from 'node:crypto'
import type { Value } from '../src/database/database.ts'
import {
  ACCOUNT_ROLES,
  type AccountRole,
  type AnyRole,
  coversRole,
  OPERATOR_ROLES,
  type OperatorRole,
  type Permission,
  RIGHTS,
  rightsIn,
  roleMay,
  scopesMay,
} from '../src/identity/roles.ts'
import type { Resource } from '../src/operator/resource.ts'
import { assert, before, started, startGateway, test } from './gateway.ts'
import { CLIENT_ID, CLIENT_SECRET, startScriptedProvider } from './login-provider.ts'
import { type Ask, asBrowser, joined } from './operator-server.ts'
import { bodiesOf, type Hostile, pathsOf, stringsIn } from './two-steps.ts'

/** Of the attacker, and of everybody else. */
const PASSWORD = 'seven tired otters juggle'
const THEIR_PASSWORD = 'nine sleepy badgers hum'
const WEBHOOK_KEY = randomBytes(32)
const MANY = '1000000'
const SALES = { currency: 'EUR', pricePerCredit: '0.01', minimum: '1', maximum: '1000' }

const hashes = { mine: '', theirs: '' }
let document: Record<string, unknown>
/** By whether they need a session, the right of the table or nothing. */
const routes: Resource[] = []

const evil = started(startScriptedProvider)
const g = started(() =>
  startGateway({
    env: { TOLLGATE_OUTBOUND_ALLOW: evil.hostAndPort, TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' },
    catalog: (default_) => {
      document = default_
      document.sales = SALES
    },
  }),
)
before(async () => {
  for (const [method, path, { resource }] of g.gateway.app.router.routes)
    if (resource && method !== 'HEAD' && path.startsWith('/console/api')) routes.push(resource as Resource)
  hashes.mine = await hashOf('a@here.example', PASSWORD)
  hashes.theirs = await hashOf('b@here.example', THEIR_PASSWORD)
})

const rows = <T extends object>(text: string, values: Value[] = []) => g.sql<T>(text, values)

async function hashOf(email: string, password: string): Promise<string> {
  await joined(g, '/operator-invites', { email }, password)
  const [row] = await rows<{ password: string }>('select password from person where email = $1', [email])
  return row!.password
}

interface Attacker {
  readonly name: string
  /** The gateway's role, a role in the stage's account, or the scope of a token for the gateway or that account. */
  readonly has:
    | { readonly role: OperatorRole }
    | { readonly accountRole: AccountRole }
    | { readonly scope: string; readonly inAccount: boolean }
}

const SCOPES = [...new Set(RIGHTS.map(({ permission }) => permission.split(':')[0]!))]
const ATTACKERS: readonly Attacker[] = [
  ...SCOPES.map((scope) => ({ name: `scope ${scope}`, has: { scope, inAccount: false } })),
  ...SCOPES.filter((scope) => rightsIn([scope], 'owner').length > 0).map((scope) => ({
    name: `scope ${scope} in an account`,
    has: { scope, inAccount: true },
  })),
  ...OPERATOR_ROLES.filter((role) => role !== 'operator').map((role) => ({ name: role, has: { role } })),
  ...ACCOUNT_ROLES.map((role) => ({ name: role, has: { accountRole: role } })),
]

/**
 * Whom and what the attacker meets: an account with an owner, tokens, a key, people of the gateway, a directory's
 * people without a login.
 */
interface Stage {
  readonly account: string
  /** An account of the attacker's own, as anybody may have one. */
  readonly own: string
  readonly hostile: Record<string, unknown[]>
  readonly people: Readonly<Record<'operator' | 'directory' | 'corp' | 'owner' | 'viewer' | 'me', string>>
  readonly domain: string
  readonly emails: { readonly operator: string; readonly directory: string; readonly corp: string }
}

let count = 0

async function person(
  email: string,
  role: OperatorRole | null,
  password: string | null = hashes.theirs,
): Promise<string> {
  const id = `usr_${email.replaceAll(/\W/g, '')}`
  const values = [id, email, role, password]
  await rows('insert into person (id, email, operator_role, password) values ($1, $2, $3, $4)', values)
  return id
}
const join = (account: string, id: string, role: AccountRole) =>
  rows('insert into membership (account_id, person_id, role) values ($1, $2, $3)', [account, id, role])

async function stageOf(at: number): Promise<Stage> {
  const [domain, corp] = [`free-${at}.example`, `corp-${at}.example`]
  const { id: account } = await g.ask<{ id: string }>('POST', '/accounts', { name: 'Victim', credits: '10' })
  const { id: own } = await g.ask<{ id: string }>('POST', '/accounts', { name: 'Own' })
  const emails = { operator: `op@${domain}`, directory: `dir@${domain}`, corp: `dir@${corp}` }
  const people = {
    operator: await person(emails.operator, 'operator'),
    // As a directory creates them.
    directory: await person(emails.directory, 'operator', null),
    corp: await person(emails.corp, 'operator', null),
    owner: await person(`owner@${domain}`, null),
    viewer: await person(`viewer@${domain}`, null),
    me: await person(`me@evil-${at}.example`, null, hashes.mine),
  }
  await join(account, people.owner, 'owner')
  await join(account, people.viewer, 'viewer')
  await join(own, people.me, 'owner')
  const all = { name: 'all', scopes: ['*'] }
  const token = await g.ask<{ id: string }>('POST', '/tokens', all)
  const accountToken = await g.ask<{ id: string }>('POST', `/accounts/${account}/tokens`, all)
  const key = await g.ask<{ id: string }>('POST', `/accounts/${account}/keys`, { name: 'k' })
  await g.ask('POST', `/accounts/${account}/invites`, { email: `invited@${domain}`, role: 'owner' })
  await g.ask('POST', '/operator-invites', { email: `invited-op@${domain}`, role: 'operator' })
  const login = { name: 'Corp', issuer: 'https://login.example', clientId: 'c' }
  await rows(
    `insert into login_provider (id, name, issuer, client_id, scopes, groups_claim) values ($1, $2, $3, 'c', '{openid}', 'groups')`,
    [`corp-${at}`, login.name, login.issuer],
  )
  await rows('insert into login_domain (domain, provider_id) values ($1, $2)', [corp, `corp-${at}`])
  const invites = await rows<{ id: string }>(`select encode(digest, 'hex') as id from invite where email like $1`, [
    `%@${domain}`,
  ])
  const [first] = await rows<{ id: string }>('select id from access_token where is_first')
  const plan = { id: 'gift', name: 'Gift', price: '0', credits: MANY }
  return {
    account,
    own,
    people,
    domain,
    emails,
    hostile: {
      'accounts.id': [account, own],
      'keys.id': [key.id],
      'login-providers.id': [`evil-${at}`, `corp-${at}`],
      userId: [people.viewer, people.owner, people.operator, people.directory],
      token: [],
      tokenId: [token.id, accountToken.id, first!.id],
      inviteId: invites.map(({ id }) => id),
      email: [`me@evil-${at}.example`, `new@evil-${at}.example`, emails.operator, emails.directory, `owner@${domain}`],
      role: ['owner', 'operator', 'viewer', 'admin', 'finance'],
      scopes: [['openid', 'email'], ['*']],
      password: [PASSWORD],
      credits: [MANY],
      amount: [MANY, '100.00'],
      account: [own],
      name: [`x-${at}`],
      note: ['x'],
      mode: ['invitation', 'open'],
      issuer: [evil.issuer],
      clientId: [CLIENT_ID],
      secret: [CLIENT_SECRET],
      provesSecondFactor: [true, false],
      domains: [[{ domain }], [{ domain, ssoOnly: true }], [{ domain: corp }]],
      enabled: [true, false],
      secondFactorRoles: [['operator'], []],
      provider: ['webhook', `evil-${at}`],
      checkoutUrl: ['https://pay.example'],
      secrets: [{ 'payment-webhook': `whsec_${WEBHOOK_KEY.toString('base64')}` }],
      plan: ['gift'],
      codes: [1],
      document: [{ ...document, sales: { ...SALES, plans: [plan], packs: [{ ...plan, id: 'pack', price: '0.01' }] } }],
      memberId: [people.me, people.owner],
      version: [9_999_999],
      models: [null],
      test: [false],
    },
  }
}

type May = (permission: Permission, account?: string) => boolean

/** The attacker's rights before it begins: those of its scope or role, and those of an owner in its own account. */
function rightsOf({ has }: Attacker, { account, own }: Stage): May {
  return (permission, place) => {
    if (place === own && roleMay('owner', permission)) return true
    if ('role' in has) return roleMay(has.role, permission)
    if ('accountRole' in has) return place === account && roleMay(has.accountRole, permission)
    if (!scopesMay([has.scope], permission)) return false
    return !has.inAccount || (place === account && roleMay('owner', permission))
  }
}

interface Caller {
  readonly ask: Ask
  /** Whether it gets as far as the body. */
  readonly reaches: (route: Resource) => boolean
}

/** Each call comes from another network, so that none is braked. */
function elsewhere() {
  count += 1
  return { 'x-forwarded-for': `203.0.${count % 250}.${(count >> 8) % 250}` }
}

function byToken(token: string, may: May, account: string): Caller {
  const browser = asBrowser(g)
  const ask: Ask = async <T>(method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${token}`, ...elsewhere() }
    const response = await g.call(`/admin/v1${path}`, undefined, body, { method, headers })
    const text = await response.text()
    const json = text.startsWith('{') ? JSON.parse(text) : {}
    return { status: response.status, headers: response.headers, text, data: json.data as T, error: json.error }
  }
  return { ask: Object.assign(ask, browser), reaches: (route) => isFor(route, may, account) }
}

function isFor({ access, ...route }: Resource, may: May, account: string): boolean {
  if (access === 'self' || access === 'visitor') return false
  return may(access) || ((route.account !== undefined || route.own === true) && may(access, account))
}

async function bySession(email: string, may: May, account: string): Promise<Caller> {
  const browser = asBrowser(g)
  const { status, text } = await browser('POST', '/login', { email, password: PASSWORD }, elsewhere())
  assert.equal(status, 200, text)
  const ask: Ask = (method, path, body) => browser(method, path, body, elsewhere())
  // Its own login is not to be ended by itself.
  const isEnd = ({ path }: Resource) =>
    ['/logout', '/me/delete', '/password', '/sessions/{id}', '/sessions'].includes(path)
  return { ask, reaches: (route) => isFor(route, may, account) || (route.access === 'self' && !isEnd(route)) }
}

async function callersOf({ has }: Attacker, stage: Stage, may: May): Promise<Caller[]> {
  const owner: May = (permission, place) => place === stage.own && roleMay('owner', permission)
  const me = await bySession(`me@evil-${stage.domain.replace(/\D/g, '')}.example`, owner, stage.own)
  // What its own account can do alone is the attack of the role owner; here it takes what others give.
  const taker = {
    ask: me.ask,
    reaches: ({ access }: Resource) => access === 'plan:write' || access === 'purchases:write',
  }
  const takesLink = (route: Resource) => route.path.includes('{token}') || bodiesOf(route, {}).some(hasToken)
  const visitor = { ask: visiting(), reaches: (route: Resource) => route.access === 'visitor' && takesLink(route) }
  if ('scope' in has) {
    const path = has.inAccount ? `/accounts/${stage.account}/tokens` : '/tokens'
    const { token } = await g.ask<{ token: string }>('POST', path, { name: 'attacker', scopes: [has.scope] })
    return [byToken(token, may, stage.account), taker, visitor]
  }
  const email = `attacker@${stage.domain}`
  const id = await person(email, 'role' in has ? has.role : null, hashes.mine)
  if ('accountRole' in has) await join(stage.account, id, has.accountRole)
  return [await bySession(email, may, stage.account), taker, visitor]
}

const hasToken = (body: unknown) => typeof body === 'object' && body !== null && 'token' in body

/** Each call from a browser of its own. */
const visiting = (): Ask => (method, path, body) => asBrowser(g)(method, path, body, elsewhere())

const MAKE = ['POST', 'PUT', 'PATCH']
const REMOVE = ['DELETE']

/** All routes that change something and let the caller in. What answers give is kept for the next round. */
async function round(
  callers: readonly Caller[],
  methods: readonly string[],
  hostile: Record<string, unknown[]>,
  steps: string[],
): Promise<void> {
  const given: Hostile = structuredClone(hostile)
  for (const [at, { ask, reaches }] of callers.entries()) {
    // The others take what the attacker has made.
    if (at > 0 && steps.length === 0) return
    for (const route of routes.filter((one) => methods.includes(one.method) && reaches(one)))
      for (const path of pathsOf(route.path, given))
        for (const body of bodiesOf(route, given)) {
          const answer = await ask<unknown>(route.method, path, body)
          assert.ok(answer.status < 500 || answer.status > 501, `${route.method} ${path}: ${answer.text}`)
          if (answer.status !== 200) continue
          steps.push(`${route.method} ${path} ${JSON.stringify(body)?.slice(0, 120) ?? ''}`)
          for (const [name, value] of stringsIn(answer.data)) harvest(hostile, name, value)
        }
  }
}

function harvest(hostile: Record<string, unknown[]>, name: string, value: string): void {
  const keep = (where: string, what: string) => {
    const values = hostile[where] ?? []
    if (values.length < 12 && !values.includes(what)) hostile[where] = [...values, what]
  }
  const [, link] = /#token=([\w-]+)/.exec(value) ?? []
  if (link) keep('token', link)
  if (name === 'list') keep('code', value)
  if (name === 'payment') keep('payment', value)
}

/** Signs in at the attacker's provider as somebody whom a directory has created. */
async function comeBySso(provider: string, email: string): Promise<void> {
  const browser = asBrowser(g)
  const begun = await browser<{ redirect: string }>('POST', '/login/sso', { provider }, elsewhere())
  if (begun.status !== 200) return
  const asked = new URL(begun.data.redirect).searchParams
  evil.claims = { nonce: asked.get('nonce'), sub: email, email, email_verified: true }
  const parameters = String(new URLSearchParams({ code: 'c', state: asked.get('state')! }))
  await browser('POST', '/login/sso/finish', { provider, parameters }, elsewhere())
}

/** Says that the attacker's own account has paid. */
async function sayPaid(account: string): Promise<void> {
  const data = { id: `pay-${account}`, account, currency: 'EUR', amount: '100.00', status: 'paid' }
  const body = JSON.stringify({ type: 'payment.updated', timestamp: new Date().toISOString(), data })
  const seconds = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', WEBHOOK_KEY).update(`${account}.${seconds}.${body}`).digest('base64')
  const headers = {
    'webhook-id': account,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  }
  await (await g.call('/webhooks/payments', undefined, body, { method: 'POST', headers })).text()
}

interface State {
  readonly roles: ReadonlyMap<string, { role: AnyRole; account?: string; person: string }>
  readonly tokens: ReadonlyMap<string, { scopes: string[]; account: string | null }>
  readonly keys: ReadonlyMap<string, { account: string }>
  readonly credits: ReadonlyMap<string, bigint>
  /** Ways in of people who were there before. */
  readonly ways: ReadonlyMap<string, { person: string }>
  readonly logins: ReadonlyMap<string, unknown>
}

async function stateOf(): Promise<State> {
  const roles = await rows<{ role: AnyRole; account: string | null; person: string }>(
    `select operator_role as role, null as account, id as person from person where operator_role is not null
     union all select role, account_id, person_id from membership
     union all select role, account_id, 'invited ' || email from invite where role is not null and made_by = 'operator token'`,
  )
  const tokens = await rows<{ id: string; scopes: string[]; account: string | null }>(
    'select id, scopes, account_id as account from access_token where revoked_at is null',
  )
  const keys = await rows<{ id: string; account: string }>(
    `select id, account_id as account from api_key where revoked_at is null`,
  )
  const credits = await rows<{ id: string; posted: bigint }>(
    `select id, posted from account where id not like '%_test'`,
  )
  const ways = await rows<{ way: string; person: string }>(
    `select 'session ' || id as way, person_id as person from session where not awaits_factor
     union all select 'identity ' || id, person_id from identity union all select 'factor ' || id, person_id from second_factor
     union all select 'password ' || password, id from person where password is not null`,
  )
  const logins = await rows<{ id: string; value: unknown }>(
    `select 'provider ' || id as id, to_jsonb(login_provider) - 'updated_at' - 'created_at' as value from login_provider
     union all select 'domain ' || domain, to_jsonb(login_domain) from login_domain
     union all select 'policy', to_jsonb(value) from setting where name = 'login'`,
  )
  const by = <T extends object>(list: T[], name: (one: T) => string) => new Map(list.map((one) => [name(one), one]))
  return {
    roles: by(
      roles.map(({ account, ...one }) => (account === null ? one : { ...one, account })),
      (one) => `${one.role} of ${one.person} in ${'account' in one ? one.account : 'the gateway'}`,
    ),
    tokens: by(tokens, ({ id }) => id),
    keys: by(keys, ({ id }) => id),
    credits: new Map(credits.map(({ id, posted }) => [id, posted])),
    ways: by(ways, ({ way, person: whose }) => `${way} of ${whose}`),
    logins: new Map(logins.map(({ id, value }) => [id, JSON.stringify(value)])),
  }
}

/** What appeared and what is gone. */
function* moved<T>(before: ReadonlyMap<string, T>, now: ReadonlyMap<string, T>): Generator<[name: string, value: T]> {
  for (const [name, value] of now) if (!before.has(name)) yield [`new: ${name}`, value]
  for (const [name, value] of before) if (!now.has(name)) yield [`gone: ${name}`, value]
}

/** What moved and is not covered by the attacker's rights. */
function gainsOf(before: State, now: State, may: May, stage: Stage, mine: ReadonlySet<string>): string[] {
  const covers = (role: AnyRole, account?: string) => coversRole((permission) => may(permission, account), role)
  const gains: string[] = []
  const expect = (isCovered: boolean, what: string) => {
    if (!isCovered) gains.push(what)
  }
  // Whoever signs up owns the account that this makes.
  const isNew = (account?: string) => account !== undefined && !before.credits.has(account)
  for (const [name, { role, account }] of moved(before.roles, now.roles))
    expect(covers(role, account) || isNew(account), `role ${name}`)
  for (const [name, { scopes, account }] of moved(before.tokens, now.tokens)) {
    const all = rightsIn(scopes, account === null ? 'operator' : 'owner')
    expect(
      all.every((right) => may(right, account ?? undefined)),
      `token ${name} (${scopes})`,
    )
  }
  for (const [name, { account }] of moved(before.keys, now.keys))
    expect(
      may('keys:write', account) || may('imported-keys:write') || may('accounts:write'),
      `key ${name} of ${account}`,
    )
  for (const [id, posted] of now.credits)
    expect(posted <= (before.credits.get(id) ?? 0n) || may('credits:write'), `credits of ${id}: ${posted}`)
  const rolesOf = (whose: string) => [...before.roles.values()].filter((one) => one.person === whose)
  for (const [name, { person: whose }] of moved(before.ways, now.ways)) {
    const known = Object.values(stage.people).includes(whose)
    const isCovered = rolesOf(whose).every(({ role, account }) => covers(role, account))
    expect(!known || mine.has(whose) || isCovered, `way in: ${name}`)
  }
  for (const [name, value] of [...moved(before.logins, now.logins)])
    expect(covers('operator'), `login ${name} ${value}`)
  for (const [name, value] of now.logins)
    expect(
      !before.logins.has(name) || before.logins.get(name) === value || covers('operator'),
      `login changed: ${name}`,
    )
  return gains
}

/** For the next attacker, as the operator would repair it. */
async function repair(): Promise<void> {
  await rows('update access_token set revoked_at = null where is_first')
  await rows(`delete from login_provider where id like 'evil-%' or id like 'corp-%'`)
  await rows('delete from login_attempt')
  const { data } = await g.operator<{ document: unknown }>('GET', '/catalog')
  if (JSON.stringify(data.document) !== JSON.stringify(document)) await g.ask('PUT', '/catalog', { document })
  await g.ask('PUT', '/login-policy', { secondFactorRoles: [] })
  await g.ask('PUT', '/sign-up', { mode: 'off' })
  await g.ask('PATCH', '/payment-settings', { provider: 'off', secrets: { 'payment-webhook': null } })
}

async function attack(attacker: Attacker, at: number): Promise<{ gains: string[]; steps: string[] }> {
  const stage = await stageOf(at)
  const may = rightsOf(attacker, stage)
  const callers = await callersOf(attacker, stage, may)
  const before = await stateOf()
  const steps: string[] = []
  try {
    for (const methods of [MAKE, MAKE, REMOVE]) {
      await round(callers, methods, stage.hostile, steps)
      await comeBySso(`evil-${at}`, stage.emails.directory)
      await comeBySso(`corp-${at}`, stage.emails.corp)
      await sayPaid(stage.own)
    }
    // Wrong passwords for a foreign address make its owner wait, in a browser that the owner never used.
    await rows('delete from login_attempt')
    const gains = gainsOf(before, await stateOf(), may, stage, new Set([stage.people.me]))
    const { status } = await asBrowser(g)(
      'POST',
      '/login',
      { email: stage.emails.operator, password: THEIR_PASSWORD },
      elsewhere(),
    )
    if (status !== 200) gains.push(`the operator cannot sign in any more: ${status}`)
    return { gains, steps }
  } finally {
    await repair()
  }
}

/** A directory's token gives and takes the roles that its creator may give; that is what it is for. */
const isDirectory = ({ has }: Attacker) => 'scope' in has && has.scope === 'scim'

for (const [at, attacker] of ATTACKERS.filter((one) => !isDirectory(one)).entries())
  test(`${attacker.name}: gains no right, role, key, session or credits in two steps`, async (t) => {
    const { gains, steps } = await attack(attacker, at)
    t.diagnostic(`${steps.length} changes`)
    assert.deepEqual(gains, [], steps.join('\n'))
  })
