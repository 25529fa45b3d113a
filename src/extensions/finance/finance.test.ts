// Statements, margins and what a credit is worth, as finance gets them: exact, also for months of which no call is
// stored any more.
import { crc32, inflateSync } from 'node:zlib'
import { assert, BY, before, pluck, started, test } from '../../../test/gateway.ts'
import { asBrowser, asOperator, OPERATOR_TOKEN, startOperatorServer } from '../../../test/operator-server.ts'
import { past } from '../../../test/past.ts'
import type { AuditView } from '../../database/audit.ts'
import { parseCredits } from '../../kernel/credits.ts'
import type { Page } from '../../kernel/view.ts'
import { realWorld, type World } from '../../kernel/world.ts'
import { maintainUsage } from '../../ledger/retention.ts'
import { sumUsage } from '../../ledger/usage-sums.ts'
import { formatMoney } from '../../reports/billing.ts'
import type { BillingView } from '../../reports/views.ts'
import type { MarginPage } from './margins/views.ts'
import { statementPdf } from './statements/statement-pdf.ts'
import type { MonthlyStatement, StatementSummary } from './statements/views.ts'

let acme = ''
const ONE = 1_000_000n

const server = started(startOperatorServer)
const ask = asOperator(server)
before(async () => {
  acme = await server.accounts.create({ name: 'Acme & Söhne "GmbH"' }, BY)
  const key = await server.keys.create(acme, { name: 'website' }, BY)
  const then = past(server.database, server.ledger, acme)
  await then.give(100n * ONE, '2025-08-15T10:00:00Z', { note: 'Invoice 1' })
  await then.call(3n * ONE + 1n, '2025-08-20T10:00:00Z', { key: key.id, cost: 2n * ONE })
  await then.give(50n * ONE, '2025-09-01T00:00:00Z', { note: 'Invoice 2' })
  await then.call(7n * ONE, '2025-09-02T10:00:00Z', { key: key.id, cost: 8n * ONE })
  // It began in September and was posted in October; and one whose transaction began in September found its place in
  // October.
  await then.call(11n * ONE, '2025-09-30T23:59:59.900Z', { movedAt: '2025-10-01T00:00:02Z', key: 'console' })
  await then.call(13n * ONE, '2025-10-01T00:00:00Z', {
    began: '2025-09-30T23:50:00Z',
    movedAt: '2025-10-01T00:00:03Z',
    key: key.id,
  })
  await then.call(500_001n, '2025-10-31T23:59:59.999Z', {
    product: 'siteanalytics/websites/visits',
    vendor: 'dataworks',
    key: key.id,
    cost: 250_000n,
  })
  await then.give(-20n * ONE, '2025-10-10T10:00:00Z', {
    note: 'Invoice 2 was too high',
    movedAt: '2025-11-01T00:00:00.500Z',
  })
  await then.give(2n * ONE, '2025-11-05T10:00:00Z', { note: 'Outage', kind: 'correction' })
  await then.done()
  const other = await server.accounts.create({ name: 'Beta Ltd' }, BY)
  const beta = past(server.database, server.ledger, other)
  await beta.give(10n * ONE, '2025-10-02T10:00:00Z')
  await beta.call(1n * ONE, '2025-10-03T10:00:00Z', { cost: ONE / 2n })
  await beta.done()
  await server.accounts.create({ name: 'Idle' }, BY)
})

const MONTHS = ['2025-07', '2025-08', '2025-09', '2025-10', '2025-11']
const read = async (month: string, account = acme) => {
  const { data, status, error } = await ask<MonthlyStatement>('GET', `/accounts/${account}/statements/${month}`)
  assert.equal(status, 200, JSON.stringify(error))
  return data
}
const micro = (amount: string) => parseCredits(amount) ?? assert.fail(amount)

function checkSum(of: MonthlyStatement): void {
  const moved = micro(of.topUps) - micro(of.usage) + micro(of.corrections) + micro(of.settlement)
  assert.equal(micro(of.opening) + moved, micro(of.closing), of.month)
  const listed = of.products.reduce((sum, { charged }) => sum + micro(charged), micro(of.unitemized))
  assert.equal(listed, micro(of.usage), of.month)
  assert.equal(
    of.movements.reduce((sum, one) => sum + micro(one.moved), 0n),
    moved + micro(of.usage),
    of.month,
  )
}

