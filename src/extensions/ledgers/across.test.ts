// What operators read across accounts is the same with the accounts in two ledgers as with all of them in one.

import { commandLineOf } from '../../../test/command-line.ts'
import { freshDatabase } from '../../../test/database.ts'
import { OPERATOR_TOKEN, startGateway, type TestGateway } from '../../../test/gateway.ts'
import { type Customer, type Installation, startInstallation } from '../../../test/installation.ts'
import { after, assert, before, test, until } from '../../../test/kit.ts'
import { listResources } from '../../../test/pages/operator-api.ts'
import type { Database } from '../../database/database.ts'
import { SHARED, TABLES } from '../../database/tables.ts'
import { ACROSS } from './across.ts'

/** Read and change what is nobody's account's, or an account's that the body names. */
const CONTROL = listed(`
  alert-settings audit-export billing branding catalog catalog/versions catalog/versions/{version} invoice-settings limits
  login-policy login-providers mails mails/{name} operator-invites operators payment-settings presets products/presets
  sign-up sign-up/invites tokens tool-connections tool-servers tool-servers/{name} vendor-reports vendor-reports/{id}
  vendors/{name}/credentials webhook-secret
  exports exports/{id} exports/{id}/customers`)

function listed(words: string): string[] {
  return words.split(/\s+/).flatMap((path) => (path === '' ? [] : [`GET /${path}`]))
}

test('each resource that names no account is merged, or control’s own', () => {
  const names = listResources()
    .filter(
      ({ account, across, path }) =>
        account === undefined && across === undefined && !path.startsWith('/accounts/{id}'),
    )
    .map(({ method, path }) => `${method} ${path}`)
  const undecided = names.filter((name) => name.startsWith('GET ') && !(name in ACROSS) && !CONTROL.includes(name))
  assert.deepEqual(undecided, [], 'say in across.ts how the answers of several ledgers become one')
  assert.deepEqual(
    [...Object.keys(ACROSS), ...CONTROL].filter((name) => !names.includes(name)),
    [],
  )
})

let two: Installation
let one: TestGateway
const customers: Customer[] = []

before(async () => {
  two = await startInstallation(['east', 'west'])
  for (const name of ['Ada', 'Bob', 'Cleo', 'Dora', 'Emil']) customers.push(await two.customer({ name }))
  assert.deepEqual([...new Set(customers.map(({ home }) => home))].sort(), ['east', 'west'])
  for (const [place, { key }] of customers.entries()) {
    for (let calls = 0; calls <= place; calls++)
      await two.call('/v1/chat-completions', key, {
        model: calls % 2 === 0 ? 'alpha-5.4' : 'alpha-5.5',
        max_tokens: 20 + 7 * calls,
        messages: [{ role: 'user', content: 'Hello.' }],
        user: `user-${calls % 3}`,
      })
    await two.call('/v1/chat-completions', key, { model: 'unknown', messages: [] })
  }
  for (const [place, name] of ['east', 'west'].entries())
    await two
      .databaseOf(name)
      .query({ text: DELIVERIES }, [customers.find(({ home }) => home === name)?.id ?? '', place])
  const fresh = await freshDatabase()
  for (const name of ['east', 'west']) await until(() => isCounted(two.databaseOf(name)))
  for (const [place, name] of ['east', 'west'].entries()) await two.databaseOf(name).query({ text: MARGINS }, [place])
  const database = fresh.open()
  await copied(
    ['east', 'west'].map((name) => two.databaseOf(name)),
    database,
  )
  await database.close()
  one = await startGateway({ database: fresh })
})
after(async () => {
  await one?.close()
  await two?.close()
})

/** Two at each moment, one in each ledger. */
const DELIVERIES = `insert into public.delivery (id, account_id, kind, event, subject, shown, created_at, delivered_at, open)
  select 'del_' || (2 * i + $2::int), $1, 'webhook', 'alert', '', 'example.com',
    to_timestamp(floor(extract(epoch from now()) / 100) * 100 + i / 8.0 - 200), to_timestamp(0), false
  from generate_series(1, 4) i`

