// Budgets as callers and managers meet them: the 429 that names the budget, the API, and what counts for it.
import OpenAI from 'openai'
import type { AlertView } from '../src/extensions/alerts/views.ts'
import type { BudgetView } from '../src/ledger/views.ts'
import type { UsageSums } from '../src/reports/views.ts'
import { openedAlerts } from './alerts.ts'
import { completed, sendBatch } from './batches.ts'
import { budgetGateway, CALL } from './budgets.ts'
import { assert, pluck, test, textOf, until, WITH_EXTENSIONS } from './gateway.ts'
import { connect } from './mcp/client.ts'

const { g, ask, tryBudget, makeBudget, makeTeam, usedOf, labelsOf } = budgetGateway()

/** The first second of the week after the one of a moment: a Monday, by UTC. */
const mondayAfter = (ms: number) => Math.floor((ms / 1_000 + 3 * 86_400) / 604_800) * 604_800 - 3 * 86_400 + 604_800

test('each user has the default budget, and the 429 names it, what is left and when it renews', async () => {
  for (;;) {
    const monday = mondayAfter(Date.now())
    try {
      return await trial(monday)
    } catch (error) {
      // A week that ends meanwhile renews it: once more, in the next one.
      if (mondayAfter(Date.now()) === monday) throw error
    }
  }
})

async function trial(monday: number): Promise<void> {
  const { id, key } = await g.account()
  const budget = await makeBudget(id, {})
  assert.deepEqual([budget.value, budget.max, budget.hard, budget.values], [null, '2', true, 0])
  for (const user of ['alice', 'böb'])
    for (const status of [200, 200, 429]) assert.equal((await ask(key, { user })).status, status, user)
  const refused = await ask(key, { user: 'alice' })
  const { error } = (await refused.json()) as { error: { message: string } }
  assert.match(
    error.message,
    /Budget exceeded: Trial for user "alice" allows 2 requests per week \(UTC\), and 0 requests are left/,
  )
  const wait = Number(refused.headers.get('retry-after'))
  assert.ok(Math.abs(Date.now() / 1_000 + wait - monday) < 60, `${wait}`)
  assert.equal(refused.headers.get('x-tollgate-limit'), budget.id)
  assert.equal(refused.headers.get('x-tollgate-left'), '0')
  assert.equal(refused.headers.get('x-should-retry'), 'false')
  assert.equal((await ask(key)).status, 200)
  assert.deepEqual(await usedOf(id, budget), { alice: '2, 0 left', böb: '2, 0 left' })
  await g.operator('PUT', `/accounts/${id}/budgets/${budget.id}/values`, { value: 'alice', max: 3 })
  for (const status of [200, 429]) assert.equal((await ask(key, { user: 'alice' })).status, status)
  await g.operator('PATCH', `/accounts/${id}/budgets/${budget.id}`, { hard: false })
  assert.equal((await ask(key, { user: 'alice' })).status, 200)
  await g.operator('DELETE', `/accounts/${id}/budgets/${budget.id}`)
  assert.equal((await ask(key, { user: 'alice' })).status, 200)
  const { data: none } = await g.operator<{ items: BudgetView[] }>('GET', `/accounts/${id}/budgets`)
  assert.deepEqual(none.items, [])
}