test('a statement adds up to the last decimal, each begins where the one before ended, and what ran over the end of a month is in that of its posting', async () => {
  const all = await Promise.all(MONTHS.map((month) => read(month)))
  all.forEach(checkSum)
  for (const [at, one] of all.slice(1).entries()) assert.equal(one.opening, all[at]?.closing)
  assert.deepEqual(
    all.map(({ opening, topUps, usage, corrections, closing, unitemized }) => [
      opening,
      topUps,
      usage,
      corrections,
      closing,
      unitemized,
    ]),
    [
      ['0', '0', '0', '0', '0', '0'],
      ['0', '100', '3.000001', '0', '96.999999', '0'],
      ['96.999999', '50', '18', '0', '128.999999', '0'],
      ['128.999999', '0', '13.500001', '-20', '95.499998', '0'],
      ['95.499998', '0', '0', '2', '97.499998', '0'],
    ],
  )
  const [, , september, october] = all
  assert.deepEqual(
    september?.products.map(({ product, keyName, keyId, charged, calls }) => [
      product,
      keyName ?? keyId,
      charged,
      calls,
    ]),
    [
      ['alpha-5.4', 'console', '11', 1],
      ['alpha-5.4', 'website', '7', 1],
    ],
  )
  assert.deepEqual(pluck(october?.movements, 'kind', 'moved', 'note'), [['takeback', '-20', 'Invoice 2 was too high']])
  assert.deepEqual(
    [october?.from, october?.to, october?.final],
    ['2025-10-01T00:00:00.000Z', '2025-11-01T00:00:00.000Z', true],
  )
})

test('the present month is preliminary, and a month that is none or has not begun is rejected with its reason', async () => {
  const now = new Date(realWorld.nowMs()).toISOString().slice(0, 7)
  const current = await read(now)
  checkSum(current)
  assert.deepEqual([current.final, current.closing], [false, '97.499998'])
  for (const [month, why] of [
    ['2999-01', /has not begun/],
    ['2025-13', /such as 2026-10/],
    ['october', /such as 2026-10/],
  ] as const) {
    const { status, error } = await ask('GET', `/accounts/${acme}/statements/${month}`)
    assert.equal(status, 400)
    assert.match(error?.message ?? '', why)
  }
  assert.equal((await ask('GET', '/accounts/acc_none/statements/2025-10')).status, 404)
})

async function margins(query: string): Promise<MarginPage> {
  const { data, status, error } = await ask<MarginPage>('GET', `/margins?${query}`)
  assert.equal(status, 200, JSON.stringify(error))
  return data
}

test('margins by model, customer, vendor and month are the same before and after the calls are gone, and so are statements', async () => {
  const lookAt = async () => ({
    statements: await Promise.all(MONTHS.map((month) => read(month))),
    margins: await Promise.all(
      ['product', 'account', 'vendor', 'month'].map((by) => margins(`by=${by}&from=2025-08&to=2025-11`)),
    ),
    october: await margins('by=product&from=2025-10'),
    ofAcme: await margins(`by=vendor&from=2025-08&to=2025-10&account=${acme}`),
  })
  const before = await lookAt()
  const shown = ({ items }: MarginPage) =>
    items.map((row) => [
      row.name ?? row.group,
      row.calls,
      row.charged,
      row.chargedWithKnownCost,
      row.cost,
      row.margin,
      row.marginPercent,
    ])
  assert.deepEqual(shown(before.october), [
    ['alpha-5.4', 2, '14', '1', '0.5', '0.5', 50],
    ['siteanalytics/websites/visits', 1, '0.500001', '0.500001', '0.25', '0.250001', 50],
  ])
  assert.deepEqual(before.october.totals, {
    calls: 3,
    charged: '14.500001',
    chargedWithKnownCost: '1.500001',
    cost: '0.75',
    margin: '0.750001',
    marginPercent: 50,
    unbilled: '0',
  })
  assert.deepEqual(before.margins.map(shown)[1], [
    ['Acme & Söhne "GmbH"', 5, '34.500002', '10.500002', '10.25', '0.250002', 2.3],
    ['Beta Ltd', 1, '1', '1', '0.5', '0.5', 50],
  ])
  assert.deepEqual(pluck(before.margins[2]?.items, 'group', 'charged'), [
    ['textworks', '35.000001'],
    ['dataworks', '0.500001'],
  ])
  assert.deepEqual(pluck(before.margins[3]?.items, 'group', 'charged'), [
    ['2025-08', '3.000001'],
    ['2025-09', '18'],
    ['2025-10', '14.500001'],
  ])
  for (const { totals } of before.margins) assert.deepEqual(totals, before.margins[0]?.totals)

  await sumUsage(server.database)
  assert.deepEqual(await lookAt(), before, 'from sums')
  const KEPT = { usageMonths: 1, tries: 3 }
  await maintainUsage(server.database, realWorld, KEPT)
  const [left] = await server.sql<{ calls: bigint; hours: bigint }>(
    'select (select count(*) from usage) as calls, (select count(*) from usage_hour) as hours',
  )
  assert.deepEqual(left, { calls: 0n, hours: 0n })
  assert.deepEqual(await lookAt(), before, 'when calls and hours are gone')
  const csv = await ask('GET', '/margins?by=account&from=2025-08&to=2025-10', undefined, { accept: 'text/csv' })
  assert.match(
    csv.text,
    /^group,name,calls,charged,chargedWithKnownCost,cost,margin,marginPercent,unbilled\r\nacc_\w+,"Acme & Söhne ""GmbH""",5,34\.500002/,
  )
  const paged = await margins('by=product&from=2025-10&limit=1')
  assert.deepEqual([paged.items.length, paged.next, paged.totals], [1, '1', before.october.totals])
  assert.deepEqual(
    (await margins(`by=product&from=2025-10&limit=1&cursor=${paged.next}`)).items,
    before.october.items.slice(1),
  )
  for (const wrong of ['from=2025-11&to=2025-10', 'from=1999-01&to=2025-10', 'by=colour', 'from=x'])
    assert.equal((await ask('GET', `/margins?${wrong}`)).status, 400, wrong)
})

