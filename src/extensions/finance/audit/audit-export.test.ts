// The audit log at a receiver outside: each row at least once, in order, with the chain by which the receiver verifies
// it.

import { createHash, createHmac } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { freshDatabase } from '../../../../test/database.ts'
import { startGateway, type TestGateway } from '../../../../test/gateway.ts'
import { FAST } from '../../../../test/job-pace.ts'
import { killable } from '../../../../test/killable.ts'
import { above, assert, listen, started, temporary, test, until } from '../../../../test/kit.ts'
import type { AuditExportView } from './views.ts'

interface Got {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

interface Line {
  readonly id: string
  readonly actor: string
  readonly action: string
  readonly object: string
  readonly ip: string | null
  readonly requestId: string | null
  readonly detail: unknown
  readonly sentence: string
  readonly previousHash: string
  readonly hash: string
}

const got: Got[] = []
/** What the receiver does; 204 without one. */
let script: ((got: Got, response: ServerResponse, count: number) => void) | undefined

const host = () => receiver.host

const receiver = started(() =>
  listen(async (request, response) => {
    const body = await text(request)
    const one = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body }
    got.push(one)
    if (script) script(one, response, got.length)
    else response.writeHead(204).end()
  }),
)
const g = started(() => startGateway({ env: { TOLLGATE_OUTBOUND_ALLOW: host() }, jobs: FAST }))

const linesOf = (all: readonly Got[]) =>
  all.flatMap(
    ({ body }) =>
      body
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Line), // The test looks at each of its fields.
  )

