// Active probes: two gateways on one database ask vendors for what costs nothing, and calls go where it is answered.
import type { ServerResponse } from 'node:http'
import { openedAlerts } from '../../../test/alerts.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/database.ts'
import { needs, OPERATOR_TOKEN, startGateway, type TestGateway } from '../../../test/gateway.ts'
import { after, assert, before, beforeEach, listen, started, test, until } from '../../../test/kit.ts'
import { type ScriptedVendor, scriptedVendor } from '../../../test/scripted-vendor.ts'
import type { Page } from '../../kernel/view.ts'
import type { VendorView } from '../../operator/views.ts'

const NAMES = ['north', 'south', 'locked', 'odd', 'strange', 'signed', 'quiet'] as const
type Name = (typeof NAMES)[number]
const KEY = 'sk-locked-0123456789abcdef'
/** It looks like no credential. */
const TOKEN = 'opaque.word.of.the.login'
const env = { LOCKED_KEY: KEY, SIGNED_KEY: 'client:secret' }
let vendors: Record<Name, ScriptedVendor>
let database: FreshDatabase
let one: TestGateway
let other: TestGateway
/** What the token endpoint of `signed` does. */
const brief = (response: ServerResponse) => void response.end(JSON.stringify({ access_token: TOKEN, expires_in: 1 }))
let giveToken = brief
const tokens = started(() => listen((_, response) => giveToken(response)))

before(async () => {
  const tokenUrl = `${tokens.url}/token`
  const started = await Promise.all(NAMES.map(async (name) => [name, await scriptedVendor(name)] as const))
  vendors = Object.fromEntries(started) as typeof vendors // One of each name.
  database = await freshDatabase()
  one = await startGateway({
    database,
    env,
    catalog(document) {
      // So rarely that a probe is made only when a test makes it due.
      const probe = { everySeconds: 3600 }
      const { north, south, locked, odd, strange, signed, quiet } = vendors
      document.vendors.north = { baseUrl: north.url, probe }
      document.vendors.south = { baseUrl: south.url, probe: false }
      document.vendors.locked = { baseUrl: locked.url, credential: 'LOCKED_KEY', probe }
      document.vendors.odd = { baseUrl: odd.url, probe }
      document.vendors.strange = { baseUrl: strange.url, probe }
      const login = { auth: { oauth: { tokenUrl } }, credential: 'SIGNED_KEY' }
      document.vendors.signed = { baseUrl: signed.url, ...login, probe }
      document.vendors.quiet = { baseUrl: quiet.url }
      document.vendors.keyless = { baseUrl: quiet.url, credential: 'ABSENT_KEY', probe }
      document.vendors.cloudy = { baseUrl: quiet.url, cloud: 'bedrock', probe }
      document.vendors.idle = { baseUrl: quiet.url, probe }
      const routes = (...names: string[]) =>
        names.map((vendor, order) => ({ vendor, protocol: 'openai-chat', model: 'm', order }))
      const model = { ...document.models['alpha-5.4'], family: 'plain', traits: {} }
      document.models.both = { ...model, routes: routes('north', 'south') }
      document.models.alone = { ...model, routes: routes('north') }
      document.models.guarded = { ...model, routes: routes('locked', 'south') }
      document.models.rest = { ...model, routes: routes('odd', 'strange', 'signed', 'quiet', 'keyless') }
      const cloudy = { vendor: 'cloudy', protocol: 'anthropic-messages', model: 'm' }
      document.models.far = { ...model, routes: [cloudy] }
    },
  })
  other = await startGateway({ database, env })
})
after(async () => {
  await one.settled()
  assert.equal(vendors.quiet.listed + vendors.south.listed, 0, 'a vendor was probed that must not be')
  await one.close()
  await other.close()
  await database.drop()
  for (const vendor of Object.values(vendors)) vendor.close()
})
beforeEach(() => {
  for (const vendor of Object.values(vendors)) vendor.script = {}
  giveToken = brief
})