test('calls go only when their month and the next are summed up', async () => {
  const id = await server.accounts.create({ name: 'Later' }, BY)
  const then = past(server.database, server.ledger, id)
  await then.give(10n * ONE, '2026-01-02T10:00:00Z')
  await then.call(1n * ONE, '2026-01-31T23:59:59Z')
  await then.done()
  const summedUntil = (iso: string) =>
    server.sql(`update setting set value = $1 where name = 'usage-sums'`, [JSON.stringify({ posting: 0, until: iso })])
  const at = (iso: string): World => ({ ...realWorld, nowMs: () => Date.parse(iso) })
  const calls = () => server.sql('select 1 from usage where account_id = $1', [id])
  await summedUntil('2026-03-01T00:59:59Z')
  await maintainUsage(server.database, at('2026-08-01T00:00:00Z'), { usageMonths: 1, tries: 3 })
  assert.equal((await calls()).length, 1, 'February is not summed up')
  await summedUntil('2026-03-01T01:00:00Z')
  await maintainUsage(server.database, at('2026-08-01T00:00:00Z'), { usageMonths: 1, tries: 3 })
  assert.equal((await calls()).length, 0)
})

test('what a credit is worth is set, audited, told to people, and each statement has what held at its end', async () => {
  assert.deepEqual((await ask<BillingView>('GET', '/billing')).data, { worth: null, contact: null })
  for (const worth of [
    { currency: 'EURO', rate: '1' },
    { currency: 'XQZ', rate: '1' },
    { currency: 'EUR', rate: '-1' },
    { currency: 'EUR', rate: '0' },
  ])
    assert.equal((await ask('PATCH', '/billing', { worth })).status, 400, JSON.stringify(worth))
  const worth = { currency: 'EUR', rate: '0.012' }
  const { data } = await ask<BillingView>('PATCH', '/billing', { worth, contact: 'billing@acme.example' })
  assert.deepEqual(data, { worth, contact: 'billing@acme.example' })
  assert.deepEqual((await read('2025-10')).worth, worth)
  await server.sql(
    `update setting set value = replace(value, substring(value from '20\\d\\d-[^"]*'), '2025-09-01T00:00:00Z') where name = 'billing'`,
  )
  const next = { currency: 'USD', rate: '2' }
  await ask('PATCH', '/billing', { worth: next })
  assert.deepEqual((await read('2025-10')).worth, worth, 'a statement does not change with it')
  assert.deepEqual((await ask<BillingView>('GET', '/billing')).data, { worth: next, contact: 'billing@acme.example' })
  const audit = await ask<Page<AuditView>>('GET', '/audit?action=system.billing')
  assert.deepEqual(
    audit.data.items.map(({ after }) => after?.worth),
    [next, worth],
  )
})

