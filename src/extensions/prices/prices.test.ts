// List prices kept fresh: what a table would change, by the API and the command line; hand-set prices are left alone.
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { makeAuthority, makeCertificate } from '../../../test/certificate.ts'
import { commandLineOf } from '../../../test/command-line.ts'
import { after, assert, BY, before, test } from '../../../test/gateway.ts'
import { OPERATOR_TOKEN, type OperatorServer, startOperatorServer } from '../../../test/operator-server.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import { readPriceTable, shippedTable } from './price-table.ts'
import type { PriceComparisonView } from './views.ts'

/** Files at an https address, by their path. */
const files = new Map<string, string>()
const authority = makeAuthority('Tests')
const site = createServer(
  makeCertificate(authority, { address: '127.0.0.1', fromDays: -1, toDays: 1 }),
  ({ url = '' }, response) => response.writeHead(files.has(url) ? 200 : 404).end(files.get(url)),
)
let at = ''
let server: OperatorServer
before(async () => {
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  const { port } = site.address() as AddressInfo
  at = `https://127.0.0.1:${port}`
  server = await startOperatorServer({ outboundAllow: [`127.0.0.1:${port}`] })
})
after(async () => {
  site.close()
  await server.close()
})
const { run } = commandLineOf(() => server)
const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const PEM = publicKey.export({ type: 'spki', format: 'pem' }).toString()

