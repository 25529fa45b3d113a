// Keys over the operator API: made, restricted, brought along, rotated, revoked.

import { createHash } from 'node:crypto'
import { assert, not, pluck, started, test, until } from '../../test/kit.ts'
import { asOperator, callsOn, makeAccount, startOperatorServer } from '../../test/operator-server.ts'
import type { KeyView, NewKey } from '../admission/views.ts'
import type { Page } from '../kernel/view.ts'
import type { AccountView } from '../ledger/views.ts'

const server = started(startOperatorServer)
const ask = asOperator(server)
const { call, reserve } = callsOn(server)
const accountOf = (input: object = {}) => makeAccount(server, input)

const authenticate = (key: string, ip = '127.0.0.1') =>
  Promise.resolve()
    .then(() => server.apiKeys.authenticate({ authorization: `Bearer ${key}`, xApiKey: undefined }, { ip }))
    .then(
      ({ keyId }) => keyId,
      (fault: { kind: string }) => fault.kind,
    )

test('a key is shown once, works at once, is restricted, and dies at once when it is revoked', async () => {
  const account = await accountOf()
  const made = await ask<NewKey>('POST', `/accounts/${account}/keys`, {
    name: 'ci',
    models: ['alpha-5.4', 'siteanalytics'],
    ipRanges: ['10.0.0.0/8', '::1'],
    expiresAt: '2099-01-01T00:00:00Z',
    limits: { spendTotal: 5 },
    responseCache: false,
  })
  assert.equal(made.status, 200)
  assert.equal(made.data.responseCache, false)
  const { key, ...shown } = made.data
  assert.match(key, /^tg_live_[0-9A-Za-z]{38}$/)
  assert.deepEqual([shown.prefix, shown.last4], [key.slice(0, 12), key.slice(-4)])
  assert.equal(await authenticate(key, '10.1.2.3'), shown.id)
  assert.equal(await authenticate(key), 'access_denied')
  const list = await ask<Page<KeyView>>('GET', `/accounts/${account}/keys`)
  assert.deepEqual(list.data.items, [{ ...shown }])
  assert.ok(!list.text.includes(key))
  const changed = await ask<KeyView>('PATCH', `/keys/${shown.id}`, { ipRanges: null, models: null, name: 'build' })
  assert.deepEqual([changed.data.models, changed.status], [null, 200])
  assert.equal(await authenticate(key), shown.id)
  assert.notEqual((await ask<KeyView>('DELETE', `/keys/${shown.id}`)).data.revokedAt, null)
  assert.equal(await authenticate(key), 'key_unknown')
  assert.equal((await ask('PATCH', `/keys/${shown.id}`, { name: 'x' })).status, 409)
  assert.equal((await ask('DELETE', '/keys/key_none')).status, 404)
  assert.equal((await ask('POST', '/accounts/acc_none/keys', { name: 'x' })).status, 404)
})

test('a key of another gateway is known by its hash alone, to the account that it was given to', async () => {
  const { data: account } = await ask<AccountView>('POST', '/accounts', { name: 'Importer' })
  const { data: second } = await ask<AccountView>('POST', '/accounts', { name: 'Other importer' })
  const value = 'sk-of-another-gateway'
  const sha256 = createHash('sha256').update(value).digest('hex')
  const path = `/accounts/${account.id}/imported-keys`
  const body = { name: 'brought along', sha256, last4: 'eway', limits: { requestsPerMinute: 5 } }
  const who = async (key: string) => {
    const header = { authorization: undefined, xApiKey: key }
    return (await server.apiKeys.authenticate(header, { ip: '127.0.0.1' })).accountId
  }
  await assert.rejects(who(value), { kind: 'key_unknown' })
  const { status, data: key } = await ask<KeyView & { key?: string }>('POST', path, body)
  assert.deepEqual([status, key.prefix, key.last4, key.key], [200, 'sk-', 'eway', undefined])
  assert.equal(await who(value), account.id)
  await assert.rejects(who(sha256), { kind: 'key_unknown' })
  assert.deepEqual((await ask<KeyView>('POST', path, { ...body, name: 'again' })).data.id, key.id)
  assert.equal((await ask('POST', `/accounts/${second.id}/imported-keys`, body)).status, 409)
  for (const wrong of [{ sha256: 'ab' }, { sha256: sha256.toUpperCase() }, { last4: 'a b' }, { key: value }])
    assert.equal((await ask('POST', path, { ...body, ...wrong })).status, 400)
  await ask('DELETE', `/keys/${key.id}`)
  await assert.rejects(who(value), { kind: 'key_unknown' })
})

test('a rotated key works beside the new one for the overlap, and spends from the same limit', async () => {
  const account = await accountOf()
  const { data: old } = await ask<NewKey>('POST', `/accounts/${account}/keys`, {
    name: 'app',
    limits: { spendTotal: '0.02' },
  })
  await call(account, { input: 1000, output: 1000 }, { key: old.id })
  const { data: fresh } = await ask<NewKey>('POST', `/keys/${old.id}/rotate`, { overlapSeconds: 60 })
  assert.equal(await authenticate(old.key), old.id)
  assert.equal(await authenticate(fresh.key), fresh.id)
  assert.equal(
    (await reserve(account, 10_001n, fresh.id)).outcome,
    'limited',
    'half of the limit was spent by the old key',
  )
  assert.equal((await reserve(account, 10_000n, fresh.id)).outcome, 'held')
  const { data: list } = await ask<Page<KeyView>>('GET', `/accounts/${account}/keys`)
  assert.deepEqual(pluck(list.items, 'id', 'replacedBy'), [
    [fresh.id, null],
    [old.id, fresh.id],
  ])
  assert.equal((await ask('POST', `/keys/${old.id}/rotate`, {})).status, 409)
  const { data: newest } = await ask<NewKey>('POST', `/keys/${fresh.id}/rotate`, { overlapSeconds: 0 })
  assert.equal(await authenticate(fresh.key), 'key_unknown')
  assert.equal(await authenticate(newest.key), newest.id)
})

test('a key that another process revokes is refused here within seconds', async () => {
  const account = await accountOf()
  const { data } = await ask<NewKey>('POST', `/accounts/${account}/keys`, { name: 'x' })
  assert.equal(await authenticate(data.key), data.id)
  await server.database.transaction(async (tx) => {
    await tx.query({ text: 'update api_key set revoked_at = now() where id = $1' }, [data.id])
    await server.changes.bump(tx, 'keys')
  })
  assert.equal(await until(() => authenticate(data.key), not(data.id)), 'key_unknown')
})