/**
 * What a reader of the PDF sees, in the order in which it was drawn. Its fonts are embedded, each with a table of its
 * letters.
 */
function textOf(pdf: Buffer): string {
  const raw = pdf.toString('latin1')
  const streamAt = (from: number) => {
    const start = raw.indexOf('stream\n', from) + 'stream\n'.length
    return inflateSync(pdf.subarray(start, raw.indexOf('endstream', start))).toString('latin1')
  }
  const object = (number: string) => raw.indexOf(`\n${number} 0 obj\n`)
  const letters = new Map<string, string[]>()
  for (const [, font = '', number = ''] of raw.matchAll(/\/(F\d+) (\d+) 0 R/g)) {
    const [, table = ''] = /\/ToUnicode (\d+) 0 R/.exec(raw.slice(object(number))) ?? []
    const lists = [...streamAt(object(table)).matchAll(/\[(<.*?)\]/g)].map(([, list = '']) => list).join(' ')
    letters.set(
      font,
      [...lists.matchAll(/<([0-9a-f ]+)>/g)].map(([, hex = '']) =>
        Buffer.from(hex.replaceAll(' ', ''), 'hex').swap16().toString('utf16le'),
      ),
    )
  }
  assert.equal(letters.size, 2)
  const texts: string[] = []
  for (const [, page = ''] of raw.matchAll(/\/Contents (\d+) 0 R/g)) {
    let font = ''
    for (const [, next, shown = ''] of streamAt(object(page)).matchAll(/\/(F\d+) [\d.]+ Tf|\[(.*?)\] TJ/g))
      if (next !== undefined) font = next
      else
        texts.push(
          [...shown.matchAll(/<([0-9a-f]*)>/g)]
            .flatMap(([, hex = '']) => hex.match(/.{4}/g) ?? [])
            .map((code) => letters.get(font)?.[Number.parseInt(code, 16)])
            .join(''),
        )
  }
  return texts.join('\n')
}

async function download(path: string, accept: string) {
  const response = await fetch(`${server.url}/admin/v1${path}`, {
    headers: { accept, authorization: `Bearer ${OPERATOR_TOKEN}` },
  })
  const body = Buffer.from(await response.arrayBuffer())
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    name: response.headers.get('content-disposition') ?? '',
    body,
  }
}

test('a PDF lists a thousand keys, and sums up the others so that it still adds up', async () => {
  const path = `/accounts/${acme}/statements/2025-10`
  const { data: statement } = await asOperator(server)<MonthlyStatement>('GET', path)
  const [one] = statement.products
  assert.ok(one)
  const products = Array.from({ length: 3_000 }, () => ({ ...one, calls: 2, charged: '0.5' }))
  const note = 'A wrong top-up, which the customer reported by telephone: ticket 4711'
  const movements = [{ at: statement.from, kind: 'takeback' as const, moved: '-5', note }]
  const text = textOf(await statementPdf({ ...statement, products, movements }))
  assert.match(text.replaceAll('\n', ' '), /by\s+telephone:\s+ticket\s+4711/, 'a long note is whole')
  assert.match(text, /^2,000 more, in the CSV file\n.*?4,000\n1,000\.000000/m)
})