/** A route that loses in the first ledger and gains in all, and one that loses in all and not in the first. */
const MARGINS = `insert into public.margin_hour (hour, product, route, calls, charged, costed, cost)
  select date_trunc('hour', now()), x.product, 0, 1, x.costed, x.costed, x.cost
  from (values (0, 'gains', 10, 20), (1, 'gains', 100, 10), (0, 'loses', 20, 10), (1, 'loses', 10, 100)) x(place, product, costed, cost)
  where x.place = $1::int`

async function isCounted(database: Database): Promise<boolean> {
  const text = `select (select count(*) from hold) = 0 and (select count(*) from journal) = 0
    and (select count(*) from usage) = (select sum(calls) from margin_hour) as counted`
  const [row] = await database.query<{ counted: boolean }>({ text })
  return row?.counted === true
}

/** Of the process and its work. */
const NOT_COPIED = ['audit', 'gateway_instance', 'lease', 'cache_version', 'account_change', 'vendor_probe']

async function copied(from: readonly Database[], to: Database): Promise<void> {
  const shared: readonly string[] = SHARED
  const tables = Object.keys(TABLES).filter((name) => !shared.includes(name) && !NOT_COPIED.includes(name))
  await to.transaction(async (tx) => {
    await tx.query({ text: 'set local session_replication_role = replica' })
    for (const TABLE of tables) {
      const read = { text: `select coalesce(jsonb_agg(to_jsonb(x)), '[]')::text as rows from public.${TABLE} x` }
      const rows = await Promise.all(from.map((database) => database.query<{ rows: string }>(read)))
      // The seals are of the ledgers' own audit.
      const all = rows
        .flat()
        .flatMap(({ rows: text }) => JSON.parse(text))
        .filter(({ name }) => !/^audit_/.test(name))
      if (all.length === 0) continue
      const [{ columns: COLUMNS } = { columns: '' }] = await tx.query<{ columns: string }>(
        {
          text: `select string_agg(quote_ident(column_name), ', ') as columns from information_schema.columns
            where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'`,
        },
        [TABLE],
      )
      const [SHOWN, GROUPED] = TABLE === 'margin_hour' ? [SUMMED, 'group by hour, product, route'] : [COLUMNS, '']
      const text = `insert into ${TABLE} (${TABLE === 'margin_hour' ? MARGIN : COLUMNS})
        select ${SHOWN} from jsonb_populate_recordset(null::${TABLE}, $1::jsonb) ${GROUPED} on conflict do nothing`
      await tx.query({ text }, [JSON.stringify(all)])
    }
  })
}
const MARGIN = 'hour, product, route, calls, charged, costed, cost'
const SUMMED = 'hour, product, route, sum(calls), sum(charged), sum(costed), sum(cost)'

const DAY_MS = 86_400_000
const dayAt = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const nowMs = Date.now()
const RANGE = `from=${dayAt(nowMs - DAY_MS)}&to=${dayAt(nowMs + DAY_MS)}`
const MONTH = dayAt(nowMs).slice(0, 7)

const inBoth = async <T>(path: string) =>
  Promise.all([two.ask<T>(path), one.ask<T>('GET', path)]) as Promise<readonly [T, T]>

test('sums are equal to the millionth', async () => {
  for (const by of ['product', 'account', 'key', 'status', 'endpoint', 'vendor', 'client', 'label:user'])
    for (const more of ['', '&per=hour&compare=true']) {
      const [found, expected] = await inBoth<{ totals: { requests: number } }>(`/usage/sums?${RANGE}&by=${by}${more}`)
      assert.deepEqual(rounded(found), rounded(expected), by)
      assert.equal(found.totals.requests, 15)
    }
  for (const by of ['product', 'account', 'vendor', 'month', 'label:user']) {
    const [found, expected] = await inBoth(`/margins?by=${by}&from=${MONTH}`)
    assert.deepEqual(found, expected, by)
  }
  const [found, expected] = await inBoth<{ unhealthyVendors: unknown; unprofitableRoutes: Array<{ product: string }> }>(
    '/home',
  )
  const losing = found.unprofitableRoutes.map(({ product }) => product)
  assert.ok(losing.includes('loses') && !losing.includes('gains'), losing.join())
  assert.deepEqual({ ...found, unhealthyVendors: [] }, { ...expected, unhealthyVendors: [] })
})

