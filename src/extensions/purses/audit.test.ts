import { assert, test, testGateway } from '../../../test/gateway.ts'
import { purses } from './extension.ts'
import { purseResources } from './resources.ts'

const g = testGateway()

type AuditEntry = { readonly id: string; readonly action: string; readonly sentence: string; readonly actor: string }

test('every change of purses says in the audit log who made it, and what it was before', async () => {
  const { id: account, key, keyId } = await g.account()
  let before: string | undefined
  let token = ''
  const done = new Set<string>()
  async function change(route: string, body: object | undefined, said: RegExp | null) {
    const [method = '', path = ''] = route.split(' ')
    const at = path.replace('{id}', account).replace('{purse}', 'ann').replace('{session}', token)
    const { status, data } = await g.operator<{ message?: string }>(method, at, body)
    assert.equal(status, 200, data.message ?? '')
    done.add(route)
    const { items } = (await g.operator<{ items: AuditEntry[] }>('GET', '/audit?limit=1')).data
    const [row] = items
    if (said) assert.match(row?.sentence ?? '', said)
    else assert.equal(row?.id, before, `${route} changed nothing: ${row?.sentence}`)
    before = row?.id
    return row
  }
  const [purse, grants] = ['/accounts/{id}/purses/{purse}', 'POST /accounts/{id}/purses/{purse}/grants']
  const ann = { id: 'ann', name: 'Ann', credits: '5' }
  const made = /made the purse "Ann" \(acc_\w+\/ann\): status open; balance 5\.$/
  await change('POST /accounts/{id}/purses', ann, made)
  await change('POST /accounts/{id}/purses', ann, null)
  const topup = { credits: '2', kind: 'topup', reference: 'order-7', note: 'thanks' }
  const posted = /posted 2 credits \(topup\) to the purse "Ann" \(acc_\w+\/ann\): balance from 5 to 7; note "thanks"\.$/
  await change(grants, topup, posted)
  await change(grants, topup, null)
  await change(grants, { credits: '-1' }, /posted -1 credits \(takeback\) to the purse .*: balance from 7 to 6\.$/)
  await change(`PATCH ${purse}`, { name: 'Ann', status: 'open' }, null)
  await change(`PATCH ${purse}`, { status: 'frozen', note: 'fraud' }, /status from open to frozen; note "fraud"\.$/)
  await change(`PATCH ${purse}`, { status: 'open', low: '3' }, /: low from none to 3; status from frozen to open\.$/)
  await change('PUT /accounts/{id}/purse-prices', { markupPercent: '20' }, /customers of the account acc_\w+: version/)
  const own = { markupPercent: '30', models: [{ model: 'alpha-5.4', prices: [{ input: '400' }] }] }
  const priced =
    /: models from none to alpha-5\.4 \{"input":"400"\}; version from 1 to 2; markup percent from 20 to 30\.$/
  await change('PUT /accounts/{id}/purse-prices', own, priced)
  const told = /: host from none to hooks\.example:8443; settled from no to yes\.$/
  const url = 'https://hooks.example:8443/secret-path'
  await change('PUT /accounts/{id}/purse-events', { url, settled: true }, told)
  const { data: session } = await g.operator<{ id: string }>('POST', `/accounts/${account}/purses/ann/sessions`, {})
  token = session.id
  const revoked = /revoked the session token ses_\w+ of the purse ann: revoked at from none to 20/
  await change(`DELETE ${purse}/sessions/{session}`, undefined, revoked)
  await change(`DELETE ${purse}/sessions/{session}`, undefined, null)
  const closed = /changed the purse .*: status from open to closed; balance from 6 to 0\.$/
  await change(`PATCH ${purse}`, { status: 'closed' }, closed)

  // By a key of the account.
  await g.call('/v1/purses', key, { id: 'bob' })
  const { items } = (await g.operator<{ items: AuditEntry[] }>('GET', `/audit?object=${account}/bob`)).data
  assert.deepEqual(
    items.map(({ actor, action }) => [actor, action]),
    [[keyId, 'purse.create']],
  )
  const all = await g.sql<{ all: string }>(`select string_agg(detail::text, ' ') as all from audit`)
  assert.ok(!all[0]?.all.includes('secret-path'))
  const writing = purseResources(g.gateway.opened(purses)).filter(({ method }) => method !== 'GET')
  // One is made for each visit of a customer, and says when.
  assert.deepEqual(
    writing.map(({ method, path }) => `${method} ${path}`).filter((route) => !done.has(route)),
    ['POST /accounts/{id}/purses/{purse}/sessions'],
  )
})
