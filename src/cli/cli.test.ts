import assert from 'node:assert/strict'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandLineOf } from '../../test/command-line.ts'
import { OPERATOR_TOKEN, startOperatorServer } from '../../test/operator-server.ts'
import { runProgram } from '../../test/sdk/cache.ts'
import { settlement } from '../../test/settlement.ts'
import { SMALL_CATALOG } from '../../test/small-catalog.ts'
import { started, temporary } from '../../test/started.ts'
import type { VerificationRun } from '../extensions/verify/views.ts'
import { newId, realWorld } from '../kernel/world.ts'
import { COMMANDS } from './run.ts'

const server = started(startOperatorServer)
const folder = temporary('tollgate-cli-')

const { run, json } = commandLineOf(() => server, { dataDirectory: folder, codexHome: join(folder, 'codex-home') })
const words = (text: string) => text.split(' ')

test('accounts, credits, limits and keys are managed from the command line', async () => {
  const account = await json<{ id: string; balance: string; limits: object }>([
    ...words('accounts create --credits 10 --spend-per-day 2.5 --concurrency 3'),
    'Team A',
  ])
  assert.deepEqual([account.balance, account.limits], ['10', { concurrency: 3, spendPerDay: '2.5' }])
  assert.equal(
    (await json<{ balance: string }>(['credits', 'add', account.id, '2.5', '--note', 'more'])).balance,
    '12.5',
  )
  for (let i = 0; i < 2; i++)
    assert.equal(
      (await json<{ balance: string }>(['credits', 'take', account.id, '0.5', '--key', 'refund 3'])).balance,
      '12',
    )
  const changed = await json<{ name: string; limits: object }>([
    ...words(`accounts change ${account.id} --concurrency none --name`),
    'Team B',
  ])
  assert.deepEqual([changed.name, changed.limits], ['Team B', { spendPerDay: '2.5' }])
  const listed = /^NAME +STATUS +BALANCE.*\nTeam B +open +12 .*acc_\w+$/m
  assert.match((await run(['accounts', 'list', '--search', 'team b'])).out, listed)
  const key = await json<{ id: string; key: string; models: string[] }>(
    words(`keys create ${account.id} ci --models alpha-5.4,socialapi --expires 2099-01-01T00:00:00Z`),
  )
  assert.deepEqual(key.models, ['alpha-5.4', 'socialapi'])
  const list = await run(['keys', 'list', account.id])
  assert.ok(list.out.includes(key.id) && !list.out.includes(key.key))
  const change = ['keys', 'change', key.id, '--models', 'all', '--response-cache', 'on']
  assert.partialDeepStrictEqual(await json<object>(change), { models: null, responseCache: true })
  const fresh = await json<{ id: string; key: string }>(['keys', 'rotate', key.id, '--overlap', '5'])
  assert.match((await run(['keys', 'rotate', fresh.id])).out, /^The key, shown this once:\n\n {2}tg_live_/)
  // Of what was not set nothing is said.
  const made = (await run(['keys', 'create', account.id, 'short'])).out
  assert.match(made, /^The key, shown this once:\n\n {2}tg_live_\w+\n\nID +key_\w+\nName +short$/m)
  assert.ok(made.trim().split('\n').length <= 12 && !/Expires|Models/.test(made), made)
  const revoked = await json<{ revokedAt: string }>(['keys', 'revoke', fresh.id])
  assert.ok(revoked.revokedAt)
  assert.deepEqual(await json(['limits', 'change', '--tokens-per-minute', '100000']), { tokensPerMinute: 100_000 })
  assert.deepEqual(await json(['limits', 'change', '--tokens-per-minute', 'none']), {})
  assert.match((await run(['limits', 'show'])).out, /no limits/)
})