test('October’s statement of one customer is a PDF and a CSV file with the customer and the month in their names', async () => {
  const { type, name, body } = await download(`/accounts/${acme}/statements/2025-10`, 'application/pdf')
  assert.equal(type, 'application/pdf')
  assert.equal(
    name,
    `attachment; filename="statement-Acme-Sohne-GmbH-2025-10.pdf"; filename*=UTF-8''statement-Acme-S%C3%B6hne-GmbH-2025-10.pdf`,
  )
  const text = textOf(body)
  for (const line of [
    'Statement October 2025',
    'Acme & Söhne "GmbH"',
    '1 October 2025 to 31 October 2025 (UTC)',
    'Opening balance',
    '128.999999',
    '1.55',
    '-13.500001',
    '-20.000000',
    '95.499998',
    '1.15',
    'alpha-5.4',
    'website',
    'siteanalytics/websites/visits',
    '0.500001',
    '10 October 2025',
    'Invoice 2 was too high',
    'One credit is worth 0.012 EUR. Credits are exact; amounts of money are rounded.',
    'Page 1 of 1',
  ])
    assert.ok(text.split('\n').includes(line), `${line} in:\n${text}`)
  assert.match(text, /Questions: billing@acme\.example/)
  const csv = await download(`/accounts/${acme}/statements/2025-10`, 'text/csv')
  assert.match(csv.name, /statement-Acme-Sohne-GmbH-2025-10\.csv/)
  const lines = csv.body.toString().trimEnd().split('\r\n')
  assert.equal(lines[0], 'customer,account,month,line,at,description,key,calls,credits,money,currency')
  const cells = lines.slice(1).map((line) => line.replace(/^"(?:[^"]|"")*"/, 'x').split(','))
  assert.deepEqual(
    cells.map(([, , month, line, , what, key, calls, credits, money, currency]) => [
      month,
      line,
      what,
      key,
      calls,
      credits,
      money,
      currency,
    ]),
    [
      ['2025-10', 'Opening balance', '', '', '', '128.999999', '1.55', 'EUR'],
      ['2025-10', 'Credits removed', 'Invoice 2 was too high', '', '', '-20', '-0.24', 'EUR'],
      ['2025-10', 'Usage', 'alpha-5.4', 'website', '1', '-13', '-0.16', 'EUR'],
      ['2025-10', 'Usage', 'siteanalytics/websites/visits', 'website', '1', '-0.500001', '-0.01', 'EUR'],
      ['2025-10', 'Closing balance', '', '', '', '95.499998', '1.15', 'EUR'],
    ],
  )
})

/** By its directory, as every program reads it. */
function unzip(bytes: Buffer): Map<string, Buffer> {
  const end = bytes.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'))
  const files = new Map<string, Buffer>()
  let at = bytes.readUInt32LE(end + 16)
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left -= 1) {
    assert.equal(bytes.readUInt32LE(at), 0x02014b50)
    const [size, nameBytes, place] = [
      bytes.readUInt32LE(at + 24),
      bytes.readUInt16LE(at + 28),
      bytes.readUInt32LE(at + 42),
    ]
    const name = bytes.subarray(at + 46, at + 46 + nameBytes).toString()
    const start = place + 30 + bytes.readUInt16LE(place + 26) + bytes.readUInt16LE(place + 28)
    const body = bytes.subarray(start, start + size)
    assert.equal(crc32(body), bytes.readUInt32LE(at + 16))
    files.set(name, body)
    at += 46 + nameBytes
  }
  assert.equal(at, end)
  return files
}

test('all customers’ statements of a month come in one download, each once, and who had nothing is not among them', async () => {
  const same = await server.accounts.create({ name: 'Beta Ltd' }, BY)
  const then = past(server.database, server.ledger, same)
  await then.give(5n * ONE, '2025-10-05T10:00:00Z')
  const { data } = await ask<Page<StatementSummary>>('GET', '/statements/2025-10?limit=2')
  assert.equal(data.items.length, 2)
  assert.ok(data.next)
  const { name, type, body } = await download('/statements/2025-10', 'application/zip')
  assert.deepEqual([type, name.includes('statements-2025-10.zip')], ['application/zip', true])
  const files = unzip(body)
  const names = [...files.keys()].sort()
  assert.equal(names.length, 3)
  assert.deepEqual(
    names.map((one) => one.replace(/acc_\w+/, 'acc')),
    ['statement-Acme-Söhne-GmbH-2025-10.pdf', 'statement-Beta-Ltd-2025-10.pdf', 'statement-Beta-Ltd-acc-2025-10.pdf'],
  )
  for (const pdf of files.values()) assert.match(textOf(pdf), /^Statement October 2025/)
  const csv = unzip((await download('/statements/2025-10?format=csv', 'application/zip')).body)
  assert.match(csv.get('statement-Acme-Söhne-GmbH-2025-10.csv')?.toString() ?? '', /Closing balance,,,,,95\.499998/)
})

test('files of customers whose names differ in capitals only do not overwrite each other', async () => {
  for (const name of ['Gamma', 'GAMMA']) {
    const then = past(server.database, server.ledger, await server.accounts.create({ name }, BY))
    await then.give(ONE, '2025-11-05T10:00:00Z')
  }
  const files = unzip((await download('/statements/2025-11?format=csv', 'application/zip')).body)
  assert.equal(new Set([...files.keys()].map((name) => name.toLowerCase())).size, files.size)
})