type ProbeRow = { state: string; failures: number; message: string; version: number; probed_at: Date | null }
const sql = (text: string, values: string[] = []) => one.sql<ProbeRow>(text, values)
const rowOf = async (name: string) => (await sql('select * from vendor_probe where vendor = $1', [name]))[0]
const tick = () => Promise.all([one.gateway.prober.tick(), other.gateway.prober.tick()])

/** Makes a probe due, and waits until one has ended and both gateways know what it found. */
async function probe(name: Name): Promise<ProbeRow> {
  await until(() => rowOf(name))
  const [before] = await sql(`update vendor_probe set next_at = '-infinity' where vendor = $1 returning probed_at`, [
    name,
  ])
  const row = await until(async () => {
    await tick()
    const now = await rowOf(name)
    return now?.probed_at && now.probed_at.getTime() !== before?.probed_at?.getTime() ? now : undefined
  })
  await tick()
  return row
}

async function fail(name: Name, script: ScriptedVendor['script']): Promise<ProbeRow> {
  vendors[name].script = script
  return until(async () => {
    const row = await probe(name)
    return row.failures >= 3 ? row : undefined
  })
}

const view = async (g: TestGateway, name: string) =>
  (await g.operator<Page<VendorView>>('GET', '/vendors')).data.items.find((item) => item.name === name)

/** As this process sees it, without reports of the others, which may be seconds old. */
const breakerAt = (g: TestGateway, name: string) =>
  g.gateway.vendors.health().find((health) => health.name === name)?.breaker

const list = (status: number, body: unknown) => ({
  list: (response: ServerResponse) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
})
const AWAY = list(503, { error: { message: 'maintenance' } })

async function ask(g: TestGateway, key: string, model: string): Promise<string> {
  const answer = await g.call('/v1/chat/completions', key, { model, messages: [{ role: 'user', content: 'Hi.' }] })
  const body = (await answer.json()) as { choices?: [{ message: { content: string } }] }
  return body.choices?.[0].message.content ?? String(answer.status)
}

test('while probes fail, calls through all processes take the next route, and the log says why; one that answers ends it', async () => {
  const { id, key } = await one.account()
  await probe('north')
  assert.equal((await view(other, 'north'))?.probe?.state, 'answering')
  assert.equal(await ask(one, key, 'both'), 'from north')
  await fail('north', AWAY)
  const asked = vendors.north.sent.length
  for (const g of [one, other]) {
    assert.equal(await ask(g, key, 'both'), 'from south')
    const shown = await view(g, 'north')
    assert.equal(shown?.breaker, 'open')
    assert.match(shown?.reason ?? '', /^its last \d+ probes failed: It answers with a fault of its own \(503\)/)
    assert.ok(Date.parse(shown?.since ?? '') <= Date.now())
    assert.equal(shown?.probe?.state, 'failing')
    assert.match(await (await g.call('/metrics', OPERATOR_TOKEN)).text(), /tollgate_vendor_probe\{vendor="north"\} 1/)
  }
  assert.equal(vendors.north.sent.length, asked)
  vendors.north.script = {}
  await probe('north')
  for (const g of [one, other]) {
    assert.equal(await ask(g, key, 'both'), 'from north')
    assert.equal(breakerAt(g, 'north'), 'closed')
  }
  const logs = (await one.calls(id)).flatMap(({ log }) => log ?? [])
  assert.equal(logs.length, 2)
  for (const log of logs) {
    assert.deepEqual([log.attempts[0]?.vendor, log.attempts[0]?.skipped], ['north', true])
    assert.match(log.attempts[0]?.cause ?? '', /^its last \d+ probes failed$/)
  }
  // The calls were paid for, and no probe.
  const [usage] = await one.sql<{ calls: bigint }>('select count(*) as calls from usage')
  assert.equal(usage?.calls, 5n)
})

