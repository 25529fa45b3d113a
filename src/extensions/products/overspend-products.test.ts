// Nothing is spent that nobody has, for products too: whatever a vendor counts, or does not, a call is charged at most
// what was held for it, over all processes.
import { freshDatabase } from '../../../test/database.ts'
import { assert, atOnce, listen, needs, none, started, startGateway, test, until } from '../../../test/gateway.ts'
import { connect } from '../../../test/mcp/client.ts'

const CREDIT = 1_000_000n

/** What the vendor says next. */
let says = '{}'
let asked = 0
/** The vendor answers nobody before this. */
let gate = Promise.resolve()

const server = started(() =>
  listen(async (_, res) => {
    asked += 1
    await gate
    res.writeHead(200, { 'content-type': 'application/json' }).end(says)
  }),
)
const database = started(freshDatabase)
const processes = Array.from({ length: 4 }, () =>
  started(() => startGateway({ database, catalog: withProduct, env: { TOLLGATE_CREDIT_WAIT_SECONDS: '0' } })),
)
const g = processes[0]!

const limit = { kind: 'integer', min: 1, max: 50, example: '10' }
/** The most that each may cost, in credits: that is what is held. */
const OPERATIONS = {
  row: { most: 5, tier: { row: '0.5' }, counts: { row: { expression: 'min(size(answer.items), request.limit)' } } },
  metered: { most: 5, tier: { metered: '1' }, counts: { metered: { expression: 'min(answer.cost, 5)' } } },
  least: { most: 8, tier: { metered: '1' }, counts: { metered: { expression: 'min(answer.cost, 8)', least: 3 } } },
  byte: { most: 2, tier: { byte: '20000' }, bytesMax: 100 },
} as const
type Name = keyof typeof OPERATIONS

// A document before its check, as tests change it.
function withProduct(document: any): void {
  document.vendors.sold = { baseUrl: server.url }
  const operations = Object.entries(OPERATIONS).map(([name, { most: _, tier: __, ...one }]) => [
    name,
    { title: name, route: `GET /${name}`, vendorPath: name, params: { limit }, ...one },
  ])
  document.products = { sold: { title: 'Sold', operations: Object.fromEntries(operations) } }
  for (const [name, { tier }] of Object.entries(OPERATIONS))
    document.endpoints[`sold/${name}`] = {
      routes: [{ vendor: 'sold', protocol: 'http-api' }],
      pricing: { unit: 'credits', tiers: [{ call: '0', ...tier }] },
    }
}

async function rowsOf(account: string) {
  for (const one of processes) await one.settled()
  return g.calls(account)
}

const ITEMS = (count: number) => JSON.stringify({ items: Array.from({ length: count }, () => 1) })
/** Each answer, and what it costs: undefined where it is an error. */
const LIES: readonly (readonly [Name, says: string, cost: number | undefined, estimated?: true])[] = [
  ['row', ITEMS(3), 1.5],
  ['row', ITEMS(10), 5],
  ['row', ITEMS(5_000), 5],
  ['row', '{"items":"many"}', 2],
  ['row', '{"items":{"length":99}}', 0.5],
  ['row', '{}', 0.5, true],
  ['row', '[]', 0.5, true],
  ['metered', '{"cost":2.1}', 3],
  ['metered', '{"cost":1e308}', 5],
  ['metered', '{"cost":99999999999999999999999}', 5],
  ['metered', '{"cost":-7}', 0],
  ['metered', '{"cost":"5"}', 1, true],
  ['metered', '{"cost":null}', 1, true],
  ['metered', '{"cost":[4]}', 1, true],
  ['metered', '{"__proto__":{"cost":4}}', 1, true],
  ['metered', 'null', 1, true],
  ['metered', '{"cost":', undefined],
  ['least', '{"other":1}', 3, true],
  ['least', '{"cost":1}', 1],
  ['byte', `"${'x'.repeat(48)}"`, 1],
  ['byte', `"${'x'.repeat(98)}"`, 2],
  ['byte', `"${'x'.repeat(99)}"`, undefined],
]

