// One tenant must not be felt by another: each attack runs beside somebody else, who must not notice.
import { connect } from 'node:net'
import pg from 'pg'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { startProxy } from './chaos/proxy.ts'
import { type FreshDatabase, freshDatabase } from './database.ts'
import { fastWorld } from './faults/chat-vendor.ts'
import { startGateway, type TestGateway } from './gateway.ts'
import { after, assert, atOnce, before, closing, pause, runs, test, until } from './kit.ts'
import { serveDocument } from './mcp/oauth-program.ts'

let fresh: FreshDatabase
let own: TestGateway

before(async () => {
  fresh = await freshDatabase()
  own = await startGateway({ database: fresh })
})
after(async () => {
  try {
    await own.settled()
  } finally {
    await own.close()
  }
})

const CHAT_PATH = '/v1/chat/completions'
const CHAT = { model: 'alpha-5.4', max_completion_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }

/** The statuses of so many calls, one after the other. */
async function statusesOf(count: number, call: () => Promise<Response>): Promise<number[]> {
  const statuses: number[] = []
  for (let made = 0; made < count; made += 1) {
    const answer = await call()
    await answer.arrayBuffer()
    statuses.push(answer.status)
  }
  return statuses
}

const WAITING = runs(150, 500)
const REFUSED = runs(100, 300)

const allOf = (count: number, status: number) => Array<number>(count).fill(status)

/** Holds the row of an account until what it answers is called. */
async function lockAccount(id: string): Promise<() => Promise<void>> {
  const client = new pg.Client(fresh.connection)
  await client.connect()
  await client.query('begin')
  await client.query('select 1 from account where id = $1 for update', [id])
  return () => client.end()
}

test('callers of an account that is locked are refused, and those of other accounts are not', async () => {
  const [locked, other] = await Promise.all([own.account(), own.account()])
  const chat = (key: string, headers = {}) => own.call(CHAT_PATH, key, CHAT, { headers })
  assert.deepEqual(await statusesOf(1, () => chat(other.key)), [200])
  const unlock = await lockAccount(locked.id)
  let refused = 0
  let unlocked = false
  const enough = Promise.withResolvers<void>()
  // Polite ones: each comes again only after it was answered, and as late as it was told.
  const callers = Array.from({ length: WAITING }, async (_, at) => {
    for (let tries = 0; !unlocked; tries += 1) {
      const answer = await chat(locked.key, { 'idempotency-key': `locked-${at}-${tries}` })
      await answer.arrayBuffer()
      if (answer.status === 503) refused += 1
      if (refused === REFUSED) enough.resolve()
      await pause(1_000 * Number(answer.headers.get('retry-after') ?? 0), 'the gateway said so')
    }
  })
  try {
    await enough.promise
    const plain = await statusesOf(15, () => chat(other.key))
    const idempotent = await atOnce(15, (at) =>
      statusesOf(1, () => chat(other.key, { 'idempotency-key': `other-${at}` })),
    )
    assert.deepEqual([...plain, ...idempotent.flat()], allOf(30, 200))
  } finally {
    unlocked = true
    await unlock()
    await Promise.all(callers)
  }
  // Whoever was locked is served again when it is not: at once, or after the wait that a last refusal names.
  for (let status = 0; status !== 200; ) {
    const answer = await chat(locked.key)
    await answer.arrayBuffer()
    status = answer.status
    assert.ok(status === 200 || status === 503, String(status))
    if (status === 503) await pause(1_000 * Number(answer.headers.get('retry-after')), 'the gateway said so')
  }
})

const UNKNOWN_PER_MINUTE = 20
const GUESSES = 400