async function operator<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }> {
  const response = await fetch(`${server.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as { data?: T }
  return { status: response.status, body: answer.data ?? (answer as T) }
}

type Members = Record<string, unknown>
const row = (usd: Members, more: Members = {}) => ({
  type: 'text',
  usd: [usd],
  noted: '2027-01-02',
  from: 'the vendor',
  ...more,
})

/** A table of the operator's own. */
function tableOf(models: Record<string, unknown>, made = '2027-01-03') {
  const table = JSON.stringify({ format: 1, made, vendors: { mistral: models } })
  return { table, signature: sign(null, Buffer.from(table), privateKey).toString('base64'), publicKey: PEM }
}

const LARGE = { input: '0.5', cachedInput: '0.05', output: '1.5' }
const cost = (tiers: Members) => ({ unit: 'credits' as const, tiers: [tiers] })

/**
 * Mistral as `connect` makes it, at 100 credits a dollar: one at the list price with a markup, one by hand, one whose
 * price is by hand.
 */
async function connected(): Promise<void> {
  const document = structuredClone(server.catalog.current.input) as CatalogInput
  document.vendors.mistral = { baseUrl: 'https://api.mistral.ai/v1', credential: 'MISTRAL_API_KEY' }
  const model = (uid: string, own: object, price: object): void => {
    document.models[uid] = {
      name: uid,
      type: 'text',
      family: 'mistral',
      clientFormats: ['openai-chat'],
      routes: [{ vendor: 'mistral', protocol: 'openai-chat', cost: cost(own as Members) }],
      pricing: cost(price as Members),
    }
  }
  model(
    'mistral-large-latest',
    { input: '50', cachedInput: '5', output: '150' },
    { input: '60', cachedInput: '6', output: '180' },
  )
  model('mistral-medium-latest', { input: '77', cachedInput: '15', output: '750' }, { input: '200', output: '900' })
  model('mistral-small-latest', { input: '15', cachedInput: '1.5', output: '60' }, { input: '99', output: '99' })
  model(
    'codestral-latest',
    { input: '30', cachedInput: '3', output: '90' },
    { input: '30', cachedInput: '3', output: '90' },
  )
  await server.catalog.apply(document, BY, '')
}

const TABLE = () =>
  tableOf({
    'mistral-large-latest': row({ input: '0.4', cachedInput: '0.04', output: '1.2' }, { earlier: [[LARGE]] }),
    'mistral-medium-latest': row(
      { input: '1.4', cachedInput: '0.14', output: '7' },
      { earlier: [[{ input: '1.5', cachedInput: '0.15', output: '7.5' }]] },
    ),
    'mistral-small-latest': row(
      { input: '2', cachedInput: '0.2', output: '0.6' },
      { earlier: [[{ input: '0.15', cachedInput: '0.015', output: '0.6' }]] },
    ),
    'mistral-next': row({ input: '1', output: '2' }),
    'mistral-broken': row({ input: '-1', output: '2' }),
  })

test('a table shows what is new, changed, gone and doubtful, and preselects what follows the list', async () => {
  await connected()
  const { status, body } = await operator<PriceComparisonView>('POST', '/prices/compare', TABLE())
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual([body.made, body.proof, body.warnings], ['2027-01-03', 'key', []])
  const shown = Object.fromEntries(
    body.rows.map(({ model, kind, byHand, selectable, preselected }) => [
      model,
      [kind, byHand, selectable, preselected],
    ]),
  )
  assert.deepEqual(shown, {
    'mistral-large-latest': ['changed', false, true, true],
    'mistral-medium-latest': ['changed', true, true, false],
    // More than tenfold.
    'mistral-small-latest': ['changed', false, true, false],
    'codestral-latest': ['gone', false, false, false],
    'mistral-next': ['new', false, true, false],
    'mistral-broken': ['unreadable', false, false, false],
  })
  const large = body.rows.find(({ model }) => model === 'mistral-large-latest')!
  assert.deepEqual(
    [large.before, large.after, large.price].map((one) => one?.tiers[0]),
    [
      { input: '50', cachedInput: '5', output: '150' },
      { input: '40', cachedInput: '4', output: '120' },
      // With the operator's markup of 1.2.
      { input: '48', cachedInput: '4.8', output: '144' },
    ],
  )
  assert.equal(body.rows.find(({ model }) => model === 'mistral-small-latest')?.price, null)
})

test('what is chosen becomes one version, hand-set prices stay, and a rollback takes it back', async () => {
  await connected()
  const before = server.catalog.current
  const rows = ['mistral/mistral-large-latest', 'mistral/mistral-small-latest', 'mistral/mistral-next']
  const applied = await operator<{ version: number; changes: string[] }>('POST', '/prices', { ...TABLE(), rows })
  assert.equal(applied.status, 200, JSON.stringify(applied.body))
  assert.equal(applied.body.version, before.version + 1)
  const { models } = server.catalog.current.input
  assert.deepEqual(models['mistral-large-latest']?.pricing, cost({ input: '48', cachedInput: '4.8', output: '144' }))
  assert.deepEqual(models['mistral-small-latest']?.pricing, before.input.models['mistral-small-latest']?.pricing)
  assert.deepEqual(
    models['mistral-small-latest']?.routes[0]?.cost,
    cost({ input: '200', cachedInput: '20', output: '60' }),
  )
  assert.deepEqual(models['mistral-medium-latest'], before.input.models['mistral-medium-latest'])
  assert.deepEqual(models['mistral-next']?.pricing, cost({ input: '100', output: '200' }))
  // An older table is taken for what it is.
  const older = await operator<PriceComparisonView>(
    'POST',
    '/prices/compare',
    tableOf(
      { 'mistral-large-latest': row(LARGE, { earlier: [[{ input: '0.4', cachedInput: '0.04', output: '1.2' }]] }) },
      '2027-01-01',
    ),
  )
  assert.match(older.body.warnings.join(' '), /newer table, of 2027-01-03/)
  assert.ok(older.body.rows.every(({ preselected }) => !preselected))
  await operator('POST', `/catalog/rollback`, { version: before.version })
  assert.deepEqual(
    server.catalog.current.input.models['mistral-large-latest'],
    before.input.models['mistral-large-latest'],
  )
})

test('nothing is believed that nobody vouches for, and nothing else is applied', async () => {
  const good = TABLE()
  const { version } = server.catalog.current
  const sha256 = createHash('sha256').update(good.table).digest('hex')
  const cases: Array<[what: string, body: object, said: RegExp]> = [
    ['a changed byte', { ...good, table: good.table.replace('0.4', '0.3') }, /signature/],
    ['cut', { ...good, table: good.table.slice(0, -9) }, /signature/],
    ['the key of releases', { table: good.table, signature: good.signature }, /signature/],
    ['no signature', { table: good.table }, /signature.*sha256/],
    [
      'another digest',
      { table: good.table, sha256: sha256.replace(/^./, (one) => (one === 'a' ? 'b' : 'a')) },
      /digest/,
    ],
    ['no table', { table: '[1]', sha256: createHash('sha256').update('[1]').digest('hex') }, /not a table/],
    ['no JSON', { table: '{', sha256: createHash('sha256').update('{').digest('hex') }, /not JSON/],
    ['an inner address', { url: 'https://127.0.0.1/prices.json', sha256 }, /./],
    ['no https', { url: 'http://example.com/prices.json', sha256 }, /url/],
    ['two sources', { ...good, url: 'https://example.com/prices.json' }, /url/],
    ['a key that is none', { ...good, publicKey: 'AAAA' }, /signature/],
    ['an unknown row', { ...good, rows: ['mistral/codestral-latest'] }, /nothing that the table/],
  ]
  for (const [what, body, said] of cases) {
    const got = await operator<object>('POST', 'rows' in body ? '/prices' : '/prices/compare', body)
    assert.ok(got.status >= 400 && got.status < 503, `${what}: ${got.status}`)
    assert.match(JSON.stringify(got.body), said, what)
  }
  assert.throws(() => readPriceTable(Buffer.alloc(5_000_000), { sha256 }), /larger than 4 MB/)
  assert.equal(server.catalog.current.version, version)
  const pinned = await operator<PriceComparisonView>('POST', '/prices/compare', { table: good.table, sha256 })
  assert.deepEqual([pinned.status, pinned.body.proof], [200, 'digest'])
})

test('a table at an https address is read with its signature beside it, from a server whose certificate is trusted', async () => {
  await connected()
  const { table, signature, publicKey: key } = TABLE()
  for (const path of ['/table.json', '/unsigned.json']) files.set(path, table)
  files.set('/table.json.sig', signature)
  const compare = async (path: string, proof: object = { publicKey: key }) => {
    const { status, body } = await operator<PriceComparisonView>('POST', '/prices/compare', {
      url: at + path,
      ...proof,
    })
    return { status, said: JSON.stringify(body), body }
  }
  const stranger = await compare('/table.json')
  assert.ok(stranger.status >= 400 && stranger.status < 503, stranger.said)
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, authority.certificate])
  try {
    const { status, body, said } = await compare('/table.json')
    assert.deepEqual([status, body.proof], [200, 'key'], said)
    assert.ok(body.rows.some(({ model, kind }) => model === 'mistral-large-latest' && kind === 'changed'))
    const sha256 = createHash('sha256').update(table).digest('hex')
    assert.equal((await compare('/unsigned.json', { sha256 })).status, 200)
    for (const [path, proof] of [
      ['/unsigned.json', undefined],
      ['/missing.json', undefined],
      ['/table.json', {}],
      ['/table.json', { sha256: sha256.replace(/^./, (one) => (one === 'a' ? 'b' : 'a')) }],
    ] as const) {
      const got = await compare(path, proof)
      assert.ok(got.status >= 400 && got.status < 503, `${path}: ${got.said}`)
    }
    const [shown, applied] = [await update(), await update('--apply', 'list')]
    assert.deepEqual([shown.code, applied.code], [1, 0], shown.err + applied.err)
    assert.match(shown.out, /mistral-large-latest +changed/)
    assert.equal((await update()).code, 0, 'nothing more to apply')
  } finally {
    setDefaultCACertificates(trusted)
  }
  async function update(...words: string[]) {
    const file = join(await mkdtemp(join(tmpdir(), 'prices-')), 'key.pem')
    await writeFile(file, PEM)
    return run(['prices', 'update', '--url', `${at}/table.json`, '--public-key', file, ...words])
  }
})

test('the table of this release is signed, and what it lists is no news to a vendor that was just connected', async () => {
  const { made, vendors } = await shippedTable()
  assert.match(made, /^\d{4}-\d{2}-\d{2}$/)
  assert.ok(Object.keys(vendors).length > 10)
  await connected()
  const { status, body } = await operator<PriceComparisonView>('POST', '/prices/compare', {})
  assert.deepEqual([status, body.proof], [200, 'release'])
  const changed = body.rows.filter(({ kind }) => kind === 'changed').map(({ model }) => model)
  assert.deepEqual(changed, ['mistral-medium-latest'])
})

test('the command shows, exits with 1 when there is something to apply, and applies the list', async () => {
  await connected()
  const directory = await mkdtemp(join(tmpdir(), 'prices-'))
  const file = join(directory, 'table.json')
  const { table, signature } = TABLE()
  await writeFile(file, table)
  await writeFile(`${file}.sig`, signature)
  await writeFile(join(directory, 'key.pem'), PEM)
  const source = ['prices', 'update', '--file', file, '--public-key', join(directory, 'key.pem')]
  const said = async (code: number, ...words: string[]) => {
    const ran = await run([...source, ...words])
    assert.equal(ran.code, code, ran.err + ran.out)
    return ran.out + ran.err
  }
  const shown = await said(1)
  assert.match(shown, /mistral-large-latest +changed +input 50, [\s\S]* yes/)
  assert.match(shown, /mistral-medium-latest[\s\S]*set by hand/)
  const { version } = server.catalog.current
  assert.doesNotMatch(await said(0, '--apply', 'list', '--dry-run'), /mistral-next/)
  assert.equal(server.catalog.current.version, version)
  const json = JSON.parse(await said(1, '--json')) as PriceComparisonView
  assert.equal(json.rows.length, 6)
  assert.match(await said(1, '--apply', 'mistral/codestral-latest'), /nothing that the table would change/)
  assert.match(await said(0, '--apply', 'list'), /Version \d+ is in force[\s\S]*mistral-large-latest/)
  assert.equal(server.catalog.current.version, version + 1)
  assert.doesNotMatch(await said(0), /mistral-large-latest/)
  await writeFile(file, table.replace('0.4', '0.3'))
  assert.match(await said(1), /signature/)
  assert.match((await run(['prices', 'update', '--file', join(directory, 'none')])).err, /no such file/)
})
