// A default budget for each new end user, over HTTP: the first calls of thousands of users come at once, to four
// gateway processes.
import { Agent } from 'undici'
import { createBudgets } from '../../src/admission/budgets.ts'
import { storedCatalogs } from '../../src/catalog/store.ts'
import { createAudit } from '../../src/database/audit.ts'
import { verifyLedger } from '../../src/extensions/verify/verify.ts'
import { realWorld } from '../../src/kernel/world.ts'
import { createLedger } from '../../src/ledger/ledger.ts'
import { noHolds } from '../chaos/books.ts'
import { openScene, type Scene } from '../chaos/scene.ts'
import { assert, atOnce, BY, test } from '../gateway.ts'

const USERS = 10_000
const CALLS = 8
const MAX = 5
/** Users whose first calls come at once. */
const AT_ONCE = 25

async function makeBudget({ direct }: Scene, account: string): Promise<void> {
  const [audit, world] = [createAudit({ database: direct, world: realWorld }), realWorld]
  const ledger = createLedger({ database: direct, world, processId: 'p_operator' })
  await createBudgets({ database: direct, world, audit, ledger }).create(
    account,
    {
      name: 'Trial',
      scope: 'user',
      value: null,
      unit: 'requests',
      span: 'month',
      windowSeconds: null,
      max: String(MAX),
      hard: true,
      alertPercent: null,
    },
    BY,
  )
}

test(`each of ${USERS} end users who come at once gets ${MAX} calls of four processes, and not one more`, async (t) => {
  const scene = await openScene({ processes: 4, standby: undefined })
  const dispatcher = new Agent({ connections: 64 })
  t.after(async () => {
    await dispatcher.close()
    await scene.close()
  })
  const { id, key } = await scene.account()
  await makeBudget(scene, id)

  async function once(user: string, n: number): Promise<number> {
    const answer = await dispatcher.request({
      origin: scene.gateways[n % scene.gateways.length]!.url,
      path: '/v1/chat/completions',
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'alpha-5.4', max_tokens: 16, user, messages: [{ role: 'user', content: 'Hi' }] }),
    })
    const text = await answer.body.text()
    assert.ok([200, 429, 503].includes(answer.statusCode), `${answer.statusCode} ${text}`)
    if (answer.statusCode === 429) assert.match(text, /Trial/)
    return answer.statusCode
  }

  let [served, waited] = [0, 0]
  for (let first = 0; first < USERS; first += AT_ONCE)
    await atOnce(AT_ONCE, async (at) => {
      const user = `u${first + at}`
      const told = await Promise.all(Array.from({ length: CALLS }, (_, n) => once(user, first + at + n)))
      const count = told.filter((status) => status === 200).length
      // Who was asked to come again was not served, and may be.
      const isSure = !told.includes(503)
      assert.ok(isSure ? count === MAX : count <= MAX, `${user} was served ${count} times: ${told}`)
      served += count
      waited += isSure ? 0 : 1
    })
  await noHolds(scene.direct, 20_000)
  const { ok, problems } = await verifyLedger(scene.direct, storedCatalogs(scene.direct))
  assert.ok(ok, problems.join('\n'))
  t.diagnostic(`${served} calls of ${USERS} users were served; ${waited} users were asked to come again`)
})
