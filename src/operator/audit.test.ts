// What the audit says of each change: who, from where, and what it was before, in one sentence.

import type * as z from 'zod'
import { assert, BY, before, none, started, test } from '../../test/gateway.ts'
import { asOperator, startOperatorServer } from '../../test/operator-server.ts'
import type { NewKey } from '../admission/views.ts'
import type { CurrentView } from '../catalog/views.ts'
import { type AuditView, type auditCheck, createAudit } from '../database/audit.ts'
import { auditSentence, EVENTS } from '../database/audit-sentence.ts'
import type { Page } from '../kernel/view.ts'
import { realWorld } from '../kernel/world.ts'
import type { AccountView } from '../ledger/views.ts'

let ask: ReturnType<typeof asOperator>
const server = started(() => startOperatorServer({ anyReceiver: true }))
before(async () => {
  ask = asOperator(server)
})

async function last(filter: string): Promise<AuditView> {
  const { data } = await ask<Page<AuditView>>('GET', `/audit?limit=1&${filter}`)
  const [row] = data.items
  assert.ok(row, `no audit row for ${filter}`)
  return row
}

test('a change says what it was before and what it became, field by field, and nothing of what stayed', async () => {
  const { data: account } = await ask<AccountView>('POST', '/accounts', {
    name: 'Team A',
    limits: { requestsPerMinute: 10, concurrency: 2 },
  })
  await ask('PATCH', `/accounts/${account.id}`, { name: 'Team B', limits: { requestsPerMinute: 20 } })
  const row = await last(`object=${account.id}&action=account.change`)
  assert.deepEqual(row.before, { name: 'Team A', limits: { requestsPerMinute: 10, concurrency: 2 } })
  assert.deepEqual(row.after, { name: 'Team B', limits: { requestsPerMinute: 20, concurrency: 2 } })
  assert.deepEqual(row.changes, ['name from Team A to Team B', 'requests per minute from 10 to 20'])
  assert.equal(
    row.sentence,
    `operator token (from 127.0.0.1) changed the account "Team B" (${account.id}): name from Team A to Team B; requests per minute from 10 to 20.`,
  )
  await ask('POST', `/accounts/${account.id}/suspend`, { reason: 'unpaid' })
  const suspended = await last(`object=${account.id}&action=account.suspend`)
  assert.deepEqual(suspended.before, { status: 'open', statusReason: null })
  assert.match(suspended.sentence, /status from open to suspended; status reason from none to unpaid/)
})