test('teams and projects have budgets at each level; a key that moves leaves its history where it was', async () => {
  const { id, key, keyId } = await g.account()
  const red = await makeTeam(id, { name: 'Red' })
  const project = await makeTeam(id, { name: 'Search', parentId: red.id })
  const blue = await makeTeam(id, { name: 'Blue' })
  const deep = await g.operator('POST', `/accounts/${id}/teams`, { name: 'Deeper', parentId: project.id })
  assert.equal(deep.status, 400)
  const stranger = await g.account()
  assert.equal((await g.operator('PATCH', `/keys/${stranger.keyId}`, { teamId: red.id })).status, 400)
  await g.operator('PATCH', `/keys/${keyId}`, { teamId: project.id })
  const all = await makeBudget(id, { name: 'Teams', scope: 'team', max: 2 })
  await makeBudget(id, { name: 'Search', scope: 'project', value: project.id, max: 1 })
  assert.equal((await ask(key)).status, 200)
  assert.match(await textOf(ask(key), 429), /Search for project/)
  await g.operator('PATCH', `/keys/${keyId}`, { teamId: blue.id })
  for (const status of [200, 200, 429]) assert.equal((await ask(key)).status, status)
  const blues = { ':team': blue.id }
  assert.deepEqual(await labelsOf(id), [{ ':team': red.id, ':project': project.id }, blues, blues])
  const sums = await g.ask<UsageSums>('GET', `/accounts/${id}/usage/sums?by=label::team`)
  assert.deepEqual(
    new Set(sums.groups.filter(({ requests }) => requests > 0).map((row) => `${row.group} ${row.requests}`)),
    new Set([`${red.id} 1`, `${blue.id} 2`]),
  )
  assert.deepEqual(await usedOf(id, all), { [red.id]: '1, 1 left', [blue.id]: '2, 0 left' })
  assert.equal((await g.operator('DELETE', `/accounts/${id}/teams/${blue.id}`)).status, 409)
  // Nobody can say that they are another team.
  assert.equal((await ask(key, {}, { 'x-tollgate-tags': `:team=${red.id}` })).status, 400)
})

test('tags, sessions and keys have budgets too, and of several the one that refuses takes nothing of the others', async () => {
  const { id, key, keyId } = await g.account()
  const one = await makeBudget(id, { name: 'Feature', scope: 'tag:feature', max: 1 })
  const all = await makeBudget(id, { name: 'Key', scope: 'key', max: 5 })
  await makeBudget(id, { name: 'Session', scope: 'session', span: 'rolling', windowSeconds: 3_600, max: 1 })
  const [tagged, session] = [{ 'x-tollgate-tags': 'feature=chat' }, { 'x-tollgate-session': 's-1' }]
  for (const status of [200, 429]) assert.equal((await ask(key, {}, tagged)).status, status)
  assert.equal((await ask(key, {}, session)).status, 200)
  assert.match(await textOf(ask(key, {}, session), 429), /in any hour\b/)
  assert.deepEqual([await usedOf(id, one), await usedOf(id, all)], [{ chat: '1, 0 left' }, { [keyId]: '2, 3 left' }])
})

const sdkOf = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })
const statusOf = async (call: Promise<Response>) => {
  const answer = await call
  return answer.status === 429 ? `429 ${answer.headers.get('x-tollgate-limit')}` : String(answer.status)
}
/** Each orders one paid call, and says how it ended: the status, with the budget of a rejected one. */
const PAID: Readonly<Record<string, (key: string, account: string) => Promise<string>>> = {
  'a data endpoint': (key) => statusOf(g.call('/v1/siteanalytics/websites/visits?keys=example.com', key)),
  'a video': (key) => statusOf(g.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'A boat' })),
  'an image': (key) => statusOf(g.call('/v1/images/generations', key, { model: 'alpha-image-2', prompt: 'A boat' })),
  // The second would be answered from the cache.
  'a cached answer': (key) => statusOf(ask(key, { model: 'keeps', temperature: 0 })),
  async 'a tool of an agent'(key) {
    const client = await connect(g.url, key)
    const called = await client.callTool({ name: 'website_visits', arguments: { keys: 'example.com' } })
    await client.close()
    if (!called.isError) return '200'
    return JSON.stringify(called).includes('Every call') ? '429 named' : JSON.stringify(called)
  },
  async 'a background response'(key) {
    const client = sdkOf(key)
    const order = { model: 'alpha-5.5', input: 'Hello', background: true } as const
    try {
      let { id, status, error } = await client.responses.create(order)
      await until(async () => {
        ;({ status, error } = await client.responses.retrieve(id))
        return status !== 'queued' && status !== 'in_progress'
      })
      if (status === 'completed') return '200'
      return error?.message.includes('Every call') ? '429 named' : `${status} ${error?.message}`
    } catch (error) {
      const { status, message } = error as { status: number; message: string }
      return status === 429 && message.includes('Every call') ? '429 named' : `${status} ${message}`
    }
  },
  async 'a line of a batch'(key, account) {
    const id = await sendBatch(g, key, [CALL])
    await completed(g, key, id)
    type Lines = { items: Array<{ status: number; message?: string }> }
    const { data } = await g.operator<Lines>('GET', `/accounts/${account}/batches/${id}/lines`)
    const [failed] = data.items
    if (!failed) return '200'
    return JSON.stringify(failed).includes('Every call') ? `${failed.status} named` : JSON.stringify(failed)
  },
}

