// Alerts: each crossing fires once, whichever process looks, and reaches the bell, signed webhooks, Slack and a real
// mail server.
import { createHmac } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { openedAlerts } from '../../../test/alerts.ts'
import { OPERATOR_TOKEN, startGateway, textOf } from '../../../test/gateway.ts'
import { assert, atLeast, atOnce, listen, pause, pluck, started, test, until } from '../../../test/kit.ts'
import { addMember, startMailServer } from '../../../test/mail-server.ts'
import type { Page } from '../../kernel/view.ts'
import type { AlertSettings, AlertView, Receiver } from './views.ts'

interface Got {
  readonly url: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: string
}

const got: Got[] = []
let refusals = 0

const hooks = started(() =>
  listen(async (request, response) => {
    const body = await text(request)
    if (refusals > 0) {
      refusals -= 1
      response.writeHead(500).end()
      return
    }
    got.push({ url: request.url ?? '', headers: request.headers, body })
    response.end('ok')
  }),
)
const post = started(startMailServer)
const g = started(() =>
  startGateway({
    env: {
      TOLLGATE_OUTBOUND_ALLOW: `127.0.0.1:${hooks.port} 127.0.0.2:${hooks.port}`,
      TOLLGATE_SMTP_URL: post.url,
      TOLLGATE_MAIL_FROM: 'Tollgate <alerts@gateway.example>',
    },
  }),
)

const alertsOf = async (account: string) => (await g.ask<Page<AlertView>>('GET', `/accounts/${account}/alerts`)).items
const inShort = (alerts: readonly AlertView[]) => alerts.map(({ rule, level }) => `${rule} ${level}`)

const sql = (text: string, values: Array<string | number | Date | bigint>) => g.sql(text, values)

test('a share of a limit fires once at each step, however many look at once, and again after it fell', async () => {
  const { id } = await g.account()
  await g.ask('PATCH', `/accounts/${id}`, { limits: { spendPerDay: '100' } })
  const spend = (credits: number) =>
    sql(`update counter set used = $2 where account_id = $1 and scope = 'account' and name = 'spendPerDay'`, [
      id,
      credits * 1_000_000,
    ])
  const look = () => atOnce(4, () => openedAlerts(g).look())
  await spend(49)
  await look()
  assert.deepEqual(inShort(await alertsOf(id)), [])
  await spend(60)
  await look()
  await look()
  assert.deepEqual(inShort(await alertsOf(id)), ['limit 50'])
  await spend(100)
  await look()
  assert.deepEqual(inShort(await alertsOf(id)), ['limit 100', 'limit 50'])
  await spend(10)
  await look()
  await spend(85)
  await look()
  assert.deepEqual(inShort(await alertsOf(id)), ['limit 80', 'limit 100', 'limit 50'])
})

