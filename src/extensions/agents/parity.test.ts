// Made from the table: every tool of a data endpoint, beside the endpoint itself, with the same parameters. The
// answers, the costs and the refusals are the same.
import type { Client } from '@modelcontextprotocol/client'
import { each } from '../../../test/faults/raw-client.ts'
import { casesOf } from '../../../test/field-cases.ts'
import { after, assert, before, FULL, runs, startGateway, type TestGateway, test } from '../../../test/gateway.ts'
import { connect, ERAS } from '../../../test/mcp/client.ts'
import { type DataEndpointSpec, isDataEndpoint } from '../../catalog/endpoint.ts'
import type { Field } from '../../catalog/field.ts'
import { ENDPOINTS } from '../../catalog/index.ts'

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

/** The website, the keyword or the user, and nothing else. */
function required(spec: DataEndpointSpec): Given {
  const given: Given = {}
  for (const [name, field] of Object.entries(spec.params)) if (field.required) given[name] = field.example
  return given.id ? { ...given, id: '49278066' } : given
}

const DAYS: Given = { from: '2026-10-01', to: '2026-10-31', compareFrom: '2026-09-01', compareTo: '2026-09-30' }

/** Every parameter at once, with a valid value; the days named, or counted back from now. */
function everything(spec: DataEndpointSpec, days: 'named' | 'counted'): Given {
  const left = days === 'named' ? ['latest'] : Object.keys(DAYS)
  // A token belongs to a page that was read before; window and days depend on each other.
  const names = Object.keys(spec.params).filter((name) => ![...left, 'pagination_token', 'isWindow'].includes(name))
  const valid = (name: string) => DAYS[name] ?? spec.params[name]!.example
  return { ...Object.fromEntries(names.map((name) => [name, valid(name)])), ...required(spec) }
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
  // Most parameters are those of other endpoints too: each is spoiled at one of them, and by the long tests at all.
  const spoiled = new Set<string>()
  const isNew = ([name, field]: [string, Field]) => {
    const what = `${name} ${JSON.stringify(field)}`
    const isKnown = spoiled.has(what)
    spoiled.add(what)
    return FULL || !isKnown
  }
  const cases = SPECS.flatMap((spec) => {
    const whole = required(spec)
    const params = Object.entries(spec.params).filter(isNew)
    const wrong = params.map(([name, field], index) => {
      // Of an address an empty part is another address.
      const bad = casesOf(field).bad.filter((value) => field.in !== 'path' || /^[^\s\0]+$/.test(value))
      return { ...whole, [name]: bad[index % bad.length]! }
    })
    const missing = Object.keys(whole).filter((name) => spec.params[name]?.in !== 'path')
    const without = missing.map((name) => Object.fromEntries(Object.entries(whole).filter(([one]) => one !== name)))
    const right = [whole, everything(spec, 'named'), everything(spec, 'counted')]
    return [...right, ...wrong, ...without, { ...whole, nonsense: '1' }].map((given) => [spec, given] as const)
  })
  const seen = { answered: 0, refused: 0 }
  await each(cases, AT_ONCE, async ([spec, given]) => {
    seen[await compare(spec, given)] += 1
  })
  assert.ok(seen.answered > 70 && seen.refused > runs(120, 300), JSON.stringify(seen))
  await g.settled()
  assert.deepEqual(await g.balance(mcp.id), await g.balance(http.id))
})

test('what was used says which tool was called, and each call its own request id', async () => {
  const rows = await g.sql<{ endpoint: string; product: string }>(
    'select distinct endpoint, product from usage where account_id = $1',
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
      const body = (await (await g.call(addressOf(spec, required(spec)), key)).json()) as any
      assert.equal(body.error.code, 20001)
      const result = await other.callTool({ name: await toolFor(spec), arguments: required(spec) })
      assert.equal(result.isError, true)
      assert.equal((result.content as { text: string }[])[0]!.text, body.error.message)
    }
    assert.equal((await g.balance(id)).posted, 1_000_000_000n)
    await other.close()
  })
