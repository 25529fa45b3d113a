// Commands that follow from the table of resources, and the one that reaches every resource.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { commandLineOf } from '../../test/command-line.ts'
import { type OperatorServer, startOperatorServer } from '../../test/operator-server.ts'
import { DERIVED_COMMANDS } from './derived.ts'
import { COMMANDS } from './run.ts'

let server: OperatorServer
before(async () => {
  server = await startOperatorServer()
})
after(() => server.close())

const { run, json } = commandLineOf(() => server)

test('every derived command is in a group of the help, once', () => {
  const names = COMMANDS.map(({ name }) => name)
  assert.deepEqual(
    DERIVED_COMMANDS.filter(({ name }) => names.filter((one) => one === name).length !== 1).map(({ name }) => name),
    [],
  )
})

test('any resource is reached with api, and derived commands take files, secrets and names', async () => {
  const made = await json<{ id: string }>(['api', 'post', '/accounts', '--data', '{"name":"By api"}'])
  assert.match((await run(['api', 'GET', `/accounts/${made.id}`])).out, /"name": "By api"/)
  for (const [args, message] of [
    [['FETCH', '/accounts'], /The method is one of GET/],
    [['GET', 'accounts'], /begins with a slash/],
    [['POST', '/accounts', '--data', '{'], /--data is not JSON/],
    [['POST', '/accounts', '--data', 'nowhere.json'], /there is no such file/],
  ] as const)
    assert.match((await run(['api', ...args])).err, message)
  const set = 'url=https://93.184.216.34/usage,batch=100'
  await json(['exports', 'create', 'books', 'webhook', '--set', set])
  const changed = await json<{ settings: object }>(['exports', 'change', 'BOOKS', '--set', 'batch=50'])
  assert.partialDeepStrictEqual(changed.settings, { url: 'https://93.184.216.34/usage', batch: 50 })
  assert.match((await run(['exports', 'list'])).out, /^EXPORT +NAME +KIND.*\n.* books +webhook +running/)
  assert.match((await run(['exports', 'show', 'boks'])).err, /There is no export "boks"\. Did you mean "books"\?/)
  assert.match((await run(['exports', 'credential', 'books'])).err, /on standard input/)
  await json(['exports', 'customer', 'books', 'by API', 'cus_1'])
  assert.match((await run(['exports', 'customers', 'books'])).out, /By api +cus_1/)
  await json(['exports', 'customer', 'books', 'by API', 'none'])
  assert.match((await run(['exports', 'customers', 'books'])).out, /knows accounts by their ids/)
  const codes = await run(['codes', 'create', 'Fair', '5', '--codes', '2', '--days', '30'])
  const [code = ''] = /[A-Z0-9]{4}(?:-[A-Z0-9]{4})+/.exec(codes.out) ?? []
  assert.match((await run(['codes', 'redeem', 'by api', code])).out, /^5 credits were added/)
  assert.match((await run(['codes', 'end', 'fair'])).out, /^Used +1$/m)
  assert.match((await run(['vendor-reports', 'list'])).out, /^No reports yet/)
  assert.match((await run(['payment-settings', 'change'])).err, /Nothing to change/)
})

test('an id needs no right to read the list, and a name is found beyond the first page', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Crowd'])
  const team = await json<{ id: string }>(['teams', 'create', id, 'Desk'])
  const { token } = await json<{ token: string }>([
    'tokens',
    'create',
    'teams',
    '--account',
    id,
    '--scopes',
    'teams:write',
  ])
  const narrow = commandLineOf(() => server, { token })
  assert.match((await narrow.run(['teams', 'change', id, 'Desk', '--name', 'Front'])).err, /teams:read/)
  assert.equal((await narrow.run(['teams', 'change', id, team.id, '--name', 'Front'])).code, 0)
  await json(['tokens', 'revoke', 'TEAMS', '--account', id])
  await json(['codes', 'create', 'Oldest', '5'])
  for (let count = 0; count < 200; count += 1) await json(['codes', 'create', `Batch ${count}`, '1'])
  assert.match((await run(['codes', 'end', 'oldest'])).out, /^Name +Oldest$/m)
})

test('rows inside an answer are a table, a merged change keeps the rest, and a file is one field', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Buyer', '--credits', '3'])
  await json(['credits', 'add', id, '5', '--ends', '2099-01-01T00:00:00Z'])
  assert.match((await run(['balance', 'show', id])).out, /^Available +8$[\s\S]*REMAINING[\s\S]* 5 /m)
  await json(['billing-details', 'change', id, '--company', 'Acme', '--country', 'de'])
  const details = await json<{ company: string; city: string }>(['billing-details', 'change', id, '--city', 'Bonn'])
  assert.partialDeepStrictEqual(details, { company: 'Acme', city: 'Bonn', country: 'DE' })
  const without = await json<{ company: unknown }>(['billing-details', 'change', id, '--company', 'none'])
  assert.equal(without.company, null)
  assert.match((await run(['invoices', 'monthly', 'maybe'])).err, /is on or off/)
  assert.match((await run(['invoices', 'issuer', 'nowhere.json'])).err, /there is no such file/)
  assert.equal((await json<{ issuer: unknown }>(['invoices', 'issuer', 'none'])).issuer, null)
  assert.match((await run(['invoices', 'list'])).out, /^There are no such invoices/)
  assert.match((await run(['margins', 'totals'])).out, /^Calls: 0\. Charged: 0\./)
  assert.match((await run(['plans', 'show', id])).out, /^Plan +–/m)
})
