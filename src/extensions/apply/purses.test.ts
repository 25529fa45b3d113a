// What `tollgate apply` says and does of purses: the prices for customers, and where an account is told.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf } from '../../../test/command-line.ts'
import { assert, startGateway, temporary, test } from '../../../test/gateway.ts'
import { STRIPE_KEY, STRIPE_SECRET } from '../../../test/stripe-server.ts'

const folder = temporary('tollgate-apply-purses-')
const file = join(folder, 'tollgate.yaml')

const environment = { SHOP_STRIPE: STRIPE_KEY, SHOP_WEBHOOK: STRIPE_SECRET }

const apply = (url: string, ...options: string[]) =>
  commandLineOf(() => ({ url }), { secrets: environment }).run(['apply', ...options])

const declared = (purses: string) => `tollgate: 1\naccounts:\n  - name: Shop\n    purses: ${purses}\n`

test('prices for customers and the address of events are applied, found applied, exported and refused with the reason', async () => {
  await using g = await startGateway()
  const both = declared(
    '{ prices: { markupPercent: 20, models: [{ model: alpha-5.5, prices: [{ output: 2000, upTo: 10, input: "400.0" }, { input: 500 }] }, { model: alpha-*, markupPercent: 30 }] }, events: { url: "https://hooks.example/secret-77" } }',
  )
  await writeFile(file, both)
  const made = await apply(g.url, file, '--yes')
  assert.equal(made.code, 0, made.err)
  assert.match(
    made.err,
    /Shop: its customers pay 20 % on what it pays, with rules of their own for alpha-5\.5, alpha-\*\./,
  )
  assert.match(made.err, /Shop: events of its purses go to hooks\.example\./)
  assert.ok(!`${made.out}${made.err}`.includes('secret-77'))
  const { items } = (await g.operator<{ items: { id: string; name: string }[] }>('GET', '/accounts?limit=200')).data
  const account = items.find(({ name }) => name === 'Shop')
  const at = `/accounts/${account?.id}/purse-prices`
  const prices = async () => (await g.operator<{ version: number; models: { model: string }[] }>('GET', at)).data
  assert.deepEqual((await prices()).models, [
    { model: 'alpha-5.5', prices: [{ upTo: 10, input: '400', output: '2000' }, { input: '500' }] },
    { model: 'alpha-*', markupPercent: '30' },
  ])
  assert.match((await apply(g.url, file, '--yes')).out, /Nothing differs/)
  // The first rule that fits counts, so that another order is another list.
  await writeFile(file, both.replace(/models: \[(.*\]) \}, (\{ model: alpha-\*.*?\})\]/, 'models: [$2, $1 }]'))
  assert.equal((await apply(g.url, file, '--dry-run')).code, 2)
  await writeFile(file, declared('{ events: { url: null } }'))
  assert.equal((await apply(g.url, file, '--yes')).code, 0)
  assert.equal((await prices()).version, 1)
  const exported = await apply(g.url, '--export')
  assert.match(exported.out, /purses:\n {6}prices:\n {8}markupPercent: "20"\n {8}models:\n {10}- model: alpha-5\.5/)
  await writeFile(file, exported.out)
  assert.match((await apply(g.url, file, '--yes')).out, /Nothing differs/)
  for (const [wrong, said] of [
    ['{ prices: { markup: 20 } }', /no field "markup" here; it takes markupPercent/],
    ['{ prices: { markupPercent: much } }', /must be a percentage/],
    ['{ prices: { models: [{ model: nothing, markupPercent: 1 }] } }', /there is no model "nothing"/],
  ] as const) {
    await writeFile(file, declared(wrong))
    const { code, err } = await apply(g.url, file, '--yes')
    assert.deepEqual([code, said.test(err)], [1, true], err)
  }
})

