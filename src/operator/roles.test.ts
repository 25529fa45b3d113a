// Every route with every role, as the table says: the expectation is generated from src/identity/roles.ts, and each
// route is called over HTTP.

import { glob, readFile } from 'node:fs/promises'
import { assert, before, started, test, until } from '../../test/kit.ts'
import {
  type Ask,
  asBrowser,
  asOperator,
  joined,
  makeAccount,
  startOperatorServer,
} from '../../test/operator-server.ts'
import { release } from '../../test/settlement.ts'
import {
  ACCOUNT_ROLES,
  type AnyRole,
  coversRole,
  OPERATOR_ROLES,
  RIGHTS,
  roleMay,
  rolesWith,
  scopesMay,
} from '../identity/roles.ts'
import type { MemberView, OperatorView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import type { Resource } from './resource.ts'

const ROLES: readonly AnyRole[] = [...OPERATOR_ROLES, ...ACCOUNT_ROLES]

let mine = ''
let theirs = ''
let key = ''
/** One person of each role; those of accounts in `mine`. */
const people = new Map<AnyRole | 'outsider', ReturnType<typeof asBrowser>>()

const server = started(() => startOperatorServer())
before(async () => {
  server.app.dispatch = (_, response) => void response.writeHead(200).end('{}')
  const ask = asOperator(server)
  mine = await makeAccount(server, { name: 'Mine' })
  theirs = await makeAccount(server, { name: 'Theirs' })
  key = (await ask<{ id: string }>('POST', `/accounts/${mine}/keys`, { name: 'k' })).data.id
  for (const role of OPERATOR_ROLES) people.set(role, await follow('/operator-invites', role, role))
  for (const role of ACCOUNT_ROLES) people.set(role, await follow(`/accounts/${mine}/invites`, role, role))
  people.set('outsider', await follow(`/accounts/${theirs}/invites`, 'outsider', 'owner'))
  await useKey()
})

async function follow(path: string, name: string, role: AnyRole) {
  const browser = await joined(server, path, { email: `${name}@roles.example`, role })
  await server.forgetTries()
  return browser
}

/** A call, so that the routes of one call find it. */
async function useKey() {
  const call = { id: '01roles', account: mine, key, product: 'alpha-5.4', catalogVersion: 1 }
  await server.ledger.reserve({ ...call, want: 5n, floor: 5n, tokens: 1 })
  await server.ledger.resolve(release(mine, call.id, { key, cost: 7n, vendor: 'textworks' }))
}

/** The route in the account `mine`, as far as it is of an account. */
function pathOf({ path }: Pick<Resource, 'path'>): string {
  return path
    .replace('/accounts/{id}', `/accounts/${mine}`)
    .replace('/keys/{id}', `/keys/${key}`)
    .replace('{requestId}', 'req_01roles')
    .replace('{month}', '2026-10')
    .replaceAll(/\{\w+\}/g, 'none')
}

/** A body that no resource takes: whoever may call it learns that, and nothing changes. */
const bodyOf = (method: string) => (method === 'GET' ? undefined : { nothingTakesThis: 1 })

type Told = { status: number; text: string }
const isRefused = ({ status }: Told) => status === 403
const isLetIn = ({ status }: Told) => [200, 400, 404, 409, 429].includes(status)

test('every route lets in exactly the roles that the table names', async (t) => {
  const wrong: string[] = []
  let asked = 0
  const routes = [
    ...server.resources.operator.map((entry) => ({
      method: entry.method,
      path: pathOf(entry),
      access: entry.access,
      inAccount: entry.account !== undefined || entry.own === true,
      own: entry.own === true,
    })),
    ...['GET', 'POST', 'DELETE'].map((method) => ({
      method,
      path: `/accounts/${mine}/play/v1/models`,
      access: 'playground:write' as const,
      inAccount: true,
      own: false,
    })),
  ]
  for (const { method, path, access, inAccount, own } of routes) {
    assert.ok(access !== 'self' && access !== 'visitor', `${method} ${path} has no right in the table`)
    const allowed = rolesWith(access, inAccount)
    const answers = await Promise.all(
      // A busy machine may answer 503; whoever asks again is let in or not.
      [...people].map(async ([role, ask]) => ({
        role,
        ...(await until(async () => {
          const answer = await ask(method, path, bodyOf(method))
          return answer.status === 503 ? undefined : answer
        })),
      })),
    )
    for (const { role, ...answer } of answers) {
      // What spans accounts shows an outsider their own.
      const may = role === 'outsider' ? own : allowed.includes(role)
      if (may ? !isLetIn(answer) : !isRefused(answer))
        wrong.push(`${method} ${path} (${access}) as ${role}: ${answer.status}, and the table says ${may}`)
      asked += 1
    }
    const nobody = await asBrowser(server)(method, path, bodyOf(method))
    if (nobody.status !== 401) wrong.push(`${method} ${path} without a session: ${nobody.status}`)
  }
  t.diagnostic(`${asked} calls of ${routes.length} routes as ${people.size} people`)
  assert.deepEqual(wrong, [])
})

test('every right of the table has a route', () => {
  const used = new Set<string>(server.resources.operator.map(({ access }) => access))
  // The playground is no resource, the owner role is given through members, and SCIM has routes of its own
  // (test/scim.test.ts).
  for (const right of ['playground:write', 'owners:write', 'scim:read', 'scim:write']) used.add(right)
  assert.deepEqual(
    RIGHTS.map(({ permission }) => permission).filter((permission) => !used.has(permission)),
    [],
  )
})

test('a scope reaches its own resource, and none whose name begins as it does', () => {
  for (const { permission } of RIGHTS) {
    const [resource = ''] = permission.split(':')
    assert.ok(
      ['*', resource, permission].every((scope) => scopesMay([scope], permission)),
      permission,
    )
    for (const other of RIGHTS.map((right) => right.permission.split(':')[0]!).filter((name) => name !== resource))
      assert.ok(!scopesMay([other], permission), `${other} reaches ${permission}`)
  }
})

test('support, auditors and viewers change nothing; nobody in an account may do more than its owner', () => {
  for (const { permission, roles } of RIGHTS) {
    assert.ok(roles.has('operator'), permission)
    for (const role of ['support', 'auditor', 'viewer'] as const)
      assert.ok(!permission.endsWith(':write') || !roles.has(role), `${role} has ${permission}`)
    for (const role of ACCOUNT_ROLES) assert.ok(!roles.has(role) || roles.has('owner'), `${role} has ${permission}`)
  }
  assert.ok(roleMay('auditor', 'audit:read') && !roleMay('auditor', 'recordings:read'))
  assert.ok(!roleMay('support', 'recordings:read') && !roleMay('support', 'margins:read'))
})

test('every page of the console declares the right of each change that it makes', async () => {
  // By a name that the compiler does not follow: it is checked with the types of a browser.
  const file: string = '../../console/src/api.ts'
  const { api } = await import(file)
  const asked: Array<[method: string, path: string]> = []
  const fetched = globalThis.fetch
  globalThis.fetch = async (url, init) => {
    asked.push([init?.method ?? 'GET', String(url).split('?')[0] ?? ''])
    return new Response('{"data":{"items":[]}}', { headers: { 'content-type': 'application/json' } })
  }
  /** By the name of the function: the right that its call needs. */
  const needs = new Map<string, string>()
  try {
    for (const [name, call] of Object.entries(api)) {
      asked.length = 0
      // Who may not read it does not see the page. Whatever it takes: an id, a list, fields. The answer is not looked
      // at.
      await Promise.resolve()
        .then(() => (call as (...all: unknown[]) => unknown)('x', 'x', 'x', {}))
        .catch(() => undefined)
      const [method, path] = asked[0] ?? []
      const entry = server.resources.operator.find(
        (one) =>
          one.method === method &&
          new RegExp(`^/console/api${one.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path ?? ''),
      )
      if (entry && !entry.access.endsWith(':read')) needs.set(name, entry.access)
    }
  } finally {
    globalThis.fetch = fetched
  }
  assert.ok(needs.size > 60, `${needs.size} functions of the console change something`)
  const undeclared: string[] = []
  for await (const file of glob('console/src/**/*.tsx')) {
    const source = await readFile(file, 'utf8')
    for (const [, name = ''] of source.matchAll(/\bapi\.(\w+)/g)) {
      const right = needs.get(name)
      if (right !== undefined && !new RegExp(`['"]${right}['"]`).test(source))
        undeclared.push(`${file}: ${name} needs ${right}`)
    }
  }
  assert.deepEqual([...new Set(undeclared)].sort(), [])
})

test('nobody gives, changes or takes a role above their own', async () => {
  const gives = (giver: AnyRole) => ROLES.filter((role) => coversRole((permission) => roleMay(giver, permission), role))
  assert.deepEqual(gives('operator'), ROLES)
  assert.deepEqual(gives('owner'), ACCOUNT_ROLES)
  assert.deepEqual(gives('admin').slice(0, 3), ['admin', 'member', 'viewer'])
  const members = (await people.get('owner')!<Page<MemberView>>('GET', `/accounts/${mine}/members`)).data.items
  const idOf = (role: string) => members.find((one) => one.role === role)?.userId ?? ''
  const admin = people.get('admin')!
  const invite = (ask: Ask, role: string) =>
    ask('POST', `/accounts/${mine}/invites`, { email: `x-${role}@roles.example`, role })
  for (const role of ACCOUNT_ROLES) {
    const status = gives('admin').includes(role) ? 200 : 403
    assert.equal((await invite(admin, role)).status, status, `an admin invites ${role}`)
    assert.equal((await invite(people.get('owner')!, role)).status, 200)
  }
  assert.equal((await admin('PATCH', `/accounts/${mine}/members/${idOf('viewer')}`, { role: 'owner' })).status, 403)
  assert.equal((await admin('PATCH', `/accounts/${mine}/members/${idOf('admin')}`, { role: 'owner' })).status, 403)
  assert.equal((await admin('PATCH', `/accounts/${mine}/members/${idOf('owner')}`, { role: 'viewer' })).status, 403)
  assert.equal((await admin('DELETE', `/accounts/${mine}/members/${idOf('owner')}`)).status, 403)
  const pending = (await admin<Page<{ id: string; role: string }>>('GET', `/accounts/${mine}/invites`)).data.items
  const ofOwner = pending.find(({ role }) => role === 'owner')?.id
  assert.equal((await admin('DELETE', `/accounts/${mine}/invites/${ofOwner}`)).status, 403)
  assert.equal((await invite(admin, 'operator')).status, 400, 'a role of the gateway is none of an account')
  assert.equal((await people.get('owner')!('POST', '/operator-invites', { email: 'x@y.example' })).status, 403)
})

test('a role change is felt at once', async () => {
  const viewer = people.get('viewer')!
  const make = () => viewer('POST', `/accounts/${mine}/keys`, { name: 'v' })
  const members = (await people.get('owner')!<Page<MemberView>>('GET', `/accounts/${mine}/members`)).data.items
  const id = members.find((one) => one.role === 'viewer')?.userId
  const become = (role: string) => people.get('owner')!('PATCH', `/accounts/${mine}/members/${id}`, { role })
  assert.equal((await make()).status, 403)
  assert.equal((await become('member')).status, 200)
  assert.equal((await make()).status, 200)
  assert.equal((await become('viewer')).status, 200)
  assert.equal((await make()).status, 403)
})

test('a link never takes a role away', async () => {
  const join = async (role: string) => {
    await joined(server, `/accounts/${mine}/invites`, { email: 'admin@roles.example', role })
    const { items } = (await asOperator(server)<Page<MemberView>>('GET', `/accounts/${mine}/members`)).data
    return items.find(({ email }) => email === 'admin@roles.example')?.role
  }
  for (const role of ['viewer', 'member', 'admin']) assert.equal(await join(role), 'admin')
})

test('the last owner leaves by no way of the account, and the last operator by none at all', async () => {
  const account = (await asOperator(server)<{ id: string }>('POST', '/accounts', { name: 'Last' })).data.id
  const owner = await follow(`/accounts/${account}/invites`, 'last', 'owner')
  const { items } = (await owner<Page<MemberView>>('GET', `/accounts/${account}/members`)).data
  const mine = `/accounts/${account}/members/${items[0]?.userId}`
  const made = await owner<{ token: string }>('POST', `/accounts/${account}/tokens`, { name: 't', scopes: ['*'] })
  const byToken: Ask = (method, path, body) =>
    asOperator(server)(method, path, body, { authorization: `Bearer ${made.data.token}` })
  const refused = async (by: Ask, path: string, role: string, why: RegExp) => {
    const answers = [await by('DELETE', path), await by('PATCH', path, { role })]
    for (const { status, text } of answers) assert.deepEqual([status, why.test(text)], [409, true], text)
  }
  await refused(owner, mine, 'admin', /last owner/)
  await refused(byToken, mine, 'admin', /last owner/)
  // Whoever runs the gateway may, as the command line and a file of configuration do.
  assert.equal((await asOperator(server)('DELETE', mine)).status, 200)
  const operators = (await asOperator(server)<Page<OperatorView>>('GET', '/operators')).data.items
  const [last, ...others] = operators.filter(({ role }) => role === 'operator')
  assert.ok(last && others.length === 0, 'there is one')
  await refused(people.get('operator')!, `/operators/${last.userId}`, 'finance', /last operator/)
  await refused(asOperator(server), `/operators/${last.userId}`, 'finance', /last operator/)
})

test('of owners, and of operators, who remove each other at the same moment, one stays', async () => {
  const account = (await asOperator(server)<{ id: string }>('POST', '/accounts', { name: 'Race' })).data.id
  for (let round = 0; round < 5; round++) {
    const [one, two] = await Promise.all([
      follow(`/accounts/${account}/invites`, `one${round}`, 'owner'),
      follow(`/accounts/${account}/invites`, `two${round}`, 'owner'),
    ])
    const { items } = (await one<Page<MemberView>>('GET', `/accounts/${account}/members`)).data
    const idOf = (name: string) => items.find(({ email }) => email.startsWith(`${name}${round}@`))?.userId
    const answers = await Promise.all([
      one('DELETE', `/accounts/${account}/members/${idOf('two')}`),
      two('PATCH', `/accounts/${account}/members/${idOf('one')}`, { role: 'member' }),
      one('PATCH', `/accounts/${account}/members/${idOf('one')}`, { role: 'viewer' }),
      two('DELETE', `/accounts/${account}/members/${idOf('two')}`),
    ])
    assert.ok(
      answers.every(({ status }) => [200, 403, 404, 409].includes(status)),
      answers.map(({ text }) => text).join(),
    )
    const left = (await asOperator(server)<Page<MemberView>>('GET', `/accounts/${account}/members`)).data.items
    assert.ok(
      left.some(({ role }) => role === 'owner'),
      JSON.stringify(left),
    )
    for (const { userId } of left) await asOperator(server)('DELETE', `/accounts/${account}/members/${userId}`)
  }
  const others = await Promise.all(['a', 'b', 'c'].map((name) => follow('/operator-invites', name, 'operator')))
  const all = (await others[0]!<Page<OperatorView>>('GET', '/operators')).data.items
  const operators = all.filter(({ role }) => role === 'operator')
  const removals = operators.map(({ userId }, at) =>
    at % 2 === 0
      ? asOperator(server)('DELETE', `/operators/${userId}`)
      : asOperator(server)('PATCH', `/operators/${userId}`, { role: 'support' }),
  )
  const statuses = (await Promise.all(removals)).map(({ status }) => status)
  assert.deepEqual(statuses.sort(), [...operators.slice(1).map(() => 200), 409])
  const left = (await asOperator(server)<Page<OperatorView>>('GET', '/operators')).data.items
  assert.equal(left.filter(({ role }) => role === 'operator').length, 1)
})
