// Databases that LiteLLM and new-api wrote themselves (test/fixtures/*/README.md), taken over by the commands into a
// gateway.

import { hash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { commandLineOf } from '../../../test/command-line.ts'
import { emptyDatabase, type FreshDatabase } from '../../../test/database.ts'
import { after, assert, before, started, temporary, test } from '../../../test/kit.ts'
import { OPERATOR_TOKEN, startOperatorServer } from '../../../test/operator-server.ts'
import type { KeyView } from '../../admission/views.ts'
import type { CurrentView } from '../../catalog/views.ts'
import { Fault } from '../../kernel/fault.ts'
import type { AccountView } from '../../ledger/views.ts'
import type { ImportLine } from './report.ts'

const FIXTURES = resolve(import.meta.dirname, '..', '..', '..', 'test', 'fixtures')
const CONFIG = join(FIXTURES, 'litellm', 'config.yaml')

const foreign: FreshDatabase[] = []
const addresses = { litellm: '', newApi: '', sqlite: '' }

const server = started(startOperatorServer)
const folder = temporary('tollgate-import-')
const { run } = commandLineOf(() => server)
before(async () => {
  addresses.litellm = await postgresWith('litellm/database.sql')
  addresses.newApi = await postgresWith('new-api/database.postgres.sql')
  addresses.sqlite = await sqliteWith('one-api.db', await fixture('new-api/database.sqlite.sql'))
})
after(async () => {
  for (const database of foreign) await database.drop()
})

const fixture = (name: string) => readFile(join(FIXTURES, name), 'utf8')
const keysIn = async (name: string) => JSON.parse(await fixture(name)) as Record<string, string>

async function postgresWith(dump: string): Promise<string> {
  const database = await emptyDatabase()
  foreign.push(database)
  const client = new pg.Client(database.connection)
  await client.connect()
  await client.query(await fixture(dump))
  await client.end()
  return database.url
}

async function sqliteWith(name: string, sql: string): Promise<string> {
  const path = join(folder, name)
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
  return path
}

interface Imported {
  lines: ImportLine[]
  changes: string[]
  accounts: number
  version?: number
  made?: { accounts: number; keys: number; refused: string[] }
}

async function json<T = Imported>(...args: string[]): Promise<T> {
  const { code, out, err } = await run([...args, '--json'])
  assert.equal(code, 0, err + out)
  return JSON.parse(out) as T
}

const said = ({ lines }: Imported) => lines.map(({ what, at, words }) => `${what} ${at}: ${words}`)
const found = (lines: string[], pattern: RegExp) =>
  assert.ok(
    lines.some((line) => pattern.test(line)),
    String(pattern),
  )

async function accountsByName(): Promise<Record<string, AccountView>> {
  const list = await json<AccountView[]>('accounts', 'list')
  return Object.fromEntries(list.map((account) => [account.name, account]))
}

async function catalog(): Promise<CurrentView> {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` }
  const answer = (await (await fetch(`${server.url}/admin/v1/catalog`, { headers })).json()) as { data: CurrentView }
  return answer.data
}

/** Everything that an import could add to. */
async function state() {
  const counted = await server.sql<{
    rows: bigint
  }>(`select (select count(*) from account) + (select count(*) from api_key) + (select count(*) from transfer)
      + (select count(*) from catalog_version) + (select count(*) from audit) as rows`)
  return counted[0]?.rows
}

/** Whose key it is, for whoever sends it. */
async function whose(key: string): Promise<{ account: string; models: string[] | null } | undefined> {
  try {
    const header = { authorization: `Bearer ${key}`, xApiKey: undefined }
    const { accountId, models } = await server.apiKeys.authenticate(header, { ip: '10.1.1.1' })
    return { account: accountId, models: models && [...models] }
  } catch (error) {
    assert.ok(error instanceof Fault && error.kind === 'key_unknown', String(error))
    return undefined
  }
}

test('LiteLLM’s teams, users, budgets and keys are shown first, then taken over once; holders keep their keys', async () => {
  const keys = await keysIn('litellm/keys.json')
  const command = ['import', 'litellm', CONFIG, '--database', addresses.litellm, '--balance', '10']
  const untouched = await state()
  const shown = await json(...command)
  assert.equal(await state(), untouched, 'nothing is applied unless asked')
  const lines = said(shown)
  for (const pattern of [
    /^taken team Growth: An account that begins with 8750 credits .*requestsPerMinute 600, tokensPerMinute 200000, spendPerMonth 10000/,
    /^changed team Growth\.budget_duration: .*30d/,
    /^left team Closed: It is blocked/,
    /^changed team Weekly\.budget_duration: .*7d/,
    /^taken team Weekly: .*begins with 0 credits.*pay for nothing/,
    /^taken user ada@example.com: .*1925 credits.*requestsPerMinute 60, concurrency 4/,
    /^left user bob@example.com: There is no key/,
    /^left key only-unknown\.models: Not offered here: gpt-99, openai\/\*/,
    /^left key growth-app\.metadata/,
    /^taken key growth-app: .*requestsPerMinute 100, tokensPerMinute 50000, spendTotal 3775/,
    /^taken key growth-batch: .*spendPerMonth 100\./,
    /^taken key ada-laptop: .*requestsPerMinute 30, spendPerDay 500/,
    /^left key ada-laptop\.aliases/,
    /^left key sk-\.\.\.on-1\.permissions/,
    /^left key stolen: It is blocked/,
    /^left key closed-app: Its team is blocked/,
    /^left key only-unknown: None of the models/,
    /^left key sk-\.\.\.OcVQ: It is a login/,
    /^taken key service: .*spendTotal 0\./,
    /^left model in-database: .*encrypted/,
    /^left customers: 1 /,
  ])
    found(lines, pattern)

  const applied = await json(...command, '--apply')
  assert.deepEqual(applied.made, { accounts: 4, keys: 5, refused: [] })
  const accounts = await accountsByName()
  const of = (name: string) => accounts[name] ?? assert.fail(name)
  assert.equal(of('Growth').balance, '8750')
  assert.deepEqual(of('Growth').limits, { requestsPerMinute: 600, tokensPerMinute: 200_000, spendPerMonth: '10000' })
  assert.equal(of('ada@example.com').balance, '1925')
  assert.equal(of('LiteLLM, keys without an owner').balance, '10')
  assert.deepEqual(await whose(keys.growth ?? ''), { account: of('Growth').id, models: ['gpt-5.4'] })
  assert.deepEqual(await whose(keys['growth-all'] ?? ''), {
    account: of('Growth').id,
    models: ['gpt-5.4', 'claude-sonnet'],
  })
  assert.deepEqual(await whose(keys.ada ?? ''), { account: of('ada@example.com').id, models: null })
  assert.deepEqual(await whose(keys.chosen ?? ''), { account: of('ada@example.com').id, models: ['house-llama'] })
  for (const name of ['blocked', 'closed', 'nowhere', 'dashboard'])
    assert.equal(await whose(keys[name] ?? ''), undefined)
  // The hash that was handed over is no key.
  for (const key of Object.values(keys)) assert.equal(await whose(hash('sha256', key, 'hex')), undefined)
  const app = (await json<KeyView[]>('keys', 'list', of('Growth').id)).find(({ name }) => name === 'growth-app')
  assert.deepEqual([app?.prefix, app?.last4], ['sk-', keys.growth?.slice(-4)])

  const before = await state()
  const again = await json(...command, '--apply')
  assert.deepEqual([again.made, again.version], [{ accounts: 0, keys: 0, refused: [] }, undefined])
  assert.equal(await state(), before, 'run twice, nothing changes twice')
  found(said(again), /^left team Growth: Account acc_\w+ is there already/)
  found(said(again), /^left key growth-app: The key is there already/)
  const verified = await run(['ledger', 'verify'])
  assert.equal(verified.code, 0, verified.out)

  const secrets = [
    ...Object.values(keys),
    ...Object.values(keys).map((key) => hash('sha256', key, 'hex')),
    'made-up-vendor',
  ]
  for (const text of [JSON.stringify([shown, applied, again]), (await run(command)).out])
    for (const secret of secrets) assert.ok(!text.includes(secret), secret)
})

test('an import that was cut off in the middle goes on where it was', async () => {
  const keys = await keysIn('litellm/keys.json')
  const command = ['import', 'litellm', '--database', addresses.litellm, '--source', 'second', '--apply']
  const refused = await run(command)
  // The same keys belong to the accounts of the first test: each is refused by itself, and told.
  assert.equal(refused.code, 1)
  assert.match(refused.out, /Refused: key growth-app: This key belongs to another account/)
  const growth = (await json<AccountView[]>('accounts', 'list', '--search', 'Growth')).map(({ id }) => id)
  assert.equal(growth.length, 2)
  await server.sql('delete from api_key')
  await server.changes.notice('keys')
  assert.deepEqual((await json(...command)).made, { accounts: 0, keys: 5, refused: [] })
  assert.ok(growth.includes((await whose(keys.growth ?? ''))?.account ?? ''))
})

for (const [name, keyFile] of [
  ['sqlite', 'new-api/keys.json'],
  ['newApi', 'new-api/keys-postgres.json'],
] as const)
  test(`new-api’s channels, prices, users, quotas and tokens are taken over once, from ${name === 'sqlite' ? 'SQLite' : 'Postgres'}`, async () => {
    const keys = await keysIn(keyFile)
    const command = ['import', 'new-api', addresses[name], '--source', name]
    const untouched = await state()
    const shown = await json(...command)
    assert.equal(await state(), untouched)
    const lines = said(shown)
    for (const pattern of [
      /^changed channel OpenAI main\.models\.gpt-5\.4: Offered as gpt-5\.4-new-api, served by openai-main as gpt-5\.4/,
      /^changed channel OpenAI main\.key: .*not copied.*tollgate vendors credential openai-main/,
      /^taken channel OpenAI main\.models\.tts-1: Offered as tts-1/,
      /^changed channel Azure\.models\.gpt-5\.4: .*as gpt-54-deployment/,
      /^changed channel House\.group/,
      /^left channel House\.models\.unpriced-1: There is no ratio/,
      /^left channel Songs: Its kind of vendor \(36\)/,
      /^left channel Sleeping: It is switched off/,
      /^left options\.GroupRatio\.vip/,
      /^left options\.SelfUseModeEnabled/,
      /^taken user grace: .*5000 credits/,
      /^left user ivan: .*its 1 tokens/,
      /^taken token grace\/app: .*spendTotal 1000,/,
      /^left token grace\/app\.model_limits: Not offered here: unpriced-1/,
      /^left token grace\/only-unknown: None of the models/,
      /^left token root\/off: It is switched off/,
    ])
      found(lines, pattern)

    const applied = await json(...command, '--apply')
    assert.deepEqual(applied.made, { accounts: 3, keys: 3, refused: [] })
    const { vendors } = server.catalog.current.document
    assert.equal(vendors['openai-main']?.baseUrl, 'https://api.openai.com/v1')
    assert.deepEqual(
      [vendors.azure?.baseUrl, vendors.azure?.credential],
      ['https://my-resource.openai.azure.com/openai/v1', 'IMPORTED_AZURE_KEY'],
    )
    assert.equal(vendors.house?.baseUrl, 'http://10.1.2.3:11434/v1')
    const { document } = await catalog()
    // The one of LiteLLM's configuration has its name already.
    assert.deepEqual(document.models['gpt-5.4-new-api']?.pricing, {
      unit: 'credits',
      tiers: [{ input: '250', cachedInput: '25', output: '1500' }],
    })
    assert.deepEqual(document.models['gpt-image-2']?.pricing, { unit: 'credits', tiers: [{ image: '4' }] })
    const own = ['openai-main', 'azure', 'anthropic']
    const routes = document.models['gpt-5.4-new-api']?.routes.filter(({ vendor }) => own.includes(vendor)) ?? []
    assert.deepEqual(
      [...new Set(routes.map(({ vendor, order = 0, weight = 1 }) => `${vendor} ${order} ${weight}`))],
      ['openai-main 0 3', 'azure 0 1', 'anthropic 1 1'],
    )
    const grace = await whose(`sk-${keys.everything}`)
    const accounts = await json<AccountView[]>('accounts', 'list')
    const account = accounts.find(({ id }) => id === grace?.account)
    assert.deepEqual([account?.name, account?.balance], ['Grace', '5000'])
    assert.deepEqual(await whose(`sk-${keys.app}`), { account: account?.id, models: ['gpt-5.4-new-api'] })
    const app = (await json<KeyView[]>('keys', 'list', account?.id ?? '')).find((key) => key.name === 'app')
    assert.deepEqual(
      [app?.limits, app?.ipRanges, app?.expiresAt],
      [{ spendTotal: '1000' }, ['10.0.0.0/8', '192.0.2.7'], '2033-05-18T03:33:20.000Z'],
    )
    for (const key of ['off', 'ivans', 'only-unknown']) assert.equal(await whose(`sk-${keys[key]}`), undefined)

    const before = await state()
    const again = await json(...command, '--apply')
    assert.deepEqual([again.made, again.version], [{ accounts: 0, keys: 0, refused: [] }, undefined])
    assert.equal(await state(), before)
    for (const text of [JSON.stringify([shown, applied, again]), (await run(command)).out])
      for (const secret of [...Object.values(keys), 'vendor-key', '$2a$10']) assert.ok(!text.includes(secret), secret)
  })

test('what is no such database, or too much of one, is said in a sentence without a password', async () => {
  const noise = join(folder, 'noise.db')
  await writeFile(noise, 'this is no database, although it is a file')
  const endless = await sqliteWith(
    'endless.db',
    `create view tokens as with recursive n(i) as (select 1 union all select i + 1 from n) select i from n;
     create table channels (id integer)`,
  )
  const long = await sqliteWith(
    'long.db',
    `create table channels (id integer, name text); create table tokens (id integer);
     insert into channels values (1, printf('%.*c', 5000000, 'x'))`,
  )
  const wrong = new URL(addresses.litellm)
  wrong.pathname = '/there-is-none'
  wrong.password = 'a-password-of-somebody'
  for (const [args, pattern] of [
    [['new-api', 'mysql://root:a-password-of-somebody@10.0.0.1/new-api'], /: mysql:… is neither a file/],
    [['new-api', noise], /cannot be read: file is not a database/],
    [['new-api', endless], /not a database of new-api/],
    [['new-api', long], /cannot be read: string or blob too big/],
    [['new-api', addresses.litellm], /not a database of new-api/],
    [['litellm', '--database', addresses.sqlite], /not a database of LiteLLM/],
    [['litellm', '--database', wrong.href], /cannot be read/],
    [['litellm'], /Name a configuration, a database, or both/],
    [['litellm', CONFIG, '--balance=-1'], /--balance takes/],
  ] as const) {
    const { code, err } = await run(['import', ...args])
    assert.ok(code > 0, String(args))
    assert.match(err, pattern)
    assert.doesNotMatch(err, /a-password-of-somebody|\n\s+at /)
  }
})

test('names that would move a cursor, figures that are none and rows of nonsense are left or made plain', async () => {
  const path = await sqliteWith(
    'nonsense.db',
    `create table channels (id, type, key, status, name, models, base_url, model_mapping, priority, weight);
     create table tokens (id, user_id, key, status, name, expired_time, remain_quota, unlimited_quota, allow_ips);
     create table users (id, username, status, quota); create table options (key, value);
     insert into options values ('ModelRatio', '[not json'), ('QuotaPerUnit', '-3');
     insert into channels values (1, 1, 'k', 1, char(27) || '[2J../../x', 'a,,b', 'javascript:alert(1)', '{"a":7}', 'x', -1),
       (null, null, null, 1, null, null, null, null, null, null), (3, 8, 'k', 1, '', '__proto__,constructor', 'http://10.9.9.9', '{}', 1e99, 1e99);
     insert into users values (1, char(27) || ']0;x', 1, -5), ('two', null, 1, 1e300);
     insert into tokens values (1, 1, 'short', 1, 'a', -1, 0, 1, ''), (2, 1, 'aaaaaaaaaaaaaaaa', 1, 'b', 9e15, 9e18, 0, 'not an address'),
       (3, 'two', 'bbbbbbbbbbbbbbbb', 1, char(10) || 'c', 9e15, 9e18, 0, '')`,
  )
  const { code, out, err } = await run(['import', 'new-api', path, '--apply'])
  assert.equal(code, 0, out + err)
  assert.ok(!out.includes('\x1b'))
  assert.match(out, /left {5}token .*\/b: It is restricted to addresses/)
})

test('no name in a file of LiteLLM moves a cursor, wherever it stands', async () => {
  const path = join(folder, 'escapes.yaml')
  const evil = String.raw`\e]0;owned\a\e[2J\u009b31m\u202e`
  await writeFile(
    path,
    [
      'model_list:',
      `  - model_name: "${evil}"`,
      '    litellm_params:',
      `      model: "openai/${evil}"`,
      `      "${evil}": 1`,
      `    "${evil}": 1`,
      'router_settings:',
      `  "${evil}": 1`,
      `  fallbacks: [{"${evil}": ["${evil}"]}]`,
      `  model_group_alias: {"${evil}": "${evil}"}`,
      `"${evil}": {"${evil}": 1}`,
    ].join('\n'),
  )
  const { out, err } = await run(['import', 'litellm', path])
  assert.match(out, /left|changed/)
  assert.doesNotMatch((out + err).replaceAll('\n', ''), /[\p{Cc}\u202e]/u)
})