/** As the guide says: members sorted, no spaces. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(',')}}`
}

/** What a receiver finds wrong with the rows that it has, each counted once. */
function brokenIn(lines: readonly Line[]): string[] {
  const once = [...new Map(lines.map((line) => [line.id, line])).values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  let previous = '0'.repeat(64)
  return once.flatMap((line) => {
    const text = canonical([line.id, line.actor, line.action, line.object, line.ip, line.requestId, line.detail])
    const hash = createHash('sha256').update(Buffer.from(previous, 'hex')).update(text).digest('hex')
    const isGood = line.previousHash === previous && line.hash === hash
    previous = line.hash
    return isGood ? [] : [line.id]
  })
}

const idsIn = async (database: TestGateway['gateway']['database']) =>
  (await database.query<{ id: string }>({ text: 'select id from audit order by id' })).map(({ id }) => id)
const show = async () => (await g.operator<AuditExportView>('GET', '/audit-export')).data

test('a webhook gets every row, signed, in order, and can verify the chain; failures are tried again and shown', async () => {
  await g.operator('POST', '/accounts', { name: 'Before' })
  assert.equal((await show()).target, null)
  script = (_, response, count) => response.writeHead(count <= 2 ? 500 : 204).end()
  const { status, data } = await g.operator<AuditExportView>('PUT', '/audit-export', {
    kind: 'webhook',
    url: `http://${host()}/audit/secret-path`,
  })
  assert.equal(status, 200)
  assert.deepEqual(data.target, { kind: 'webhook', host: host() })
  for (let at = 0; at < 5; at++) await g.operator('POST', '/accounts', { name: `Account ${at}` })
  const ids = await idsIn(g.gateway.database)
  await until(async () => (await show()).waiting, 0)
  const accepted = got.slice(2)
  assert.deepEqual([...new Set(linesOf(accepted).map(({ id }) => id))], ids, 'each row, in order')
  assert.deepEqual(brokenIn(linesOf(accepted)), [])
  const forged = linesOf(accepted).map((line, at) => (at === 1 ? { ...line, object: 'acc_other' } : line))
  assert.notDeepEqual(brokenIn(forged), [], 'a changed row is found')
  assert.notDeepEqual(brokenIn(linesOf(accepted).filter((_, at) => at !== 1)), [], 'a missing row is found')
  const [one] = accepted
  assert.equal(one?.headers['content-type'], 'application/x-ndjson')
  const others = await g.operator<{ secret: string }>('GET', '/webhook-secret')
  assert.notEqual(data.secret, others.data.secret, 'receivers of other webhooks cannot sign an audit log')
  const key = Buffer.from(String(data.secret).replace('whsec_', ''), 'base64')
  const signed = `${one?.headers['webhook-id']}.${one?.headers['webhook-timestamp']}.${one?.body}`
  assert.equal(one?.headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  const last = await show()
  assert.deepEqual([last.failures, last.error, last.sent], [0, null, ids.length])
  assert.ok(linesOf(accepted).some(({ sentence }) => /created the account "Account 4"/.test(sentence)))
  const all = JSON.stringify(await g.operator('GET', '/audit?action=audit.export'))
  assert.ok(!all.includes('secret-path'), 'the address is not in the audit')
})

test('while the receiver is down nothing is lost, and what is wrong is shown', async () => {
  script = (_, response) => response.writeHead(503).end()
  await g.operator('POST', '/accounts', { name: 'While it is down' })
  await until(async () => (await show()).failures, above(1))
  const down = await show()
  assert.match(String(down.error), /status 503/)
  assert.ok(down.waiting > 0 && down.target !== null)
  got.length = 0
  script = undefined
  await until(async () => (await show()).waiting, 0)
  assert.ok(linesOf(got).some(({ sentence }) => sentence.includes('While it is down')))
})

test('S3 gets one object a batch, by hour, signed, and a stored secret is used nowhere else', async () => {
  got.length = 0
  const s3 = {
    kind: 's3',
    endpoint: `http://${host()}`,
    bucket: 'logs',
    accessKeyId: 'AKID',
    waitSeconds: 0,
    from: 'start',
  }
  assert.equal((await g.operator('PUT', '/audit-export', s3)).status, 400, 'its secret is missing')
  script = (_, response) => response.writeHead(200).end()
  const set = await g.operator<AuditExportView>('PUT', '/audit-export', {
    ...s3,
    secretAccessKey: 'very-secret-s3-key',
  })
  assert.equal(set.status, 200)
  assert.ok(!JSON.stringify(set.data).includes('very-secret-s3-key'))
  await until(async () => (await show()).waiting, 0)
  assert.deepEqual([...new Set(linesOf(got).map(({ id }) => id))], await idsIn(g.gateway.database))
  assert.deepEqual(brokenIn(linesOf(got)), [])
  for (const { method, path, headers, body } of got) {
    assert.equal(method, 'PUT')
    assert.match(path, /^\/logs\/audit\/\d{4}\/\d\d\/\d\d\/\d\d\/[0-9a-z]+-[0-9a-z]+\.jsonl$/)
    assert.match(String(headers.authorization), /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/us-east-1\/s3\/aws4_request/)
    assert.equal(headers['x-amz-content-sha256'], createHash('sha256').update(body).digest('hex'))
  }
  const elsewhere = await g.operator('PUT', '/audit-export', { ...s3, endpoint: 'http://93.184.215.14' })
  assert.equal(elsewhere.status, 400, 'the stored secret is not sent to another place')
  for (const inside of ['http://169.254.169.254', 'http://127.0.0.1:1', 'http://10.0.0.5', 'http://localhost'])
    for (const input of [
      { ...s3, endpoint: inside, secretAccessKey: 'x' },
      { kind: 'webhook', url: inside },
    ])
      assert.equal((await g.operator('PUT', '/audit-export', input)).status, 400, `${inside} is not public`)
  const waits = await g.operator<AuditExportView>('PUT', '/audit-export', { ...s3, waitSeconds: 3600, from: 'now' })
  assert.equal(waits.status, 200)
  await g.operator('POST', '/accounts', { name: 'Waits for the hour' })
  assert.ok((await show()).waiting > 0)
  assert.equal((await g.operator('DELETE', '/audit-export')).status, 200)
  assert.equal((await show()).target, null)
  assert.equal((await g.operator('DELETE', '/audit-export')).status, 404)
})

// A process that is killed.

const fresh = started(freshDatabase)
const data = temporary('tollgate-audit-')
const start = killable()

test('killed between sending and writing down how far it came, a process loses no row', async () => {
  const options = { connection: fresh.connection, sandboxUrl: g.sandbox.url, data, outboundAllow: host() }
  const first = await start(options)
  got.length = 0
  const arrived = Promise.withResolvers<void>()
  // It has arrived, and its sender never hears of that.
  script = (_, response, count) => (count === 1 ? arrived.resolve() : response.writeHead(204).end())
  await first.ask('POST', '/accounts', { name: 'One' })
  await first.ask('PUT', '/audit-export', { kind: 'webhook', url: `http://${host()}/killed` })
  await arrived.promise
  await first.kill()
  const { ask } = await start(options)
  await ask('POST', '/accounts', { name: 'Two' })
  await until(async () => (await ask<AuditExportView>('GET', '/audit-export')).waiting, 0)
  const [lost, ...rest] = got
  const after = linesOf(rest).map(({ id }) => id)
  assert.ok(lost && linesOf([lost]).every(({ id }) => after.includes(id)), 'what was not acknowledged is sent again')
  assert.deepEqual(brokenIn(linesOf(rest)), [], 'nothing is missing')
  assert.ok(linesOf(rest).some(({ sentence }) => sentence.includes('"Two"')))
})
