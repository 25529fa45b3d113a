// Deliveries: what is sent to receivers outside is seen, tried again, given up and repeated, and a process that is
// killed loses none.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import type { AlertView, Receiver } from '../src/extensions/alerts/views.ts'
import { type Message, sealMessage } from '../src/jobs/delivery.ts'
import type { DeliveryDetail, DeliveryPage, DeliveryView } from '../src/jobs/views.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { realWorld } from '../src/kernel/world.ts'
import { freshDatabase } from './database.ts'
import { SECRET, startGateway, type TestGateway, WITH_EXTENSIONS } from './gateway.ts'
import { FAST } from './job-pace.ts'
import { killable } from './killable.ts'
import {
  above,
  after,
  assert,
  before,
  type Listening,
  listen,
  not,
  pluck,
  started,
  temporary,
  test,
  until,
} from './kit.ts'
import { addMember } from './mail-server.ts'

/** As the guide says: the first, and twelve more. */
const TRIES_MAX = 13

type Got = { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: string }

let g: TestGateway
let receiver: Listening
let mails: SMTPServer
const got: Got[] = []
const mailed: string[] = []
/** What the receiver does at a path; 204 without one. */
const scripts = new Map<string, (response: ServerResponse, count: number) => void>()
const at = (path: string) => got.filter((one) => one.path === path)
const host = () => receiver.host

before(async () => {
  receiver = await listen(async (request, response) => {
    const body = await text(request)
    const path = (request.url ?? '').split('?')[0] ?? ''
    got.push({ path, headers: request.headers, body })
    const script = scripts.get(path)
    if (script) script(response, at(path).length)
    else response.writeHead(204).end()
  })
  mails = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo({ address }, _session, done) {
      const refused = Object.assign(new Error('no such mailbox'), { responseCode: 550 })
      done(address.startsWith('nobody') ? refused : null)
    },
    onData(stream, _session, done) {
      let text = ''
      stream.on('data', (piece: Buffer) => {
        text += piece
      })
      stream.on('end', () => {
        mailed.push(text)
        done()
      })
    },
  })
  await new Promise<void>((resolve) => mails.listen(0, '127.0.0.1', () => resolve()))
  g = await startGateway({
    // The pauses double: twelve of them in seconds instead of hours.
    jobs: { ...FAST, webhookRetrySeconds: 0.001 },
    env: {
      TOLLGATE_OUTBOUND_ALLOW: host(),
      TOLLGATE_SMTP_URL: `smtp://127.0.0.1:${(mails.server.address() as AddressInfo).port}`,
      TOLLGATE_MAIL_FROM: 'Tollgate <alerts@gateway.example>',
    },
  })
})
after(async () => {
  await g.close()
  await receiver.close()
  await new Promise<void>((resolve) => mails.close(() => resolve()))
})

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const { status, data } = await g.operator<T>(method, path, body)
  assert.equal(status, 200, `${method} ${path}: ${JSON.stringify(data)}`)
  return data
}

const seen = (id: string) => ask<DeliveryDetail>('GET', `/deliveries/${id}`)

async function ended(id: string, status: DeliveryView['status']): Promise<DeliveryDetail> {
  let found: DeliveryDetail | undefined
  await until(async () => {
    // A job's comes into being at its end.
    const answer = await g.operator<DeliveryDetail>('GET', `/deliveries/${id}`)
    if (answer.status === 200) found = answer.data
    return found?.status === status
  })
  assert.ok(found)
  return found
}

/** Sends each a message of a new account; answers the deliveries. */
async function send(...receivers: readonly Receiver[]): Promise<{ account: string; deliveries: DeliveryView[] }> {
  const { id: account } = await g.account()
  const messages = receivers.map(({ kind, to }, place) => ({
    id: `msg_${account}_${place}`,
    account,
    kind,
    event: 'test',
    subject: 'x',
    to,
    body: '{}',
  }))
  const { database, jobs } = g.gateway
  await jobs.deliveries.add(database, messages)
  jobs.deliveries.wake()
  return { account, deliveries: await Promise.all(messages.map(({ id }) => seen(id))) }
}

/** Tells the receivers of a new account a test; answers the deliveries. */
async function tell(receivers: readonly Receiver[]): Promise<{ account: string; deliveries: DeliveryView[] }> {
  const { id: account } = await g.account()
  for (const { kind, to } of receivers) if (kind === 'email') await addMember(g.gateway.database, account, to)
  await ask('PUT', `/accounts/${account}/alert-settings`, { receivers })
  const { deliveries } = await ask<AlertView>('POST', `/accounts/${account}/alerts/test`)
  assert.equal(deliveries.length, receivers.length)
  return { account, deliveries }
}

