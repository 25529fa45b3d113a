// Labels of calls: where they come from, what is refused, what a key requires, and what reports make of them. The
// official SDKs send them unchanged.
import type { IncomingHttpHeaders } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import type { NewKey } from '../src/admission/views.ts'
import type { AlertView } from '../src/extensions/alerts/views.ts'
import type { MarginPage } from '../src/extensions/finance/margins/views.ts'
import type { MonthlyStatement } from '../src/extensions/finance/statements/views.ts'
import { parseCredits } from '../src/kernel/credits.ts'
import type { UsageView } from '../src/ledger/views.ts'
import type { LabelSums, UsageSums } from '../src/reports/views.ts'
import { openedAlerts } from './alerts.ts'
import { faultModel, startVendor, usage, wholeAnswer } from './faults/chat-vendor.ts'
import { assert, none, OPERATOR_TOKEN, started, test, testGateway, until } from './gateway.ts'

/** What the vendor was sent last, besides the body. */
let sent: IncomingHttpHeaders = {}
const vendor = started(() =>
  startVendor(({ request, response }) => {
    sent = request.headers
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('fine', usage(10, 20)))
  }),
)
const g = testGateway(() => ({
  catalog(document) {
    document.vendors.mock = { baseUrl: vendor.url }
    document.models.mock = faultModel(['mock'])
    const quiet = { dropParams: ['user', 'safety_identifier', 'metadata'] }
    document.models.quiet = { ...faultModel(['mock']), traits: quiet }
    document.allClientFormats = true
  },
}))

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }]
const ask = (key: string, headers: Record<string, string> = {}, more: object = {}) =>
  g.call('/v1/chat/completions', key, { model: 'mock', messages: MESSAGES, ...more }, { headers })
const tagged = (key: string, tags: string) => ask(key, { 'x-tollgate-tags': tags })

async function calls(account: string, query = ''): Promise<UsageView[]> {
  await g.settled()
  const data = await g.ask<{ items: UsageView[] }>('GET', `/accounts/${account}/usage${query}`)
  return data.items
}

test('labels come from the header, the metadata and the user of a call, and no header of them reaches the vendor', async () => {
  const { id, key } = await g.account()
  const headers = { 'x-tollgate-tags': 'team=a, feature=chat', 'x-tollgate-session': 's-1' }
  const response = await ask(key, headers, { metadata: { feature: 'other', tier: 'größte' }, user: 'alice' })
  assert.equal(response.status, 200)
  const [call] = await calls(id)
  assert.deepEqual(call?.labels, { feature: 'chat', tier: 'größte', team: 'a', user: 'alice', session: 's-1' })
  none(Object.keys(sent), (name) => name.startsWith('x-tollgate') || name.includes('session'))
  assert.equal((await ask(key)).status, 200)
  assert.equal((await calls(id))[0]?.labels, null)
})

test('the catalog keeps labels of the body from a vendor, in every format, and they are stored all the same', async () => {
  const { id, key } = await g.account()
  const asked = { model: 'quiet', max_tokens: 9, messages: MESSAGES }
  const chat = { ...asked, user: 'alice', safety_identifier: 'alice', metadata: { team: 'alice' } }
  for (const [path, body] of [
    ['/v1/chat/completions', chat],
    ['/v1/responses', { model: 'quiet', input: 'Hello', user: 'alice', metadata: { team: 'alice' } }],
    ['/v1/messages', { ...asked, metadata: { user_id: 'alice' } }],
  ] as const) {
    assert.equal((await g.call(path, key, body)).status, 200, path)
    assert.doesNotMatch(vendor.calls.at(-1)?.body ?? 'alice', /alice/, path)
    await g.call(path, key, { ...body, model: 'mock' })
    assert.match(vendor.calls.at(-1)?.body ?? '', /alice/, 'else it is passed on')
  }
  assert.deepEqual(
    (await calls(id)).map(({ labels }) => labels?.user),
    Array(6).fill('alice'),
  )
})

