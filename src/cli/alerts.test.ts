import { commandLineOf } from '../../test/command-line.ts'
import { assert, started, test, until } from '../../test/kit.ts'
import { startOperatorServer } from '../../test/operator-server.ts'

const server = started(() => startOperatorServer({ anyReceiver: true }))

const { run, json } = commandLineOf(() => server)
/** Not while it is being sent. */
const shows = (args: string[], wanted: RegExp) => until(async () => (await run(args)).out, wanted)

test('alerts are listed, their rules changed and receivers added, removed and tested from the command line', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Watched'])
  type Settings = { rules: Record<string, unknown>; receivers: unknown[] }
  const usual = (await json<Settings>(['alerts', 'rules', '--account', id])).rules
  assert.deepEqual([usual.balanceBelow, usual.balanceDays, usual.limitShares], [null, 3, [50, 80, 100]])
  const changed = await json<Settings>([
    'alerts',
    'change',
    '--account',
    id,
    '--balance-below',
    '12.5',
    '--limit-shares',
    '90',
    '--key-days',
    'off',
    '--job-failed',
    'off',
  ])
  assert.deepEqual(changed.rules, {
    ...usual,
    balanceBelow: '12.5',
    limitShares: [90],
    keyDays: null,
    jobFailed: false,
  })
  await json(['alerts', 'add', 'slack', 'https://127.0.0.1/services/T1', '--account', id])
  const { receivers, rules } = await json<Settings>([
    'alerts',
    'add',
    'webhook',
    'https://127.0.0.1/hook',
    '--account',
    id,
  ])
  assert.deepEqual([receivers.length, rules], [2, changed.rules], 'what was there stays')
  assert.match(
    (await run(['alerts', 'rules', '--account', id])).out,
    /^Key days +off$[\s\S]*^webhook +https:\/\/127\.0\.0\.1\/hook +active$/m,
  )
  assert.match((await run(['alerts', 'test', '--account', id])).out, /On its way to slack, webhook/)
  await shows(['alerts', 'list', '--account', id], /^TIME +ACCOUNT.*\n.* test +on +A test +no +127\.0\.0\.1, .*waiting/)
  const made = await json<Array<{ id: string; kind: string }>>(['deliveries', 'list', id])
  assert.deepEqual(made.map(({ kind }) => kind).sort(), ['slack', 'webhook'])
  const [delivery = ''] = made.map((one) => one.id)
  await shows(['deliveries', 'list', id], /^DELIVERY +TIME +ACCOUNT.*\n.*alert\.test.*127\.0\.0\.1 +waiting/)
  assert.equal((await json<unknown[]>(['deliveries', 'list', id, '--status', 'given_up'])).length, 0)
  await shows(['deliveries', 'show', delivery], /^Status +waiting$[\s\S]*^Body .*A test/m)
  // Not while it is being tried.
  await until(
    async () => (await run(['deliveries', 'repeat', delivery])).out,
    new RegExp(`deliveries show ${delivery}`),
  )
  assert.match((await run(['deliveries', 'repeat', 'msg_none'])).err, /There is no such delivery/)
  const left = await json<Settings>(['alerts', 'remove', 'https://127.0.0.1/hook', '--account', id])
  assert.equal(left.receivers.length, 1)
  assert.match((await run(['alerts', 'remove', 'https://nobody.example', '--account', id])).err, /Nobody is told at/)
  for (const wrong of [
    ['--balance-days', 'soon'],
    ['--failure-calls', 'off'],
    ['--job-failed', 'maybe'],
  ])
    assert.equal((await run(['alerts', 'change', ...wrong])).code, 2, wrong.join(' '))
  assert.equal((await run(['alerts', 'add', 'pigeon', 'x'])).code, 2)
  const huge = await run(['alerts', 'change', '--account', id, '--balance-below', '99999999999999999999'])
  assert.match(huge.err, /must be an amount/)
  assert.deepEqual((await json<Settings>(['alerts', 'change', '--vendor-open', 'off'])).rules.vendorOpen, false)
})
