// People who sign up by themselves get their account in a ledger, and take it with them when they delete their login.

import { after, assert, BY, before, OPERATOR_TOKEN, test, until } from '../../../test/gateway.ts'
import { type Installation, startInstallation } from '../../../test/installation.ts'
import { asBrowser, PASSWORD, tokenOf } from '../../../test/operator-server.ts'
import type { WhoView } from '../../identity/views.ts'
import { realWorld } from '../../kernel/world.ts'
import type { AccountView } from '../../ledger/views.ts'
import { decideAccount } from './crossings.ts'

let all: Installation

before(async () => {
  all = await startInstallation(['east@eu', 'west'])
})
after(() => all.close())

const settings = (more: object) => all.ask('/sign-up', { mode: 'invitation', ...more }, 'PUT')

async function signUp(email: string) {
  const { link } = await all.ask<{ link: string }>('/sign-up/invites', { email })
  const person = asBrowser(all)
  const done = await person('POST', `/public/sign-up/${tokenOf(link)}`, { password: PASSWORD })
  assert.equal(done.status, 200, done.text)
  const { accounts } = (await person<WhoView>('GET', '/session')).data
  return { person, account: accounts[0]!.id } // They signed up.
}

test('who signs up gets the account, with its credits and limits, in a ledger of the region that is set', async () => {
  const refused = await all.call('/admin/v1/sign-up', OPERATOR_TOKEN, { mode: 'invitation', region: 'moon' }, 'PUT')
  assert.match(await refused.text(), /no ledger lies in \\"moon\\"/)
  await settings({ region: 'eu', credits: '25', limits: { requestsPerMinute: 7 } })
  for (const email of ['one@sign.example', 'two@sign.example']) {
    const { person, account } = await signUp(email)
    assert.deepEqual(await all.homesOf(account), ['east'])
    const read = await all.ask<AccountView>(`/accounts/${account}`)
    assert.deepEqual([read.balance, read.limits, read.name], ['25', { requestsPerMinute: 7 }, email])
    const made = await person<{ key: string }>('POST', `/accounts/${account}/keys`, { name: 'own' })
    assert.equal((await all.chat(made.data.key)).status, 200)
  }
})

test('where no region is demanded, it is in the ledger with most room', async () => {
  await settings({})
  const homes = new Set<string | undefined>()
  for (let at = 0; at < 4; at++) homes.add((await all.homesOf((await signUp(`n${at}@room.example`)).account))[0])
  assert.ok(!homes.has('control') && homes.size > 0, [...homes].join())
})

test('an account whose process died after it was decided is made by another one, once', async () => {
  const control = all.databaseOf('control')
  all.cut('west')
  const input = { name: 'Later', credits: 5_000_000n, note: 'starting credits' }
  const id = await control.transaction((tx) => decideAccount(tx, { name: 'west', world: realWorld }, input, BY))
  // Another process that was as far has done it too.
  await control.query(
    {
      text: `insert into crossing (ledger, kind, detail) select ledger, kind, detail from crossing where detail ->> 'account' = $1`,
    },
    [id],
  )
  all.heal('west')
  const open = 'select 1 from crossing'
  await until(async () => ((await control.query({ text: open })).length === 0 ? true : undefined))
  assert.deepEqual(await all.homesOf(id), ['west'])
  assert.equal((await all.ask<AccountView>(`/accounts/${id}`)).balance, '5')
  const transfers = 'select count(*)::int as count from public.transfer where account_id = $1'
  assert.deepEqual(await all.databaseOf('west').query({ text: transfers }, [id]), [{ count: 1 }])
})

test('the last owner of an account in a ledger deletes the login, and the account is closed there', async () => {
  await settings({ region: 'eu', credits: '25' })
  const email = 'leaves@sign.example'
  const { person, account } = await signUp(email)
  const refused = await person('POST', '/me/delete', { email })
  assert.match(refused.text, /has 25 credits\. They are lost with your login/)
  all.cut('east')
  assert.equal((await person('POST', '/me/delete', { email, forfeit: true })).status, 503)
  all.heal('east')
  await until(async () => ((await person('GET', `/accounts/${account}`)).status === 200 ? true : undefined))
  const deleted = await person('POST', '/me/delete', { email, forfeit: true })
  assert.equal(deleted.status, 200, deleted.text)
  const { status, balance, name } = await all.ask<AccountView>(`/accounts/${account}`)
  assert.deepEqual([status, balance, name], ['closed', '0', 'Deleted by its owner'])
  assert.equal((await person('GET', '/session')).status, 401)
})