const LONG = 'x'.repeat(65)
const REFUSED: ReadonlyArray<readonly [why: string, headers: Record<string, string>, body: object, field: string]> = [
  ['no pair', { 'x-tollgate-tags': 'team' }, {}, 'x-tollgate-tags'],
  ['an empty value', { 'x-tollgate-tags': 'team=' }, {}, 'x-tollgate-tags'],
  ['a long value', { 'x-tollgate-tags': `team=${LONG}` }, {}, 'x-tollgate-tags'],
  ['a long name', { 'x-tollgate-tags': `${LONG}=a` }, {}, 'x-tollgate-tags'],
  ['a reserved name', { 'x-tollgate-tags': 'user=alice' }, {}, 'x-tollgate-tags'],
  ['the name of a prototype’s member', { 'x-tollgate-tags': '__proto__=a' }, {}, 'x-tollgate-tags'],
  ['nine', { 'x-tollgate-tags': Array.from({ length: 9 }, (_, n) => `t${n}=a`).join() }, {}, 'x-tollgate-tags'],
  ['a long session', { 'x-tollgate-session': LONG }, {}, 'x-tollgate-session'],
  ['a number', {}, { metadata: { tier: 1 } }, 'metadata.tier'],
  ['a long value of the metadata', {}, { metadata: { tier: LONG } }, 'metadata.tier'],
  ['a reserved name of the metadata', {}, { metadata: { session: 'a' } }, 'metadata.session'],
]
for (const [why, headers, body, field] of REFUSED)
  test(`${why} is refused by its field, and nothing is held`, async () => {
    const { id, key } = await g.account()
    const asked = vendor.calls.length
    const response = await ask(key, headers, body)
    const { error } = (await response.json()) as { error: { param: string; message: string } }
    assert.deepEqual([response.status, error.param], [400, field], error.message)
    assert.equal(vendor.calls.length, asked)
    assert.equal((await g.balance(id)).held, 0n)
  })

test('a user that is longer than a label is told apart by its hash', async () => {
  const { id, key } = await g.account()
  for (const end of ['a', 'b', 'b']) await ask(key, {}, { safety_identifier: `${'u'.repeat(100)}${end}` })
  const users = (await calls(id)).map(({ labels }) => labels?.user ?? '')
  assert.equal(new Set(users).size, 2)
  for (const user of users) assert.match(user, /^sha256-[\w-]{43}$/)
})

test('a key that requires labels rejects calls without them, in batches of lines too', async () => {
  const { id } = await g.account()
  const made = await g.operator<NewKey>('POST', `/accounts/${id}/keys`, {
    name: 'k',
    requiredLabels: ['user', 'feature'],
  })
  assert.equal(made.status, 200)
  const { key } = made.data
  assert.deepEqual(made.data.requiredLabels, ['user', 'feature'])
  const missing = await tagged(key, 'feature=chat')
  assert.equal(missing.status, 400)
  assert.match(await missing.text(), /requires the label \\"user\\"/)
  assert.equal((await ask(key, { 'x-tollgate-tags': 'feature=chat' }, { user: 'bob' })).status, 200)
  const changed = await g.operator('PATCH', `/keys/${made.data.id}`, { requiredLabels: null })
  assert.equal(changed.status, 200)
  assert.equal((await g.operator('PATCH', `/keys/${made.data.id}`, { requiredLabels: ['no name'] })).status, 400)
})

test('an account has at most 64 names of tags, however many values', async () => {
  const { id, key } = await g.account()
  for (let from = 0; from < 64; from += 8)
    assert.equal((await tagged(key, Array.from({ length: 8 }, (_, n) => `t${from + n}=a`).join())).status, 200)
  const refused = await tagged(key, 'more=a')
  assert.equal(refused.status, 400)
  assert.match(await refused.text(), /64 names of labels/)
  assert.equal((await tagged(key, 't63=another')).status, 200)
  assert.equal((await g.ask<{ names: string[] }>('GET', `/accounts/${id}/labels`)).names.length, 64)
  assert.equal((await g.balance(id)).held, 0n)
})

test('lists, sums and latencies are of a label, by its value', async () => {
  const { id, key } = await g.account()
  for (const feature of ['chat', 'chat', 'search']) await tagged(key, `feature=${feature}`)
  await ask(key)
  assert.equal((await calls(id, '?labels=feature%3Dchat')).length, 2)
  assert.equal((await calls(id, '?labels=feature%3Dchat,team%3Da')).length, 0)
  const sums = await g.operator<UsageSums>('GET', `/accounts/${id}/usage/sums?by=label:feature`)
  const groups = sums.data.groups.map(({ group, requests }) => [group, requests])
  assert.deepEqual(
    groups.sort(([a], [b]) => String(a).localeCompare(String(b))),
    [
      ['', 1],
      ['chat', 2],
      ['search', 1],
    ],
  )
  assert.equal((await g.operator('GET', `/usage/sums?by=label:feature&account=${id}`)).status, 200)
  assert.equal((await g.operator('GET', `/accounts/${id}/usage/latency?by=label:feature`)).status, 200)
  for (const wrong of ['sums?by=label:', "sums?by=label:a'b", 'sums?by=colour', 'sums?labels=chat'])
    assert.equal((await g.operator('GET', `/accounts/${id}/usage/${wrong}`)).status, 400, wrong)
})

