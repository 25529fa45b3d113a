import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { commandLineOf } from '../../test/command-line.ts'
import { type OperatorServer, startOperatorServer } from '../../test/operator-server.ts'

let server: OperatorServer
before(async () => {
  server = await startOperatorServer()
})
after(() => server.close())

const { run, json } = commandLineOf(() => server)

test('alerts are listed, their rules changed and receivers added, removed and tested from the command line', async () => {
  const { id } = await json<{ id: string }>(['accounts', 'create', 'Watched'])
  type Settings = { rules: Record<string, unknown>; receivers: unknown[] }
  const usual = (await json<Settings>(['alerts', 'rules', id])).rules
  assert.deepEqual([usual.balanceBelow, usual.balanceDays, usual.limitShares], [null, 3, [50, 80, 100]])
  const changed = await json<Settings>([
    ...[
      'alerts',
      'rules',
      id,
      '--balance-below',
      '12.5',
      '--limit-shares',
      '90',
      '--key-days',
      'off',
      '--job-failed',
      'off',
    ],
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
    (await run(['alerts', 'rules', id])).out,
    /^Key days +off$[\s\S]*^webhook +https:\/\/127\.0\.0\.1\/hook$/m,
  )
  assert.match((await run(['alerts', 'test', id])).out, /On its way to slack, webhook/)
  assert.match((await run(['alerts', 'list', id])).out, /^TIME +ACCOUNT.*\n.* test +on +A test +slack .*waiting/)
  const made = await json<Array<{ id: string; kind: string }>>(['deliveries', 'list', id])
  assert.deepEqual(made.map(({ kind }) => kind).sort(), ['slack', 'webhook'])
  const [delivery = ''] = made.map((one) => one.id)
  assert.match(
    (await run(['deliveries', 'list', id])).out,
    /^DELIVERY +TIME +ACCOUNT.*\n.*alert\.test.*127\.0\.0\.1 +waiting/,
  )
  assert.equal((await json<unknown[]>(['deliveries', 'list', id, '--status', 'given_up'])).length, 0)
  assert.match(
    (await run(['deliveries', 'show', delivery])).out,
    /^Status +waiting$[\s\S]*not been sent yet[\s\S]*A test/m,
  )
  assert.match((await run(['deliveries', 'repeat', delivery])).out, new RegExp(`deliveries show ${delivery}`))
  assert.match((await run(['deliveries', 'repeat', 'msg_none'])).err, /There is no such delivery/)
  const left = await json<Settings>(['alerts', 'remove', 'https://127.0.0.1/hook', '--account', id])
  assert.equal(left.receivers.length, 1)
  assert.match((await run(['alerts', 'remove', 'https://nobody.example', '--account', id])).err, /Nobody is told at/)
  for (const wrong of [
    ['--balance-days', 'soon'],
    ['--failure-calls', 'off'],
    ['--job-failed', 'maybe'],
  ])
    assert.equal((await run(['alerts', 'rules', ...wrong])).code, 2, wrong.join(' '))
  assert.equal((await run(['alerts', 'add', 'pigeon', 'x'])).code, 2)
  const huge = await run(['alerts', 'rules', id, '--balance-below', '99999999999999999999'])
  assert.match(huge.err, /must be an amount/)
  assert.deepEqual((await json<Settings>(['alerts', 'rules', '--vendor-open', 'off'])).rules.vendorOpen, false)
})