test('an address that guesses keys is refused without a look into the database, and keys that exist go on working from it', async () => {
  const { connection } = fresh
  await using proxy = closing(await startProxy({ path: `${connection.host}/.s.PGSQL.${connection.port}` }))
  let looks = 0
  proxy.cutAfter = (piece) => {
    looks += piece.toString('latin1').split('key_find\0').length - 1
    return false
  }
  await using small = await startGateway({
    env: { TOLLGATE_UNKNOWN_KEYS_PER_MINUTE: String(UNKNOWN_PER_MINUTE) },
    through: (given) => ({ ...given, host: '127.0.0.1', port: proxy.port }),
  })
  const [known, unused] = await Promise.all([small.account(), small.account()])
  const models = (key: string) => small.call('/v1/models', key)
  assert.equal((await models(known.key)).status, 200)
  const before = looks
  const answers = await atOnce(GUESSES, (at) => models(`sk-guess-${at}`))
  const refused = answers.filter(({ status }) => status === 429)
  assert.equal(answers.filter(({ status }) => status === 401).length, GUESSES - refused.length)
  // What comes back of the budget while this runs is not much.
  assert.ok(refused.length > GUESSES / 2, `${refused.length} were refused`)
  for (const answer of refused) assert.ok(Number(answer.headers.get('retry-after')) > 0)
  assert.match(await refused[0]!.text(), /network address/)
  // A statement is named once more when a connection first prepares it.
  assert.ok(looks - before <= 2 * (GUESSES - refused.length), `${looks - before} looks for ${refused.length} refused`)
  // One that was used before, one that nobody has used yet, and one that was made in the middle of it.
  const made = await small.account()
  const statuses = await Promise.all(
    [known, unused, made].map(({ key }) =>
      // What was made a moment ago may be asked for again after as long as the answer says.
      until(
        async () => (await models(key)).status,
        (status) => status !== 429 || key !== made.key,
      ),
    ),
  )
  assert.deepEqual(statuses, [200, 200, 200])
})

const PICTURE = { model: 'alpha-image-2', prompt: 'A house' }
const longChat = (bytes: number) => ({ ...CHAT, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] })

interface Slow {
  /** What was answered so far. */
  readonly answer: Promise<string>
  finish(): void
  leave(): void
}

/** The endpoints that take a file. */
const FORMS = new Set(ALL_ENDPOINTS.flatMap(({ form, path }) => (form ? [path] : [])))
/** What the file is called there. */
const FILE_NAMES: Readonly<Record<string, string>> = { '/v1/images/edits': 'image', '/v1/videos': 'input_reference' }
/** Every way in which a body is read. */
const READ_BY = [CHAT_PATH, '/v1/images/generations', '/mcp', ...FORMS]

