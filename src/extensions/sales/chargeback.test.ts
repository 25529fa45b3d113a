// A chargeback while calls hold the credits, with two processes: what these calls release is taken, what was bought
// later stays, and closing the account pays out no more.
import { freshDatabase } from '../../../test/database.ts'
import { assert, pluck, startGateway, type TestGateway, test, until } from '../../../test/gateway.ts'
import { tell, WEBHOOK_SECRET } from '../../../test/seller.ts'
import type { PaymentView } from './views.ts'

const ONE = 1_000_000n

// A process hears of the provider that another one set up within two seconds.
const hear = (gateway: TestGateway, data: object) => until(async () => (await tell(gateway, data)).status, 200)

test('a chargeback takes what running calls release, and neither later credits nor a payout make up for it', async () => {
  await using fresh = await freshDatabase()
  const catalog = (document: { sales?: object; vendors: Record<string, { onAbort?: string }> }) => {
    for (const vendor of Object.values(document.vendors)) vendor.onAbort = 'cancel'
    document.sales = { currency: 'EUR', pricePerCredit: '0.01', minimum: '1.00', maximum: '1000.00', packs: [] }
  }
  await using one = await startGateway({ database: fresh, catalog })
  await using other = await startGateway({ database: fresh })
  const secrets = { 'payment-webhook': WEBHOOK_SECRET }
  await one.operator('PATCH', '/payment-settings', {
    provider: 'webhook',
    checkoutUrl: 'https://pay.example/',
    secrets,
  })
  const { id: account, key } = await one.account({ credits: 0n })
  const data = { id: 'first', account, currency: 'EUR', amount: '22.00', status: 'paid' }
  await hear(one, data)
  assert.deepEqual(await one.balance(account), { posted: 2_200n * ONE, held: 0n })
  const leave = new AbortController()
  const ask = { model: 'alpha-5.4', stream: true, messages: [{ role: 'user', content: '[[chunks=9000]] [[slow=50]]' }] }
  // Kept: fetch hangs up on answers that are collected as garbage.
  const answers: Response[] = []
  for (const gateway of [one, other, one, other])
    answers.push(await gateway.call('/v1/chat/completions', key, ask, { signal: leave.signal }))
  assert.deepEqual(pluck(answers, 'status'), [200, 200, 200, 200])
  const { held } = await one.balance(account)
  assert.ok(held > 500n * ONE, `${held} is held`)
  await hear(other, { ...data, dispute: 'lost' })
  assert.deepEqual(await one.balance(account), { posted: held, held })
  await hear(one, { ...data, id: 'second', amount: '3.00' })
  leave.abort()
  await Promise.all(answers.map((answer) => assert.rejects(answer.text())))
  await until(async () => (await one.balance(account)).held === 0n)
  await one.settled()
  assert.deepEqual(await one.balance(account), { posted: 300n * ONE, held: 0n })
  const { data: list } = await one.operator<{ items: PaymentView[] }>('GET', `/payments?account=${account}`)
  const first = list.items.find(({ providerId }) => providerId === 'first')!
  assert.equal(Number(first.creditsReversed) + Number(first.creditsLost), 2_200)
  assert.ok(Number(first.creditsLost) < 100, `${first.creditsLost} are lost`)
  const closed = await one.operator('POST', `/accounts/${account}/close`, { reason: 'over', balance: 'payout' })
  assert.equal(closed.status, 200, JSON.stringify(closed.data))
  const [paid] = await one.sql<{ amount: bigint }>(
    `select amount from transfer where account_id = $1 and kind = 'payout'`,
    [account],
  )
  assert.equal(paid!.amount, 300n * ONE)
  assert.deepEqual(await one.problems(true), [])
})