test('an account is suspended, closed and reopened from the command line, each with its reason', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Leaver', '--credits', '7'])
  assert.match((await run(['accounts', 'suspend', id])).err, /--reason/)
  const suspended = await json<object>(['accounts', 'suspend', 'Leaver', '--reason', 'overdue'])
  assert.partialDeepStrictEqual(suspended, { status: 'suspended', statusReason: 'overdue', balance: '7' })
  assert.partialDeepStrictEqual(await json<object>(['accounts', 'reopen', id]), { status: 'open', statusReason: null })
  const close = ['accounts', 'close', id, '--reason', 'gone']
  assert.match((await run(close)).err, /Missing --balance/)
  assert.match((await run([...close, '--balance', 'burn'])).err, /--balance does not take "burn"/)
  const closed = await json<object>([...close, '--balance', 'writeoff'])
  assert.partialDeepStrictEqual(closed, { status: 'closed', balance: '0' })
  assert.match((await run(['ledger', 'show', id])).out, /writeoff +-7 .*gone/)
  assert.match((await run(['credits', 'add', id, '1'])).err, /closed\. Reopen it first/)
})

test('statements, margins and what a credit is worth are read and saved from the command line', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Payer', '--credits', '12.5'])
  const month = new Date().toISOString().slice(0, 7)
  assert.match((await run(['billing', 'change', '--currency', 'EUR'])).err, /rate/)
  assert.match(
    (await run(['billing', 'change', '--currency', 'EUR', '--rate', '0.02'])).out,
    /worth +0\.02\nCurrency +EUR/,
  )
  const shown = await run(['statements', 'show', 'payer', month])
  assert.match(shown.out, /^Customer +Payer\nMonth +\d{4}-\d\d\nFinal +no\n/)
  assert.match(shown.out, /Opening balance +0\s.*Top-ups +12\.5.*Closing balance +12\.5/s)
  for (const format of ['pdf', 'csv']) {
    const out = join(folder, `statement.${format}`)
    const wrote = await run(['statements', 'show', id, month, '--format', format, '--out', out])
    assert.match(wrote.out, /Wrote/, wrote.err)
    assert.match((await readFile(out)).toString('latin1'), format === 'pdf' ? /^%PDF-/ : /^customer,.*Closing balance/s)
  }
  // Without --out the gateway's name is used, in the directory of whoever asks.
  const home = process.cwd()
  process.chdir(folder)
  try {
    const show = ['statements', 'show', id, month, '--format', 'pdf']
    const [, name = ''] = /^Wrote (.*)\.$/m.exec((await run(show)).out) ?? []
    const first = await readFile(name)
    const again = await run(show)
    assert.deepEqual([again.code, again.out], [1, ''])
    assert.equal(again.err.trim(), `tollgate: ${name} exists already; remove it or choose another with --out`)
    assert.deepEqual(await readFile(name), first)
    const nowhere = await run([...show, '--out', join(folder, 'nowhere', 'a.pdf')])
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.err, /cannot be written: ENOENT/)
  } finally {
    process.chdir(home)
  }
  const zipped = join(folder, 'all.zip')
  assert.match((await run(['statements', 'all', month, '--out', zipped])).out, /Wrote .*all\.zip/)
  assert.match((await readFile(zipped)).toString('latin1'), /^PK.*statement-Payer-/s)
  assert.match((await run(['statements', 'show', id, 'may'])).err, /a month such as 2026-10/)
  assert.match((await run(['statements', 'show', id, month, '--format', 'doc'])).err, /takes pdf, csv/)
  assert.match((await run(['margins', 'show', '--from', '2001-01'])).out, /^No calls were charged/)
  assert.match((await run(['billing', 'change', '--currency', 'none'])).out, /worth +–/)
})

test('keeping requests and answers is switched on and off from the command line', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Keeper'])
  assert.match((await run(['content', 'show', id])).out, /^Content logging: off\. Keys: none/)
  assert.match((await run(['batches', 'list', id])).out, /^No batches yet\./)
  assert.match((await run(['batches', 'cancel', id, 'batch_none'])).err, /There is no batch with this id/)
  assert.match((await run(['content', 'on', id, '--days', '3', '--max-bytes', '2048'])).out, /days 3, maxBytes 2048/)
  assert.match((await run(['content', 'on', id, '--days', 'many'])).err, /--days takes a whole number/)
  assert.match((await run(['content', 'on', id, '--days', '91'])).err, /days/)
  assert.match((await run(['content', 'read', 'req_none'])).err, /No content is stored/)
  await json(['keys', 'create', id, 'watched'])
  assert.match((await run(['content', 'on', 'Keeper', '--key', 'watched'])).out, /Keys: .*days 7, maxBytes 65536/)
  const account = { days: 3, maxBytes: 2048 }
  assert.deepEqual(await json(['content', 'off', id, '--key', 'watched']), { account, keys: [], storedCalls: 0 })
  assert.deepEqual(await json(['content', 'off', id]), { account: null, keys: [], storedCalls: 0 })
})

