// What an operator sees in each incident of docs/reliability.md: readiness, metrics, an alert, and the way back.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parse } from 'yaml'
import { type Database, openDatabase, PATIENT } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import type { Log } from '../src/kernel/log.ts'
import type { Page } from '../src/kernel/view.ts'
import type { VendorView } from '../src/operator/views.ts'
import { openedAlerts } from './alerts.ts'
import { startPair } from './chaos/pair.ts'
import { startGateway, type TestGateway, testGateway } from './gateway.ts'
import { above, assert, closing, listen, started, test, until } from './kit.ts'
import { type ScriptedVendor, scriptedVendor } from './scripted-vendor.ts'

const received: Array<{ type: string; data: { subject: string; title: string; message: string } }> = []
/** How the receiver of an export answers. */
let exported = 500
const hooks = started(() =>
  listen(async (request, response) => {
    const body = await text(request)
    if (request.url === '/') received.push(JSON.parse(body))
    else response.statusCode = exported
    response.end('ok')
  }),
)
const env = () => ({ TOLLGATE_OUTBOUND_ALLOW: `127.0.0.1:${hooks.port}` })

/** From now on alerts are received. */
async function receive(g: TestGateway): Promise<void> {
  received.length = 0
  const receivers = [{ kind: 'webhook', to: `http://127.0.0.1:${hooks.port}/` }]
  assert.equal((await g.operator('PUT', '/alert-settings', { receivers })).status, 200)
}
const readMetrics = async (g: TestGateway) => (await fetch(`${g.url}/metrics`)).text()
const titles = () => received.map(({ data }) => data.title).sort()
const readText = (path: string) => readFileSync(join(import.meta.dirname, '..', path), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly annotations: Record<string, string>
}
const { groups } = parse(readText('deploy/alerts.yaml')) as { groups: Array<{ rules: Rule[] }> } // As Prometheus has it.
const RULES = groups.flatMap((group) => group.rules)
const ruleOf = (name: string) => RULES.find(({ alert }) => alert === name)

const TABLES = ['gateway_instance', 'journal', 'hold', 'lease', 'alert']