test('a video, a batch and a background response carry the labels of the request that ordered them', async () => {
  const { id, key } = await g.account()
  const tags = { 'x-tollgate-tags': 'feature=later' }
  const client = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, defaultHeaders: tags })
  const made = await client.responses.create({ model: 'alpha-5.5', input: 'Hello', background: true })
  const ended = async () => !['queued', 'in_progress'].includes((await client.responses.retrieve(made.id)).status ?? '')
  await until(ended)
  const body = { model: 'mock', messages: MESSAGES, metadata: { line: 'first' } }
  const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body }
  const input = new File([JSON.stringify(line)], 'in.jsonl')
  const file = await client.files.create({ file: input, purpose: 'batch' })
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  const batch = await client.batches.create(order)
  const done = async () => (await client.batches.retrieve(batch.id)).status === 'completed'
  await until(done)
  const video = { model: 'videogen-2.0', prompt: 'A boat' }
  const ordered = await g.call('/v1/video/seedance', key, video, { headers: tags })
  assert.equal(ordered.status, 200, await ordered.clone().text())
  const listed = async () => (await calls(id)).length === 3
  await until(listed)
  const later = { feature: 'later' }
  assert.deepEqual(
    (await calls(id))
      .map(({ labels }) => labels)
      .sort((a, b) => Object.keys(a ?? {}).length - Object.keys(b ?? {}).length),
    [later, later, { ...later, line: 'first' }],
  )
})