test('usage and ledger are listed, explained, downloaded and verified', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Reader', '--credits', '1'])
  for (let i = 0; i < 3; i++) {
    const call = { id: newId(realWorld), account: id, key: 'key_1', product: 'alpha-5.4', catalogVersion: 1 }
    await server.ledger.reserve({ ...call, want: 10n, floor: 10n, tokens: 1 })
    const used = { lines: [['input', 3, '2000000']], inputTokens: 3, outputTokens: 0 } as const
    await server.ledger.resolve(settlement(id, call.id, 6n, { key: call.key, ...used }))
  }
  const rows = await json<Array<{ id: string }>>(['usage', 'list', id, '--limit', '2'])
  assert.equal(rows.length, 2)
  const shown = (await run(['usage', 'show', rows[0]!.id])).out
  assert.match(shown, /^Time +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/m)
  assert.match(shown, /^Account +Reader$/m)
  assert.match(shown, /^Outcome +settled\nStatus +200\n[\s\S]*^Credits charged +0\.000006$/m)
  assert.match(shown, /^input +3 +2 +1000000 +0\.000006$/m)
  const listed = (await run(['usage', 'list', 'reader', '--outcome', 'settled'])).out
  assert.match(listed, /^TIME +MODEL +KEY +STATUS +OUTCOME +FAULT +CREDITS/)
  assert.equal(listed.match(/ settled /g)?.length, 3)
  assert.match((await run(['usage', 'list', 'Reader', '--outcome', 'rejected'])).out, /^No calls match\./)
  const csv = await run(['usage', 'list', id, '--csv'])
  assert.equal(csv.out.trimEnd().split('\r\n').length, 4)
  assert.match((await run(['ledger', 'show', id])).out, /settled +-0\.000006 +0 +0\.999982/)
  assert.equal((await run(['ledger', 'show', id, '--csv', '--kind', 'grant'])).out.trimEnd().split('\r\n').length, 2)
  assert.match((await run(['ledger', 'archive'])).out, /No month is in the archive yet/)
  const unknown = await run(['ledger', 'archive', '--check', '2001-01'])
  assert.match(unknown.err, /2001-01 is not in the archive/)
  const verified = await run(['ledger', 'verify'])
  assert.equal(verified.code, 0)
  assert.match(verified.out, /Everything adds up/)
  await server.sql('update account set posted = posted + 1 where id = $1', [id])
  const broken = await run(['ledger', 'verify'])
  assert.equal(broken.code, 1)
  assert.ok(broken.out.includes(`Account ${id}: the balance is`))
  await server.sql('update account set posted = posted - 1 where id = $1', [id])
  const full = await run(['ledger', 'verify', '--full', '--json'])
  const told = JSON.parse(full.out) as VerificationRun
  assert.deepEqual([full.code, told.ok, told.full, told.checked.transfers >= 4], [0, true, true, true])
  const settled = `select count(*) as calls from usage where outcome = 'settled'`
  const [counted] = await server.sql<{ calls: bigint }>(settled)
  assert.ok(counted && counted.calls > 0n)
  assert.equal(told.checked.charges, Number(counted.calls))
  const said = /Recomputed the price and cost of (\d+) calls\. Took (\d+\.\d) s\./.exec(
    (await run(['ledger', 'verify', '--full'])).out,
  )
  assert.equal(said?.[1], String(counted.calls))
  const [last] = await server.sql<{ seconds: number }>(
    'select extract(epoch from ended_at - started_at)::float8 as seconds from verification order by id desc limit 1',
  )
  // Of a moment in the database's microseconds, the answer has the milliseconds.
  assert.ok(Math.abs(Number(said?.[2]) - (last?.seconds ?? Number.NaN)) <= 0.06)
  assert.equal((await run(['audit', 'verify'])).code, 0)
  assert.match((await run(['audit', 'list'])).out, /created the account "/)
})

