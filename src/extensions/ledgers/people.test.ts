// People are control's, keys are a ledger's: who leaves an account, or deletes their login, is gone in both.

import { after, assert, before, OPERATOR_TOKEN, pluck, test, until } from '../../../test/gateway.ts'
import { type Installation, startInstallation } from '../../../test/installation.ts'
import { type asBrowser, joined, PASSWORD } from '../../../test/operator-server.ts'
import type { TeamView } from '../../admission/views.ts'
import type { WhoView } from '../../identity/views.ts'
import { ofLedger } from './open.ts'

let all: Installation

before(async () => {
  all = await startInstallation(['east'], { TOLLGATE_OUTBOUND_ALLOW: '127.0.0.1:9' })
})
after(() => all.close())

type Browser = ReturnType<typeof asBrowser>

/** A member of an account in a ledger, with a key of their own. */
async function member(account: string, email: string): Promise<{ person: Browser; id: string; key: string }> {
  const person = await joined(all, `/accounts/${account}/invites`, { email, role: 'admin' }, PASSWORD)
  const made = await person<{ key: string }>('POST', `/accounts/${account}/keys`, { name: 'own' })
  assert.equal(made.status, 200, made.text)
  assert.equal((await all.chat(made.data.key)).status, 200)
  return { person, id: (await person<WhoView>('GET', '/session')).data.user.id, key: made.data.key }
}

const isGone = (key: string) => until(async () => ((await all.chat(key)).status === 401 ? true : undefined))

test('a member signs in, sees the account and its calls, and makes keys for it', async () => {
  const { id: account } = await all.customer()
  const { person } = await member(account, 'first@people.example')
  const { accounts } = (await person<WhoView>('GET', '/session')).data
  assert.deepEqual(
    accounts.map(({ id, role }) => ({ id, role })),
    [{ id: account, role: 'admin' }],
  )
  const usage = await person<{ items: unknown[] }>('GET', `/accounts/${account}/usage`)
  assert.equal(usage.data.items.length, 1, usage.text)
})

test('the keys of a member of a team are the team’s in the ledger too', async () => {
  const { id: account } = await all.customer()
  const { person, id } = await member(account, 'in-a-team@people.example')
  const teams = `/accounts/${account}/teams`
  const team = await all.ask<TeamView>(teams, { name: 'Platform' })
  const set = await all.ask<TeamView>(`${teams}/${team.id}/members`, { userIds: [id] }, 'PUT')
  assert.deepEqual(pluck(set.members, 'userId'), [id])
  const { items } = await all.ask<{ items: TeamView[] }>(teams)
  assert.deepEqual(pluck(items[0]?.members ?? [], 'userId'), [id])
  const made = await person<{ teamId: string | null }>('POST', `/accounts/${account}/keys`, {
    name: 'of the team',
    teamId: team.id,
  })
  assert.deepEqual([made.status, made.data.teamId], [200, team.id], made.text)
})

test('a member who is removed is gone in the ledger', async () => {
  const { id: account } = await all.customer()
  const { id, key } = await member(account, 'removed@people.example')
  await all.ask(`/accounts/${account}/members/${id}`, undefined, 'DELETE')
  await isGone(key)
})

test('who deletes their login at control is gone in the ledger', async () => {
  const { id: account } = await all.customer()
  const email = 'leaves@people.example'
  const { person, key } = await member(account, email)
  const deleted = await person('POST', '/me/delete', { email })
  assert.equal(deleted.status, 200, deleted.text)
  await isGone(key)
  const [open] = await all.databaseOf('control').query({ text: 'select 1 from crossing' })
  assert.equal(open, undefined, 'what had to be done is done')
})

test('a code that is redeemed in a ledger is used at control, and given back if the credits never came', async () => {
  const { id: account } = await all.customer()
  const { list } = await all.ask<{ list: string[] }>('/code-batches', { name: 'spring', credits: '5', codes: 1 })
  await all.ask(`/accounts/${account}/codes`, { code: list[0] })
  const uses = async () =>
    (await all.databaseOf('control').query<{ uses: number }>({ text: 'select sum(uses)::int as uses from code' }))[0]
      ?.uses
  assert.equal(await uses(), 1)
  const control = all.databaseOf('control')
  await until(async () => ((await control.query({ text: 'select 1 from crossing' })).length === 0 ? true : undefined))
  assert.equal(await uses(), 1)
  // The ledger ended between the two: its part is not there.
  await control.query({
    text: `insert into crossing (ledger, kind, detail, created_at)
      select 'east', 'code', jsonb_build_object('account', 'acc_none', 'hash', encode(hash, 'hex')), now() - interval '1 hour' from code`,
  })
  await until(async () => ((await uses()) === 0 ? true : undefined))
})

test('a destination that an operator adds is every ledger’s, and paused in all at once', async () => {
  const kind = { kind: 'webhook', settings: { url: 'http://127.0.0.1:9/hook' } }
  const made = await all.call('/admin/v1/exports', OPERATOR_TOKEN, { name: 'usage', ...kind })
  assert.equal(made.status, 200, await made.clone().text())
  const { id } = ((await made.json()) as { data: { id: string } }).data
  const inLedger = () =>
    all
      .databaseOf('east')
      .query<{ paused: boolean }>({ text: 'select paused_at is not null as paused from export where id = $1' }, [id])
  assert.deepEqual(await inLedger(), [{ paused: false }])
  await all.ask(`/exports/${id}/pause`, undefined, 'POST')
  assert.deepEqual(await inLedger(), [{ paused: true }])
  await all.ask(`/exports/${id}`, undefined, 'DELETE')
  assert.deepEqual(await inLedger(), [])
})

test('each ledger has a database of its own in the analytics store', () => {
  const of = (url: string | undefined, name: string) =>
    ofLedger({ TOLLGATE_ANALYTICS_URL: url }, name).TOLLGATE_ANALYTICS_URL
  assert.equal(of('http://user:secret@store:8123/calls', 'us-east'), 'http://user:secret@store:8123/calls_us_east')
  assert.equal(of('http://store:8123', 'east'), 'http://store:8123/default_east')
  assert.equal(of(undefined, 'east'), undefined)
})
