// `tollgate apply` against a real operator API: what differs is said and made so, and a second run finds nothing.

import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf, type Given } from '../../../test/command-line.ts'
import { assert, pluck, started, temporary, test } from '../../../test/kit.ts'
import { asBrowser, asOperator, startOperatorServer } from '../../../test/operator-server.ts'
import { SMALL_CATALOG } from '../../../test/small-catalog.ts'
import type { KeyView, TeamView } from '../../admission/views.ts'
import type { CurrentView } from '../../catalog/views.ts'
import type { Page } from '../../kernel/view.ts'
import type { AccountView, BudgetView } from '../../ledger/views.ts'

const server = started(startOperatorServer)
const ask = asOperator(server)
const folder = temporary('tollgate-apply-')
const commandLine = commandLineOf(() => server)

async function apply(yaml: string, options: readonly string[] = ['--yes'], given: Given = {}) {
  const file = join(folder, 'tollgate.yaml')
  await writeFile(file, yaml)
  return run(['apply', file, ...options], given)
}

async function run(args: readonly string[], given: Given = {}) {
  const { code, out, err } = await commandLine.run(args, given)
  return { code, out, err: err.replaceAll(`${folder}/`, '') }
}

const accountNamed = async (name: string) =>
  (await ask<Page<AccountView>>('GET', '/accounts?limit=200')).data.items.find(
    (one) => one.name === name && one.status !== 'closed',
  )
const keysOf = async (account: string) => (await ask<Page<KeyView>>('GET', `/accounts/${account}/keys`)).data.items
const livingKeys = async (account: string) => (await keysOf(account)).filter(({ revokedAt }) => revokedAt === null)

const TEAM = `
tollgate: 1
limits: { requestsPerMinute: 9000 }
accounts:
  - name: Team A
    initialCredits: 25
    limits: { requestsPerMinute: 100, spendPerDay: 12.50 }
    keys:
      - name: ci
        models: [alpha-5.4]
        limits: { concurrency: 3 }
      - { name: trial, test: true, writeTo: "file:KEYFILE" }
    members:
      - { email: Anna@Example.com, role: owner }
`

test('a file is shown as sentences, applied after a question, and found applied by the next run', async () => {
  const keyFile = join(folder, 'trial.key')
  const yaml = TEAM.replace('KEYFILE', keyFile)
  const dry = await apply(yaml, ['--dry-run'])
  assert.equal(dry.code, 2)
  assert.match(dry.out, /~ The whole gateway: no limit becomes 9000 requests per minute\./)
  assert.match(dry.out, /\+ Account Team A is created with 25 credits\./)
  assert.match(dry.out, /Account Team A: no limit becomes 12\.5 spend per day/)
  assert.match(dry.out, /\+ Key ci of Team A is created; its value is shown once\./)
  assert.match(dry.out, /\+ anna@example\.com is invited to Team A as owner\./)
  assert.equal(await accountNamed('Team A'), undefined, 'a dry run changes nothing')

  const nobody = await apply(yaml, [])
  assert.equal(nobody.code, 1)
  assert.match(nobody.err, /Add --yes/)
  const refused = await apply(yaml, [], { ask: async () => 'no' })
  assert.deepEqual([refused.code, refused.out], [1, 'Nothing was changed.\n'])
  assert.equal(await accountNamed('Team A'), undefined)

  const done = await apply(yaml, [], { ask: async () => 'y' })
  assert.equal(done.code, 0, done.err)
  const value = /Key ci of Team A, shown only now:\n {2}(tg_live_\w+)/.exec(done.out)?.[1]
  assert.ok(value)
  assert.match(await readFile(keyFile, 'utf8'), /^tg_test_\w+\n$/)
  assert.equal((await stat(keyFile)).mode & 0o777, 0o600)
  assert.ok(!done.out.includes(String(await readFile(keyFile, 'utf8')).trim()), 'what is written is not shown')
  const account = await accountNamed('Team A')
  assert.deepEqual([account?.balance, account?.limits], ['25', { requestsPerMinute: 100, spendPerDay: '12.5' }])

  const again = await apply(yaml)
  assert.deepEqual([again.code, again.out], [0, 'Nothing differs.\n'])
  assert.equal((await apply(yaml, ['--dry-run'])).code, 0)
  assert.equal((await keysOf(account?.id ?? '')).length, 2)
})