test('the catalog is checked without a gateway, and compared, applied and rolled back with one', async () => {
  const file = join(folder, 'catalog.json')
  const away = { url: 'http://127.0.0.1:9', token: undefined }
  await writeFile(file, JSON.stringify(SMALL_CATALOG))
  const good = await run(['catalog', 'check', file], away)
  assert.equal(good.code, 0)
  assert.match(
    good.out,
    /valid: 3 vendors, 2 models, 1 endpoints\.\nNote: Vendor "textworks" needs the credential TEXTWORKS_API_KEY/,
  )
  assert.equal((await run(['catalog', 'check', '-'], { ...away, input: '{"vendors":{}}' })).code, 1)
  assert.match((await run(['catalog', 'check', '-'], { ...away, input: '{' })).err, /is not JSON/)
  assert.match((await run(['catalog', 'check', join(folder, 'none')], away)).err, /no such file/)
  const cheaper = structuredClone(SMALL_CATALOG)
  cheaper.endpoints['siteanalytics/websites/visits']!.pricing.tiers[0]!.call = '1'
  await writeFile(file, JSON.stringify(cheaper))
  assert.match((await run(['catalog', 'diff', file])).out, /websites\/visits: 1 credits a call instead of 1\.25/)
  assert.match((await run(['catalog', 'apply', file, '--note', 'cheaper'])).out, /^Version 2 is in force/)
  await run(['catalog', 'disable', 'alpha-5.4'])
  assert.equal(server.catalog.current.document.models['alpha-5.4']?.enabled, false)
  assert.match((await run(['catalog', 'rollback', '1'])).out, /version 1 again/)
  const copy = join(folder, 'copy.json')
  await run(['catalog', 'export', copy])
  assert.deepEqual(JSON.parse(await readFile(copy, 'utf8')), SMALL_CATALOG)
  assert.equal((await json<unknown[]>(['catalog', 'versions'])).length, 4)
  assert.match((await run(['catalog', 'rollback', '99'])).err, /There is no catalog version 99/)
})

test('a vendor’s credential comes from standard input, and is never printed', async () => {
  assert.equal((await run(['vendors', 'credential', 'textworks'], { input: '  \n' })).code, 2)
  const stored = await run(['vendors', 'credential', 'textworks'], { input: 'sk-secret-of-the-vendor\n' })
  assert.equal(stored.out, 'Stored as TEXTWORKS_API_KEY.\n')
  assert.equal(server.credentials.get('TEXTWORKS_API_KEY'), 'sk-secret-of-the-vendor')
  const list = await run(['vendors', 'list'])
  assert.match(list.out, /TEXTWORKS_API_KEY: stored/)
  assert.ok(!list.out.includes('sk-secret'))
  assert.equal((await run(['vendors', 'test', 'simulated'])).code, 0)
  assert.equal((await run(['vendors', 'forget', 'textworks'])).code, 0)
  // Where a change does not store it, nobody is told that nothing differs.
  const dropped = await run(['vendors', 'change', 'textworks', '--key-stdin'], { input: 'sk-another\n' })
  assert.deepEqual([dropped.code, dropped.out], [1, ''])
  assert.match(dropped.err, /tollgate vendors credentials textworks --set TEXTWORKS_API_KEY --key-stdin/)
  assert.equal((await run(['vendors', 'change', 'textworks', '--key-stdin'], { input: ' \n' })).code, 2)
  const change = ['vendors', 'change', 'textworks', '--dry-run', '--set']
  const wrong = await run([...change, 'timeouts.connectMs=0'])
  assert.equal(wrong.code, 1)
  assert.match(wrong.out, /It would not be valid:/)
  assert.equal((await run([...change, 'timeouts.connectMs=700'])).code, 0)
})