const hook = (path: string): Receiver => ({ kind: 'webhook', to: `http://${host()}${path}` })

async function createJob(key: string, callback: string): Promise<string> {
  const body = { model: 'videogen-2.0', prompt: 'a toll gate', callback_url: callback }
  const answer = await g.call('/v1/video/seedance', key, body)
  assert.equal(answer.status, 200)
  return ((await answer.json()) as { data: { jobId: string } }).data.jobId
}

test('the webhook of a job is one delivery: refused first, then delivered, with every attempt, and without secrets', async () => {
  const { id: account, key } = await g.account()
  const control = '\u0007\u001b[31m'
  scripts.set('/secret-path', (response, count) => {
    if (count > 1) response.end('thanks')
    else
      response.writeHead(500).end(`broken ${control} at http://${host()}/secret-path?token=sekrit ${'x'.repeat(5_000)}`)
  })
  const job = await createJob(key, `http://${host()}/secret-path?token=sekrit`)
  const found = await ended(`msg_${job}`, 'delivered')
  assert.deepEqual(
    [found.account, found.kind, found.event, found.subject, found.to, found.attempts, found.statusCode, found.error],
    [account, 'webhook', 'job.completed', job, host(), 2, 200, null],
  )
  assert.ok(found.deliveredAt)
  assert.deepEqual([found.givenUpAt, found.nextAttemptAt], [null, null])
  const [first, second] = found.history
  assert.deepEqual([first?.statusCode, first?.error], [500, 'The receiver answered with status 500.'])
  assert.match(first?.response ?? '', /^broken {2}\[31m at \[address\] x+$/)
  assert.ok((first?.response?.length ?? 0) <= 1_024)
  assert.deepEqual([second?.number, second?.statusCode, second?.response], [2, 200, 'thanks'])
  const sent = JSON.parse(at('/secret-path')[0]!.body)
  assert.match(sent.data.outputResult[0].url[0], /sig=/)
  const body = JSON.parse(found.body ?? '')
  assert.deepEqual([body.type, body.data.id], ['job.completed', job])
  assert.equal(found.bodyBytes, Buffer.byteLength(at('/secret-path')[0]!.body))
  const everything = JSON.stringify([found, await ask('GET', `/deliveries?account=${account}`)])
  for (const secret of ['sekrit', 'secret-path', 'sig=']) assert.ok(!everything.includes(secret), secret)
  const [row] = await g.sql<{ row: string }>(`select d::text as row from delivery d where id = $1`, [found.id])
  for (const secret of ['sekrit', 'a toll gate']) assert.ok(!row?.row.includes(secret), secret)
})

test('what is refused to the last attempt is given up, which is not delivered; and can be repeated under the same id', async () => {
  scripts.set('/never', (response) => response.writeHead(503).end())
  const { account, deliveries } = await send(hook('/never'))
  const { id } = deliveries[0]!
  const given = await ended(id, 'given_up')
  assert.equal(given.attempts, TRIES_MAX)
  assert.ok(given.givenUpAt)
  assert.deepEqual([given.deliveredAt, given.nextAttemptAt, given.statusCode], [null, null, 503])
  const of = async (status: string) =>
    (await ask<DeliveryPage>('GET', `/deliveries?account=${account}&status=${status}`)).items.length
  assert.deepEqual([await of('given_up'), await of('delivered'), await of('waiting')], [1, 0, 0])

  scripts.delete('/never')
  const again = await ask<DeliveryView>('POST', `/accounts/${account}/deliveries/${id}/repeat`)
  assert.deepEqual([again.givenUpAt, again.id], [null, id])
  const delivered = await ended(id, 'delivered')
  assert.equal(delivered.attempts, TRIES_MAX + 1)
  const sent = at('/never')
  assert.equal(new Set(sent.map(({ headers, body }) => `${headers['webhook-id']} ${body}`)).size, 1)
  assert.equal(sent[0]?.headers['webhook-id'], id)
  const audit = await ask<{ items: Array<{ object: string; detail: unknown }> }>('GET', '/audit?action=delivery.repeat')
  assert.deepEqual(audit.items[0]?.object, id)
  // What was delivered can be sent again, too.
  await ask('POST', `/deliveries/${id}/repeat`)
  await until(() => at('/never').length, TRIES_MAX + 2)
  await ended(id, 'delivered')
})

test('a receiver that answers 410 is sent nothing more', async () => {
  scripts.set('/gone', (response) => response.writeHead(410).end())
  const { deliveries } = await send(hook('/gone'))
  assert.equal((await ended(deliveries[0]!.id, 'given_up')).attempts, 1)
})

test('one that is being sent cannot be repeated; one that waits is sent now', async () => {
  const held = Promise.withResolvers<ServerResponse>()
  scripts.set('/slow', (response, count) => {
    if (count === 1) held.resolve(response)
    else response.writeHead(204).end()
  })
  const { deliveries } = await send(hook('/slow'))
  const { id } = deliveries[0]!
  const response = await held.promise
  assert.deepEqual([(await seen(id)).status, at('/slow').length], ['sending', 1])
  const refused = await g.operator<{ message: string }>('POST', `/deliveries/${id}/repeat`)
  assert.equal(refused.status, 409)
  assert.match(refused.data.message, /being sent at this moment/)
  // Whatever else is taken meanwhile, nobody sends it beside the one who does.
  const { deliveries: others } = await send(hook('/meanwhile'))
  await ended(others[0]!.id, 'delivered')
  assert.equal(at('/slow').length, 1)
  response.writeHead(500).end()
  await until(async () => at('/slow').length > 1 || (await seen(id)).history[0]?.statusCode === 500)
  assert.equal((await seen(id)).history[0]?.statusCode, 500)
  // As if its next attempt were far off.
  await ended(id, 'delivered')
  await g.sql(
    `update delivery set delivered_at = null, open = true, step_at = now() + interval '1 hour' where id = $1`,
    [id],
  )
  assert.ok((await seen(id)).nextAttemptAt)
  const before = at('/slow').length
  await ask('POST', `/deliveries/${id}/repeat`)
  await ended(id, 'delivered')
  assert.equal(at('/slow').length, before + 1)
})

test(
  'alerts by webhook, Slack and mail are deliveries of the same kind, and mails that are refused say why',
  WITH_EXTENSIONS,
  async () => {
    const receivers: Receiver[] = [
      hook('/hook'),
      { kind: 'slack', to: `http://${host()}/services/T0/channel-secret` },
      { kind: 'email', to: 'ada@example.com' },
      { kind: 'email', to: 'nobody@example.com' },
    ]
    const { account, deliveries } = await tell(receivers)
    const [webhook, slack, mail, refused] = deliveries.map(({ id }) => id)
    for (const id of [webhook!, slack!, mail!]) assert.equal((await ended(id, 'delivered')).event, 'alert.test')
    assert.match(mailed.join(), new RegExp(`^Message-ID: <${mail}@gateway\\.example>`, 'm'))
    await until(async () => typeof (await seen(refused!)).history[0]?.durationMs, 'number')
    const wrong = await seen(refused!)
    assert.deepEqual(
      [wrong.to, wrong.deliveredAt, wrong.history[0]?.statusCode, wrong.history[0]?.error],
      ['nobody@example.com', null, 550, 'The mail server did not take it (EENVELOPE).'],
    )
    const { items } = await ask<DeliveryPage>('GET', `/accounts/${account}/deliveries?kind=slack`)
    assert.deepEqual(pluck(items, 'id', 'to'), [[slack, host()]])
    assert.ok(!JSON.stringify(await seen(slack!)).includes('channel-secret'))
    const [alert] = (await ask<{ items: AlertView[] }>('GET', `/accounts/${account}/alerts`)).items
    assert.deepEqual(
      alert?.deliveries.map(({ deliveredAt }) => deliveredAt !== null),
      [true, true, true, false],
    )
  },
)

test('a receiver that is taken out of the settings is sent nothing more, and others are', WITH_EXTENSIONS, async () => {
  scripts.set('/out', (response) => response.writeHead(500).end())
  scripts.set('/stays', (response) => response.writeHead(500).end())
  const { account, deliveries } = await tell([hook('/out'), hook('/stays')])
  await until(async () => at('/out').length > 0 && at('/stays').length > 0)
  scripts.delete('/stays')
  await ask('PUT', `/accounts/${account}/alert-settings`, { receivers: [hook('/stays')] })
  assert.equal((await ended(deliveries[0]!.id, 'given_up')).givenUpAt !== null, true)
  await ended(deliveries[1]!.id, 'delivered')
})

test('an account sees its own deliveries and nobody else’s, a page at a time', async () => {
  const mine = await send(...Array.from({ length: 5 }, () => hook('/mine')))
  const other = await send(hook('/other'))
  const ids: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: DeliveryPage = await ask(
      'GET',
      `/accounts/${mine.account}/deliveries?limit=2${cursor && `&cursor=${cursor}`}`,
    )
    ids.push(...page.items.map(({ id }) => id))
    cursor = page.next
  }
  assert.deepEqual([...ids].sort(), mine.deliveries.map(({ id }) => id).sort())
  const theirs = other.deliveries[0]!.id
  assert.equal((await g.operator('GET', `/accounts/${mine.account}/deliveries/${theirs}`)).status, 404)
  assert.equal((await g.operator('POST', `/accounts/${mine.account}/deliveries/${theirs}/repeat`)).status, 404)
  assert.equal((await g.operator('GET', '/deliveries?status=lost')).status, 400)
  const all = await ask<DeliveryPage>('GET', '/deliveries?limit=200')
  assert.ok(all.items.some(({ id }) => id === theirs))
})