test('balances, failures, keys, jobs, breakers and the verification have their rules', async () => {
  const low = await g.account({ credits: 5_000_000n })
  const hour = `date_trunc('hour', now(), 'UTC')`
  const summed = (account: string, requests: number, errors: number, charged: number) =>
    sql(
      `insert into usage_hour (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
       values ($1, ${hour}, 'alpha-5.4', 'k', $2, $3, $4, 0, 0, 0)`,
      [account, requests, errors, charged],
    )
  await summed(low.id, 10, 0, 70_000_000)
  const failing = await g.account()
  await summed(failing.id, 40, 30, 1)
  const ending = await g.account()
  await sql(`update api_key set expires_at = now() + interval '2 days' where id = $1`, [ending.keyId])
  const unlucky = await g.account()
  await sql(
    `insert into job (id, account_id, key_id, hold_id, product, catalog_version, status, input, request, open, completed_at, error)
     values ('job_unlucky', $1, 'k', 'h1', 'videogen-2.0', 1, 'FAILED', '{}', '{}', false, now(), '{"message": "The vendor failed."}')`,
    [unlucky.id],
  )
  await sql(
    `insert into verification (id, whole, ended_at, problems) values ('ver_1', false, now(), '["The balance is wrong."]')`,
    [],
  )
  for (const account of [low.id, failing.id, ending.id, unlucky.id])
    for (let i = 0; i < 6; i++) g.gateway.vendors.failed('alpha', account, 'HTTP 500')
  await openedAlerts(g).look()
  assert.equal(await openedAlerts(g).look(), 0, 'nothing fires twice')
  assert.deepEqual(inShort(await alertsOf(low.id)), ['balance on'])
  assert.match((await alertsOf(low.id))[0]?.message ?? '', /they last 0\.5 days/)
  assert.deepEqual(inShort(await alertsOf(failing.id)), ['failures on'])
  assert.deepEqual(inShort(await alertsOf(ending.id)), ['key on'])
  const [job] = await alertsOf(unlucky.id)
  assert.deepEqual([job?.rule, job?.message], ['job', 'The vendor failed.'])
  const own = (await g.ask<Page<AlertView>>('GET', '/alerts')).items.filter(({ account }) => account === null)
  assert.deepEqual(inShort(own).sort(), ['vendor on', 'verification on'])
  assert.equal(own.find(({ rule }) => rule === 'vendor')?.subject, 'alpha')
  await g.ask('POST', `/accounts/${low.id}/alerts/read`, { until: (await alertsOf(low.id))[0]?.id })
  assert.equal((await alertsOf(low.id))[0]?.read, true)
  await sql(`delete from usage_hour where product = 'alpha-5.4' and key_id = 'k'`, [])
  await sql(`delete from job where id = 'job_unlucky'`, [])
  await sql(`delete from verification where id = 'ver_1'`, [])
})

