// What control counts for all ledgers, codes and the numbers of invoices, after a ledger ended between the commit of
// control and its own; and the verification, which compares both.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openedAlerts } from '../../../test/alerts.ts'
import { BY, SECRET } from '../../../test/gateway.ts'
import { type Customer, type Installation, startInstallation } from '../../../test/installation.ts'
import { ISSUER } from '../../../test/invoice-shapes.ts'
import { verified } from '../../../test/operator-server.ts'
import { scriptedVendor } from '../../../test/scripted-vendor.ts'
import { until } from '../../../test/until.ts'
import { readDefaultCatalog } from '../../compose.ts'
import { createAudit } from '../../database/audit.ts'
import { beforeCommit, type Database, openDatabase } from '../../database/database.ts'
import { LEDGER_SCHEMAS } from '../../database/tables.ts'
import { createSecrets } from '../../kernel/secret.ts'
import { realWorld } from '../../kernel/world.ts'
import { createInvoices } from '../sales/invoices/invoices.ts'

let all: Installation
let control: Database
const customers = new Map<string, Customer>()
const opened = new Map<string, Database>()

before(async () => {
  all = await startInstallation(['east', 'west'])
  control = all.databaseOf('control')
  while (customers.size < 2) {
    const made = await all.customer()
    customers.set(made.home, made)
  }
  for (const name of ['east', 'west'])
    opened.set(name, openDatabase({ connection: { connectionString: all.addressOf(name) }, schemas: LEDGER_SCHEMAS }))
  await all.ask('/invoice-settings', { issuer: ISSUER }, 'PATCH')
  for (const name of opened.keys())
    await until(
      async () => (await opened.get(name)!.query({ text: `select from setting where name = 'invoices'` })).length,
      1,
    )
})
after(async () => {
  for (const database of opened.values()) await database.close()
  await all?.close()
})

/** In the ledger, with `last` at the end of its transaction. */
async function invoice(name: string, last: () => Promise<void> = async () => undefined): Promise<string> {
  const database = opened.get(name)! // It was opened.
  const audit = createAudit({ database, world: realWorld, key: createSecrets(SECRET).key('audit') })
  const invoices = createInvoices({ database, world: realWorld, audit })
  const account = customers.get(name)!.id // It has one.
  return database.transaction(async (tx) => {
    await tx.query({ text: 'set transaction isolation level serializable' })
    await tx.query({ text: 'select v from public.planted where k = 1' })
    const day = Math.floor(realWorld.nowMs() / 86_400_000) - counted++
    const month = { account, firstDay: day, lastDay: day, credits: 1n, currency: 'EUR', netMinor: 100n }
    const { number } = await invoices.issueMonth(tx, { ...month, description: 'A day' })
    await tx.query({ text: 'update public.planted set v = v + 1 where k = 2' })
    // After the audit log, which is written last.
    beforeCommit(tx, last)
    return number.slice(number.indexOf('-') + 1)
  })
}
let counted = 1

/** Two others, after which Postgres refuses the first when it has told control to commit: it sees the danger last. */
async function refuseAtCommit(name: string): Promise<void> {
  const other = { connection: { connectionString: all.addressOf(name) }, connectionsMax: 1 }
  const [reader, writer] = [openDatabase(other), openDatabase(other)]
  const SERIALIZABLE = { text: 'set transaction isolation level serializable' }
  const read = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const reading = reader.transaction(async (tx) => {
    await tx.query(SERIALIZABLE)
    await tx.query({ text: 'select v from public.planted where k = 2' })
    read.resolve()
    await end.promise
  })
  await read.promise
  await writer.transaction(async (tx) => {
    await tx.query(SERIALIZABLE)
    await tx.query({ text: 'update public.planted set v = v + 1 where k = 1' })
  })
  dangling.push(async () => {
    end.resolve()
    await reading.catch(() => undefined)
    await Promise.all([reader.close(), writer.close()])
  })
}
const dangling: Array<() => Promise<void>> = []