for (const [what, order] of Object.entries(PAID))
  test(
    `a budget holds for ${what}: the first is served, the second rejected, and one is counted`,
    /tool|background|batch/.test(what) ? WITH_EXTENSIONS : {},
    async () => {
      const { id, key, keyId } = await g.account()
      const budget = await makeBudget(id, { name: 'Every call', scope: 'key', span: 'total', max: 1 })
      assert.equal(await order(key, id), '200')
      const second = await order(key, id)
      assert.ok([`429 ${budget.id}`, '429 named'].includes(second), second)
      assert.deepEqual(await usedOf(id, budget), { [keyId]: '1, 0 left' })
    },
  )

test('a repetition with the same Idempotency-Key counts once', async () => {
  const { id, key, keyId } = await g.account()
  const budget = await makeBudget(id, { scope: 'key', max: 5 })
  const again = { 'idempotency-key': 'order 17' }
  const answers = [await ask(key, {}, again), await ask(key, {}, again)]
  assert.deepEqual(pluck(answers, 'status'), [200, 200])
  assert.deepEqual(await usedOf(id, budget), { [keyId]: '1, 4 left' })
})

test('a soft budget lets calls go on, and its alert arrives once', WITH_EXTENSIONS, async () => {
  const { id, key } = await g.account()
  const budget = await makeBudget(id, { max: 2, hard: false, alertPercent: 80 })
  for (let n = 0; n < 3; n++) assert.equal((await ask(key, { user: 'alice' })).status, 200)
  const fired = async () => {
    await openedAlerts(g).look()
    const { data } = await g.operator<{ items: AlertView[] }>('GET', `/accounts/${id}/alerts`)
    return data.items.filter(({ subject }) => subject === budget.id).map(({ title, message }) => `${title}: ${message}`)
  }
  const told = ['The budget Trial has reached 100 %: By user: alice. It is soft: calls continue.']
  assert.deepEqual(await fired(), told)
  assert.equal((await ask(key, { user: 'alice' })).status, 200)
  assert.deepEqual(await fired(), told, 'it is told once')
})

for (const [why, body, field] of [
  ['an unknown scope', { scope: 'planet' }, 'scope'],
  ['the tag of a reserved name', { scope: 'tag:user' }, 'scope'],
  ['a window without a rolling span', { windowSeconds: 60 }, 'windowSeconds'],
  ['a rolling span without a window', { span: 'rolling' }, 'windowSeconds'],
  ['half a request', { max: 1.5 }, 'max'],
  ['a negative amount', { unit: 'credits', max: '-1' }, 'max'],
  ['a key of another account', { scope: 'key', value: 'key_of_others' }, 'value'],
  ['an empty value', { value: '' }, 'value'],
] as const)
  test(`a budget with ${why} is refused by its field`, async () => {
    const { id } = await g.account()
    const { status, data } = await tryBudget(id, body)
    assert.deepEqual([status, JSON.stringify(data).includes(field)], [400, true], JSON.stringify(data))
  })
