// One tenant must not be felt by another: each attack runs beside somebody else, who must not notice.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startProxy } from './chaos/proxy.ts'
import { type FreshDatabase, freshDatabase } from './database.ts'
import { startGateway, type TestGateway } from './gateway.ts'

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

const WAITING = 500

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
      if (refused === WAITING) enough.resolve()
      await sleep(1_000 * Number(answer.headers.get('retry-after') ?? 0))
    }
  })
  try {
    await enough.promise
    const plain = await statusesOf(15, () => chat(other.key))
    const idempotent = await Promise.all(
      Array.from({ length: 15 }, (_, at) => statusesOf(1, () => chat(other.key, { 'idempotency-key': `other-${at}` }))),
    )
    assert.deepEqual([...plain, ...idempotent.flat()], allOf(30, 200))
  } finally {
    unlocked = true
    await unlock()
    await Promise.all(callers)
  }
  // Whoever was locked is served again as soon as it is not.
  assert.deepEqual(await statusesOf(1, () => chat(locked.key)), [200])
})

const UNKNOWN_PER_MINUTE = 20
const GUESSES = 400

test('an address that guesses keys is refused without a look into the database, and keys that exist go on working from it', async () => {
  const { connection } = fresh
  const proxy = await startProxy({ path: `${connection.host}/.s.PGSQL.${connection.port}` })
  let looks = 0
  proxy.cutAfter = (piece) => {
    looks += piece.toString('latin1').split('key_find\0').length - 1
    return false
  }
  const small = await startGateway({
    env: { TOLLGATE_UNKNOWN_KEYS_PER_MINUTE: String(UNKNOWN_PER_MINUTE) },
    through: (given) => ({ ...given, host: '127.0.0.1', port: proxy.port }),
  })
  try {
    const [known, fresh] = await Promise.all([small.account(), small.account()])
    const models = (key: string) => small.call('/v1/models', key)
    assert.equal((await models(known.key)).status, 200)
    const before = looks
    const answers = await Promise.all(Array.from({ length: GUESSES }, (_, at) => models(`sk-guess-${at}`)))
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
      [known, fresh, made].map(async ({ key }) => {
        // What was made a moment ago may be asked for again after as long as the answer says.
        for (;;) {
          const { status } = await models(key)
          if (status !== 429 || key !== made.key) return status
        }
      }),
    )
    assert.deepEqual(statuses, [200, 200, 200])
  } finally {
    await small.close()
    await proxy.close()
  }
})