test('a number that control gave to a ledger which ended before its commit is given to the next invoice', async () => {
  for (const name of ['east', 'west']) {
    const database = opened.get(name)! // It was opened.
    await database.query({ text: 'create table public.planted (k int primary key, v int)' })
    await database.query({ text: 'insert into public.planted values (1, 0), (2, 0)' })
  }
  const year = new Date(realWorld.nowMs()).getUTCFullYear()
  assert.equal(await invoice('east'), `${year}-000001`)
  await assert.rejects(
    invoice('east', () => refuseAtCommit('east')),
    ({ cause }) => /serialize/.test(String(cause)),
  )
  for (const end of dangling) await end()
  const taken = 'select last from invoice_counter'
  assert.deepEqual(await control.query({ text: taken }), [{ last: 2 }], 'control has counted it')
  assert.equal(await invoice('west'), `${year}-000003`)
  // As if two minutes had passed, after which the ledger's transaction has ended.
  await control.query({ text: `update crossing set created_at = now() - interval '1 hour'` })
  await until(
    async () => (await control.query({ text: `select kind from crossing` })).map((row) => row),
    [{ kind: 'number' }],
  )
  assert.deepEqual((await verified(all)).problems, [])
  assert.equal(await invoice('west'), `${year}-000002`)
  assert.equal(await invoice('east'), `${year}-000004`)
})

test('verification compares what control counted with what all ledgers have', async () => {
  const { list } = await all.ask<{ list: string[] }>('/code-batches', { name: 'spring', credits: '5', codes: 2 })
  for (const [at, { id }] of [...customers.values()].entries())
    await all.ask(`/accounts/${id}/codes`, { code: list[at] })
  await until(async () => (await control.query({ text: 'select 1 from crossing' })).length, 0)
  assert.deepEqual((await verified(all)).problems, [])
  await control.query({ text: 'update code set uses = uses + 1 where hash = (select min(hash) from code)' })
  await control.query({ text: 'update invoice_counter set last = last + 1' })
  const { problems } = await verified(all)
  assert.match(problems.join('\n'), /Control counted 3 codes of the batch .*, but all ledgers together have 2\./)
  assert.match(problems.join('\n'), /Control counted 5 invoices of the series .*, but all ledgers together have 4\./)
})

test('a vendor that fails in several ledgers is one alert of the installation', async () => {
  const callers: Customer[] = []
  const isEnough = (name: string) => callers.filter(({ home }) => home === name).length >= 3
  while (!isEnough('east') || !isEnough('west')) callers.push(await all.customer())
  const failing = { model: 'alpha-5.4', max_tokens: 5, messages: [{ role: 'user', content: '[[500]]' }] }
  for (const { key } of callers)
    for (let calls = 0; calls < 6; calls++)
      assert.notEqual((await all.call('/v1/chat-completions', key, failing)).status, 200)
  const gateways = [all.gateway, ...(all.cells?.all() ?? [])]
  assert.equal(gateways.length, 3)
  const open = gateways.map((one) => one.vendors.health().filter(({ breaker }) => breaker === 'open').length)
  assert.deepEqual(open.slice(1), [1, 1], 'each ledger has its own breaker')
  for (const gateway of gateways) await openedAlerts({ gateway }).look()
  const { items } = await all.ask<{ items: Array<{ title: string }> }>('/alerts')
  assert.deepEqual(
    items.filter(({ title }) => title.startsWith('The circuit breaker')).map(({ title }) => title),
    ['The circuit breaker of alpha is open'],
  )
})

test('a vendor is probed once for all ledgers, and each has the result', async () => {
  const vendor = await scriptedVendor('probed')
  try {
    const document: any = await readDefaultCatalog()
    // So rarely that it is probed once while the test runs.
    document.vendors.probed = { baseUrl: vendor.url, probe: { everySeconds: 3600 } }
    const routes = [{ vendor: 'probed', protocol: 'openai-chat', model: 'm' }]
    document.models.probed = { ...document.models['alpha-5.4'], family: 'plain', traits: {}, routes }
    await all.gateway.catalog.apply(document, BY, '')
    const gateways = [all.gateway, ...(all.cells?.all() ?? [])]
    const seen = () => gateways.map(({ prober }) => prober.view('probed')?.state)
    await until(seen, ['answering', 'answering', 'answering'])
    assert.equal(vendor.listed, 1)
  } finally {
    vendor.close()
  }
})
