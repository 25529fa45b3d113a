// What somebody asks of purses who means no good, or at a bad moment: nothing is lost, and nothing is answered with
// 500.
import { assert, test, testGateway } from '../../../test/gateway.ts'
import type { NewSessionView, PurseView } from './views.ts'

const g = testGateway()
const SOLD = { provider: 'simulated', currency: 'EUR', pricePerCredit: '0.01', minimum: '1.00', maximum: '500.00' }

async function reseller() {
  const { id, key } = await g.account()
  const own = (method: string, path: string, body?: object) => g.operator(method, `/accounts/${id}${path}`, body)
  assert.equal((await own('PATCH', '/purse-payments', SOLD)).status, 200)
  assert.equal((await own('POST', '/purses', { id: 'ann', credits: '5' })).status, 200)
  const { data } = await own('POST', '/purses/ann/sessions', {})
  return { id, key, own, token: (data as NewSessionView).token }
}

test('no id, month, cursor or amount is answered with 500', async () => {
  const { id, key, own, token } = await reseller()
  const odd = ['%00', 'a%00b', '%ED%A0%80', '..%2F..', '%F0%9F%92%A9', "'", 'x'.repeat(300), '%25', '~', '%0A']
  const paths = odd.flatMap((one) => [
    `/purses/${one}`,
    `/purses/${one}/movements`,
    `/purses/${one}/topups`,
    `/purses/ann/topups/${one}`,
    `/purses/${one}/statement`,
    `/purses/ann/movements?cursor=${one}`,
    `/purses?cursor=${one}&search=${one}`,
    `/purse-topups?cursor=${one}`,
    `/purses/ann/sessions?cursor=${one}`,
    `/purse-reconciliations?cursor=${one}`,
  ])
  const months = ['2026-13', '0000-01', '9999-12', '99999-01', '-1', 'x', '2026-1', '%00']
  paths.push(...months.map((month) => `/purses/ann/statement?month=${month}`))
  for (const path of paths) {
    const { status } = await own('GET', path)
    assert.ok(status < 500, `${status} ${path}`)
    if (!path.startsWith('/purses')) continue
    const byKey = await g.call(`/v1${path}`, key)
    assert.ok(byKey.status < 500, `${byKey.status} /v1${path} ${await byKey.text()}`)
  }
  for (const one of odd) {
    const answers = [
      await g.call(`/v1/purse/topups/${one}`, token),
      await fetch(`${g.url}/webhooks/purses/${one}`, { method: 'POST', body: '{}' }),
      await fetch(`${g.url}/webhooks/purses/${id}`, {
        method: 'POST',
        headers: { 'stripe-signature': one },
        body: one,
      }),
      await fetch(`${g.url}/purse/test-payments/${one}`),
      await fetch(`${g.url}/purse/test-payments/${one}`, { method: 'POST', body: `outcome=${one}` }),
    ]
    for (const answer of answers)
      assert.ok(answer.status < 500, `${answer.status} ${answer.url} ${await answer.text()}`)
  }
  for (const body of [
    { amount: '99999999999999999999' },
    { amount: '-1' },
    { amount: '1e3' },
    { amount: '5.00', currency: '\u0000' },
    { amount: '5.00', returnUrl: 'javascript:alert(1)' },
    { amount: '5.00', returnUrl: `https://a.example/${'x'.repeat(2_000)}` },
  ]) {
    const answer = await g.call('/v1/purse/topups', token, body)
    assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${JSON.stringify(body)}`)
  }
  for (const grant of [
    { credits: '99999999999999999' },
    { credits: '1', reference: 'a\u0000b' },
    { credits: '1', note: '\ud800' },
  ]) {
    const { status } = await own('POST', '/purses/ann/grants', grant)
    assert.ok(status < 500, `${status} ${JSON.stringify(grant)}`)
  }
  assert.deepEqual(await g.problems(), [])
})

test('an account that has moved elsewhere, or is on the way, changes no purse here, and sells nothing', async () => {
  const { id, own, token } = await reseller()
  await g.sql(`update account set frozen_until = 'infinity' where id = $1`, [id])
  for (const [method, path, body] of [
    ['POST', '/purses', { id: 'bob', credits: '5' }],
    ['PATCH', '/purses/ann', { name: 'Other' }],
    ['POST', '/purses/ann/grants', { credits: '5' }],
    ['POST', '/purses/ann/sessions', {}],
    ['POST', '/purses/ann/page', {}],
    ['POST', '/purses/ann/topups', { amount: '5.00' }],
    ['PUT', '/purse-prices', { markupPercent: '5' }],
    ['PUT', '/purse-events', { url: 'https://a.example/' }],
    ['PATCH', '/purse-payments', { provider: 'off' }],
  ] as const) {
    const { status, data } = await own(method, path, body)
    assert.deepEqual([status, path], [409, path], JSON.stringify(data))
  }
  assert.equal((await g.call('/v1/purse/topups', token, { amount: '5.00' })).status, 409)
  await g.sql('update account set frozen_until = null where id = $1', [id])
  assert.equal(((await own('GET', '/purses/ann')).data as PurseView).balance, '5')
})

test('nobody pays into a purse of an account that is suspended or closed', async () => {
  const { own, token } = await reseller()
  const begin = async () => (await g.call('/v1/purse/topups', token, { amount: '5.00' })).status
  assert.equal(await begin(), 200)
  assert.equal((await own('POST', '/suspend', { reason: 'unpaid' })).status, 200)
  assert.notEqual(await begin(), 200)
  assert.equal((await own('POST', '/purses/ann/topups', { amount: '5.00' })).status, 409)
})