test('deliveries are kept for thirty days', async () => {
  const { deliveries } = await send(hook('/old'), hook('/young'))
  const [old, young] = deliveries.map(({ id }) => id)
  for (const id of [old!, young!]) await ended(id, 'delivered')
  const age = { text: `update delivery set created_at = now() - $2::interval where id = $1` }
  await g.gateway.database.query(age, [old!, '31 days'])
  await g.gateway.database.query(age, [young!, '29 days'])
  await g.gateway.jobs.deliveries.prune()
  assert.equal((await g.operator('GET', `/deliveries/${old}`)).status, 404)
  await seen(young!)
})

test('addresses inside our network say no more than that they cannot be used', async () => {
  const { id: account, key } = await g.account()
  const job = await createJob(key, `http://${host()}/hook`)
  const { body } = await ended(`msg_${job}`, 'delivered')
  assert.ok(body)
  // A name that means another address by the time that it is told.
  const to = 'http://127.0.0.1:1/inside'
  const message: Message = { id: `msg_${job}`, account, kind: 'webhook', event: 'x', subject: job, body: '{}', to }
  const deps = { secrets: createSecrets(SECRET), world: realWorld, guard: g.gateway.guard, mailer: undefined }
  await g.sql('update delivery set sealed = $2 where id = $1', [message.id, sealMessage(message, deps)])
  await ask('POST', `/deliveries/${message.id}/repeat`)
  await until(async () => (await seen(message.id)).history.length, above(1))
  await until(async () => (await seen(message.id)).history[1]?.error, not(null))
  assert.match((await seen(message.id)).history[1]?.error ?? '', /^The address could not be used\. It must be a public/)
})

