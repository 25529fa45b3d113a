// Made from the table: every tool of a data endpoint, beside the endpoint itself, with the same parameters. The answers, the
// costs and the refusals are the same.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Client } from '@modelcontextprotocol/client'
import { type DataEndpointSpec, isDataEndpoint } from '../../src/catalog/endpoint.ts'
import type { Field } from '../../src/catalog/field.ts'
import { ENDPOINTS } from '../../src/catalog/index.ts'
import { each } from '../faults/raw-client.ts'
import { casesOf } from '../field-cases.ts'
import { startGateway, type TestGateway } from '../gateway.ts'
import { connect, ERAS } from './client.ts'

const AT_ONCE = 8
const SPECS = ENDPOINTS.filter(isDataEndpoint)

let g: TestGateway
let http: { id: string; key: string }
let mcp: { id: string; key: string }
let client: Client
before(async () => {
  g = await startGateway()
  http = await g.account()
  mcp = await g.account()
  client = await connect(g.url, mcp.key)
})
after(async () => {
  await client.close()
  await g.settled()
  await g.close()
})

type Given = Record<string, string>

/** What else a query needs so that one parameter can be looked at alone. */
function around(spec: DataEndpointSpec, name?: string, value?: string): Given {
  const given: Given = {}
  for (const [other, field] of Object.entries(spec.params)) if (field.required) given[other] = field.example
  if (given.id) given.id = '49278066'
  if (name === undefined || value === undefined) return given
  for (const { from, to, together } of spec.pairs) {
    const partner = name === from ? to : name === to ? from : undefined
    if (!together || partner === undefined) continue
    given[partner] = partner === 'to' || partner === 'compareTo' ? '2026-10-31' : '2026-10-01'
  }
  return { ...given, [name]: value }
}

/** As a model would write it: by the type that the listing names. */
function typed(given: Given, params: Readonly<Record<string, Field>>): Record<string, unknown> {
  const one = ([name, value]: [string, string]): [string, unknown] => {
    const kind = params[name]?.kind
    if (kind === 'integer' && /^(0|[1-9]\d{0,8})$/.test(value)) return [name, Number(value)]
    return [name, kind === 'boolean' && /^(true|false)$/.test(value) ? value === 'true' : value]
  }
  return Object.fromEntries(Object.entries(given).map(one))
}

function addressOf(spec: DataEndpointSpec, given: Given): string {
  const query = Object.entries(given).filter(([name]) => !spec.path.includes(`{${name}}`))
  const path = spec.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(given[name] ?? ''))
  return `${path}?${query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

const toolOf = new Map<string, string>()
async function toolFor(spec: DataEndpointSpec): Promise<string> {
  if (toolOf.size === 0) {
    const { tools } = await client.listTools()
    // Which tool is whose is told by no list of this test: the titles are those of the table.
    for (const { name, title } of tools) for (const { id, title: own } of SPECS) if (own === title) toolOf.set(id, name)
  }
  const name = toolOf.get(spec.id)
  assert.ok(name, `${spec.id} has no tool`)
  return name
}

async function compare(spec: DataEndpointSpec, given: Given): Promise<'answered' | 'refused'> {
  const about = `${spec.id} ${JSON.stringify(given)}`
  const answer = await g.call(addressOf(spec, given), http.key)
  const body = (await answer.json()) as any
  const result = await client.callTool({ name: await toolFor(spec), arguments: typed(given, spec.params) })
  const meta = result._meta as Record<string, any>
  if (answer.status === 200) {
    assert.notEqual(result.isError, true, `${about}: ${JSON.stringify(result.content)}`)
    assert.deepEqual(result.structuredContent, body, about)
    assert.equal(meta['tollgate/charge'], answer.headers.get('x-tollgate-charge'), about)
    return 'answered'
  }
  assert.equal(result.isError, true, about)
  assert.equal(meta['tollgate/error'].code, body.error.code, about)
  const [text] = result.content as { text: string }[]
  assert.ok(text!.text.startsWith(body.error.message), `${about}: ${text!.text}`)
  assert.equal(meta['tollgate/charge'], '0', about)
  return 'refused'
}

test('every data tool answers, costs and refuses as its endpoint does, parameter by parameter', async () => {
  const cases = SPECS.flatMap((spec) => {
    const whole = around(spec)
    const required = Object.keys(whole).filter((name) => spec.params[name]?.in !== 'path')
    const single = Object.entries(spec.params).flatMap(([name, field], index) => {
      const { good, bad } = casesOf(field)
      // Of an address an empty part is another address.
      const wrong = bad.filter((value) => field.in !== 'path' || /^[^\s\0]+$/.test(value))
      const right = index % 2 === 0 ? field.example : good[index % good.length]?.[0]
      return [right, wrong[index % wrong.length]].map((value) => around(spec, name, value))
    })
    const without = required.slice(0, 1).map((name) => ({ ...whole, [name]: undefined as unknown as string }))
    const missing = without.map((given) => JSON.parse(JSON.stringify(given)) as Given)
    return [whole, ...single, ...missing, { ...whole, nonsense: '1' }].map((given) => [spec, given] as const)
  })
  const seen = { answered: 0, refused: 0 }
  await each(cases, AT_ONCE, async ([spec, given]) => {
    seen[await compare(spec, given)] += 1
  })
  assert.ok(seen.answered > 300 && seen.refused > 300, JSON.stringify(seen))
  await g.settled()
  assert.deepEqual(await g.balance(mcp.id), await g.balance(http.id))
})

test('what was used says which tool was called, and each call its own request id', async () => {
  const rows = await g.gateway.database.query<{ endpoint: string; product: string }>(
    { text: 'select distinct endpoint, product from usage where account_id = $1' },
    [mcp.id],
  )
  const products = new Map(rows.map(({ endpoint, product }) => [endpoint, product]))
  for (const spec of SPECS) assert.equal(products.get(`mcp:${toolOf.get(spec.id)}`), spec.product)
  assert.equal(rows.length, SPECS.length)
})

for (const era of ERAS)
  test(`a key for other things is refused as by the endpoint, and sees no such tools (${era})`, async () => {
    const { key, id } = await g.account({ models: ['alpha-5.4'] })
    const other = await connect(g.url, key, { era })
    const { tools } = await other.listTools()
    assert.deepEqual(tools.map(({ name }) => name).sort(), ['ask_model', 'get_balance', 'list_models', 'quote'])
    for (const spec of SPECS) {
      const body = (await (await g.call(addressOf(spec, around(spec)), key)).json()) as any
      assert.equal(body.error.code, 20001)
      const result = await other.callTool({ name: await toolFor(spec), arguments: around(spec) })
      assert.equal(result.isError, true)
      assert.equal((result.content as { text: string }[])[0]!.text, body.error.message)
    }
    assert.equal((await g.balance(id)).posted, 1_000_000_000n)
    await other.close()
  })
