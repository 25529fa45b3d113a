// Plans and codes on a real Postgres, with a clock that the test moves.
import { freshDatabase } from '../../../test/database.ts'
import { after, assert, before, none, pluck, started, test } from '../../../test/kit.ts'
import { SMALL_CATALOG } from '../../../test/small-catalog.ts'
import { type Accounts, createAccounts } from '../../admission/accounts.ts'
import { openCatalog, storedCatalogs } from '../../catalog/store.ts'
import { type Audit, createAudit } from '../../database/audit.ts'
import { createChanges } from '../../database/changes.ts'
import { createAttempts } from '../../identity/attempts.ts'
import { openBranding } from '../../identity/branding/branding.ts'
import { Fault } from '../../kernel/fault.ts'
import { silentLog } from '../../kernel/log.ts'
import { createSecrets } from '../../kernel/secret.ts'
import { realWorld, type World } from '../../kernel/world.ts'
import { createLedger, type Ledger } from '../../ledger/ledger.ts'
import { readBalance } from '../../reports/statement.ts'
import { openCredentials } from '../../upstream/credentials/credentials.ts'
import { verifyLedger } from '../verify/verify.ts'
import { type Codes, createCodes } from './codes.ts'
import { createInvoices } from './invoices/invoices.ts'
import { openSales } from './open.ts'
import type { Plans } from './plans.ts'

const BY = { actor: 'olive', ip: '192.0.2.1', requestId: null }
const DAY_MS = 86_400_000
const SALES = {
  currency: 'EUR',
  plans: [
    { id: 'free', name: 'Free', price: '0', credits: '100', limits: { requestsPerMinute: 60 } },
    { id: 'more', name: 'More', price: '0', credits: '300', products: ['alpha*'], priority: 10 },
    { id: 'pro', name: 'Pro', price: '9.00', credits: '1000', trialDays: 14 },
  ],
}

let ledger: Ledger
let audit: Audit
let accounts: Accounts
let plans: Plans
let codes: Codes
let aheadMs = 0
const world: World = { ...realWorld, nowMs: () => realWorld.nowMs() + aheadMs }
let makePlans: () => Plans
const choose = (account: string, plan: string | null) =>
  plans.choose(account, { plan }, { by: BY, buyer: { personId: null, email: null }, returnUrl: '' })

const fresh = started(freshDatabase)
const database = started(() => fresh.open())
before(async () => {
  ledger = createLedger({ database, world: realWorld, processId: 'p1', graceMs: 0 })
  audit = createAudit({ database, world: realWorld })
  const changes = createChanges(database, realWorld)
  const catalog = await openCatalog({ database, changes, audit, initial: { ...SMALL_CATALOG, sales: SALES } })
  accounts = createAccounts({ database, world: realWorld, ledger, audit, changes })
  const secrets = createSecrets('a secret for tests, of more than thirty-two bytes')
  const credentials = await openCredentials({
    database,
    changes,
    world: realWorld,
    audit,
    secrets,
    environment: new Map(),
  })
  const branding = await openBranding({ database, changes, audit })
  const invoices = createInvoices({ database, world: realWorld, audit })
  makePlans = () =>
    openSales({
      database,
      world,
      ledger,
      audit,
      catalog,
      accounts,
      log: silentLog,
      credentials,
      invoices,
      branding,
      stripeUrl: undefined,
      mails: undefined,
      publicUrl: () => '',
      localUrl: () => '',
      secrets,
      upstream: { send: () => Promise.reject(new Error('no network')) },
      sandboxUrl: () => undefined,
    }).plans
  plans = makePlans()
  codes = createCodes({ database, world: realWorld, ledger, audit, attempts: createAttempts(database) })
  await ledger.sweep()
})
after(() => ledger.idle())

const rows = <R>(text: string, values: string[] = []) => database.query<R>({ text }, values)
const newAccount = (name: string) => accounts.create({ name }, BY)
const movements = (account: string) =>
  rows<{ kind: string; amount: bigint }>('select kind, amount from transfer where account_id = $1 order by moved_at', [
    account,
  ])
const limitsOf = async (account: string) =>
  (await rows<{ limits: object }>(`select limits_of($1, 'account') as limits`, [account]))[0]?.limits
/** Time goes on, for plans and for lots, whose ends the database compares with its own clock. */
async function pass(days: number): Promise<void> {
  aheadMs += days * DAY_MS
  await rows(
    `update lot set ends_at = now() - interval '1 second' where remaining > 0 and ends_at <= to_timestamp($1::float8 / 1000)`,
    [String(world.nowMs())],
  )
  await ledger.sweep()
}