test('only what changed is changed; removals need --prune and are listed', async () => {
  const first = `
tollgate: 1
accounts:
  - name: Team B
    limits: { requestsPerMinute: 10, concurrency: 4 }
    keys: [{ name: one, models: [alpha-5.4] }, { name: two }]
    members: [{ email: bo@example.com, role: member }]
`
  assert.equal((await apply(first)).code, 0)
  const second = `
tollgate: 1
accounts:
  - name: Team B
    limits: { requestsPerMinute: 20 }
    keys: [{ name: one, models: null, expiresAt: "2031-01-01T00:00:00+01:00" }]
    members: []
`
  const kept = await apply(second)
  assert.equal(kept.code, 0, kept.err)
  assert.match(kept.err, /Team B: 10 becomes 20 requests per minute/)
  assert.match(kept.err, /the limit of 4 calls at the same time is lifted/)
  assert.match(kept.err, /Key one of Team B: models alpha-5\.4 becomes none\./)
  assert.match(kept.err, /Note: Account Team B has the keys two, not in the file\. They stay; --prune removes them\./)
  assert.match(kept.err, /Note: Account Team B has the members bo@example\.com/)
  const id = (await accountNamed('Team B'))?.id ?? ''
  assert.equal((await livingKeys(id)).length, 2)

  const only = second.replace('accounts:', 'accounts:\n  - name: Team A')
  const pruned = await apply(only, ['--prune', '--dry-run'])
  assert.match(pruned.out, /- Key two \(…\w{4}\) of Team B is revoked\./)
  assert.match(pruned.out, /- The invitation of bo@example\.com to Team B is withdrawn\./)
  assert.equal((await livingKeys(id)).length, 2)
  assert.equal((await apply(only, ['--prune', '--yes'])).code, 0)
  assert.deepEqual(pluck(await livingKeys(id), 'name', 'expiresAt'), [['one', '2030-12-31T23:00:00.000Z']])
  assert.equal((await apply(only, ['--prune'])).out, 'Nothing differs.\n')
})

test('an account that is not in the file is closed by --prune only when it has no credits', async () => {
  await ask('POST', '/accounts', { name: 'Rich', credits: '5' })
  await ask('POST', '/accounts', { name: 'Poor' })
  const others = (await ask<Page<AccountView>>('GET', '/accounts?limit=200')).data.items
    .filter(({ name, status }) => status !== 'closed' && name !== 'Rich' && name !== 'Poor')
    .map(({ id, name }) => `  - { id: ${id}, name: ${JSON.stringify(name)} }`)
  const pruned = await apply(`tollgate: 1\naccounts:\n${others.join('\n')}\n`, ['--prune', '--yes'])
  assert.equal(pruned.code, 0, pruned.err)
  assert.match(pruned.err, /- Account Poor \(acc_\w+\) is closed/)
  assert.match(pruned.err, /Account Rich \(acc_\w+\) is not in the file and has 5 credits\. Money is not pruned/)
  assert.equal((await accountNamed('Poor'))?.status, undefined)
  assert.equal((await accountNamed('Rich'))?.balance, '5')
})