test('accounts, keys and people are found by their names, and near misses are named', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Harbour Ltd', '--credits', '5'])
  const { id: other } = await json<{ id: string }>(['accounts', 'create', 'Harbour Ltd East'])
  assert.match((await run(['keys', 'list', 'Harbour Ltd'])).out, /^No keys yet\. Create one with: tollgate keys create/)
  assert.match((await run(['members', 'list', id])).out, /^No members yet\. Invite one with/)
  assert.match((await run(['accounts', 'list', '--search', 'nobody here'])).out, /^No such accounts/)
  const key = await json<{ id: string; name: string }>(['keys', 'create', 'harbour ltd', 'night shift'])
  assert.equal((await json<{ id: string }>(['accounts', 'show', 'Harbour Ltd'])).id, id)
  const renamed = await json<{ id: string }>(['keys', 'change', 'Night Shift', '--name', 'day shift'])
  assert.equal(renamed.id, key.id)
  assert.deepEqual(await json(['usage', 'list', 'Harbour Ltd', '--key', 'day shift']), [])
  const missed = await run(['accounts', 'show', 'Harbor Ltd'])
  assert.deepEqual(
    [missed.code, missed.err],
    [1, 'tollgate: There is no account "Harbor Ltd". Did you mean "Harbour Ltd"?\n'],
  )
  await json(['accounts', 'change', other, '--name', 'Harbour Ltd'])
  const both = await run(['accounts', 'show', 'Harbour Ltd'])
  assert.equal(both.code, 2)
  assert.ok(both.err.includes(id) && both.err.includes(other), both.err)
  const alert = await run(['alerts', 'change', '--balance-below', '3'])
  assert.equal(alert.code, 0, alert.err)
})

test('credits go to the account of exactly this name, and a key is revoked by its whole name alone', async () => {
  const acme = await json<{ id: string }>(['accounts', 'create', 'Acme'])
  for (let i = 0; i < 9; i++) await json(['accounts', 'create', `Acme ${i}`])
  assert.equal((await json<{ id: string }>(['accounts', 'show', 'acme'])).id, acme.id)
  const newer = await json<{ id: string }>(['accounts', 'create', 'Acme'])
  const given = await run(['credits', 'add', 'Acme', '10', '--note', 'to whom?'])
  assert.equal(given.code, 2)
  assert.ok(given.err.includes(acme.id) && given.err.includes(newer.id), given.err)

  const key = await json<{ id: string }>(['keys', 'create', acme.id, 'prod-eu'])
  const part = await run(['keys', 'revoke', 'eu'])
  assert.deepEqual([part.code, part.err], [1, 'tollgate: There is no key "eu". See: tollgate keys list <account>\n'])
  await json(['keys', 'create', newer.id, 'prod-eu'])
  assert.equal((await run(['keys', 'revoke', 'prod-eu'])).code, 2)
  // Within an account there is only one, and one that was revoked has given its name free.
  assert.deepEqual(await json(['usage', 'list', acme.id, '--key', 'prod-eu']), [])
  await json(['keys', 'revoke', key.id])
  assert.equal((await run(['keys', 'revoke', 'prod-eu'])).code, 0)
})

test('links for people are made from the command line', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'People'])
  assert.match(
    (await run(['members', 'invite', id, 'a@example.com', '--role', 'owner'])).out,
    /\/console\/invite#token=[\w-]{43}\n$/,
  )
  assert.match((await run(['setup-link'])).out, /\/console\/setup#token=[\w-]{43}\n$/)
  assert.equal((await run(['password-link', 'nobody@example.com'])).code, 1)
  assert.deepEqual(await json(['members', 'list', id]), [])
})

