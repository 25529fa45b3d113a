// Payment events in any order, repeated, lost, and with processes that are killed between the grant and the answer.
// After a reconciliation every payment has brought its credits once.
import type { ChildProcess } from 'node:child_process'
import { assert, atOnce, runs, test, until } from '../../../test/kit.ts'
import { seller } from '../../../test/seller.ts'
import { type StripeEvent, sendStripe } from '../../../test/stripe-server.ts'
import type { ReconciliationView } from '../billing/payments/views.ts'

const EVENTS = runs(60, 10_000)
const KILL_EVERY = runs(25, 400)
const AT_ONCE = 8

const SALES = { currency: 'EUR', pricePerCredit: '0.007', minimum: '1.00', maximum: '1000.00', packs: [] }
const { stripe, gateway, child: start } = seller(SALES)

test(`${EVENTS} payment events in random order, with repeats, losses and kills: after reconciliation the grants equal the payments`, async () => {
  let child: { url: string; process: ChildProcess } | undefined
  let kills = 0

  async function living(): Promise<string> {
    if (child && child.process.exitCode === null && child.process.signalCode === null) return child.url
    if (child) kills += 1
    const made = start(KILL_EVERY)
    const url = await new Promise<string>((resolve, reject) => {
      made.once('message', (message) => resolve(String(message)))
      made.once('exit', (code) => reject(new Error(`The gateway's process ended with ${code}.`)))
    })
    child = { url, process: made }
    return url
  }
  let starting: Promise<string> | undefined
  const address = () => {
    starting ??= living().finally(() => {
      starting = undefined
    })
    return starting
  }

  /** As Stripe does: again, until it is answered. */
  const deliver = (event: StripeEvent) =>
    until(async () => sendStripe(`${await address()}/webhooks/stripe`, event).catch(() => 0), 200)

  try {
    const accounts = await atOnce(5, () => gateway.account({ credits: 0n }))
    const events: StripeEvent[] = []
    // A third of the events of each payment is lost, and a third comes twice.
    for (let at = 0; events.length < EVENTS; at++) {
      const amount = 100 + ((at * 37) % 9_000)
      const account = accounts[at % accounts.length]?.id ?? assert.fail()
      const intent = stripe.strange({ amount, amount_received: amount, metadata: { tollgate_account: account } })
      if (at % 7 === 0) stripe.refund(intent.id, Math.floor(amount / 3))
      const made = ['payment_intent.succeeded', 'charge.succeeded', 'charge.refunded'].map((type) =>
        stripe.event(type, intent),
      )
      for (const one of made) {
        const chance = Math.random()
        if (at % 5 === 0 || chance < 1 / 3) continue
        events.push(one, ...(chance > 2 / 3 ? [one] : []))
      }
    }
    const shuffled = events
      .slice(0, EVENTS)
      .map((event) => [Math.random(), event] as const)
      .sort(([a], [b]) => a - b)
    const queue = shuffled.map(([, event]) => event)
    await atOnce(AT_ONCE, async () => {
      for (let event = queue.pop(); event; event = queue.pop()) await deliver(event)
    })
    assert.ok(kills > 0, 'no process was killed')
    const { data } = await gateway.operator<ReconciliationView>('POST', '/reconciliations', {})
    assert.equal(data.failure, null)
    assert.ok(data.differences.length > 0 && data.differences.every(({ corrected }) => corrected))
    const again = await gateway.operator<ReconciliationView>('POST', '/reconciliations', {})
    assert.deepEqual(again.data.differences, [])
    // By the plain arithmetic of each payment at Stripe.
    let expected = 0n
    for (const { amount, latest_charge: charge } of stripe.intents.values()) {
      const credits = (BigInt(amount) * 1_000_000_000_000n) / (100n * 7_000n)
      expected += credits - (credits * BigInt(charge.amount_refunded)) / BigInt(amount)
    }
    const { database } = gateway.gateway
    const [sum] = await database.query<{ posted: bigint; lost: bigint; count: number }>({
      text: `select (select sum(posted) from account)::bigint as posted, (select sum(lost) from payment)::bigint as lost, (select count(*)::int from payment) as count`,
    })
    assert.deepEqual([sum?.posted, sum?.lost, sum?.count], [expected, 0n, stripe.intents.size])
  } finally {
    child?.process.kill('SIGKILL')
  }
})