test('receivers are told: webhooks signed, Slack in its JSON, mails by SMTP, and what fails is tried again', async () => {
  const { id } = await g.account({ credits: 1n })
  const at = `http://127.0.0.1:${hooks.port}`
  const receivers: Receiver[] = [
    { kind: 'webhook', to: `${at}/hook` },
    { kind: 'slack', to: `${at}/services/T0/secret-of-the-channel` },
    { kind: 'email', to: 'ada@example.com' },
  ]
  await addMember(g.gateway.database, id, 'ada@example.com')
  const settings = await g.ask<AlertSettings>('PUT', `/accounts/${id}/alert-settings`, {
    rules: { balanceBelow: '5' },
    receivers,
  })
  assert.equal(settings.rules.balanceDays, 3, 'what is not said has its default')
  const [kept] = await g.sql<{ row: string }>(`select s::text as row from alert_setting s where scope = '${id}'`)
  assert.ok(!kept?.row.includes('secret-of-the-channel'))
  refusals = 1
  await openedAlerts(g).look()
  const told = await until(async () => {
    const [alert] = await alertsOf(id)
    return alert?.deliveries.every(({ status }) => status === 'delivered') ? alert : undefined
  })
  assert.deepEqual(pluck(told.deliveries, 'kind', 'to'), [
    ['webhook', `127.0.0.1:${hooks.port}`],
    ['slack', `127.0.0.1:${hooks.port}`],
    ['email', 'ada@example.com'],
  ])
  assert.ok(
    told.deliveries.some(({ attempts }) => attempts > 1),
    'the one that was refused',
  )
  const hook = got.find(({ url }) => url === '/hook')
  assert.ok(hook)
  const { secret } = await g.ask<{ secret: string }>('GET', `/accounts/${id}/webhook-secret`)
  const signed = `${hook.headers['webhook-id']}.${hook.headers['webhook-timestamp']}.${hook.body}`
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  assert.equal(hook.headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  assert.deepEqual([JSON.parse(hook.body).type, JSON.parse(hook.body).data.account], ['alert.balance', id])
  assert.match(
    JSON.parse(got.find(({ url }) => url.startsWith('/services'))?.body ?? '{}').text,
    /^\*The balance of test is low\*\n/,
  )
  const mail = post.mails.at(-1)?.raw ?? ''
  assert.match(mail, /^To: ada@example\.com$/m)
  assert.match(mail, /^Subject: \[Tollgate\] The balance is low$/m)

  const before = got.length
  assert.equal((await g.ask<AlertView>('POST', `/accounts/${id}/alerts/test`)).rule, 'test')
  await until(() => got.length, atLeast(before + 2))
})

test('a name that a customer chose is not in the subject of a mail, and an address in it is no link', async () => {
  const { id } = await g.account({ credits: 1n })
  const name = 'You won: http://1.2.3.4/x https://evil.example/pay www.evil.example me@evil\u3002example'
  await sql('update account set name = $2 where id = $1', [id, name])
  const receivers = [{ kind: 'email', to: 'named@example.com' }]
  await addMember(g.gateway.database, id, 'named@example.com')
  await g.ask('PUT', `/accounts/${id}/alert-settings`, { rules: { balanceBelow: '5' }, receivers })
  await openedAlerts(g).look()
  const { headers, text, html } = await post.newest('named@example.com')
  assert.equal(headers.get('subject'), '[Tollgate] The balance is low')
  const shown = 'You won: http[:]//1.2.3.4/x https[:]//evil[.]example/pay www[.]evil[.]example me@evil[.]example'
  assert.ok(text.includes(shown) && html.includes(shown), text)
})

test('a name that a customer chose mentions nobody and is no link in Slack and its like', async () => {
  const { id } = await g.account({ credits: 1n })
  await sql('update account set name = $2 where id = $1', [id, '<!channel> <https://evil.example|Pay> @here R&D'])
  const receivers = [{ kind: 'slack', to: `http://127.0.0.1:${hooks.port}/named` }]
  await g.ask('PUT', `/accounts/${id}/alert-settings`, { rules: { balanceBelow: '5' }, receivers })
  await openedAlerts(g).look()
  const { body } = await until(() => got.find(({ url }) => url === '/named'))
  const shown = '&lt;!channel&gt; &lt;https[:]//evil[.]example|Pay&gt; @\u200bhere R&amp;D'
  assert.equal(JSON.parse(body).text.split('\n')[0], `*The balance of ${shown} is low*`)
})

test('a balance near its threshold fires once, until it was above it for an hour', async () => {
  const { id } = await g.account({ credits: 1n })
  await g.ask('PUT', `/accounts/${id}/alert-settings`, { rules: { balanceBelow: '5' } })
  const look = async (posted: number) => {
    await sql('update account set posted = $2 where id = $1', [id, posted])
    await openedAlerts(g).look()
    return (await alertsOf(id)).length
  }
  assert.deepEqual([await look(1), await look(6_000_000), await look(1)], [1, 1, 1])
  const old = `update alert_state set at = now() - interval '61 minutes' where scope = $1`
  await sql(old, [id])
  assert.deepEqual([await look(1), await look(6_000_000), await look(1)], [1, 1, 1], 'being true renews it')
  await look(6_000_000)
  await sql(old, [id])
  assert.deepEqual([await look(6_000_000), await look(1)], [1, 2])
  await look(1)
})

test('many accounts, and one with many failed jobs, hide nobody', async () => {
  const noisy = await g.account()
  const quiet = await g.account()
  const failed = `insert into job (id, account_id, key_id, hold_id, product, catalog_version, status, input, request, open, completed_at, error)
    select $2 || i, $1, 'k', $2 || i, 'videogen-2.0', 1, 'FAILED', '{}', '{}', false, now(), '{}' from generate_series(1, $3::int) i`
  await sql(failed, [noisy.id, 'job_noisy', 1_500])
  await sql(failed, [quiet.id, 'job_quiet', 1])
  const off = await g.account({ credits: 1n })
  const rules = { balanceDays: null, limitShares: [], failurePercent: null, keyDays: null, jobFailed: false }
  await g.ask('PUT', `/accounts/${off.id}/alert-settings`, { rules })
  await g.ask('PATCH', `/accounts/${off.id}`, { limits: { spendPerDay: '100' } })
  await sql(
    `update counter set used = 100000000 where account_id = $1 and scope = 'account' and name = 'spendPerDay'`,
    [off.id],
  )
  await sql(`update api_key set expires_at = now() + interval '1 day' where id = $1`, [off.keyId])
  await sql(failed, [off.id, 'job_quiet_off', 1])
  const calls = `insert into usage_hour (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
    select $1 || i, date_trunc('hour', now(), 'UTC'), 'alpha-5.4', 'many', $3::int, $3::int, 0, 0, 0, 0 from generate_series(1, $2::int) i`
  await sql(calls, ['acc_seldom', 20_000, 1])
  await sql(calls, ['acc_failing', 30, 40])
  await sql(calls.replace('$1 || i', '$1'), [off.id, 1, 40])
  await openedAlerts(g).look()
  const found = await g.sql<{ count: bigint }>(
    `select count(*) from alert where rule = 'failures' and scope like 'acc_failing%'`,
  )
  assert.equal(Number(found[0]?.count), 30)
  assert.deepEqual(inShort(await alertsOf(quiet.id)), ['job on'])
  assert.equal((await alertsOf(noisy.id)).length, 20)
  assert.deepEqual(inShort(await alertsOf(off.id)), [], 'rules that are switched off')
  await sql(`delete from usage_hour where key_id = 'many'`, [])
  await sql(`delete from job where id like 'job_noisy%' or id like 'job_quiet%'`, [])
})

test('a test is told once a minute, and mails have a budget for each account', async () => {
  const { id } = await g.account()
  const receivers = Array.from({ length: 7 }, (_, i): Receiver => ({ kind: 'email', to: `member${i}@example.com` }))
  for (const { to } of receivers) await addMember(g.gateway.database, id, to)
  await g.ask('PUT', `/accounts/${id}/alert-settings`, { receivers })
  const before = post.mails.length
  const press = () => g.call(`/admin/v1/accounts/${id}/alerts/test`, OPERATOR_TOKEN, undefined, { method: 'POST' })
  const answers = await Promise.all([press(), press(), press()])
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 429, 429])
  const refused = answers.find(({ status }) => status === 429)
  assert.match(refused?.headers.get('retry-after') ?? '', /^([1-9]|[1-5]\d|60)$/)
  await Promise.all(answers.map((answer) => answer.text()))
  const [alert] = await until(async () => {
    const alerts = await alertsOf(id)
    return alerts[0]?.deliveries.some(({ error }) => /5 mails sent per minute/.test(error ?? '')) ? alerts : undefined
  })
  assert.ok(alert?.deliveries.some(({ status }) => status === 'waiting'))
  assert.ok(post.mails.length - before <= 6, 'five, and one more if this took long')
  await g.ask('PUT', `/accounts/${id}/alert-settings`, { receivers: [] })
})