/** Averages of rounded averages are one off at most. */
function rounded<T>(answer: T): T {
  if (typeof answer === 'string' && AVERAGES.test(answer)) return answer.replaceAll(/\d+(?=,\d*,\d*\r\n)/g, '') as T // It is text.
  return JSON.parse(JSON.stringify(answer, (name, value) => (name === 'latencyMsAvg' ? value && 0 : value)))
}

const AVERAGES = /,latencyMsAvg,inputTokens,outputTokens\r\n/

interface Listed {
  readonly items: readonly unknown[]
  readonly next: string | null
}

test('lists are equal, page by page', async () => {
  const paths =
    `/accounts? /accounts?q=o& /statements/${MONTH}? /usage? /usage?sort=charged& /alerts? /payments? /invoices?
    /usage?sort=duration&order=asc& /usage?order=asc& /deliveries? /usage/labels?${RANGE}&sort=charged&
    /usage/labels?${RANGE}&sort=calls& /usage/labels?${RANGE}&sort=last& /margins?by=account&from=${MONTH}&
    /margins/unbilled? /search?q=o& /search?q=app&`.split(/\s+/)
  for (const path of paths) {
    const page = (cursor: string) =>
      path.startsWith('/search') ? path : `${path}limit=3${cursor && `&cursor=${cursor}`}`
    let [found, expected] = await inBoth<Listed>(page(''))
    for (;;) {
      assert.deepEqual(found.items, expected.items, path)
      assert.equal(found.next === null, expected.next === null, path)
      if (found.next === null || expected.next === null) break
      found = await two.ask<Listed>(page(found.next))
      expected = await one.ask<Listed>('GET', page(expected.next))
    }
  }
})

test('files have the rows of all ledgers', async () => {
  for (const path of ['/usage', `/usage/sums?${RANGE}`, `/usage/labels?${RANGE}`, `/margins?from=${MONTH}`]) {
    const accept = { authorization: `Bearer ${OPERATOR_TOKEN}`, accept: 'text/csv' }
    const [found, expected] = await Promise.all(
      [two.url, one.url].map(async (url) => (await fetch(`${url}/admin/v1${path}`, { headers: accept })).text()),
    )
    assert.equal(rounded(found), rounded(expected), path)
  }
})

test('an answer says which ledger did not answer', async () => {
  const of = (home: string) => customers.filter((customer) => customer.home === home).map(({ id }) => id)
  two.cut('east')
  const response = await two.call('/admin/v1/accounts', OPERATOR_TOKEN)
  const answer = (await response.json()) as { missing: unknown; data: { items: Customer[] } }
  assert.deepEqual(answer.missing, ['east'])
  assert.equal(response.headers.get('x-tollgate-missing'), 'east')
  assert.deepEqual(answer.data.items.map(({ id }) => id).sort(), of('west').sort())
  const said = await commandLineOf(() => two).run(['accounts', 'list'])
  assert.equal(said.code, 0)
  assert.match(said.err, /do not answer.*: east/)
  assert.deepEqual((await two.ask<{ ledgers: unknown }>('/system')).ledgers, [
    { name: 'east', answers: false },
    { name: 'west', answers: true },
  ])
  const file = await fetch(`${two.url}/admin/v1/usage`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, accept: 'text/csv' },
  })
  assert.equal(file.status, 503, 'a file is whole or there is none')
  two.heal('east')
  await until(async () => !(await two.call('/admin/v1/accounts', OPERATOR_TOKEN)).headers.has('x-tollgate-missing'))
})
