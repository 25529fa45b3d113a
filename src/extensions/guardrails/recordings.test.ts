// What callers sent and were sent, kept where their account or key wants it, and nowhere else.
import { freshDatabase } from '../../../test/database.ts'
import { needs, OPERATOR_TOKEN, startGateway, type TestGateway, testGateway } from '../../../test/gateway.ts'
import { assert, pluck, test, until } from '../../../test/kit.ts'
import { connect } from '../../../test/mcp/client.ts'
import type { ContentRules, ContentView } from '../../admission/views.ts'
import type { AuditView } from '../../database/audit.ts'
import type { Page } from '../../kernel/view.ts'
import type { UsageDetail } from '../../ledger/views.ts'
import { guardrails as extension } from './extension.ts'

const g = testGateway()
const CHAT = '/v1/chat/completions'
const chat = (content: string, more: object = {}) => ({
  model: 'alpha-5.4',
  messages: [{ role: 'user', content }],
  ...more,
})

/** A call, ended and written; answers its id and what the caller got. */
async function made(key: string, body: unknown, path = CHAT): Promise<{ id: string; status: number; text: string }> {
  const answer = await g.call(path, key, body as object)
  const text = await answer.text()
  await g.gateway.opened(extension).contents.flush()
  await g.gateway.refusals.flush()
  return { id: answer.headers.get('x-request-id') ?? '', status: answer.status, text }
}

const kept = (id: string) => g.ask<ContentView>('GET', `/usage/${id}/content`)
const statusOf = async (id: string) => (await g.operator('GET', `/usage/${id}/content`)).status
const rows = async (account: string) =>
  g.sql<{ id: string; sealed: Buffer; key_id: string }>(
    'select id, sealed, key_id from recording where account_id = $1 order by id',
    [account],
  )

test('nothing is kept until it is switched on; then answers, streams and refusals are, as they were sent, and sealed', async () => {
  const { id: account, key } = await g.account()
  const before = await made(key, chat('nobody keeps this'))
  assert.equal(await statusOf(before.id), 404)
  assert.deepEqual(await rows(account), [])

  const { data: rules } = await g.operator<ContentRules>('PUT', `/accounts/${account}/content`, { days: 3 })
  assert.deepEqual(rules, { account: { days: 3, maxBytes: 65_536 }, keys: [], storedCalls: 0 })
  const whole = await made(key, chat('Why is the sky blue?'))
  const view = await kept(whole.id)
  assert.deepEqual([view.request.method, view.request.path, view.request.cut], ['POST', CHAT, false])
  assert.deepEqual(JSON.parse(view.request.body), chat('Why is the sky blue?'))
  assert.deepEqual(view.answer, { status: 200, contentType: 'application/json', body: whole.text, cut: false })
  assert.equal(Math.round((Date.parse(view.expiresAt) - Date.parse(view.at)) / 86_400_000), 3)

  const stream = await made(key, chat('Tell me more', { stream: true }))
  const streamed = await kept(stream.id)
  assert.equal(streamed.answer?.body, stream.text)
  assert.match(streamed.answer?.contentType ?? '', /event-stream/)

  const failed = await made(key, chat('And now? [[500]]'))
  assert.equal((await kept(failed.id)).answer?.status, failed.status)
  const refused = await made(key, '{"model": ')
  assert.deepEqual([refused.status, (await kept(refused.id)).request.body], [400, '{"model": '])

  const stored = await rows(account)
  assert.equal(stored.length, 4)
  assert.ok(stored.every(({ sealed }) => !sealed.toString('latin1').includes('sky')))
  assert.equal((await g.ask<UsageDetail>('GET', `/usage/${whole.id}`)).content, true)
  assert.equal((await g.ask<UsageDetail>('GET', `/usage/${before.id}`)).content, false)
})

test('secrets and pictures are left out, and what is longer than wanted is cut and says so', async () => {
  const { id: account, key } = await g.account()
  await g.operator('PUT', `/accounts/${account}/content`, { maxBytes: 1_024 })
  const picture = `data:image/png;base64,${'iVBORw0KGgo'.repeat(400)}`
  const secret = 'sk-proj-0123456789abcdefghijklmnop'
  const content = `See ${picture} with ${secret} and ${key}, {"password": "hunter2hunter2"} please`
  const view = await kept((await made(key, chat(content))).id)
  assert.match(view.request.body, /data:image\/png;base64,\[4400 characters left out\] with \[secret\] and \[secret\]/)
  assert.match(view.request.body, /please/)
  for (const hidden of [secret, key, 'hunter2', 'iVBORw0']) assert.ok(!view.request.body.includes(hidden), hidden)
  assert.equal(view.request.cut, false)

  const long = await kept((await made(key, chat('word '.repeat(1_000)))).id)
  assert.deepEqual([long.request.cut, long.request.body.length], [true, 1_024])
})