test('a free plan grants a month’s credits, which end with it; changes and its end come at the period’s end; each period begins once', async () => {
  const account = await newAccount('free')
  const started = await choose(account, 'free')
  assert.equal(started.plan?.id, 'free')
  assert.deepEqual(await limitsOf(account), { requestsPerMinute: 60 })
  await assert.rejects(choose(account, 'none'), Fault)
  assert.equal((await choose(account, 'more')).plan?.next, 'more')
  await plans.renew()
  assert.deepEqual(await movements(account), [{ kind: 'plan', amount: 100_000_000n }])
  await pass(32)
  // Many processes at once.
  await Promise.all([1, 2, 3, 4].map(() => makePlans().renew()))
  assert.deepEqual(await movements(account), [
    { kind: 'plan', amount: 100_000_000n },
    { kind: 'expiry', amount: 100_000_000n },
    { kind: 'plan', amount: 300_000_000n },
  ])
  assert.deepEqual(await limitsOf(account), {}, 'the limits of the plan before are gone')
  const balance = await readBalance(database, account)
  assert.deepEqual(pluck(balance?.lots, 'source', 'products', 'priority'), [['plan', ['alpha*'], 10]])
  assert.equal((await choose(account, null)).plan?.next, null)
  await pass(32)
  await plans.renew()
  assert.equal((await plans.view(account)).plan, null)
  assert.equal((await readBalance(database, account))?.balance, '0')
})

test('without payments no plan with a price can be chosen; the plan of an account that was closed ends', async () => {
  const account = await newAccount('pro')
  await assert.rejects(choose(account, null), /has no plan/)
  await assert.rejects(choose(account, 'pro'), /no payments are set up/)
  assert.deepEqual(pluck((await plans.view(account)).plans, 'id'), ['free', 'more'])
  await choose(account, 'free')
  await pass(32)
  await rows(`update account set status = 'closed' where id = $1`, [account])
  await plans.renew()
  assert.equal((await plans.view(account)).plan, null)
  assert.deepEqual(pluck(await movements(account), 'kind'), ['plan', 'expiry'])
  await assert.rejects(choose(account, 'free'), Fault)
})

test('a code is redeemed as often as its batch says and once by an account; what is guessed, used or ended gets one answer and counts', async () => {
  const two = await codes.create({ name: 'Fair', credits: 5_000_000n, codes: 2, usesMax: 2, creditDays: 30 }, BY)
  const old = await codes.create({ name: 'Old', credits: 5_000_000n, codes: 1, usesMax: 1 }, BY)
  await codes.end(old.id, BY)
  const [first = '', second = ''] = two.list
  assert.match(first, /^([A-Z2-9]{4}-){3}[A-Z2-9]{4}$/)
  const [a, b, c] = [await newAccount('a'), await newAccount('b'), await newAccount('c')]
  const redeem = (account: string, code: string) =>
    codes.redeem(account, code, BY).then(
      ({ credits }) => credits,
      (error: Fault) => error.message,
    )
  const WRONG = 'code: this code is not valid.'
  assert.equal(await redeem(a, first.toLowerCase().replaceAll('-', ' ')), '5')
  assert.equal(await redeem(a, first), WRONG, 'by the same account')
  // All at once: one of them is the second.
  const others = await Promise.all([b, c].map((account) => redeem(account, first)))
  assert.deepEqual(others.toSorted(), ['5', WRONG].toSorted())
  for (const code of [old.list[0] ?? '', 'AAAA-BBBB-CCCC-DDDD', '', '%']) assert.equal(await redeem(a, code), WRONG)
  assert.equal(await redeem(a, second), '5')
  for (let tries = 0; tries < 3; tries++) assert.equal(await redeem(a, 'AAAA'), WRONG)
  assert.match(await redeem(a, second), /too many tries/, 'right or wrong')
  const [stored] = await rows<{ n: bigint }>('select count(*) as n from code where hash::text like $1', [`%${first}%`])
  assert.equal(stored?.n, 0n)
  const { items } = await codes.list({ limit: 10 })
  assert.deepEqual(pluck(items, 'name', 'used'), [
    ['Old', 0],
    ['Fair', 3],
  ])
})

test('the ledger verifies with plans, codes and lots that ended', async () => {
  const { problems } = await verifyLedger(database, storedCatalogs(database), { audit })
  // Lots end here by moving their end by hand, which is what it then finds.
  none(problems, (problem) => !/says of lot .*: its ends_at was/.test(problem))
})