/** Each begins it, and answers how it ends. */
const TROUBLES: ReadonlyArray<{
  what: string
  cause: RegExp
  begin(database: Database): Promise<() => Promise<unknown>>
}> = [
  {
    what: 'a full disk',
    cause: /53100 could not extend file .*: No space left on device/,
    async begin(database) {
      const run = (text: string) => database.query({ text })
      await run(`create function full_disk() returns trigger language plpgsql as $$
        begin raise exception 'could not extend file "base/5/1259": No space left on device' using errcode = 'disk_full'; end $$`)
      for (const table of TABLES)
        await run(`create trigger full_disk before insert or update on ${table} execute function full_disk()`)
      return () => run('drop function full_disk cascade')
    },
  },
  {
    what: 'a database that hangs',
    cause: /accepted no write: (none|55P03) /,
    async begin(database) {
      const [locked, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const hanging = database.transaction(async (tx) => {
        await tx.query({ text: `lock table ${TABLES.join(', ')} in exclusive mode` })
        locked.resolve()
        await ended.promise
      }, PATIENT)
      await locked.promise
      return () => {
        ended.resolve()
        return hanging
      }
    },
  },
]

for (const { what, cause, begin } of TROUBLES)
  test(`${what}: not ready, a metric, a log line and an alert say so with the cause, and all of it clears`, async (t) => {
    const lines: object[] = []
    const note = (fields: object) => void lines.push(fields)
    const log: Log = { debug() {}, info() {}, warn: note, error: note }
    const g = await startGateway({ log, env: env(), waitFactor: 1 })
    const ready = async () => {
      const answer = await fetch(`${g.url}/readyz`)
      return { status: answer.status, ...((await answer.json()) as { reasons?: string[] }) }
    }
    const figure = async (metric: string) => Number(new RegExp(`^${metric} (.*)$`, 'm').exec(await readMetrics(g))?.[1])
    let end: (() => Promise<unknown>) | undefined
    try {
      await receive(g)
      await openedAlerts(g).look()
      assert.deepEqual(await ready(), { status: 200, ready: true })
      assert.equal(await figure('tollgate_ledger_failing_seconds'), 0)
      end = await begin(g.gateway.database)
      const begunMs = performance.now()
      await until(async () => (await ready()).reasons, ['The ledger cannot write'])
      await until(() => figure('tollgate_ledger_failing_seconds'), above(5))
      assert.equal(await figure('tollgate_database_up'), 1)
      const { type, data } = await until(() => received[0])
      t.diagnostic(`the alert came after ${Math.round(performance.now() - begunMs)} ms`)
      assert.deepEqual([type, data.subject, data.title], ['alert.gateway', 'ledger', 'The ledger cannot write'])
      assert.match(data.message, cause)
      assert.match(JSON.stringify(lines), /"incident":"ledger"/)
      const call = await g.call('/v1/chat/completions', 'tg_live_none', { model: 'alpha-5.4', messages: [] })
      assert.notEqual(call.status, 500)
      await end()
      end = undefined
      await until(async () => (await ready()).status, 200)
      assert.equal(await until(() => figure('tollgate_ledger_failing_seconds'), 0), 0)
    } finally {
      await end?.()
      await g.close()
    }
  })

test('an export that is stuck, an old backup and a month that cannot be archived: ready, a metric and an alert say so, and all of it clears', async () => {
  await using g = await startGateway({ env: env() })
  const run = (text: string) => g.sql(text)
  const account = await g.account()
  const settings = { url: `http://127.0.0.1:${hooks.port}/events` }
  assert.equal((await g.operator('POST', '/exports', { name: 'stuck', kind: 'openmeter', settings })).status, 200)
  const body = { model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user', content: 'x' }] }
  assert.equal((await g.call('/v1/chat-completions', account.key, body)).status, 200)
  await until(() => readMetrics(g), /^tollgate_database_statement_seconds_count\{kind="ledger_\w+"\} [1-9]/m)
  assert.match(await readMetrics(g), /^tollgate_usage_unpartitioned_rows 0$/m)
  await receive(g)
  // It fails, and has done so for a while.
  await until(async () => (await run('select 1 from export where failures > 0')).length, 1)
  await run(`update export set created_at = now() - interval '20 minutes', step_at = now() + interval '1 hour'`)
  await run(`insert into setting (name, value) values ('backup-at', (now() - interval '3 days')::text)`)
  await until(() => readMetrics(g), /^tollgate_export_lag_seconds 1[23]\d\d/m)
  await until(() => readMetrics(g), /^tollgate_backup_age_seconds 259\d\d\d/m)
  const failure = 'The store of the bucket b answered 403 AccessDenied.'
  await run(
    `insert into ledger_archive (month, folder, failure) values ('2026-01-01', 'ledger/2026-01-x', '${failure}')`,
  )
  await until(() => readMetrics(g), /^tollgate_ledger_archive_failing 1$/m)
  await until(titles, ['A month of the ledger is not in its archive', 'An export is stuck', 'The last backup is old'])
  assert.ok(received.some(({ data }) => data.message.startsWith(`2026-01: ${failure} `)))
  for (const { data } of received) assert.match(data.message, /See the runbook "/)
  assert.equal((await fetch(`${g.url}/readyz`)).status, 200)
  exported = 204
  await run('update export set step_at = now()')
  await run('update ledger_archive set failure = null')
  await until(() => readMetrics(g), /^tollgate_ledger_archive_failing 0$/m)
  await until(() => readMetrics(g), /^tollgate_export_lag_seconds 0$/m)
})

test('a standby that is lost: ready, a metric and an alert say so', async () => {
  await using pair = closing(await startPair({ synchronous: false }))
  const { connection } = pair.primary.server
  const database = openDatabase({ connection })
  await migrate(database).finally(() => database.close())
  await using g = await startGateway({ env: env(), database: { connection } })
  await until(() => readMetrics(g), /^tollgate_database_standbys 1$/m)
  await receive(g)
  await pair.loseStandby()
  await until(titles, ['The database has lost a standby'])
  assert.match(received[0]?.data.message ?? '', /^0 of 1 standbys follow .* See the runbook "/)
  await until(() => readMetrics(g), /^tollgate_database_standbys 0$/m)
  assert.equal((await fetch(`${g.url}/readyz`)).status, 200)
})

const north: ScriptedVendor = started(() => scriptedVendor('north'))
const vendorGateway = testGateway(() => ({
  env: env(),
  catalog(document) {
    document.vendors.north = { baseUrl: north.url, probe: false }
    const pricing = { unit: 'credits', tiers: [{ input: '1', output: '1' }] }
    const routes = [{ vendor: 'north', protocol: 'openai-chat', model: 'm', cost: pricing }]
    const base = { ...document.models['alpha-5.4'], family: 'plain', traits: {}, clientFormats: ['openai-chat'] }
    document.models.plain = { ...base, pricing, routes }
  },
}))

async function callNorth(key: string, status: number): Promise<number> {
  north.script = { status }
  const body = { model: 'plain', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }
  return (await vendorGateway.call('/v1/chat/completions', key, body)).status
}
const breaker = async () => {
  const { data } = await vendorGateway.operator<Page<VendorView>>('GET', '/vendors')
  return data.items.find(({ name }) => name === 'north')?.breaker
}

test('a vendor that fails 30 % of the time: its failures are above the limit of the rule, and other calls go on', async () => {
  const { key } = await vendorGateway.account()
  await receive(vendorGateway)
  for (let i = 0; i < 20; i++) {
    const fails = [2, 5, 8].includes(i % 10)
    assert.equal((await callNorth(key, fails ? 500 : 200)) === 200, !fails)
  }
  const text = await readMetrics(vendorGateway)
  const attempts = (outcome: string) =>
    Number(
      new RegExp(`^tollgate_vendor_attempts_total\\{vendor="north",outcome="${outcome}"\\} (.*)$`, 'm').exec(text)?.[1],
    )
  const [failed, answered] = [attempts('failed'), attempts('answered')]
  const [, limit] = /attempts_total\[5m\]\)\) > ([\d.]+)/.exec(ruleOf('TollgateVendorFailing')?.expr ?? '') ?? []
  assert.ok(
    failed / (failed + answered) > Number(limit),
    `${failed} of ${failed + answered}, and the limit is ${limit}`,
  )
  assert.equal(await breaker(), 'closed')
  await openedAlerts(vendorGateway).look()
  assert.deepEqual(titles(), [])
})

test('a vendor that is down: its breaker is open, and a metric and an alert say so', async () => {
  await receive(vendorGateway)
  const accounts = await Promise.all([1, 2, 3].map(() => vendorGateway.account()))
  for (const { key } of accounts) for (let i = 0; i < 6; i++) assert.notEqual(await callNorth(key, 500), 200)
  assert.equal(await breaker(), 'open')
  // Answered from a second ago, and half-open some seconds later.
  await until(() => readMetrics(vendorGateway), /^tollgate_vendor_breaker\{vendor="north"\} [12]$/m)
  await openedAlerts(vendorGateway).look()
  await until(titles, ['The circuit breaker of north is open'])
})

test('every row of the table of incidents names a rule with its delay, a runbook and a test that exist', () => {
  const [, table = ''] = readText('docs/reliability.md').split('## Incidents')
  const [section = ''] = table.split('\n## ')
  const rows = [...section.matchAll(/^\| (.*) \|$/gm)].map(([, row = '']) => row.split(' | ')).slice(1) // It has a head.
  assert.equal(rows.length, 6)
  for (const [incident, , alerts = '', runbook = '', file = ''] of rows) {
    const named = [...alerts.matchAll(/`(Tollgate\w+)` after (\d+) s/g)]
    assert.equal(named.length, 1, `${incident}`)
    for (const [, name = '', seconds] of named) {
      const rule = ruleOf(name)
      assert.ok(rule, name)
      const [, count, unit] = /^(\d+)([sm])$/.exec(rule.for) ?? []
      // How long it must be true, and of what is a time, how much of it.
      const [, above = 0] = /_seconds\) > (\d+)/.exec(rule.expr) ?? []
      assert.equal(Number(seconds), Number(count) * (unit === 'm' ? 60 : 1) + Number(above), name)
    }
    const [, title] = /\[(.*?)\]/.exec(runbook) ?? []
    assert.ok(readText('docs/guides/25-runbooks.md').includes(`## ${title}\n`), `${incident}: ${title}`)
    const [, path = '', name = '?'] = /`(.*?)`: (.*)/.exec(file) ?? []
    assert.ok(readText(path).includes(`'${name}`), `${incident}: ${path} ${name}`)
  }
})

test('every rule for Prometheus says what to do, and every runbook that is named exists', () => {
  assert.ok(RULES.length > 10)
  const anchors = new Set(
    [...readText('docs/guides/25-runbooks.md').matchAll(/^## (.*)$/gm)].map(
      ([, title]) => `docs/guides/25-runbooks.md#${title!.toLowerCase().replaceAll(' ', '-')}`, // The group matched.
    ),
  )
  for (const { alert, annotations } of RULES) {
    assert.ok(annotations.summary && annotations.action, alert)
    if (annotations.runbook) assert.ok(anchors.has(annotations.runbook), `${alert}: ${annotations.runbook}`)
  }
  for (const anchor of anchors)
    assert.ok(
      RULES.some(({ annotations }) => annotations.runbook === anchor),
      `${anchor} is named by no rule`,
    )
})