test('a vendor whose probes fail is still called where there is no other, and a call that succeeds brings it back', async () => {
  const { key } = await one.account()
  await fail('north', AWAY)
  assert.equal(await ask(one, key, 'both'), 'from south')
  assert.equal(await ask(one, key, 'alone'), 'from north')
  assert.deepEqual(
    [breakerAt(one, 'north'), breakerAt(other, 'north')],
    ['closed', 'open'],
    'the other process has not called it',
  )
  // The last resort too, after the others have failed.
  vendors.south.script = { status: 500 }
  assert.equal(await ask(other, key, 'both'), 'from north')
  assert.equal(await ask(other, key, 'both'), 'from north')
})

test('a breaker that calls have opened is closed by a probe, and no call of a caller is spent on that', async () => {
  const { key } = await one.account()
  vendors.north.script = {}
  await probe('north')
  vendors.north.script = { status: 503 }
  for (let i = 0; i < 5; i++) assert.equal(await ask(one, key, 'both'), 'from south')
  assert.equal((await view(one, 'north'))?.breaker, 'open')
  assert.match((await view(one, 'north'))?.reason ?? '', /^its calls failed, the last one with HTTP 503/)
  // Nothing is due, but calls fail: a probe is made soon.
  await sql(
    `update vendor_probe set probed_at = now() - interval '10 seconds', next_at = 'infinity' where vendor = 'north'`,
  )
  await until(async () => {
    await one.gateway.prober.tick()
    return (await rowOf('north'))?.state === 'failing'
  })
  const asked = vendors.north.sent.length
  assert.equal(await ask(one, key, 'both'), 'from south')
  vendors.north.script = {}
  await probe('north')
  assert.equal(breakerAt(one, 'north'), 'closed')
  assert.equal(vendors.north.sent.length, asked)
  assert.equal(await ask(one, key, 'both'), 'from north')
})

test('however many processes look at once, one of them probes; when it dies another does, and what it says later is not heard', async () => {
  vendors.north.script = {}
  await probe('north')
  let answer: ServerResponse | undefined
  const before = vendors.north.listed
  vendors.north.script = { list: (response) => (answer = response) }
  await sql(`update vendor_probe set next_at = '-infinity' where vendor = 'north'`)
  await Promise.all(Array.from({ length: 5 }, tick))
  await until(() => answer)
  await Promise.all(Array.from({ length: 5 }, tick))
  assert.equal(vendors.north.listed, before + 1)
  // Its process has died, as far as the others can know.
  await sql(`update vendor_probe set lease_until = now() - interval '1 second' where vendor = 'north'`)
  vendors.north.script = {}
  const gone = answer
  await until(async () => {
    await tick()
    return vendors.north.listed === before + 2
  })
  await until(async () => (await rowOf('north'))?.state === 'answering' && (await rowOf('north'))?.probed_at)
  const found = await rowOf('north')
  gone?.writeHead(500).end()
  await Promise.all([one.gateway.prober.idle(), other.gateway.prober.idle()])
  assert.deepEqual(await rowOf('north'), found)
})

test('a credential that is rejected is a state of its own; a new one is tried soon', needs('alerts'), async () => {
  const { key } = await one.account()
  vendors.locked.script = {
    list(response, { headers }) {
      const isRight = headers.authorization === `Bearer ${KEY}-new`
      response.writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' })
      response.end(JSON.stringify(isRight ? { data: [] } : { error: { message: `no ${headers.authorization}` } }))
    },
  }
  const { message } = await fail('locked', vendors.locked.script)
  assert.match(message, /^It does not accept the credential/)
  assert.ok(!message.includes(KEY), message)
  const shown = await view(one, 'locked')
  assert.deepEqual([shown?.probe?.state, shown?.breaker], ['rejected', 'open'])
  assert.equal(await ask(one, key, 'guarded'), 'from south')
  await openedAlerts(one).look()
  const alerts = (await one.operator<Page<{ title: string; message: string }>>('GET', '/alerts')).data.items
  assert.ok(alerts.some(({ title }) => title === 'locked rejects its credential'))
  // The list may be closed to a key that may make calls: routes do not give way.
  vendors.locked.script = list(403, {})
  assert.deepEqual([(await probe('locked')).state, breakerAt(one, 'locked')], ['rejected', 'closed'])
  vendors.locked.script = {}
  await sql(
    `update vendor_probe set probed_at = now() - interval '10 seconds', next_at = 'infinity' where vendor = 'locked'`,
  )
  const stored = await one.operator('PUT', '/vendors/locked/credential', { value: `${KEY}-new` })
  assert.equal(stored.status, 200)
  await until(async () => {
    await tick()
    return (await rowOf('locked'))?.state === 'answering'
  })
})