test('vendors, catalog and secrets are one change: secrets are compared, sent only when they differ, and never printed', async () => {
  const secret = 'sk-very-secret-value-0001'
  const yaml = (more = '') => `
tollgate: 1
vendors:
  extra:
    baseUrl: https://api.extra.example/v1
    credential: EXTRA_API_KEY
    ${more}
    secrets: { EXTRA_API_KEY: env:MY_EXTRA }
`
  const secrets = { MY_EXTRA: secret }
  const missing = await apply(yaml())
  assert.equal(missing.code, 1)
  assert.match(missing.err, /tollgate\.yaml:8:16: env:MY_EXTRA: MY_EXTRA is not set/)
  const done = await apply(yaml(), ['--yes'], { secrets })
  assert.equal(done.code, 0, done.err)
  assert.match(
    done.err,
    /Vendor extra is added at https:\/\/api\.extra\.example\/v1, with the credential EXTRA_API_KEY\./,
  )
  assert.match(done.err, /The credential EXTRA_API_KEY gets a new value\./)
  assert.equal(server.credentials.get('EXTRA_API_KEY'), secret)
  const stored = async () =>
    (await ask<Page<unknown>>('GET', '/audit?action=credential.store&limit=200')).data.items.length
  const times = await stored()
  assert.match((await apply(yaml(), ['--yes'], { secrets })).out, /^Nothing differs\./)
  const timeouts = await apply(yaml('timeouts: { connectMs: 2500 }'), ['--yes'], { secrets })
  assert.match(timeouts.err, /Vendor extra: connect timeout/)
  assert.ok(!timeouts.err.includes('gets a new value'), 'an equal secret is not sent')
  assert.equal(await stored(), times)
  const other = await apply(yaml('timeouts: { connectMs: 2500 }'), ['--yes'], {
    secrets: { MY_EXTRA: 'sk-another-0002' },
  })
  assert.match(other.err, /^ {2}~ The credential EXTRA_API_KEY gets a new value\.\nNote: [^\n]*\n$/)
  assert.equal(server.credentials.get('EXTRA_API_KEY'), 'sk-another-0002')
  const said = [missing, done, timeouts, other].map(({ out, err }) => out + err).join() + server.logged()
  for (const value of [secret, 'sk-another-0002']) assert.ok(!said.includes(value), 'a secret was printed')
})

test('a catalog that is not valid changes nothing, neither catalog nor secret, and says where', async () => {
  const before = (await ask<CurrentView>('GET', '/catalog')).data.version
  const wrong = await apply(
    `
tollgate: 1
vendors:
  extra: { secrets: { EXTRA_API_KEY: env:X } }
catalog:
  models:
    alpha-5.4:
      pricing: { tiers: [] }
`,
    ['--yes'],
    { secrets: { X: 'sk-third-0003' } },
  )
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /tollgate\.yaml:7:5: models\.alpha-5\.4\.name: /)
  assert.equal((await ask<CurrentView>('GET', '/catalog')).data.version, before)
  assert.equal(server.credentials.get('EXTRA_API_KEY'), 'sk-another-0002')
})

test('a change of the catalog by somebody else since the plan is not overwritten', async () => {
  const { data } = await ask<CurrentView>('GET', '/catalog')
  const { status, error } = await ask('PUT', '/catalog', {
    document: { ...data.document, vendors: { ...data.document.vendors, late: { baseUrl: 'https://late.example' } } },
    basedOn: data.version - 1,
  })
  assert.equal(status, 409)
  assert.match(String(error?.message), /Nothing was changed/)
  const named = await ask('PUT', '/catalog', { document: data.document, credentials: { NOBODY_KEY: 'sk-x' } })
  assert.equal(named.status, 400)
})

const BUDGETED = `
tollgate: 1
accounts:
  - name: Shop
    members:
      - { email: ann@shop.example, role: owner }
    teams:
      - name: Search
        members: [ann@shop.example]
        projects: [{ name: Ranking }, { name: Index }]
      - name: Ops
        scimGroup: Operations
    keys:
      - { name: ci, team: Search/Ranking, member: ann@shop.example, requiredLabels: [feature] }
      - { name: plain }
    budgets:
      - { name: Trial users, scope: user, span: month, max: 5, alertPercent: 80, values: { alice: 50 } }
      - { name: Search, scope: team, value: Search, span: week, max: "200" }
      - { name: Ranking, scope: project, value: Search/Ranking, unit: tokens, span: total, max: 1000000 }
      - { name: CI, scope: key, value: ci, unit: requests, span: day, max: 100, hard: false }
      - { name: Sessions, scope: session, span: rolling, windowSeconds: 3600, max: 2.50 }
      - { name: Features, scope: "tag:feature", unit: requests, span: day, max: 1000 }
      - { name: Ann, scope: member, value: ann@shop.example, span: month, max: 9 }
`