test('a key has a rule of its own, which goes with it when it is replaced, and other keys have none', async () => {
  const { id: account, key: other } = await g.account()
  const { key, keyId } = await g.key(account)
  assert.equal((await g.operator('PUT', `/accounts/${account}/content`, { key: 'key_of_nobody' })).status, 404)
  await g.operator('PUT', `/accounts/${account}/content`, { key: keyId, days: 1 })
  const own = await made(key, chat('mine'))
  assert.equal(await statusOf(own.id), 200)
  assert.equal(await statusOf((await made(other, chat('not mine'))).id), 404)
  const { data: next } = await g.operator<{ key: string }>('POST', `/keys/${keyId}/rotate`, {})
  assert.equal(await statusOf((await made(next.key, chat('still mine'))).id), 200)
  const { data } = await g.operator<ContentRules>('DELETE', `/accounts/${account}/content?key=${keyId}`)
  assert.deepEqual([data.keys.length, data.storedCalls], [1, 1], 'that of the new key stays')
  assert.equal(await statusOf(own.id), 404)
})

test(
  'tools that agents call are kept as the calls of their endpoints, with what was asked and answered',
  needs('agents'),
  async () => {
    const { id: account, key } = await g.account()
    const { key: other, keyId } = await g.key(account)
    const call = async (by: string, name: string, args: object) => {
      const client = await connect(g.url, by)
      const result = await client.callTool({ name, arguments: { ...args } })
      await client.close()
      await g.gateway.opened(extension).contents.flush()
      return { id: String(result._meta?.['tollgate/requestId']), result }
    }
    const prompt = { model: 'alpha-5.4', prompt: 'Name a toll road' }
    assert.equal(await statusOf((await call(other, 'ask_model', prompt)).id), 404, 'nobody asked for it')
    await g.operator('PUT', `/accounts/${account}/content`, { key: keyId })
    const asked = await call(other, 'ask_model', prompt)
    const { request, answer } = await kept(asked.id)
    assert.deepEqual([request.method, request.path], ['POST', '/v1/chat-completions'])
    assert.deepEqual(JSON.parse(request.body), chat(prompt.prompt))
    assert.equal(answer?.status, 200)
    const { text } = asked.result.structuredContent as { text: string }
    assert.equal(JSON.parse(answer?.body ?? '').choices[0].message.content, text)
    assert.equal((await g.ask<UsageDetail>('GET', `/usage/${asked.id}`)).content, true)

    const looked = await kept((await call(other, 'social_user_by_id', { id: '2244994945', 'user.fields': 'name' })).id)
    assert.deepEqual(
      [looked.request.method, looked.request.path],
      ['GET', '/v1/social/users/2244994945?user.fields=name'],
    )
    assert.match(looked.answer?.body ?? '', /"id":\s*"2244994945"/)
    const failed = await kept((await call(other, 'ask_model', { ...prompt, prompt: 'Hello [[500]]' })).id)
    assert.ok((failed.answer?.status ?? 0) >= 500)
    assert.match(failed.answer?.body ?? '', /"success":false/)
    assert.equal(await statusOf((await call(key, 'ask_model', prompt)).id), 404, 'the rule of one key')
    assert.equal((await rows(account)).length, 3)
  },
)

test('reading is in the audit; deleting one, and switching off, take effect at once', async () => {
  const { id: account, key } = await g.account()
  await g.operator('PUT', `/accounts/${account}/content`, {})
  const [one, two] = [await made(key, chat('first')), await made(key, chat('second'))]
  await kept(one.id)
  const audit = await g.ask<Page<AuditView>>('GET', `/audit?object=${one.id}`)
  assert.deepEqual(pluck(audit.items, 'action', 'actor', 'detail'), [['content.read', 'operator token', { account }]])
  assert.equal((await g.operator('DELETE', `/usage/${one.id}/content`)).status, 200)
  assert.equal(await statusOf(one.id), 404)
  assert.equal((await g.operator('DELETE', `/usage/${one.id}/content`)).status, 404)

  // A call that runs while it is switched off is not kept after all.
  const running = g.call(CHAT, key, chat('third [[wait=2000]]')).then((answer) => answer.text())
  await until(() => g.gateway.monitor.running, 1)
  const { data: off } = await g.operator<ContentRules>('DELETE', `/accounts/${account}/content`)
  assert.deepEqual(off, { account: null, keys: [], storedCalls: 0 })
  assert.equal(await statusOf(two.id), 404)
  await running
  await made(key, chat('fourth'))
  assert.deepEqual(await rows(account), [])
})

