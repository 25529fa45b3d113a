import { assert, pluck, test } from '../../../test/kit.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import { newApiAccounts } from './new-api.ts'

test('a token may use no more models than the channels of its group have', () => {
  const token = { user_id: 1, status: 1, expired_time: -1, unlimited_quota: true }
  const rows = {
    options: {},
    channels: [
      { status: 1, group: 'default,vip', models: 'cheap,shared' },
      { status: 1, group: 'vip', models: 'dear' },
      { status: 2, group: 'off', models: 'gone' },
    ],
    users: [{ id: 1, username: 'mara', status: 1, quota: 0, group: 'default' }],
    tokens: [
      { ...token, name: 'own', key: 'a'.repeat(48) },
      { ...token, name: 'vip', key: 'b'.repeat(48), group: 'vip' },
      { ...token, name: 'both', key: 'c'.repeat(48), model_limits_enabled: true, model_limits: 'cheap,dear' },
      { ...token, name: 'nowhere', key: 'd'.repeat(48), group: 'auto' },
    ],
  }
  // Only the names of the models are looked at.
  const models = Object.fromEntries(['cheap', 'shared', 'dear'].map((uid) => [uid, {}])) as CatalogInput['models']
  const placement = { uidOf: (name: string) => name }
  const options = { creditsPerDollar: '100', source: '', nowMs: Date.now(), placement }
  const [account] = newApiAccounts(rows, { models } as CatalogInput, options, () => undefined)
  assert.deepEqual(pluck(account?.keys, 'name', 'models'), [
    ['own', ['cheap', 'shared']],
    ['vip', null],
    ['both', ['cheap']],
  ])
})