test('teams, projects and budgets of every kind are made, found applied, changed by the difference, and pruned last', async () => {
  const dry = await apply(BUDGETED, ['--dry-run'])
  assert.equal(dry.code, 2, dry.err)
  assert.match(dry.out, /~ The directory’s group Operations says who is in Team Ops of Shop\./)
  assert.match(dry.out, /\+ Project Search\/Ranking of Shop is created\./)
  assert.match(dry.out, /\+ Budget Trial users of Shop is created: each user may use 5 credits per month \(UTC\)\./)
  assert.match(dry.out, /\+ Budget CI of Shop is created: key ci may use 100 requests per day \(UTC\); it only counts/)
  assert.match(dry.out, /~ Budget Trial users of Shop: alice may use 50\./)
  assert.match(dry.out, /Note: Key ci is ann@shop\.example's when the invitation is accepted/)
  assert.match(dry.out, /Note: Budget Ann of Shop is made when ann@shop\.example has accepted/)
  const done = await apply(BUDGETED)
  assert.equal(done.code, 0, done.err)
  const again = await apply(BUDGETED)
  assert.match(again.out, /^Nothing differs\./)

  const account = (await accountNamed('Shop'))?.id ?? ''
  const link = /Invitation of ann@shop\.example to Shop, shown only now:\n {2}\S+#token=(\S+)/.exec(done.out)?.[1]
  const joined = await asBrowser(server)('POST', `/invites/${link}`, { password: 'seven tired otters juggle' })
  assert.equal(joined.status, 200)
  const come = await apply(BUDGETED)
  assert.match(come.err, /~ ann@shop\.example joins Team Search of Shop\./)
  assert.match(come.err, /~ Key ci of Shop: its member becomes ann@shop\.example\./)
  assert.match(come.err, /\+ Budget Ann of Shop is created: member ann@shop\.example may use 9 credits/)
  assert.match((await apply(BUDGETED)).out, /^Nothing differs\.\nNote: The gateway has the accounts [^\n]*\n$/)

  const { data: teams } = await ask<Page<TeamView>>('GET', `/accounts/${account}/teams`)
  const ranking = teams.items.find(({ name }) => name === 'Ranking')
  const [ci] = (await livingKeys(account)).filter(({ name }) => name === 'ci')
  assert.deepEqual([ci?.teamId, ci?.requiredLabels], [ranking?.id, ['feature']])
  const budgetsNow = async () => (await ask<Page<BudgetView>>('GET', `/accounts/${account}/budgets`)).data.items
  const before = new Map((await budgetsNow()).map(({ name, id }) => [name, id]))
  assert.deepEqual(
    (await budgetsNow()).map(({ name, scope, value, unit, span, max, hard }) =>
      [name, scope, value, unit, span, max, hard].join(),
    ),
    [
      'Trial users,user,,credits,month,5,true',
      `Search,team,${teams.items.find(({ name }) => name === 'Search')?.id},credits,week,200,true`,
      `Ranking,project,${ranking?.id},tokens,total,1000000,true`,
      `CI,key,${ci?.id},requests,day,100,false`,
      'Sessions,session,,credits,rolling,2.5,true',
      'Features,tag:feature,,requests,day,1000,true',
      `Ann,member,${ci?.memberId},credits,month,9,true`,
    ],
  )
  // A rotated key has another id, and the same budget.
  assert.equal((await ask('POST', `/keys/${ci?.id}/rotate`, {})).status, 200)
  assert.equal((await ask('DELETE', `/keys/${ci?.id}`)).status, 200)
  assert.match((await apply(BUDGETED)).out, /^Nothing differs\.\nNote: The gateway has the accounts [^\n]*\n$/)

  const changed = BUDGETED.replace('max: 5, alertPercent: 80, values: { alice: 50 }', 'max: 6, hard: false, values: {}')
    .replace('span: week, max: "200"', 'span: day, max: "200"')
    .replace('[{ name: Ranking }, { name: Index }]', '[{ name: Ranking }]')
    .replace('      - name: Ops\n        scimGroup: Operations\n', '')
  const kept = await apply(changed)
  assert.equal(kept.code, 0, kept.err)
  assert.match(kept.err, /Budget Trial users of Shop: maximum 5 becomes 6\./)
  assert.match(kept.err, /Budget Trial users of Shop: hard true becomes false\./)
  assert.match(kept.err, /Budget Trial users of Shop: alert at percent 80 becomes none\./)
  assert.match(kept.err, /Budget Search of Shop starts again: team Search may use 200 credits per day/)
  assert.match(kept.err, /Note: Account Shop has the teams Search\/Index, Ops, not in the file/)
  assert.match(kept.err, /Note: Budget Trial users of Shop has maxima for alice, not in the file/)
  const after = new Map((await budgetsNow()).map(({ name, id }) => [name, id]))
  assert.equal(after.get('Trial users'), before.get('Trial users'), 'what it counted stays')
  assert.notEqual(after.get('Search'), before.get('Search'))
  assert.match((await apply(changed)).out, /^Nothing differs\./)
})

test('what is exported differs in nothing, with and without --prune', async () => {
  const file = join(folder, 'exported.yaml')
  assert.equal((await run(['apply', '--export', file])).code, 0)
  const text = await readFile(file, 'utf8')
  assert.ok(!text.includes('sk-another-0002'))
  assert.match(text, /# {3}extra: secrets: { EXTRA_API_KEY: env:EXTRA_API_KEY }/)
  for (const more of [[], ['--prune']]) {
    const found = await run(['apply', file, '--dry-run', ...more])
    assert.deepEqual([found.code, found.out], [0, 'Nothing differs.\n'], found.out)
  }
})

test('mistakes are said with line and column, and the name that was meant', async () => {
  const wrongs: readonly (readonly [yaml: string, said: RegExp])[] = [
    [
      'tollgate: 1\naccounts:\n  - name: X\n    limts: {}\n',
      /tollgate\.yaml:4:5: accounts\.0: there is no field "limts" here; did you mean "limits"\?/,
    ],
    ['tollgate: 1\nlimits:\n  requestPerMinute: 5\n', /:3:3: limits: .*did you mean "requestsPerMinute"/],
    ['tollgate: 1\naccounts:\n  - keys: []\n', /:3:5: accounts\.0\.name: expected string, but it is missing/],
    ['tollgate: 1\naccounts: [{ name: A }, { name: A }]\n', /:2:25: there are two accounts "A"/],
    ['tollgate: 1\nlimits: {a: 1, a: 2}\n', /:2:16: Map keys must be unique/],
    ['tollgate: 1\n  limits: x\n', /:1:11: Nested mappings/],
    ['tollgate: 2\n', /:1:1: tollgate: must be 1/],
    [
      'tollgate: 1\nvendors: { v: { secrets: { K: sk-plain-value-1234 } } }\n',
      /:2:28: .*must say where the secret is, and never be the secret/,
    ],
    ['tollgate: 1\n---\ntollgate: 1\n', /has 2 documents/],
    ['', /is empty|tollgate/],
    [`tollgate: ${'['.repeat(5000)}`, /nested more than 100 levels/],
    [`tollgate: 1\n# ${'x'.repeat(9_000_000)}\n`, /more than 8388608 bytes/],
    ['tollgate: 1\n__proto__: { admin: true }\n', /:2:1: nothing can have the name "__proto__"/],
    ['tollgate: 1\naccounts: [{ name: A, constructor: { prototype: { x: 1 } } }]\n', /no field "constructor"/],
    ['tollgate: 1\nvendors: { __proto__: { secrets: { K: "env:X" } } }\n', /:2:12: nothing can have/],
    ['tollgate: 1\ncatalog: { models: { __proto__: { type: text } } }\n', /:2:22: nothing can have/],
    ['tollgate: 1\nmachines: {}\n', /there is no field "machines"/],
    [laughs(), /aliases unfold to too much/],
  ]
  for (const [yaml, said] of wrongs) {
    const { code, err } = await apply(yaml)
    assert.equal(code, 1, yaml.slice(0, 60))
    assert.match(err, said)
    assert.doesNotMatch(err, /sk-plain-value-1234|root:| {4}at /)
    assert.equal(Reflect.get({}, 'admin'), undefined)
  }
})

/** Nine lists of nine references to the one before: a billion. */
function laughs(): string {
  const lines = ['a0: &a0 [lol]']
  for (let at = 1; at < 10; at++)
    lines.push(
      `a${at}: &a${at} [${Array(9)
        .fill(`*a${at - 1}`)
        .join(', ')}]`,
    )
  return lines.join('\n')
}

test('a run that fails says how far it came, revokes a key that could not be written, and the next run goes on', async () => {
  const taken = join(folder, 'taken.key')
  await writeFile(taken, 'something else')
  const yaml = (target: string) => `
tollgate: 1
accounts:
  - name: Team C
    keys: [{ name: first }, { name: second, writeTo: "file:${target}" }, { name: third }]
`
  const failed = await apply(yaml(taken))
  assert.equal(failed.code, 1)
  assert.match(failed.err, /there is a file already, and it is not replaced\. The new key was revoked again\./)
  assert.match(failed.err, /Stopped at change 3 of 4: Key second of Team C/)
  assert.match(failed.out, /Key first of Team C, shown only now/)
  assert.equal(await readFile(taken, 'utf8'), 'something else')
  const id = (await accountNamed('Team C'))?.id ?? ''
  assert.deepEqual(pluck(await livingKeys(id), 'name'), ['first'])
  const done = await apply(yaml(join(folder, 'free.key')))
  assert.equal(done.code, 0, done.err)
  assert.deepEqual((await livingKeys(id)).map(({ name }) => name).sort(), ['first', 'second', 'third'])
})

test('a credential that two vendors share is replaced only by somebody who knows', async () => {
  const { data } = await ask<CurrentView>('GET', '/catalog')
  const twin = { baseUrl: 'https://api.extra.example/v2', credential: 'EXTRA_API_KEY' }
  await ask('PUT', '/catalog', { document: { ...data.document, vendors: { ...data.document.vendors, twin } } })
  for (const path of ['/vendors/twin/credential', '/vendors/twin/credentials/EXTRA_API_KEY']) {
    const { status, error } = await ask('PUT', path, { value: 'sk-fourth-0004' })
    assert.equal(status, 409)
    assert.match(String(error?.message), /EXTRA_API_KEY to extra too/)
    assert.equal(server.credentials.get('EXTRA_API_KEY'), 'sk-another-0002')
    assert.equal((await ask('PUT', path, { value: 'sk-another-0002', shared: true })).status, 200)
  }
})

test('what budgets and keys refer to must be there, and pruning ends budgets before the teams that they are for', async () => {
  for (const [from, to, said] of [
    ['value: Search,', 'value: Serch,', /:18:38: Shop has no team "Serch"\. Did you mean "Search"\?/],
    ['team: Search/Ranking', 'team: Ranking', /Shop has no team or project "Ranking"/],
    ['members: [ann@shop.example]', 'members: [bob@shop.example]', /Shop has no member "bob@shop\.example"/],
    ['max: 1000000', 'max: 1.5', /budgets\.2\.max: must be a whole number of tokens/],
    ['windowSeconds: 3600, ', '', /budgets\.4\.windowSeconds: must be given with the span rolling/],
    ['scope: session', 'scope: planet', /budgets\.4\.scope: must be user, session/],
    ['scimGroup: Operations', 'members: []', /the directory’s group says who is in Team Ops of Shop/],
    ['name: Ops', 'name: Search', /there are two teams "Search"/],
    ['name: CI,', 'name: Search,', /there are two budgets "Search"/],
  ] as const) {
    const wrong = await apply(BUDGETED.replace(from, to))
    assert.equal(wrong.code, 1, to)
    assert.match(wrong.err, said)
  }
  const others = (await ask<Page<AccountView>>('GET', '/accounts?limit=200')).data.items
    .filter(({ name, status }) => status !== 'closed' && name !== 'Shop')
    .map(({ id, name }) => `  - { id: ${id}, name: ${JSON.stringify(name)} }`)
  const bare = `tollgate: 1\naccounts:\n${others.join('\n')}\n  - { name: Shop, teams: [], keys: [], budgets: [] }\n`
  const pruned = await apply(bare, ['--prune', '--yes'])
  assert.equal(pruned.code, 0, pruned.err)
  assert.match(pruned.err, /- Budget Ranking of Shop is ended, and what it counted is forgotten\./)
  assert.match(pruned.err, /- Project Search\/Ranking of Shop is removed\.\n[\s\S]*- Team Search of Shop is removed\./)
  assert.equal((await apply(bare, ['--prune'])).out, 'Nothing differs.\n')
})

test('where the calls of a key may go is in the file, and a second run finds nothing', async () => {
  const [vendor = ''] = Object.keys(SMALL_CATALOG.vendors)
  const file = (routing: string) => `
tollgate: 1
accounts:
  - name: Routed
    keys:
      - { name: near, routing: ${routing} }
`
  const routing = `{ vendors: [${vendor}], regions: [eu], maxPrice: { input: 300 }, callerChoice: false }`
  const first = await apply(file(routing))
  assert.equal(first.code, 0, first.err)
  const { id = '' } = (await accountNamed('Routed')) ?? {}
  const stored = async () => (await livingKeys(id))[0]?.routing
  assert.deepEqual(await stored(), {
    vendors: [vendor],
    regions: ['eu'],
    maxPrice: { input: '300' },
    callerChoice: false,
  })
  assert.match((await apply(file(routing))).out, /Nothing/)
  assert.notEqual((await apply(file('{ callerChoice: true }'))).code, 0)
  assert.equal((await apply(file('null'))).code, 0)
  assert.equal(await stored(), null)
})

test('where the calls of a key may go is said by options, shown, and taken away with "none"', async () => {
  const json = async <T>(args: string[]): Promise<T> => JSON.parse((await run([...args, '--json'])).out)
  await json(['accounts', 'create', 'Routed Ltd'])
  const [vendor = ''] = Object.keys(SMALL_CATALOG.vendors)
  type Routed = { id: string; routing: object | null }
  const made = await json<Routed>(['keys', 'create', 'Routed Ltd', 'near', '--vendors', vendor, '--no-caller-choice'])
  assert.deepEqual(made.routing, { vendors: [vendor], callerChoice: false })
  const change = ['keys', 'change', made.id]
  const priced = await json<Routed>([...change, '--regions', 'eu,us-east-1', '--max-price', 'input=300,output=1500'])
  assert.deepEqual(priced.routing, { regions: ['eu', 'us-east-1'], maxPrice: { input: '300', output: '1500' } })
  const shown = await run([...change, '--name', 'nearer'])
  assert.match(shown.out, /regions eu, us-east-1, maxPrice input 300, output 1500/)
  assert.match((await run([...change, '--no-caller-choice'])).out, /callerChoice no/)
  assert.equal((await run([...change, '--no-caller-choice=maybe'])).code, 2)
  assert.equal((await run([...change, '--vendors', 'nobody'])).code, 1)
  assert.equal((await json<Routed>([...change, '--vendors', 'none'])).routing, null)
})