test('the doctor says what is missing and what to do, and is content when nothing is', async () => {
  await json(['accounts', 'create', 'Some'])
  const missing = await run(['doctor'])
  assert.equal(missing.code, 1)
  assert.match(missing.out, /✗ vendors +"textworks" has no credential\. Set TEXTWORKS_API_KEY/)
  server.environment.set('TEXTWORKS_API_KEY', 'x')
  const fine = await run(['doctor'])
  assert.doesNotMatch(fine.out, /✗ (data|store|address|token|vendors|accounts)/)
  assert.match(fine.out, /1 of 3 vendors are simulated/)
  assert.match(fine.out, /console has no operator yet/)
  const away = await run(['doctor'], {
    url: 'http://127.0.0.1:9',
    server: { url: 'http://127.0.0.1:9', pid: 2 ** 22 + 1 },
  })
  assert.equal(away.code, 1)
  assert.match(away.out, /✗ gateway +Tollgate does not answer at .* \(pid \d+\) has ended/)
  assert.match(
    (await run(['doctor'], { token: 'tg_op_another_token_entirely' })).out,
    /✗ token +The operator token was rejected/,
  )
  assert.match((await run(['doctor'], { token: undefined })).out, /✗ token +There is no operator token/)
  assert.match((await run(['doctor'], { host: '0.0.0.0' })).out, /✗ address +HOST is 0\.0\.0\.0/)
  assert.match((await run(['doctor'], { publicUrl: 'http://gw.example' })).out, /✗ address +PUBLIC_URL is plain http/)
  assert.match(
    (await run(['doctor'], { publicUrl: 'https://gw.example', host: '0.0.0.0' })).out,
    /✓ address +Callers use https.*\n• address +.*TOLLGATE_TRUST_PROXY is not set/,
  )
  const trusting = { publicUrl: 'https://gw.example', trustProxy: '10.0.0.0/8' }
  assert.match((await run(['doctor'], trusting)).out, /✓ address +.*X-Forwarded-For of 10\.0\.0\.0\/8 is trusted/)
  await writeFile(join(folder, 'operator-token'), 'x')
  await chmod(join(folder, 'operator-token'), 0o644)
  assert.match((await run(['doctor'])).out, /✗ data +.*operator-token can be read by others/)
  assert.equal((JSON.parse((await run(['doctor', '--json'])).out) as { ok: boolean }).ok, false)
})

test('psql is told how to connect, without a password on the screen', async () => {
  const remote = await run(['psql'], { databaseUrl: 'postgres://app:hunter2@db.example:5432/gate' })
  assert.equal(remote.out, 'psql "postgres://app@db.example:5432/gate"   # asks for the password of DATABASE_URL\n')
  assert.match((await run(['psql'])).err, /No database runs in/)
})

test('what is not understood is said in a sentence, with exit code 2; what fails, with 1', async () => {
  const cases: Array<[string[], number, RegExp]> = [
    [['frobnicate'], 2, /There is no command "frobnicate"/],
    [['accounts', 'destroy'], 2, /There are: accounts list, accounts create/],
    [['accounts', 'show'], 2, /Missing <account>\. Usage: tollgate accounts show <account>/],
    [['accounts', 'show', 'a', 'b'], 2, /tollgate accounts show <account>/],
    [['accounts', 'list', '--wrong'], 2, /Unknown option '--wrong'/],
    [['accounts', 'list', '--serach', 'x'], 2, /Unknown option '--serach'\. Did you mean --search\?/],
    [['acounts', 'list'], 2, /There is no command "acounts"\. Did you mean "tollgate accounts list"\?/],
    [['accounts', 'lsit'], 2, /Did you mean "tollgate accounts list"\?/],
    [['serv'], 2, /Did you mean "tollgate serve"\?/],
    [
      ['usage', 'list', 'acc_1', '--outcome', 'setled'],
      2,
      /--outcome does not take "setled"\. Did you mean "settled"\?/,
    ],
    [['connect', 'opnai'], 2, /There is no preset "opnai"\. Did you mean "openai"\?/],
    [['vendors', 'test', 'txtworks'], 1, /There is no vendor "txtworks"\. Did you mean "textworks"\?/],
    [['catalog', 'disable', 'alpha-54'], 1, /There is no model or endpoint "alpha-54"\. Did you mean "alpha-5\.4"\?/],
    [['accounts', 'list', '--limit', 'x'], 2, /--limit takes a whole number/],
    [['accounts', 'create', 'x', '--concurrency', 'many'], 2, /--concurrency takes a whole number/],
    [['accounts', 'change', 'acc_1'], 2, /Nothing to change/],
    [['credits', 'add', 'acc_1', 'lots'], 2, /must be a number such as 12\.5/],
    [['accounts', 'show', 'acc_none'], 1, /There is no account with this id/],
    [['accounts', 'create', 'x', '--credits', '1.1234567'], 1, /credits: must be an amount of credits/],
  ]
  for (const [args, code, message] of cases) {
    const result = await run(args)
    assert.equal(result.code, code, args.join(' '))
    assert.match(result.err, message)
    assert.match(result.err, /^tollgate: .*\n$/)
  }
  assert.match((await run(['accounts', 'list'], { url: `${server.url}/nowhere` })).err, /nothing at this address/)
})