test('deleting is final, also of what was not written yet, here or in another process', async () => {
  await using database = await freshDatabase()
  await using one = await startGateway({ database })
  await using two = await startGateway({ database })
  const { id: account, key } = await one.account()
  const ask = async (by: TestGateway, method: string, path: string, body?: object) =>
    (await by.call(`/admin/v1${path}`, OPERATOR_TOKEN, body, { method })).status
  assert.equal(await ask(one, 'PUT', `/accounts/${account}/content`, {}), 200)
  const send = async (body: unknown) => {
    const answer = await one.call(CHAT, key, body as object)
    await answer.text()
    return `/usage/${answer.headers.get('x-request-id')}/content`
  }
  const stayed = await send(chat('this one stays'))
  const ended = [await send(chat('ended just now')), await send('{"model": ')]
  for (const path of ended) assert.equal(await ask(one, 'DELETE', path), 200)
  const elsewhere = await send(chat('deleted by another process'))
  assert.equal(await ask(two, 'DELETE', elsewhere), 200)
  const unlisted = await send('{"model": ')
  await one.gateway.opened(extension).contents.flush()
  assert.equal(await ask(two, 'DELETE', unlisted), 200)
  await one.gateway.refusals.flush()
  for (const path of [unlisted, ...ended, elsewhere]) {
    assert.equal(await ask(two, 'GET', path), 404, 'it did not come after all')
    assert.equal(await ask(one, 'DELETE', path), 404, 'there is nothing left to delete')
  }
  assert.equal(await ask(two, 'GET', stayed), 200)
  const rules = await one.call(`/admin/v1/accounts/${account}/content`, OPERATOR_TOKEN)
  assert.equal(((await rules.json()) as { data: ContentRules }).data.storedCalls, 1)
  const left = await one.sql<{ id: string }>(
    `update recording set expires_at = now() where account_id = $1 and sealed is null returning id`,
    [account],
  )
  assert.equal(await one.gateway.opened(extension).contents.prune(), left.length, 'nothing of it stays for ever')
})

test('what is switched off without removing stays for its days, and housekeeping ends it', async () => {
  const { id: account, key } = await g.account()
  await g.operator('PUT', `/accounts/${account}/content`, { days: 1 })
  const { id } = await made(key, chat('for a day'))
  const { data } = await g.operator<ContentRules>('DELETE', `/accounts/${account}/content?keep=true`)
  assert.equal(data.storedCalls, 1)
  await g.sql(`update recording set expires_at = now() - interval '1 second' where account_id = $1`, [account])
  assert.equal(await statusOf(id), 404, 'nobody reads it after its time')
  assert.equal(await g.gateway.opened(extension).contents.prune(), 1)
  assert.deepEqual(await rows(account), [])
})

test('while the database is away a bounded amount waits, and the rest is dropped and counted', async () => {
  const { contents } = g.gateway.opened(extension)
  const rule = { days: 1, maxBytes: 262_144 }
  const call = { requestId: 'req_1', account: 'acc_none', key: 'k', rule, method: 'POST', path: '/' }
  const before = contents.dropped
  const large = Buffer.alloc(524_288, 'a')
  const open = Array.from({ length: 200 }, () => contents.begin(call))
  for (const recording of open) recording?.asked(large)
  const late = contents.begin(call)
  late?.asked(large)
  assert.notEqual(late?.fits, true, 'there is no room')
  late?.end()
  for (const recording of open) recording?.end()
  assert.ok(contents.dropped - before >= 72, 'of a hundred megabytes sixty-four waited')
  await contents.flush()
  assert.deepEqual(await rows('acc_none'), [], 'nobody asked for these')
  const again = contents.begin(call)
  again?.asked(large)
  assert.equal(again?.fits, true, 'there is room again')
  again?.end()
  await contents.flush()
})