// ---- Processes that are killed.

const fresh = started(freshDatabase)
const data = temporary('tollgate-deliveries-')
const startProcess = killable()

test(
  'killed between sending and writing it down, a process loses no delivery; and of two processes one sends each attempt',
  WITH_EXTENSIONS,
  async () => {
    const start = () =>
      startProcess({ connection: fresh.connection, sandboxUrl: g.sandbox.url, data, outboundAllow: host() })
    const first = await start()
    const arrived = Promise.withResolvers<void>()
    // It has arrived, and its sender never hears of that.
    scripts.set('/killed', (response, count) => (count === 1 ? arrived.resolve() : response.writeHead(204).end()))
    const { id: account } = await first.ask<{ id: string }>('POST', '/accounts', { name: 'killed' })
    await first.ask('PUT', `/accounts/${account}/alert-settings`, { receivers: [hook('/killed')] })
    const { deliveries } = await first.ask<AlertView>('POST', `/accounts/${account}/alerts/test`)
    await arrived.promise
    await first.kill()

    const [second, third] = await Promise.all([start(), start()])
    const { id } = deliveries[0]!
    const isDelivered = ({ status }: DeliveryDetail) => status === 'delivered'
    const { history } = await until(() => second.ask<DeliveryDetail>('GET', `/deliveries/${id}`), isDelivered)
    // On a busy machine an attempt may need more than the six seconds that the lease of the tests leaves it; it is made
    // again.
    const inTime = history.filter(({ error }) => error !== 'The receiver did not answer in time.')
    assert.deepEqual(pluck(inTime, 'statusCode', 'error'), [
      [null, 'The process that sent it ended before it knew the answer.'],
      [204, null],
    ])
    assert.equal(history[0]?.error, 'The process that sent it ended before it knew the answer.')
    const ids = at('/killed').map(({ headers }) => headers['webhook-id'])
    assert.ok(ids.length >= 2 && ids.length <= history.length, `${ids.length} arrived of ${history.length}`)
    assert.deepEqual([...new Set(ids)], [id])

    const { id: many } = await second.ask<{ id: string }>('POST', '/accounts', { name: 'many' })
    const receivers = Array.from({ length: 10 }, (_, place) => hook(`/many-${place}`))
    await second.ask('PUT', `/accounts/${many}/alert-settings`, { receivers })
    await third.ask('POST', `/accounts/${many}/alerts/test`)
    const all = () => third.ask<DeliveryPage>('GET', `/deliveries?account=${many}&status=delivered`)
    const { items } = await until(all, (page) => page.items.length === 10)
    for (const [place] of receivers.entries()) assert.equal(at(`/many-${place}`).length, 1)
    assert.deepEqual(pluck(items, 'attempts'), Array(10).fill(1))
  },
)
