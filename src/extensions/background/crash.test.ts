// Gateways that are killed in the middle of a batch: the next one goes on, each line is answered once and paid for
// once.
import OpenAI, { toFile } from 'openai'
import { type FreshDatabase, freshDatabase } from '../../../test/database.ts'
import { after, assert, pluck, runs, startGateway, type TestGateway, test, until } from '../../../test/gateway.ts'
import { type Killable, killable } from '../../../test/killable.ts'

const LINES = runs(24, 45)
const KILLS = runs(1, 2)
const NEVER_MS = 3_600_000

let fresh: FreshDatabase
let g: TestGateway
/** The gateway that was not killed yet: it goes on in the next test. */
let now: Killable
const start = killable()
/** On the same database, with the same simulated vendors and files. */
const startProcess = () =>
  start({ connection: fresh.connection, sandboxUrl: g.sandbox.url, data: g.config.dataDirectory })
after(() => g.close())

test('batches and responses in the background go on after kill -9, each answered once and paid for once', async (t) => {
  fresh = await freshDatabase()
  // Its own worker sleeps: the processes do the work.
  g = await startGateway({ database: fresh, jobs: { fetchEveryMs: NEVER_MS } })
  const { database } = g.gateway
  const made = await g.account()
  const client = (url: string) => new OpenAI({ apiKey: made.key, baseURL: `${url}/v1`, maxRetries: 5 })
  const lines = Array.from({ length: LINES }, (_, i) => ({
    custom_id: `line ${i}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user', content: `Line ${i}. [[wait=60]]` }] },
  }))
  now = await startProcess()
  const content = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))
  const file = await client(now.url).files.create({ file: await toFile(content, 'lines.jsonl'), purpose: 'batch' })
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  const { id } = await client(now.url).batches.create(order)
  const batch = () => client(now.url).batches.retrieve(id)
  const reaches = (count: number) =>
    until(async () => {
      const seen = await batch()
      return (seen.status === 'completed' || seen.request_counts!.completed >= count) && seen
    })
  const later: string[] = []
  const stories = new Set<string>()
  for (let round = 1; round <= KILLS; round++) {
    const seen = await reaches((LINES / (KILLS + 1)) * round)
    assert.notEqual(seen.status, 'completed', 'it must be killed while it works')
    const asked = Array.from({ length: 3 }, (_, i) => ({
      model: 'alpha-5.4',
      input: `Later ${i}. [[wait=${i * 100}]]`,
    }))
    for (const body of asked) later.push((await client(now.url).responses.create({ ...body, background: true })).id)
    // One that somebody listens to, and a caller who waits for a compaction: they hear of the end of the process.
    const story = { model: 'alpha-5.4', input: `Story ${round}. [[chunks=60]] [[slow=20]]`, background: true } as const
    const stream = await client(now.url).responses.create({ ...story, stream: true })
    for await (const event of stream) {
      if (event.type === 'response.created') stories.add(event.response.id)
      if (event.type === 'response.output_text.delta') break
    }
    later.push(...[...stories].slice(-1))
    const waiting = new OpenAI({ apiKey: made.key, baseURL: `${now.url}/v1`, maxRetries: 0 })
    const compacting = waiting.responses.compact({ model: 'alpha-5.4', input: `Round ${round}. [[wait=5000]]` })
    const broken = assert.rejects(compacting)
    const isThere = () => g.sandbox.seen.calls.some(({ url }) => url.endsWith('/responses/compact'))
    await until(isThere)
    await now.kill()
    await broken
    g.sandbox.seen.clear()
    // Twenty seconds of silence, at once.
    await database.query({ text: `update gateway_instance set heartbeat_at = now() - interval '1 hour'` })
    await g.gateway.ledger.sweep()
    now = await startProcess()
  }
  const done = await reaches(LINES + 1)
  assert.deepEqual(done.request_counts, { total: LINES, completed: LINES, failed: 0 })
  const text = await (await client(now.url).files.content(done.output_file_id!)).text()
  const answers = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    pluck(answers, 'custom_id'),
    lines.map(({ custom_id }) => custom_id),
  )
  for (const one of later) {
    const response = await until(
      () => client(now.url).responses.retrieve(one),
      ({ status }) => status !== 'queued' && status !== 'in_progress',
    )
    assert.equal(response.status, 'completed')
    // Whoever comes back to a stream is given its end, whatever died in between.
    if (!stories.has(one)) continue
    let last: { type: string; response?: { output: unknown } } | undefined
    for await (const event of await client(now.url).responses.retrieve(one, { stream: true, starting_after: 3 }))
      last = event as typeof last
    assert.equal(last?.type, 'response.completed')
    assert.deepEqual(last.response?.output, response.output)
  }
  const rows = await database.query<{ outcome: string; count: number }>(
    { text: `select outcome, count(*)::int as count from usage where account_id = $1 group by outcome` },
    [made.id],
  )
  const counts = Object.fromEntries(rows.map(({ outcome, count }) => [outcome, count]))
  t.diagnostic(`${counts.expired ?? 0} calls died with their processes and were made again`)
  assert.equal(counts.settled, LINES + later.length)
  const [paid] = await database.query<{ sum: bigint }>(
    { text: 'select sum(charged)::bigint as sum from usage where account_id = $1' },
    [made.id],
  )
  assert.equal(1_000_000_000n - (await g.balance(made.id)).posted, paid?.sum)
  await g.settled()
  assert.deepEqual(await g.problems(), [])
})

test('a response that is cancelled right before kill -9 shows what is paid for of it, and nothing else', async () => {
  const { database } = g.gateway
  const { id: account, key } = await g.account()
  const client = (url: string) => new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 })
  const background = async (id: string) => {
    const text = 'select status, open from background where id = $1'
    return (await database.query<{ status: string; open: boolean }>({ text }, [id]))[0]!
  }
  // Killed when the cancellation was answered, and as soon as it stands in the database.
  for (const waits of [true, false]) {
    const story = { model: 'alpha-5.4', input: 'A story. [[chunks=1500]] [[slow=20]]', background: true } as const
    let id = ''
    const patient = new OpenAI({ apiKey: key, baseURL: `${now.url}/v1`, maxRetries: 20 })
    for await (const event of await patient.responses.create({ ...story, stream: true })) {
      if (event.type === 'response.created') id = event.response.id
      if (event.type === 'response.output_text.delta') break
    }
    const cancelling = client(now.url).responses.cancel(id)
    if (waits) assert.equal((await cancelling).status, 'cancelled')
    else await until(async () => (await background(id)).status, 'cancelled')
    const killed = now.kill()
    await cancelling.catch(() => undefined)
    await killed
    // Twenty seconds of silence, at once.
    await database.query({ text: `update gateway_instance set heartbeat_at = now() - interval '1 hour'` })
    await g.gateway.ledger.sweep()
    now = await startProcess()
    await until(async () => !(await background(id)).open)
    const answer = await fetch(`${now.url}/v1/responses/${id}`, { headers: { authorization: `Bearer ${key}` } })
    const shown = (await answer.json()) as { status: string; output: unknown[]; usage?: { output_tokens: number } }
    // What is settled on a lease is in the ledger a moment later.
    await until(async () => (await database.query({ text: 'select 1 from journal limit 1' })).length, 0)
    const [call] = await database.query<{ charged: bigint }>(
      {
        // What the killed process had sent may be written after its hold has expired.
        text: `select sum(charged)::bigint as charged from usage join idempotency on usage.id in (hold_id, hold_id || '+late')
          where usage.account_id = $1 and key = ' ' || $2 and idempotency.status is not null`,
      },
      [account, id],
    )
    const isPaid = (call?.charged ?? 0n) > 0n
    assert.deepEqual(
      [shown.status, shown.output.length > 0, (shown.usage?.output_tokens ?? 0) > 0],
      ['cancelled', isPaid, isPaid],
    )
  }
  await g.settled()
  assert.deepEqual(await g.problems(), [])
})