test('how customers pay is applied with its secrets, which are never printed, and found applied; only what differs is sent', async () => {
  await using g = await startGateway()
  const payments = (more = '') =>
    declared(`
      payments:
        { provider: stripe, currency: EUR, pricePerCredit: 0.01, minimum: 5, maximum: "500.00", name: Shop AI, ${more}
          issuer: { name: Shop GmbH, street: Weg 1, postcode: "10115", city: Berlin, country: de, vatId: DE 123456789, registration: HRB 1, email: a@shop.example, taxRate: "19" },
          secrets: { stripe: env:SHOP_STRIPE, stripe-webhook: env:SHOP_WEBHOOK } }`)
  const applied = async (text: string, ...options: string[]) => {
    await writeFile(file, text)
    const { code, out, err } = await apply(g.url, file, ...options)
    for (const secret of Object.values(environment)) assert.ok(!`${out}${err}`.includes(secret))
    return { code, said: `${out}${err}` }
  }
  const planned = await applied(payments(), '--dry-run')
  assert.equal(planned.code, 2, planned.said)
  for (const said of [
    /Shop: the provider for payments by customers was none and becomes stripe\./,
    /Shop: the price of a credit for payments by customers was none and becomes 0\.01\./,
    /Shop: the issuer of invoices for payments by customers was none and becomes Shop GmbH\./,
    /Shop: the secret stripe-webhook for payments by customers gets a new value\./,
  ])
    assert.match(planned.said, said)
  const made = await applied(payments(), '--yes')
  assert.equal(made.code, 0, made.said)
  const { items } = (await g.operator<{ items: { id: string; name: string }[] }>('GET', '/accounts?limit=200')).data
  const path = `/accounts/${items.find(({ name }) => name === 'Shop')?.id}/purse-payments`
  const stored = async () => (await g.operator<Record<string, unknown>>('GET', path)).data
  const { provider, minimum, mode, secrets, fingerprints } = await stored()
  assert.deepEqual([provider, minimum, mode, fingerprints], ['stripe', '5', 'test', undefined])
  assert.deepEqual(secrets, { stripe: true, 'stripe-webhook': true })
  const reader = { name: 'reader', scopes: ['purse-payments:read'] }
  const { token } = (await g.operator<{ token: string }>('POST', '/tokens', reader)).data
  const asReader = async (query: string) =>
    (await fetch(`${g.url}/admin/v1${path}${query}`, { headers: { authorization: `Bearer ${token}` } })).status
  const guess = `?salt=${'0'.repeat(32)}`
  assert.deepEqual(
    [await asReader(''), await asReader(guess)],
    [200, 403],
    'guessing a secret needs the right to set it',
  )
  assert.match((await applied(payments(), '--yes')).said, /Nothing differs/)

  environment.SHOP_WEBHOOK = `${STRIPE_SECRET}00`
  const rotated = await applied(payments('color: "#7a1fa2",'), '--yes')
  assert.equal(rotated.code, 0, rotated.said)
  assert.match(rotated.said, /color on light pages for payments by customers was none and becomes #7a1fa2\./)
  assert.deepEqual(rotated.said.match(/the secret \S+/g), ['the secret stripe-webhook'])
  assert.equal((await applied(payments(), '--dry-run')).code, 0, 'what the file does not name stays')
  const exported = await apply(g.url, '--export')
  assert.match(exported.out, /payments:\n {8}provider: stripe\n(?: .*\n)* {8}issuer:\n {10}name: Shop GmbH/)
  assert.match((await applied(exported.out, '--yes')).said, /Nothing differs/)
  for (const [wrong, said] of [
    [payments('minimun: 5,'), /no field "minimun" here; did you mean "minimum"/],
    [payments().replace('env:SHOP_STRIPE', STRIPE_KEY), /must say where the secret is, and never be the secret/],
    [payments().replace('SHOP_STRIPE', 'NOT_SET'), /NOT_SET/],
    [payments().replace('maximum: "500.00"', 'maximum: 1'), /maximum/],
    [payments('issuer: null,').replace(/issuer: \{.*\},/, ''), /issuer of invoices .* was Shop GmbH and becomes none/],
  ] as const) {
    const { code, said: got } = await applied(wrong, said.source.includes('becomes') ? '--dry-run' : '--yes')
    assert.deepEqual([code, said.test(got)], [said.source.includes('becomes') ? 2 : 1, true], got)
  }
})

test('an export of a gateway without purses has none', async () => {
  await using g = await startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: 'purses' } })
  await g.account()
  const { code, out, err } = await apply(g.url, '--export')
  assert.deepEqual([code, /purses:/.test(out)], [0, false], err)
})