test('the official SDKs and the headers of agents become labels', async () => {
  const { id, key } = await g.account()
  const openai = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1` })
  const model = 'alpha-5.5'
  await openai.responses.create({ model, input: 'Hello', metadata: { ticket: '17' }, safety_identifier: 'u1' })
  const anthropic = new Anthropic({
    apiKey: key,
    baseURL: g.url,
    defaultHeaders: { 'x-claude-code-session-id': 'c-1', 'user-agent': 'claude-cli/2.1.92 (external, cli)' },
  })
  const user = JSON.stringify({ device_id: 'd'.repeat(64), account_uuid: '', session_id: 'inner' })
  const asked = { model: 'beta-sonnet-5', max_tokens: 64, messages: MESSAGES }
  await anthropic.messages.create({ ...asked, metadata: { user_id: user } })
  const old = `user_${'ab'.repeat(32)}_account_acc-1_session_s-old`
  await new Anthropic({ apiKey: key, baseURL: g.url }).messages.create({ ...asked, metadata: { user_id: old } })
  const gemini = new GoogleGenAI({
    apiKey: key,
    httpOptions: { baseUrl: `${g.url}/gemini`, headers: { 'session-id': 'codex-1' } },
  })
  await gemini.models.generateContent({ model: 'delta-3.8-flash', contents: 'Hello' })
  const all = (await calls(id)).map(({ labels, client }) => [labels, client])
  assert.deepEqual(all.reverse(), [
    [{ ticket: '17', user: 'u1' }, ''],
    [{ user: 'd'.repeat(64), session: 'c-1' }, 'claude-code'],
    [{ user: 'acc-1', session: 's-old' }, ''],
    [{ session: 'codex-1' }, ''],
  ])
})

const sum = (amounts: readonly string[]) => amounts.reduce((all, one) => all + (parseCredits(one) ?? 0n), 0n)

async function download(path: string, accept: string): Promise<string> {
  const response = await g.call(`/admin/v1${path}`, OPERATOR_TOKEN, undefined, { method: 'GET', headers: { accept } })
  assert.equal(response.status, 200, path)
  return response.text()
}

test('end users, sessions, statements, margins and alerts are of a label, and add up to what was charged', async () => {
  const { id, key } = await g.account()
  const other = await g.account()
  const COMMA = 'Smith, 100 %=x'
  const asked: [user: string, session: string, team: string][] = [
    ['alice', 's-1', 'a'],
    ['alice', 's-1', 'a'],
    [COMMA, 's-2', 'b'],
    ['alice', 's-2', 'a'],
  ]
  for (const [user, session, team] of asked)
    await ask(key, { 'x-tollgate-session': session, 'x-tollgate-tags': `team=${team}` }, { user })
  await ask(key)
  await ask(other.key, {}, { user: 'alice' })
  const all = await calls(id)
  const charged = sum(all.map((one) => one.charged))

  const values = async (query: string, account = id) =>
    await g.ask<LabelSums>('GET', `/accounts/${account}/usage/labels?${query}`)
  const users = await values('label=user')
  assert.deepEqual(
    users.items.map(({ value, calls: count, inputTokens, outputTokens, products }) => [
      value,
      count,
      inputTokens,
      outputTokens,
      products.join(),
    ]),
    [
      ['alice', 3, 30, 60, 'mock'],
      [COMMA, 1, 10, 20, 'mock'],
    ],
  )
  assert.deepEqual([users.totals.values, users.totals.calls], [2, 4])
  const labelled = all.filter(({ labels }) => labels !== null)
  assert.equal(parseCredits(users.totals.charged), sum(labelled.map((one) => one.charged)))
  // The calls of a value lie between its first and its last, and a comma in it is no end of it.
  const [, smith] = users.items
  const those = `from=${smith?.firstAt}&labels=${encodeURIComponent('user=Smith%2C 100 %25=x')}`
  assert.equal((await calls(id, `?${those}`)).length, 1)
  const sessions = await values('label=session&sort=last&limit=1')
  assert.deepEqual(
    sessions.items.map(({ value, calls: count }) => [value, count]),
    [['s-2', 2]],
  )
  const rest = await values(`label=session&sort=last&limit=1&cursor=${sessions.next}`)
  assert.deepEqual([rest.items[0]?.value, rest.next], ['s-1', null])
  assert.equal((await values('label=user', other.id)).items.length, 1)
  const everywhere = await g.operator<LabelSums>('GET', '/usage/labels?label=user&limit=200')
  const mine = everywhere.data.items.filter(({ value }) => value === 'alice').map(({ account }) => account)
  assert.ok(mine.includes(id) && mine.includes(other.id), 'values of two accounts are two values')
  const csv = await download(`/accounts/${id}/usage/labels?label=team`, 'text/csv')
  assert.match(csv, /^value,calls,errors,inputTokens,outputTokens,charged,cost,firstAt,lastAt,products,clients\r\na,3,/)
  for (const wrong of ['label=', 'label=a%20b', 'label=user&sort=name', 'label=user&cursor=x'])
    assert.equal((await g.operator('GET', `/accounts/${id}/usage/labels?${wrong}`)).status, 400, wrong)

  const month = new Date().toISOString().slice(0, 7)
  const path = `/accounts/${id}/statements/${month}?label=team`
  const statement = await g.ask<MonthlyStatement>('GET', path)
  assert.deepEqual(statement.label?.values.map(({ value, calls: count }) => [value, count]).sort(), [
    ['', 1],
    ['a', 3],
    ['b', 1],
  ])
  assert.equal(sum(statement.label?.values.map((one) => one.charged) ?? []), parseCredits(statement.usage))
  assert.deepEqual([statement.label?.unitemized, parseCredits(statement.usage)], ['0', charged])
  assert.match(await download(path, 'text/csv'), /Usage,,team=a,,3,/)
  assert.match(await download(path, 'application/pdf'), /^%PDF/)

  const margins = await g.ask<MarginPage>('GET', `/margins?by=label:team&from=${month}&account=${id}`)
  assert.equal(parseCredits(margins.totals.charged), charged)
  assert.deepEqual(margins.items.map(({ group, calls: count }) => [group, count]).sort(), [
    ['', 1],
    ['a', 3],
    ['b', 1],
  ])
  assert.equal((await g.operator('GET', '/margins?by=label:team&from=2025-01&to=2025-06')).status, 400)

  const rule = async (amounts: object) =>
    g.operator('PUT', `/accounts/${id}/alert-settings`, { rules: { labelSpend: amounts } })
  assert.equal((await rule({ 'no name': '5' })).status, 400)
  assert.equal((await rule({ user: '0' })).status, 400)
  const [alice] = users.items
  assert.equal((await rule({ user: alice?.charged })).status, 200)
  const fired = async () => {
    await openedAlerts(g).look()
    const data = await g.ask<{ items: AlertView[] }>('GET', `/accounts/${id}/alerts`)
    return data.items.filter((one) => one.rule === 'label').map(({ subject }) => subject)
  }
  assert.deepEqual(await fired(), ['user=alice'])
  assert.deepEqual(await fired(), ['user=alice'], 'it is told once')
})