test('every command has a summary and help, and the help needs no configuration', async () => {
  const [short, help] = [await runHelp(['help']), await runHelp(['help', 'all'])]
  assert.ok(short.out.split('\n').length < 60 && /\n {2}accounts, credits, limits, keys/.test(short.out), short.out)
  const titles = [
    'Call endpoints',
    'Accounts, keys and people',
    'Usage and money',
    'Vendors and catalog',
    'Alerts and deliveries',
  ]
  for (const title of titles) assert.ok(help.out.includes(`\n\n${title}\n  `), title)
  for (const command of COMMANDS) {
    assert.ok(help.out.includes(command.name), command.name)
    assert.match(command.summary, /\.$/)
    const own = await runHelp([...command.name.split(' '), '--help'])
    assert.equal(own.code, 0)
    assert.ok(own.out.startsWith(`tollgate ${command.name}`))
  }
  assert.equal((await runHelp(['keys', '--help'])).code, 0)
  assert.equal((await runHelp(['help', 'catalog'])).out.split('\n').length > 5, true)
})

const { run: runHelp } = commandLineOf(() => assert.fail('help reads no settings'))

test('the program finds address and token in the data directory', async () => {
  const data = await mkdtemp(join(tmpdir(), 'tollgate-cli-data-'))
  await writeFile(join(data, 'server.json'), JSON.stringify({ url: server.url, pid: process.pid }))
  await writeFile(join(data, 'operator-token'), `${OPERATOR_TOKEN}\n`, { mode: 0o600 })
  const program = join(import.meta.dirname, '..', 'main.ts')
  const env = { PATH: process.env.PATH, TOLLGATE_DATA: data }
  const { out } = await runProgram(process.execPath, [program, 'accounts', 'list', '--json'], { env })
  assert.ok(Array.isArray(JSON.parse(out)))
  const bad = { ...env, PORT: 'x', TOLLGATE_WORKERS: 'many' }
  const { code, err } = await runProgram(process.execPath, [program, 'accounts', 'list'], { env: bad })
  assert.equal(code, 1)
  assert.match(err, /2 problems/)
  await rm(data, { recursive: true })
})

test('coding agents are set up without a key in any file, and no file that exists is changed', async () => {
  const programs = ['claude-code', 'opencode', 'cursor', 'vscode', 'aider']
  for (const program of programs) {
    const directory = join(folder, program)
    const shown = await run(['agent-setup', program], { publicUrl: 'https://gateway.example' })
    assert.equal(shown.code, 0, shown.err)
    assert.match(shown.out, /https:\/\/gateway\.example/)
    assert.doesNotMatch(shown.out, /tg_live_\w/)
    const setup = await json<{ files: { path: string; text: string }[] }>(
      words(`agent-setup ${program} --write ${directory}`),
    )
    for (const { path, text } of setup.files) {
      assert.equal(await readFile(join(directory, path), 'utf8'), text)
      if (path.endsWith('.json')) JSON.parse(text)
    }
    const again = await run(['agent-setup', program, '--write', directory])
    assert.equal(again.code, 1)
    assert.match(again.err, /exists, and is not changed/)
  }
  assert.match((await run(['agent-setup', 'codex', '--model', 'mine'])).out, /model = "mine"/)
  const unknown = await run(['agent-setup', 'emacs'])
  assert.equal(unknown.code, 2)
  assert.match(unknown.err, /there are claude-code, codex/)
})

