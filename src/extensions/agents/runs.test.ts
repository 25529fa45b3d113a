// An agent's run: its calls, tools and sub-agents with what they cost, and a budget that ends it.
import { assert, pluck, test, testGateway } from '../../../test/gateway.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import type { RunView } from './views.ts'

const g = testGateway()
const chat = (words = 'Hello') => ({ model: 'alpha-5.4', messages: [{ role: 'user', content: words }] })

async function ask(key: string, headers: Record<string, string>, body: object = chat(), path = '/v1/chat/completions') {
  const answer = await g.call(path, key, body, { headers: { ...headers } })
  return {
    status: answer.status,
    cost: answer.headers.get('x-tollgate-run-cost'),
    headers: answer.headers,
    text: await answer.text(),
  }
}

const runOf = (account: string, run: string) =>
  g.operator<RunView>('GET', `/accounts/${account}/run?run=${encodeURIComponent(run)}`)
const sum = (amounts: readonly string[]) =>
  formatCredits(amounts.reduce((all, one) => all + (parseCredits(one) ?? 0n), 0n))

test('a run has the calls, tools and sub-agents of its session, and its sum is what the ledger charged', async () => {
  const { id, key } = await g.account()
  const session = { 'x-claude-code-session-id': 'run-1' }
  const sub = { ...session, 'x-claude-code-agent-id': 'explorer' }
  const nested = { ...session, 'x-claude-code-agent-id': 'reader', 'x-claude-code-parent-agent-id': 'explorer' }
  const costs = []
  for (const headers of [session, sub, nested]) costs.push((await ask(key, headers)).cost ?? '')
  const tool = { method: 'tools/call', params: { name: 'website_ranks', arguments: { keys: 'example.com' } } }
  const accept = { accept: 'application/json, text/event-stream' }
  const called = await ask(key, { ...session, ...accept }, { jsonrpc: '2.0', id: 1, ...tool }, '/mcp')
  assert.equal(called.status, 200, called.text)
  const streamed = await ask(key, session, { ...chat(), stream: true })
  assert.equal((await ask(key, { 'x-claude-code-session-id': 'run-2' })).status, 200)
  assert.equal((await ask(key, {})).cost, null, 'a call of no run')

  const { data } = await runOf(id, 'run-1')
  assert.deepEqual(pluck(data.items, 'agent', 'kind', 'product'), [
    [null, 'call', 'alpha-5.4'],
    ['explorer', 'call', 'alpha-5.4'],
    ['reader', 'call', 'alpha-5.4'],
    [null, 'tool', 'siteanalytics/websites/ranks'],
    [null, 'call', 'alpha-5.4'],
  ])
  assert.deepEqual(pluck(data.parts, 'agent', 'parent', 'calls'), [
    [null, null, 3],
    ['explorer', null, 1],
    ['reader', 'explorer', 1],
  ])
  assert.deepEqual([data.calls, data.failed, data.models], [5, 0, ['alpha-5.4', 'siteanalytics/websites/ranks']])
  const charges = data.items.map(({ charged }) => charged)
  assert.equal(data.charged, sum(charges))
  assert.equal(data.charged, sum(data.parts.map(({ charged }) => charged)))
  const [row] = await g.sql<{ charged: bigint }>(
    `select sum(charged)::bigint as charged from usage where account_id = $1 and labels ->> 'session' = 'run-1'`,
    [id],
  )
  assert.equal(data.charged, formatCredits(row?.charged ?? 0n))
  assert.deepEqual(
    costs,
    [1, 2, 3].map((n) => sum(charges.slice(0, n))),
    'each answer says the cost so far, with itself',
  )
  assert.match(streamed.text, new RegExp(`: tollgate charge=\\S+ run-cost=${data.charged}\\n`))
})

test('a sub-agent of Codex has a session of its own, and belongs to the run of the one that started it', async () => {
  const { id, key } = await g.account()
  await ask(key, { 'session-id': 'thread-1' })
  await ask(key, { 'session-id': 'thread-2', 'x-codex-parent-thread-id': 'thread-1' })
  await ask(key, { 'x-tollgate-session': 'mine', 'x-tollgate-agent': 'a', 'x-tollgate-parent': 'b' })
  const { data } = await runOf(id, 'thread-1')
  assert.deepEqual(pluck(data.parts, 'agent', 'calls'), [
    [null, 1],
    ['thread-2', 1],
  ])
  assert.deepEqual(pluck((await runOf(id, 'mine')).data.parts, 'agent', 'parent'), [['a', 'b']])
})

test('a budget of each run ends it before the call that would exceed it, in words, and not the next run', async () => {
  const { id, key } = await g.account()
  const budget = { name: 'One task', scope: 'session', unit: 'requests', span: 'total', max: '2', hard: true }
  assert.equal((await g.operator('POST', `/accounts/${id}/budgets`, budget)).status, 200)
  const statuses = []
  for (let n = 0; n < 3; n++) statuses.push(await ask(key, { 'session-id': 'loop' }))
  assert.deepEqual(pluck(statuses, 'status'), [200, 200, 429])
  assert.match(statuses[2]?.text ?? '', /"One task"|One task/)
  assert.match(statuses[2]?.text ?? '', /loop/)
  assert.equal(statuses[2]?.headers.get('x-should-retry'), 'false')
  assert.equal((await ask(key, { 'session-id': 'next' })).status, 200)
  assert.equal((await runOf(id, 'loop')).data.calls, 2)
})

test('names of runs and of their parts are strangers’ text: nothing breaks, and a run is read by who may read its account', async () => {
  const { id, key } = await g.account()
  const other = await g.account()
  const name = 'a/b?c#d %2f "\'; drop'
  assert.equal((await ask(key, { 'x-tollgate-session': name })).status, 200)
  assert.equal((await runOf(id, name)).data.calls, 1)
  assert.equal((await runOf(other.id, name)).status, 404)
  for (const wrong of ['nobody', '\0', 'x'.repeat(5_000), '%', '../x']) {
    const { status } = await runOf(id, wrong)
    assert.ok(status === 404 || status === 400, `${status} ${wrong.slice(0, 20)}`)
  }
  // What is no name of a part is ignored: other programs may use the same headers in other ways.
  const odd = {
    'x-tollgate-session': 'odd',
    'x-tollgate-agent': 'x'.repeat(100),
    'x-tollgate-parent': '\u00ff'.repeat(90),
  }
  assert.equal((await ask(key, odd)).status, 200)
  assert.deepEqual(pluck((await runOf(id, 'odd')).data.parts, 'agent'), [null])
  assert.equal((await ask(key, {}, { ...chat(), metadata: { ':agent': 'x' } })).status, 400)
})