test('slow receivers of one account have three deliveries at a time, and all are told', async () => {
  let open = 0
  let most = 0
  let told = 0
  const answerSlowly: RequestListener = async (request, response) => {
    request.resume()
    open += 1
    most = Math.max(most, open)
    // As many as may be sent to at once come, and nobody else meanwhile.
    await until(() => most, atLeast(3))
    await pause(300, 'a fourth may not come')
    open -= 1
    told += 1
    response.end()
  }
  await using slow = await listen(answerSlowly, hooks.port, '127.0.0.2')
  const { id } = await g.account()
  const to = `${slow.url}/slow`
  await g.ask('PUT', `/accounts/${id}/alert-settings`, {
    receivers: Array.from({ length: 5 }, (): Receiver => ({ kind: 'webhook', to })),
  })
  await g.ask('POST', `/accounts/${id}/alerts/test`)
  await until(() => told, atLeast(3))
  assert.equal(most, 3)
  // Those that were put back come by themselves.
  await until(() => told, atLeast(5))
  assert.equal(most, 3)
})

test('what cannot be a receiver is refused', async () => {
  const { id } = await g.account()
  const wrong: unknown[] = [
    { kind: 'webhook', to: 'http://169.254.169.254/latest' },
    { kind: 'webhook', to: 'not an address' },
    { kind: 'email', to: 'ada@example.com, eve@example.com' },
    { kind: 'email', to: 'nobody' },
    { kind: 'pigeon', to: 'ada@example.com' },
  ]
  for (const receiver of wrong) {
    await textOf(
      g.call(`/admin/v1/accounts/${id}/alert-settings`, OPERATOR_TOKEN, { receivers: [receiver] }, { method: 'PUT' }),
      400,
    )
  }
})
