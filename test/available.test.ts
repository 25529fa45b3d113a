// What a caller sees of its credits while the gateway holds some of them in advance.
import { parseCredits } from '../src/kernel/credits.ts'
import { assert, test, testGateway } from './gateway.ts'

const g = testGateway()
const CHAT = { model: 'alpha-5.4', max_completion_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }

test('with nothing running all credits are available, and a quote that says so is right', async () => {
  const { id, key } = await g.account({ credits: 3_000_000n })
  for (let made = 0; made < 10; made += 1) assert.equal((await g.call('/v1/chat/completions', key, CHAT)).status, 200)
  const [leased] = await g.sql<{ amount: bigint }>(
    'select coalesce(sum(amount), 0)::bigint as amount from lease where account_id = $1',
    [id],
  )
  assert.ok(leased!.amount > 0n, 'nothing is leased')
  const { data } = (await (await g.call('/v1/account', key)).json()) as {
    data: { balance: string; held: string; available: string }
  }
  assert.deepEqual([data.available, data.held], [data.balance, '0'])
  // As much output as the whole balance pays for.
  const balance = parseCredits(data.balance)!
  const ask = async (max: number) => {
    const answer = await g.call('/v1/quote', key, { ...CHAT, max_completion_tokens: max })
    return ((await answer.json()) as { data: { affordable: boolean; costAtMost: string } }).data
  }
  const one = parseCredits((await ask(1_000)).costAtMost)!
  const most = Number((balance * 990n) / one)
  const quoted = await ask(most)
  assert.equal(quoted.affordable, true, JSON.stringify(quoted))
  const answer = await g.call('/v1/chat/completions', key, { ...CHAT, max_completion_tokens: most })
  assert.equal(answer.status, 200, await answer.text())
})

test('a caller reads which part of the balance ends when', async () => {
  const { id, key } = await g.account({ credits: 0n })
  const read = async () =>
    (
      (await (await g.call('/v1/account', key)).json()) as {
        data: { balance: string; summary: string; lots: object[] }
      }
    ).data
  const give = (body: object) => g.operator('POST', `/accounts/${id}/credits`, { note: 'a test', ...body })
  await give({ amount: '380' })
  assert.deepEqual([(await read()).summary, (await read()).lots], ['380 credits', []])
  const endsAt = `${new Date().getUTCFullYear() + 1}-12-01T00:00:00.000Z`
  assert.equal((await give({ amount: '120', endsAt })).status, 200)
  const { balance, summary, lots } = await read()
  assert.equal(balance, '500')
  assert.match(summary, /^500 credits, of which 120 end on 1 December \d{4}$/)
  assert.deepEqual(lots, [{ remaining: '120', endsAt, products: null }])
})