test('keys, members, credentials, limits and alerts keep before and after; no secret is among them', async () => {
  const { data: account } = await ask<AccountView>('POST', '/accounts', { name: 'Keys' })
  const { data: key } = await ask<NewKey>('POST', `/accounts/${account.id}/keys`, { name: 'ci', models: ['alpha-5.4'] })
  await ask('PATCH', `/keys/${key.id}`, { models: null, name: 'build' })
  const changed = await last(`object=${key.id}&action=key.change`)
  assert.deepEqual(
    [changed.before, changed.after],
    [
      { name: 'ci', models: ['alpha-5.4'] },
      { name: 'build', models: null },
    ],
  )
  await ask('DELETE', `/keys/${key.id}`)
  assert.match((await last(`object=${key.id}&action=key.revoke`)).sentence, /revoked the key "build" \(key_/)

  await ask('PATCH', '/limits', { requestsPerMinute: 500 })
  await ask('PATCH', '/limits', { requestsPerMinute: null })
  assert.deepEqual((await last('action=system.limits')).changes, ['requests per minute was 500'])

  const receiver = { kind: 'webhook', to: 'https://hooks.example.com/secret-path-9f2' }
  const { data: settings } = await ask<{ rules: object; receivers: object[] }>('GET', '/alert-settings')
  const put = await ask('PUT', '/alert-settings', { ...settings, receivers: [receiver] })
  assert.equal(put.status, 200)
  const alerts = await last('action=alert.settings')
  assert.match(alerts.sentence, /receivers from none to webhook hooks\.example\.com/)

  const { rows } = { rows: await server.sql(`select string_agg(detail::text, ' ') as all from audit`) }
  const all = String((rows[0] as { all: string }).all) // The only column.
  for (const secret of [key.key, 'secret-path-9f2'])
    assert.ok(!all.includes(secret), `${secret.slice(0, 8)} is in the audit`)
})

test('tokens, invitations, login providers and exports say what there was and what there is', async () => {
  const made = (
    await ask<{ id: string }>('POST', '/tokens', { name: 'ci', scopes: ['keys'], ipRanges: ['10.0.0.0/8'] })
  ).data
  assert.match(
    (await last('action=token.create')).sentence,
    /created the token "ci" \(tok_\w+\) \(keys\): scopes keys; ip ranges 10\.0\.0\.0\/8\.$/,
  )
  await ask('DELETE', `/tokens/${made.id}`)
  assert.match(
    (await last('action=token.revoke')).sentence,
    /revoked the token "ci" \(tok_\w+\): revoked at from none to 20/,
  )
  await ask('POST', '/operator-invites', { email: 'x@audit.example', role: 'finance' })
  const { items } = (await ask<Page<{ id: string }>>('GET', '/operator-invites')).data
  await ask('DELETE', `/operator-invites/${items[0]?.id}`)
  assert.match((await last('action=invite.withdraw')).sentence, /: role was finance; email was x@audit\.example\.$/)
  const provider = { name: 'Corp', issuer: 'https://93.184.215.14', clientId: 'x' }
  assert.equal((await ask('PUT', '/login-providers/corp', provider)).status, 200)
  assert.equal((await ask('DELETE', '/login-providers/corp')).status, 200)
  assert.match((await last('action=provider.remove')).sentence, /issuer was https:\/\/93\.184\.215\.14/)
  const settings = { url: 'https://93.184.215.14/secret-path-77', batch: 10 }
  const { id } = (await ask<{ id: string }>('POST', '/exports', { name: 'books', kind: 'webhook', settings })).data
  await ask('PATCH', `/exports/${id}`, { settings: { ...settings, batch: 20 } })
  assert.match((await last('action=export.change')).sentence, /settings batch from 10 to 20\.$/)
  await ask('POST', `/exports/${id}/pause`)
  assert.match((await last('action=export.pause')).sentence, /paused from no to yes\.$/)
  await ask('DELETE', `/exports/${id}`)
  assert.match((await last('action=export.remove')).sentence, /settings host was 93\.184\.215\.14/)
  assert.ok(!(await ask('GET', '/audit?limit=200')).text.includes('secret-path-77'))
})

test('an action without before and after has a reason, and every other one of the log has both', async () => {
  none(Object.entries(EVENTS), ([, reason]) => reason.length < 10)
  const rows = await server.sql<{ action: string; both: boolean }>(
    `select action, detail ? 'before' and detail ? 'after' as both from audit`,
  )
  assert.ok(rows.length > 10)
  const without = rows.filter(({ action, both }) => !both && !Object.hasOwn(EVENTS, action)).map(({ action }) => action)
  assert.deepEqual(without, [])
})

test('many changes of the catalog are cut, and the row says how many are missing', async () => {
  const { data: current } = await ask<CurrentView>('GET', '/catalog')
  const [[uid, model] = ['', undefined]] = Object.entries(current.document.models)
  const many = Object.fromEntries(
    Array.from({ length: 60 }, (_, at) => [`${uid}-copy-${at}`, { ...model, name: `Copy ${at}` }]),
  )
  const put = await ask('PUT', '/catalog', {
    document: { ...current.document, models: { ...current.document.models, ...many } },
  })
  assert.equal(put.status, 200, JSON.stringify(put.error))
  const row = await last('action=catalog.apply')
  assert.equal(row.changes.length, 51)
  assert.equal(row.changes.at(-1), '… and 10 more')
})

test('the log is filtered by time, and a row of an unknown or old action still has its sentence', async () => {
  const { data } = await ask<Page<AuditView>>('GET', '/audit?from=2999-01-01')
  assert.deepEqual(data.items, [])
  const { data: until } = await ask<Page<AuditView>>('GET', '/audit?to=2999-01-01&limit=2')
  assert.equal(until.items.length, 2)
  const { data: next } = await ask<Page<AuditView>>('GET', `/audit?to=2999-01-01&limit=2&cursor=${until.next}`)
  assert.ok(next.items.every(({ id }) => id < (until.items.at(-1)?.id ?? '')))
  const old = { actor: 'anna', object: 'x_1', ip: null, token: 'ci', detail: {}, before: {}, after: {} }
  assert.equal(auditSentence({ ...old, action: 'thing.gone' }), 'anna (by the token ci) did "thing.gone" to x_1.')
  assert.equal(
    auditSentence({ ...old, action: 'member.remove', detail: { person: 'usr_1' } }),
    'anna (by the token ci) removed the member usr_1 from the account x_1.',
  )
})

test('a note waits for the lock of the chain only at the commit, so that it is in no deadlock with what is locked after it', async () => {
  const { database } = server
  const audit = createAudit({ database, world: realWorld })
  const shared = { text: 'select pg_advisory_xact_lock(77001)' }
  // Each has its first lock before one gets its second.
  const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await Promise.all(
    both.map((own, at) =>
      database.transaction(async (tx) => {
        if (at === 0) await audit.write(tx, BY, { action: 'vendor.test', object: 'first' })
        else await tx.query(shared)
        own.resolve()
        await Promise.all(both.map(({ promise }) => promise))
        if (at === 0) await tx.query(shared)
        else await audit.write(tx, BY, { action: 'vendor.test', object: 'last' })
      }),
    ),
  )
  assert.equal((await database.query({ text: `select 1 from audit where actor = 'test'` })).length, 2)
  assert.deepEqual((await audit.verify()).problems, [])
  await assert.rejects(audit.write(database, BY, { action: 'vendor.test', object: 'x' }), /There is no transaction/)
})

test('verifying finds a changed time, a cut tail, an emptied table, a recomputed chain and foreign rows', async () => {
  await using own = await startOperatorServer()
  const { database } = own
  const ask = asOperator(own)
  const check = async () => (await ask<z.infer<typeof auditCheck>>('GET', '/audit/verify')).data
  for (const name of ['a', 'b', 'c', 'd'])
    assert.equal((await ask('POST', '/accounts', { name, credits: '1' })).status, 200)
  assert.deepEqual((await check()).problems, [])
  await database.query({ text: 'create table kept_audit as select * from audit' })
  const chained = createAudit({ database, world: realWorld })
  const CHANGES: Record<string, () => Promise<unknown>> = {
    'a changed time': () =>
      database.query({
        text: `update audit set at = at + interval '1 hour' where object = (select max(object) from audit)`,
      }),
    'a cut tail': () => database.query({ text: 'delete from audit where id = (select max(id) from audit)' }),
    'an emptied table': () => database.query({ text: 'delete from audit' }),
    async 'a recomputed chain'() {
      const rows = await database.query<{ actor: string; object: string }>({ text: 'select * from audit order by id' })
      await database.query({ text: 'delete from audit' })
      for (const { actor, object } of rows)
        await database.transaction((tx) =>
          chained.write(tx, { actor, ip: null, requestId: null }, { action: 'vendor.test', object }),
        )
    },
    'a foreign row': () =>
      database.transaction((tx) =>
        chained.write(tx, { actor: 'me', ip: null, requestId: null }, { action: 'vendor.test', object: 'x' }),
      ),
  }
  await database.query({ text: 'alter table audit disable trigger audit_append_only' })
  for (const [name, change] of Object.entries(CHANGES)) {
    await change()
    assert.equal((await check()).ok, false, name)
    // A process that starts looks only at what is new since the last whole verification.
    if (name !== 'a changed time') assert.equal((await own.audit.verifyNew()).ok, false, name)
    await database.query({ text: 'delete from audit' })
    await database.query({ text: 'insert into audit select * from kept_audit' })
    assert.deepEqual((await check()).problems, [], name)
  }
  // Without the head nothing proves that the rows are all.
  await database.query({ text: `delete from setting where name = 'audit_head'` })
  assert.equal((await check()).ok, false)
})

test('an older head that is put back with the rows after it removed is found by a process that verified them', async () => {
  await using own = await startOperatorServer()
  const ask = asOperator(own)
  const check = async () => (await ask<z.infer<typeof auditCheck>>('GET', '/audit/verify')).data
  const sql = (text: string) => own.database.query({ text })
  assert.equal((await ask('POST', '/accounts', { name: 'a', credits: '1' })).status, 200)
  assert.deepEqual((await check()).problems, [])
  await sql('create table kept_audit as select * from audit')
  await sql(`create table kept_seal as select * from setting where name like 'audit_%'`)
  assert.equal((await ask('POST', '/accounts', { name: 'stolen', credits: '1000000' })).status, 200)
  assert.deepEqual((await check()).problems, [])
  await sql('alter table audit disable trigger audit_append_only')
  await sql('delete from audit where id not in (select id from kept_audit)')
  await sql('update setting s set value = k.value from kept_seal k where k.name = s.name')
  assert.match((await check()).problems.join(), /was changed or removed since it was verified/)
  // Rows that are written afterwards do not hide it.
  assert.equal((await ask('POST', '/accounts', { name: 'b', credits: '1' })).status, 200)
  assert.match((await check()).problems.join(), /was changed or removed since it was verified/)
})