test('a credential that changes while the old one is tried is tried after it', needs('connect'), async () => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<ServerResponse>()
  vendors.locked.script = { list: ask }
  await sql(`update vendor_probe set state = 'rejected', next_at = '-infinity' where vendor = 'locked'`)
  await tick()
  const old = await asked
  vendors.locked.script = {}
  const stored = await one.operator('PUT', '/vendors/locked/credential', { value: `${KEY}-newer` })
  const changed = await one.operator('PATCH', '/vendors/locked', { entry: { concurrencyMax: 77 } })
  assert.deepEqual([stored.status, changed.status], [200, 200])
  await until(() => other.gateway.catalog.current.version, one.gateway.catalog.current.version)
  await tick()
  old.writeHead(401).end('{}')
  await until(async () => (await rowOf('locked'))?.probed_at && (await rowOf('locked'))?.state === 'rejected')
  await Promise.all([one.gateway.prober.idle(), other.gateway.prober.idle()])
  await sql(
    `update vendor_probe set probed_at = probed_at - interval '10 seconds', next_at = 'infinity' where vendor = 'locked'`,
  )
  await until(async () => {
    await tick()
    return (await rowOf('locked'))?.state === 'answering'
  })
})

test('a vendor without a free request says so, and is not probed', async () => {
  vendors.odd.script = list(404, {})
  assert.deepEqual([(await probe('odd')).state, (await probe('odd')).failures], ['unsupported', 0])
  for (const [name, said] of [
    ['keyless', /^Its credential has no value/],
    ['cloudy', /^The gateway knows no free request for this vendor/],
    ['idle', /^No model or endpoint has a route to it/],
  ] as const) {
    await tick()
    const shown = await view(one, name)
    assert.deepEqual([shown?.probe?.state, await rowOf(name)], ['unsupported', undefined])
    assert.match(shown?.probe?.message ?? '', said)
  }
  assert.equal((await view(one, 'south'))?.probe, null)
})

test('a list that is endless is broken off and counts; one that stalls, is no JSON or points elsewhere does not', async () => {
  let closed: number | undefined
  vendors.odd.script = {
    list(response) {
      const { socket } = response
      response
        .on('close', () => (closed = socket?.bytesWritten))
        .writeHead(200)
        .write('[')
      const more = () => {
        while (!response.destroyed && response.write('"model",'.repeat(2_000)));
      }
      response.on('drain', more)
      more()
    },
  }
  assert.equal((await probe('odd')).state, 'answering')
  // What is under way on the connection is more than what is read.
  assert.ok((await until(() => closed)) < 16 * 1024 * 1024, `${closed} bytes`)
  const cases: [NonNullable<ScriptedVendor['script']['list']>, RegExp][] = [
    [(response) => response.writeHead(200).write('{"data":['), /did not answer in time/],
    [(response) => response.writeHead(200).end('<html>welcome</html>'), /not with JSON/],
    [(response) => response.writeHead(302, { location: 'http://127.0.0.1/' }).end(), /redirects are not followed/],
    [(response) => response.destroy(), /closed the connection/],
  ]
  for (const [answers, said] of cases) {
    vendors.odd.script = { list: answers }
    const row = await probe('odd')
    assert.equal(row.state, 'failing')
    assert.match(row.message, said)
  }
})