/** Begins a chunked body, and then sends nothing more. */
function beginBody(url: string, path: string, key: string, bytes: number): Slow {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const isForm = FORMS.has(path)
  const before = isForm
    ? `--x\r\ncontent-disposition: form-data; name="${FILE_NAMES[path] ?? 'file'}"; filename="a"\r\n\r\n`
    : '{"model":"alpha-5.4","messages":[{"role":"user","content":"'
  const first = before + 'x'.repeat(bytes)
  const type = isForm ? 'multipart/form-data; boundary=x' : 'application/json'
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n${first.length.toString(16)}\r\n${first}\r\n`,
  )
  socket.on('error', () => undefined)
  const answer = new Promise<string>((resolve) => {
    socket.once('data', (piece) => resolve(piece.toString()))
    socket.once('close', () => resolve(''))
  })
  const end = '"}]}'
  return {
    answer,
    finish: () => socket.write(`${end.length.toString(16)}\r\n${end}\r\n0\r\n\r\n`),
    leave: () => socket.destroy(),
  }
}

/** A body of unknown length. */
function chunked(body: unknown): RequestInit {
  return { body: new Blob([JSON.stringify(body)]).stream(), duplex: 'half' } as RequestInit // Node wants `duplex`; its types do not know it.
}

/** What another tenant does meanwhile: each kind of body that is counted. */
function usualCalls(gateway: TestGateway, key: string): Array<() => Promise<Response>> {
  return [
    () => gateway.call(CHAT_PATH, key, longChat(100_000)),
    () => gateway.call(CHAT_PATH, key, CHAT, chunked(CHAT)),
    () => gateway.call(CHAT_PATH, key, CHAT, chunked(longChat(200_000))),
    () => gateway.call('/v1/images/generations', key, PICTURE),
    () => gateway.call('/v1/images/generations', key, PICTURE, chunked(PICTURE)),
  ]
}

test('slow chunked bodies of a key without credits hold nothing, and are refused; others go on', async () => {
  const [poor, other] = await Promise.all([own.account({ credits: 0n }), own.account()])
  const paths = [CHAT_PATH, '/v1/images/generations', '/mcp']
  const slow = Array.from({ length: 39 }, (_, at) => beginBody(own.url, paths[at % 3] ?? '', poor.key, 100_000))
  // One that may stay: a small beginning is read for everybody.
  slow.push(beginBody(own.url, CHAT_PATH, poor.key, 10))
  try {
    const refused = Promise.all(slow.slice(0, 39).map(({ answer }) => answer))
    for (const call of usualCalls(own, other.key)) assert.deepEqual(await statusesOf(2, call), [200, 200])
    for (const answer of await refused) assert.match(answer, /^HTTP\/1.1 402 /)
  } finally {
    for (const one of slow) one.leave()
  }
})

test('an account with credits has its share of the memory for bodies, and no more', async () => {
  const small = await startGateway({ env: { TOLLGATE_BYTES_IN_FLIGHT_MAX: '2000000' } })
  const [greedy, other] = await Promise.all([small.account(), small.account()])
  const slow = Array.from({ length: 150 }, () => beginBody(small.url, CHAT_PATH, greedy.key, 100_000))
  try {
    // Those that found no room have been told so.
    const answers = await Promise.race(slow.map(({ answer }) => answer))
    assert.match(answers, /^HTTP\/1.1 503 /)
    for (const call of usualCalls(small, other.key)) assert.deepEqual(await statusesOf(3, call), [200, 200, 200])
  } finally {
    for (const one of slow) one.leave()
    await small.close()
  }
})

test('forty chunked bodies that arrive at once are forty answers', async () => {
  const { key } = await own.account()
  const bodies = Array.from({ length: 40 }, () => beginBody(own.url, CHAT_PATH, key, 10))
  // Whoever asks after them is answered after they have begun.
  for (let asked = 0; asked < 3; asked += 1)
    assert.deepEqual(await statusesOf(1, () => own.call('/v1/models', key)), [200])
  for (const body of bodies) body.finish()
  for (const { answer } of bodies) assert.match(await answer, /^HTTP\/1.1 200 /)
  for (const body of bodies) body.leave()
})

test('a body that arrives too slowly is cut off', { timeout: 120_000 }, async () => {
  // Every duration is a thirtieth.
  const fast = await startGateway({ world: fastWorld })
  const { key } = await fast.account()
  const slow = READ_BY.map((path) => beginBody(fast.url, path, key, 100))
  try {
    for (const [at, { answer }] of slow.entries()) assert.match(await answer, /^HTTP\/1.1 408 /, READ_BY[at] ?? '')
  } finally {
    for (const one of slow) one.leave()
    await fast.close()
  }
})

const ATTACKER = '203.0.113.7'
const OTHER = '203.0.113.8'

test('one address uses up neither the registrations nor the client documents of others', async (t) => {
  const document = await serveDocument()
  if (!document) return t.skip('there is no openssl with which to make a certificate')
  const home = await startGateway({
    env: { TOLLGATE_TRUST_PROXY: '127.0.0.1', TOLLGATE_OUTBOUND_ALLOW: document.host },
  })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const about = { client_name: 'Program', redirect_uris: ['http://127.0.0.1:1/callback'] }
  const register = (address: string) => home.call('/oauth/register', undefined, about, { headers: from(address) })
  const authorize = (address: string, client: string) => {
    const query = new URLSearchParams({
      client_id: client,
      redirect_uri: 'http://127.0.0.1:1/callback',
      response_type: 'code',
      state: 'x',
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
    })
    return home.call(`/oauth/authorize?${query}`, undefined, undefined, { headers: from(address), redirect: 'manual' })
  }
  try {
    const registered = await statusesOf(20, () => register(ATTACKER))
    assert.deepEqual(registered, allOf(20, 201))
    const refused = await register(ATTACKER)
    assert.equal(refused.status, 429)
    assert.match(await refused.text(), /network address/)
    // As many as one address could make in the 24 minutes that it took before.
    await home.sql(
      `insert into oauth_object (model, digest, payload) select 'Client', sha256(n::text::bytea), '{}' from generate_series(1, 500) n`,
    )
    assert.equal((await register(OTHER)).status, 201)
    for (let asked = 0; asked < 70; asked += 1) await authorize(ATTACKER, `${document.url}?${asked}`)
    document.answer = { ...about, client_id: document.url, token_endpoint_auth_method: 'none' }
    const asked = await authorize(OTHER, document.url)
    assert.equal(asked.status, 303, await asked.text())
    assert.match(asked.headers.get('location') ?? '', /\/console\/api\/connect\//)
  } finally {
    document.server.close()
    await home.close()
  }
})