test('a long name is cut between letters, also between those of two UTF-16 units', async () => {
  const id = await server.accounts.create({ name: `${'a'.repeat(79)}\u{20bb7}\u{20bb7}` }, BY)
  const { status, name } = await download(`/accounts/${id}/statements/2025-10`, 'text/csv')
  assert.equal(status, 200)
  assert.match(decodeURIComponent(name), /''statement-a{79}\u{20bb7}-2025-10\.csv/u)
})

test('a text with a formula in it stays text where a spreadsheet takes semicolons, tabs or lines for cells', async () => {
  const id = await server.accounts.create({ name: 'Formulas' }, BY)
  const then = past(server.database, server.ledger, id)
  const notes = ['=1+1', 'a;=1+1', 'a; @b', 'a\t-1', 'a\t \t+1', 'a\n=1+1', 'a-b; c=d']
  for (const note of notes) await then.give(ONE, '2025-10-05T10:00:00Z', { note })
  const csv = (await download(`/accounts/${id}/statements/2025-10`, 'text/csv')).body.toString()
  const shown = ["'=1+1", "a;'=1+1", "a; '@b", "a\t'-1", "a\t \t'+1", `"a\n'=1+1"`, 'a-b; c=d']
  for (const note of shown) assert.ok(csv.includes(`,${note},`), `${note} in ${csv}`)
})

test('money is rounded once, to the decimals of its currency', () => {
  const worth = { currency: 'EUR', rate: '0.01' }
  const shown = [499_950n, 499_999n, 500_000n, -499_950n, -500_000n, 123_456_789n].map((one) => formatMoney(one, worth))
  assert.deepEqual(shown, ['0.00', '0.00', '0.01', '0.00', '-0.01', '1.23'])
  assert.equal(formatMoney(1_499_999n, { currency: 'JPY', rate: '1' }), '1')
  assert.equal(formatMoney(1_500_000n, { currency: 'KWD', rate: '0.001' }), '0.002')
})

test('a long statement goes on over pages, and letters that its fonts lack do not break it', async () => {
  const id = await server.accounts.create({ name: 'Łódź 北京 €' }, BY)
  const then = past(server.database, server.ledger, id)
  for (let day = 1; day <= 28; day += 1)
    for (const note of ['a', 'b', '\u{1f600} '.repeat(60)])
      await then.give(ONE, `2025-10-${String(day).padStart(2, '0')}T10:00:00Z`, { note })
  const { body, name } = await download(`/accounts/${id}/statements/2025-10`, 'application/pdf')
  assert.match(decodeURIComponent(name), /''statement-Łódź-北京-2025-10\.pdf/)
  const text = textOf(body)
  assert.match(text, /^Statement October 2025\n?/)
  assert.match(text, /Łódź \?\? €/)
  assert.match(text, /Page 2 of 4/)
  assert.equal(text.split('\n').filter((line) => line === '1.000000').length, 84)
})

test('a member reads the statement of their own account, and of no other', async () => {
  const operator = asBrowser(server)
  const token = await server.people.renewSetup(BY)
  const login = { email: 'op@example.com', password: 'a long enough passphrase 1' }
  assert.equal((await operator('POST', '/setup', { token, ...login })).status, 200)
  const invited = await ask<{ link: string }>('POST', `/accounts/${acme}/invites`, {
    email: 'cfo@acme.example',
    role: 'member',
  })
  const member = asBrowser(server)
  const linkToken = /#token=(.*)$/.exec(invited.data.link)?.[1]
  const accepted = await member('POST', `/invites/${linkToken}`, { password: 'another long passphrase 2' })
  assert.equal(accepted.status, 200, JSON.stringify(accepted.error))
  const own = await member<MonthlyStatement>('GET', `/accounts/${acme}/statements/2025-10`)
  assert.deepEqual([own.status, own.data?.closing], [200, '95.499998'])
  const pdf = await member('GET', `/accounts/${acme}/statements/2025-10`, undefined, { accept: 'application/pdf' })
  assert.equal(pdf.headers.get('content-type'), 'application/pdf')
  const [beta] = (await ask<Page<StatementSummary>>('GET', '/statements/2025-10')).data.items.filter(
    ({ account }) => account.name === 'Beta Ltd',
  )
  for (const path of [
    `/accounts/${beta?.account.id}/statements/2025-10`,
    '/statements/2025-10',
    '/margins',
    '/billing',
  ])
    assert.equal((await member('GET', path)).status, 403, path)
  const session = await member<{ worth: object }>('GET', '/session')
  assert.deepEqual(session.data.worth, { currency: 'USD', rate: '2' })
})