test('Codex is set up in its own home, where it looks, with what was there before', async () => {
  const home = join(folder, 'home-of-codex')
  const file = join(home, 'config.toml')
  const project = join(folder, 'a-project')
  const setUp = () =>
    run(['agent-setup', 'codex', '--model', 'alpha-5.4', '--gateway', 'https://gw.example', '--write', project], {
      codexHome: home,
    })
  const made = await setUp()
  assert.equal(made.code, 0, made.err)
  assert.ok(made.out.includes(`Wrote ${file}`), made.out)
  const fresh = await readFile(file, 'utf8')
  for (const line of ['model = "alpha-5.4"', 'model_context_window = 1050000', 'base_url = "https://gw.example/v1"'])
    assert.ok(fresh.split('\n').includes(line), line)
  await setUp()
  assert.equal(await readFile(file, 'utf8'), fresh, 'the same again changes nothing')

  const theirs = [
    '# mine',
    'model = "gpt-5" # the best',
    'approval_policy = "never"',
    'notes = """',
    '[model_providers.tollgate]',
    '"""',
    '',
    '[model_providers.other]',
    'name = "Other"',
    '',
    '[model_providers.tollgate]',
    'base_url = "http://old.example/v1"',
    '',
    '[[skills]]',
    'path = "x"',
  ]
  await writeFile(file, theirs.join('\n'))
  await setUp()
  const merged = (await readFile(file, 'utf8')).split('\n')
  for (const line of [
    ...theirs.slice(2, 6),
    '# mine',
    '[model_providers.other]',
    'name = "Other"',
    '[[skills]]',
    'path = "x"',
  ])
    assert.ok(merged.includes(line), `${line}\n${merged.join('\n')}`)
  assert.ok(merged.includes('# before Tollgate: model = "gpt-5" # the best'))
  assert.ok(!merged.includes('base_url = "http://old.example/v1"'))
  const top = merged.slice(0, merged.indexOf('[model_providers.other]'))
  assert.ok(top.includes('model = "alpha-5.4"') && top.includes('model_provider = "tollgate"'))
  await setUp()
  assert.deepEqual((await readFile(file, 'utf8')).split('\n'), merged)

  const inline = 'model_providers = { other = { name = "x" } }\n'
  await writeFile(file, inline)
  const refused = await setUp()
  assert.equal(refused.code, 1)
  assert.match(refused.err, /cannot be changed safely/)
  assert.equal(await readFile(file, 'utf8'), inline)
})

test('tokens are made, listed, used and revoked; operators and members get roles', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Token Team'])
  assert.equal((await run(['tokens', 'create', 'x'])).code, 2)
  const made = await json<{ id: string; token: string }>([
    ...words(
      'tokens create --scopes keys,accounts:read --expires 2099-01-01T00:00:00Z --addresses 127.0.0.0/8 --account',
    ),
    'Token Team',
    'keys only',
  ])
  const as = (args: string[]) => run(args, { token: made.token })
  assert.equal((await as(['keys', 'create', id, 'by a token'])).code, 0)
  const refused = await as(['credits', 'add', id, '5'])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /does not have the scope credits:write/)
  assert.match((await run(['tokens', 'list', '--account', id])).out, /keys only +keys, accounts:read/)
  assert.match((await run(['tokens', 'list'])).out, /operator token +\*/)
  assert.equal((await run(['tokens', 'revoke', made.id, '--account', id])).out.trim(), 'Revoked.')
  assert.equal((await as(['keys', 'list', id])).code, 1)
  assert.match(
    (await run(['operators', 'invite', 'books@example.com', '--role', 'finance'])).out,
    /\/console\/invite#token=/,
  )
  assert.match((await run(['operators', 'invite', 'x@example.com', '--role', 'king'])).err, /role/)
  assert.equal((await run(['operators', 'role', 'usr_none', 'support'])).code, 1)
  assert.equal((await run(['operators', 'list'])).code, 0)
  assert.equal((await run(['members', 'role', id, 'usr_none', 'admin'])).code, 1)
})
