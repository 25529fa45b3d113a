// Tools for the agent of an owner or operator: it reads what its token may read, changes nothing, and a larger budget
// takes a person in the console.
import { assert, isOff, test, testGateway } from '../../../../test/gateway.ts'
import { asBrowser, OPERATOR_TOKEN } from '../../../../test/operator-server.ts'
import type { LinkView } from '../../../identity/views.ts'
import type { BudgetView } from '../../../ledger/views.ts'
import type { BudgetProposal } from '../views.ts'

const g = testGateway()
type Browser = ReturnType<typeof asBrowser>
const PASSWORD = 'seven tired otters juggle'
const CHAT = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }

async function rpc(token: string | undefined, method: string, params: object = {}) {
  const answer = await fetch(`${g.url}/admin/v1/mcp`, {
    method: 'POST',
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await answer.text()
  const json = text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? '{}')
  return { status: answer.status, result: JSON.parse(json).result }
}
async function tool(token: string, name: string, args: object = {}) {
  const { result } = await rpc(token, 'tools/call', { name, arguments: args })
  const words: string = result?.content?.[0]?.text ?? JSON.stringify(result)
  return { isError: result?.isError === true, data: result?.structuredContent, words }
}

/** An account with an owner who is signed in, and a token of theirs. */
async function owned(scopes: readonly string[]) {
  await g.sql('delete from login_attempt')
  const { id, key } = await g.account()
  const invite = { email: `owner-${id.slice(-8)}@home.example`, role: 'owner' }
  const { data } = await g.operator<LinkView>('POST', `/accounts/${id}/invites`, invite)
  const owner = asBrowser(g)
  const link = new URL(data.link).hash.slice('#token='.length)
  assert.equal((await owner('POST', `/invites/${link}`, { password: PASSWORD })).status, 200)
  const made = await owner<{ token: string }>('POST', `/accounts/${id}/tokens`, { name: 'agent', scopes })
  assert.equal(made.status, 200, JSON.stringify(made))
  return { id, key, owner, token: made.data.token }
}
const budgetIn = async (id: string, max = '2') =>
  (
    await g.operator<BudgetView>('POST', `/accounts/${id}/budgets`, {
      name: 'All sessions',
      scope: 'session',
      unit: 'requests',
      span: 'total',
      max,
    })
  ).data
const proposals = async (browser: Browser, id: string) =>
  (await browser<{ items: BudgetProposal[] }>('GET', `/accounts/${id}/budget-proposals`)).data.items

const READS = ['accounts:read', 'usage:read', 'budgets:read']

test('an owner’s agent finds its account, what was spent by whom, why a call failed, and who is near a budget', async () => {
  const { id, key, token } = await owned(READS)
  await budgetIn(id)
  const ask = (session: string) =>
    g.call('/v1/chat/completions', key, CHAT, { headers: { 'x-tollgate-session': session } })
  await ask('busy')
  const failed = await g.call('/v1/chat/completions', key, { ...CHAT, model: 'alpha-5.4', max_tokens: 10 })
  await ask('busy')
  await g.settled()
  const { result } = await rpc(token, 'tools/list')
  const reads = result.tools.filter((one: { annotations: { readOnlyHint: boolean } }) => one.annotations.readOnlyHint)
  assert.equal(reads.length, result.tools.length - 1, 'one tool writes, and only a proposal')
  const accounts = await tool(token, 'accounts')
  assert.deepEqual(
    accounts.data.items.map((one: { id: string }) => one.id),
    [id],
  )
  const spend = await tool(token, 'spend', { account: id, by: 'key' })
  assert.equal(spend.isError, false, spend.words)
  assert.match(spend.words, /charged/)
  const call = await tool(token, 'call', { request_id: failed.headers.get('x-request-id') ?? '' })
  assert.match(call.words, /alpha-5\.4/)
  const near = await tool(token, 'near_budgets', { account: id })
  assert.deepEqual(
    near.data.items.map((one: BudgetView) => [one.name, one.value, one.share]),
    [['All sessions', 'busy', 1]],
  )
  assert.equal((await tool(token, 'calls', { account: id, search: 'alpha-5.4' })).data.items.length, 3)
})

test('no tool gives more than its token: other accounts, rights that it lacks, and what only operators see', async () => {
  const { id, token } = await owned(READS)
  const { id: foreign } = await g.account()
  for (const [name, args] of [
    ['spend', { account: foreign }],
    ['calls', { account: foreign }],
    ['near_budgets', { account: foreign }],
    ['propose_budget', { account: foreign, budget: 'bgt_x', max: '5', reason: 'more' }],
    ['ending_models', {}],
    ['spend', { account: `${id}/../${foreign}` }],
    ['spend', { account: `${foreign}?account=${id}` }],
    ['accounts', { name: 'x', all: 'true' }],
    ['spend', {}],
  ] as const)
    assert.equal((await tool(token, name, args)).isError, true, `${name} ${JSON.stringify(args)}`)
  const narrow = await owned(['usage:read'])
  assert.equal((await tool(narrow.token, 'near_budgets', { account: narrow.id })).isError, true)
  assert.equal((await tool(narrow.token, 'spend', { account: narrow.id })).isError, false)
  assert.equal((await tool(OPERATOR_TOKEN, 'ending_models')).isError, isOff('prices'))
  for (const wrong of [undefined, 'nobody', narrow.token.slice(0, -1)])
    assert.equal((await rpc(wrong, 'tools/list')).status, 401)
  assert.equal((await rpc(token, 'tools/call', { name: 'end_budget' })).result, undefined)
})

test('a proposal changes nothing until a person with the right confirms it in the console, after a fresh proof', async () => {
  const { id, token, owner } = await owned([...READS, 'budgets:write'])
  const { id: budget } = await budgetIn(id)
  const max = async () => (await owner<{ items: BudgetView[] }>('GET', `/accounts/${id}/budgets`)).data.items[0]?.max
  const given = { account: id, budget, max: '9', reason: 'The migration needs more calls' }
  const made = await tool(token, 'propose_budget', given)
  assert.equal(made.isError, false, made.words)
  assert.equal(await max(), '2')
  const [waiting] = await proposals(owner, id)
  assert.deepEqual([waiting?.was, waiting?.max, waiting?.reason], ['2', '9', given.reason])
  const path = `/accounts/${id}/budget-proposals/${waiting?.id}/confirm`
  assert.equal((await g.operator('POST', path)).status, 401, 'no token confirms, not even an operator’s')
  const byToken = await fetch(`${g.url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  assert.equal(byToken.status, 401)
  await g.gateway.database.query({ text: "update session set proved_at = now() - interval '1 hour'" })
  assert.equal((await owner('POST', path)).status, 403, 'a session that was not proved lately')
  assert.equal(await max(), '2')
  assert.equal((await owner('POST', '/proof', { password: PASSWORD })).status, 200)
  assert.equal((await owner('POST', path)).status, 200)
  assert.equal(await max(), '9')
  assert.equal((await owner('POST', path)).status, 404, 'answered once')
  assert.deepEqual(await proposals(owner, id), [])
})

test('a proposal for a budget that changed meanwhile is not confirmed, wrong ones are rejected, and 20 wait at most', async () => {
  const { id, token, owner } = await owned(READS)
  const { id: budget } = await budgetIn(id)
  const propose = (more: object) =>
    tool(token, 'propose_budget', { account: id, budget, max: '9', reason: 'x', ...more })
  for (const wrong of [{ max: 'much' }, { max: '-1' }, { budget: 'bgt_nobody' }, { reason: '' }, { max: 9 }])
    assert.equal((await propose(wrong)).isError, true, JSON.stringify(wrong))
  assert.equal((await propose({})).isError, false)
  await g.operator('PATCH', `/accounts/${id}/budgets/${budget}`, { max: '50' })
  const [waiting] = await proposals(owner, id)
  const path = `/accounts/${id}/budget-proposals/${waiting?.id}`
  assert.equal((await owner('POST', `${path}/confirm`)).status, 409, 'it would lower the budget')
  assert.equal((await owner('DELETE', path)).status, 200)
  const made = []
  for (let n = 0; n < 21; n++) made.push((await propose({})).isError)
  assert.deepEqual([made.slice(0, 20).includes(true), made[20]], [false, true])
})