for (const [name, answer, cost, estimated = false] of LIES)
  test(`${name}: ${answer.slice(0, 40)} costs ${cost ?? 'nothing'}${estimated ? ', marked as estimated' : ''}`, async () => {
    says = answer
    const { id, key } = await g.account({ credits: 10n * CREDIT })
    const response = await g.call(`/v1/sold/${name}?limit=10`, key)
    await response.arrayBuffer()
    const rows = await rowsOf(id)
    assert.equal(response.status, cost === undefined ? 502 : 200)
    const paid = BigInt(Math.round((cost ?? 0) * 1e6))
    assert.equal((await g.balance(id)).posted, 10n * CREDIT - paid)
    for (const row of rows) {
      assert.deepEqual([row.charged, row.loss], [paid, 0n])
      assert.ok(row.charged <= row.held || row.held === 0n)
      if (cost !== undefined) assert.equal(row.estimated, estimated)
    }
  })

for (const over of [1, 4])
  for (const name of Object.keys(OPERATIONS) as Name[])
    test(`${name}: 60 calls at once, of a vendor that claims all that it can, spend no more than the balance, over ${over} processes`, async () => {
      says = name === 'row' ? ITEMS(1_000) : name === 'byte' ? `"${'x'.repeat(98)}"` : '{"cost":1e9}'
      const { most } = OPERATIONS[name]
      const balance = 21n * CREDIT
      const { id, key } = await g.account({ credits: balance })
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      const began = asked
      let refused = 0
      const going = Array.from({ length: 60 }, async (_, at) => {
        const response = await processes[at % over]!.call(`/v1/sold/${name}?limit=10`, key)
        await response.arrayBuffer()
        if (response.status !== 200) refused += 1
        return response.status
      })
      await until(() => Promise.resolve(asked - began + refused >= 60))
      resolve()
      const statuses = await Promise.all(going)
      const paid = statuses.filter((status) => status === 200).length
      // A busy machine may tell some to come again.
      none(statuses, (status) => ![200, 402, 429, 503].includes(status))
      assert.ok(paid >= 1 && paid * most <= 21, `${paid} were let in`)
      const rows = await rowsOf(id)
      assert.deepEqual(
        new Set(rows.map(({ charged, loss }) => `${charged} ${loss}`)),
        new Set([`${BigInt(most) * CREDIT} 0`]),
      )
      const { posted, held } = await g.balance(id)
      assert.deepEqual([posted, held], [balance - BigInt(paid * most) * CREDIT, 0n])
    })

test('limits on spending, a quote and max_cost of a tool are bounds that hold', needs('agents'), async () => {
  says = ITEMS(1_000)
  const limited = await g.account({ credits: 1_000n * CREDIT })
  const { status } = await g.operator('PATCH', `/keys/${limited.keyId}`, { limits: { spendTotal: '12' } })
  assert.equal(status, 200)
  await atOnce(12, async (at) => (await processes[at % 4]!.call('/v1/sold/row?limit=10', limited.key)).text())
  const rows = await rowsOf(limited.id)
  assert.equal(
    rows.reduce((sum, { charged }) => sum + charged, 0n),
    10n * CREDIT,
    'two calls of at most five credits each',
  )
  const quoted = await g.account({ credits: 1_000n * CREDIT })
  const quote = (await (await g.call('/v1/quote?endpoint=sold/row', quoted.key, { limit: 4 })).json()) as {
    data?: { costAtMost: string }
  }
  assert.equal(quote.data?.costAtMost, '2', JSON.stringify(quote))
  const client = await connect(g.url, quoted.key)
  const call = (most: string) =>
    client.callTool({ name: 'sold_row', arguments: { limit: 4, max_cost: most } }) as Promise<{ isError?: boolean }>
  assert.equal((await call('1.99')).isError, true)
  assert.notEqual((await call('2')).isError, true)
  await client.close()
  assert.deepEqual(
    (await rowsOf(quoted.id)).filter(({ charged }) => charged > 0n).map(({ charged }) => charged),
    [2n * CREDIT],
  )
})