test('what is no list counts only at an address that had one', async () => {
  const cases = [302, 400, 422, 200].map((status) => ({
    list: (response: ServerResponse) => void response.writeHead(status).end('<html>welcome</html>'),
  }))
  // It had one before this test.
  await probe('strange')
  await sql(`update vendor_probe set listed_url = null where vendor = 'strange'`)
  for (const script of cases) {
    vendors.strange.script = script
    const { state, failures } = await probe('strange')
    assert.deepEqual([state, failures], ['unsupported', 0])
  }
  vendors.strange.script = {}
  assert.equal((await probe('strange')).state, 'answering')
  for (const script of cases) {
    vendors.strange.script = script
    assert.equal((await probe('strange')).state, 'failing')
  }
})

test(
  'a login that is rejected is a rejected credential; a token that the vendor repeats is not stored',
  needs('logins'),
  async () => {
    giveToken = (response) => void response.writeHead(401).end(JSON.stringify({ error: 'invalid_client' }))
    const { message } = await fail('signed', {})
    assert.match(message, /^The login failed\. .*invalid_client/)
    assert.deepEqual([(await rowOf('signed'))?.state, (await view(one, 'signed'))?.breaker], ['rejected', 'open'])
    giveToken = brief
    vendors.signed.script = list(503, { error: { message: `busy with ${TOKEN}` } })
    const said = await until(async () => {
      const row = await probe('signed')
      return row.state === 'failing' ? row.message : undefined
    })
    assert.match(said, /busy with/)
    assert.ok(!said.includes(TOKEN), said)
  },
)

test('what probes found of a vendor that cannot be probed any more does not count', async () => {
  await fail('odd', AWAY)
  const routes = one.gateway.catalog.current.input.models.rest?.routes.filter(({ vendor }) => vendor !== 'odd')
  const changed = await one.operator('PATCH', '/models/rest', { routes })
  assert.equal(changed.status, 200, JSON.stringify(changed.data))
  await until(async () => {
    await tick()
    return [one, other].every(({ gateway }) => gateway.prober.found().every(({ vendor }) => vendor !== 'odd'))
  })
  assert.deepEqual([breakerAt(one, 'odd'), breakerAt(other, 'odd')], ['closed', 'closed'])
})

test('a process without the key of a vendor leaves what another process found of it', async () => {
  await sql(
    `insert into vendor_probe (vendor, every_seconds, state, probed_at) select x.vendor, 3600, 'answering', now() - interval '1 hour'
     from (values ('keyless'), ('gone')) x (vendor)`,
  )
  await until(async () => {
    await tick()
    return (await rowOf('gone')) === undefined
  })
  assert.equal((await rowOf('keyless'))?.state, 'answering')
  await sql(`delete from vendor_probe where vendor = 'keyless'`)
})

test('probes that are switched off end what they found', needs('connect'), async () => {
  await fail('north', AWAY)
  assert.equal(breakerAt(other, 'north'), 'open')
  const changed = await one.operator('PATCH', '/vendors/north', { entry: { probe: false } })
  assert.equal(changed.status, 200, JSON.stringify(changed.data))
  await until(async () => {
    await tick()
    return other.gateway.prober.view('north') === null && breakerAt(other, 'north') === 'closed'
  })
  const { listed } = vendors.north
  await sql(
    `update vendor_probe set probed_at = now() - interval '1 hour', next_at = '-infinity' where vendor = 'north'`,
  )
  await tick()
  assert.deepEqual([await rowOf('north'), vendors.north.listed], [undefined, listed])
  // The last ones too.
  for (const name of Object.keys(one.gateway.catalog.current.document.vendors))
    if (one.gateway.prober.view(name)) await one.operator('PATCH', `/vendors/${name}`, { entry: { probe: false } })
  await until(async () => {
    await tick()
    return [one, other].every(({ gateway }) => gateway.prober.found().length === 0)
  })
  assert.ok(await rowOf('strange'), 'not at once')
  await until(async () => {
    await sql(`update vendor_probe set probed_at = now() - interval '1 hour', lease_until = null`)
    await tick()
    return (await sql('select * from vendor_probe')).length === 0
  })
})
