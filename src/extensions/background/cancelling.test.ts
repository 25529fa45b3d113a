// A response in the background that is cancelled: its vendor is cut off at once, what it made is charged, and what is
// charged is shown.

import { type FreshDatabase, freshDatabase } from '../../../test/database.ts'
import { type ChatVendor, chunk, STREAM_HEADERS, startVendor } from '../../../test/faults/chat-vendor.ts'
import { CLIENT_FORMATS, parted } from '../../../test/formats.ts'
import { after, assert, before, pluck, startGateway, type TestGateway, test, until } from '../../../test/gateway.ts'
import type { ClientFormatName } from '../../meter/kind.ts'

const PARTIAL = 'Once upon a time there was '
const PROMPT = 40
const OUTPUT = 500

/** What a vendor says before it is cancelled, and what it would say after it. */
const wayOf = (format: ClientFormatName) => parted(format, [PARTIAL, '.'], [PROMPT, OUTPUT])

let database: FreshDatabase
let vendor: ChatVendor
let g: TestGateway
let other: TestGateway
before(async () => {
  vendor = await startVendor()
  database = await freshDatabase()
  const catalog = (document: any) => {
    // One is cut off whatever it reports, the other is heard.
    document.vendors.heard = { baseUrl: vendor.url, onAbort: 'drain' }
    document.vendors.cut = { baseUrl: vendor.url, onAbort: 'cancel' }
    for (const [suffix, name] of [
      ['-heard', 'heard'],
      ['-cut', 'cut'],
    ])
      for (const protocol of CLIENT_FORMATS)
        document.models[protocol + suffix] = {
          name: protocol,
          type: 'text',
          family: 'fault',
          clientFormats: ['openai-responses'],
          limits: { contextTokens: 200_000, outputTokensMax: 64_000 },
          pricing: { unit: 'credits', tiers: [{ input: '1', output: '2' }] },
          routes: [{ vendor: name, protocol, model: 'm' }],
        }
  }
  g = await startGateway({ database, catalog })
  other = await startGateway({ database, catalog })
})
after(async () => {
  await other.close()
  await g.close()
  await vendor.close()
})

const ask = async (path: string, key: string, posts = false, of = g) =>
  (await (await of.call(`/v1/responses/${path}`, key, posts ? {} : undefined)).json()) as any
const charged = async (account: string) => 1_000_000_000n - (await g.balance(account)).posted
const textOf = ({ output }: any) =>
  output
    .flatMap((item: any) => item.content ?? [])
    .map((part: any) => part.text ?? '')
    .join('')
const costOf = ({ usage: { input_tokens, output_tokens } }: any) => BigInt(input_tokens + 2 * output_tokens)

interface Going {
  readonly id: string
  readonly key: string
  readonly response: string
  /** When the vendor's connection is gone. */
  readonly closed: Promise<number>
  /** All events that its first follower got. */
  readonly followed: Promise<any[]>
  /** Lets the vendor go on to its end. */
  end(): void
}

/**
 * A response that its vendor goes on with until the test lets it end; resolves when what the vendor has said by then
 * has arrived.
 */
async function going(model: string, { begin, end }: ReturnType<typeof wayOf>, more: object = {}): Promise<Going> {
  const made = await g.account()
  const go = Promise.withResolvers<void>()
  const heard = Promise.withResolvers<{ closed: Promise<number> }>()
  vendor.answer = async ({ response, closed }) => {
    heard.resolve({ closed })
    if (begin !== '') response.writeHead(200, STREAM_HEADERS).write(begin)
    await go.promise
    response.end(end)
  }
  const body = { model, input: 'Tell me a story.', background: true, stream: true, ...more }
  const answer = await g.call('/v1/responses', made.key, body)
  const arrived = Promise.withResolvers<void>()
  const followed = eventsOf(
    answer,
    (text) => text.includes(begin === '' ? 'response.queued' : PARTIAL) && arrived.resolve(),
  )
  await arrived.promise
  const { closed } = await heard.promise
  const [row] = await g.sql<{ id: string }>('select id from background where account_id = $1', [made.id])
  return { ...made, response: row!.id, closed, followed, end: go.resolve }
}

async function eventsOf(answer: Response, seen: (text: string) => unknown): Promise<any[]> {
  let text = ''
  for await (const piece of answer.body!) {
    text += Buffer.from(piece).toString()
    seen(text)
  }
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line) => JSON.parse(line.slice(6)))
}

/** As it is shown when it is known what of it is charged. */
async function known(key: string, id: string): Promise<any> {
  await until(async () => {
    const [row] = await g.sql<{ open: boolean }>('select open from background where id = $1', [id])
    return row?.open === false
  })
  return ask(id, key)
}

test('cancelled between its vendor’s end and its own, all of it is charged and shown', async () => {
  const made = await going('openai-chat-heard', wayOf('openai-chat'))
  const aside = database.open({ connectionsMax: 1 })
  await aside.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from background where id = $1 for no key update' }, [made.response])
    made.end()
    await until(
      async () =>
        (
          await g.sql(
            `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'update background set status%' and datname = current_database()`,
          )
        ).length === 1,
    )
    const text = `update background set status = 'cancelled', ended_at = now(), step_at = '-infinity' where id = $1`
    await tx.query({ text }, [made.response])
  })
  await aside.close()
  const shown = await known(made.key, made.response)
  assert.deepEqual([shown.status, textOf(shown)], ['cancelled', `${PARTIAL}.`])
  assert.equal(await charged(made.id), costOf(shown))
})

for (const format of CLIENT_FORMATS) {
  test(`${format}: cancelled in the middle, its vendor is cut off, and what was made is charged and shown`, async () => {
    const made = await going(`${format}-cut`, wayOf(format))
    assert.equal((await ask(`${made.response}/cancel`, made.key, true)).status, 'cancelled')
    await made.closed
    const shown = await known(made.key, made.response)
    assert.deepEqual([shown.id, shown.status, textOf(shown)], [made.response, 'cancelled', PARTIAL])
    const cost = await charged(made.id)
    assert.ok(cost > 0n && cost < BigInt(2 * OUTPUT), `${cost}`)
    assert.equal(cost, costOf(shown))
    assert.deepEqual(await ask(`${made.response}/cancel`, made.key, true), shown, 'once more changes nothing')
    const last = (await made.followed).at(-1)
    assert.deepEqual([last.type, last.response], ['response.failed', shown], 'who follows it sees the same')
    assert.equal((await g.balance(made.id)).held, 0n)
    made.end()
  })

  test(`${format}: a vendor that is heard to its end is charged as it reports, and all of it is shown`, async () => {
    const made = await going(`${format}-heard`, wayOf(format))
    const cancelling = ask(`${made.response}/cancel`, made.key, true)
    await until(async () => (await ask(made.response, made.key)).status, 'cancelled')
    // By the next answers the process that works on it has heard of it too.
    for (let n = 0; n < 3; n++) await ask(made.response, made.key)
    made.end()
    assert.equal((await cancelling).status, 'cancelled')
    const shown = await known(made.key, made.response)
    assert.deepEqual([shown.status, textOf(shown)], ['cancelled', `${PARTIAL}.`])
    assert.equal(await charged(made.id), BigInt(PROMPT + 2 * OUTPUT))
    assert.equal(costOf(shown), BigInt(PROMPT + 2 * OUTPUT))
    assert.deepEqual((await made.followed).at(-1).response, shown)
  })
}

test('cancelled before its vendor answers, nothing is charged and nothing stays held', async () => {
  const made = await going('openai-chat-cut', { begin: '', end: '' })
  assert.equal((await ask(`${made.response}/cancel`, made.key, true)).status, 'cancelled')
  await made.closed
  const shown = await known(made.key, made.response)
  assert.deepEqual([shown.status, shown.output, shown.usage ?? null], ['cancelled', [], null])
  assert.deepEqual(await g.balance(made.id), { posted: 1_000_000_000n, held: 0n })
  made.end()
})

test('cancelled after its end, it stays what it is', async () => {
  const made = await going('openai-chat-cut', wayOf('openai-chat'))
  made.end()
  await until(async () => (await ask(made.response, made.key)).status, 'completed')
  const before = await ask(made.response, made.key)
  assert.deepEqual(await ask(`${made.response}/cancel`, made.key, true), before)
  assert.equal(await charged(made.id), BigInt(PROMPT + 2 * OUTPUT))
})

test('cancelled at another process of the same database, it ends at the one that works on it', async () => {
  const made = await going('openai-chat-cut', wayOf('openai-chat'))
  // Whichever of the two works on it, one of these is the other.
  const said = await Promise.all([g, other].map((of) => ask(`${made.response}/cancel`, made.key, true, of)))
  assert.deepEqual(pluck(said, 'status'), ['cancelled', 'cancelled'])
  await made.closed
  const shown = await known(made.key, made.response)
  assert.equal(textOf(shown), PARTIAL)
  assert.equal(await charged(made.id), costOf(shown))
  made.end()
})

test('one that was not streamed shows what was made of it as well', async () => {
  const { id, key } = await g.account()
  const heard = Promise.withResolvers<{ closed: Promise<number> }>()
  vendor.answer = ({ response, closed }) => {
    response.writeHead(200, STREAM_HEADERS).write(wayOf('openai-chat').begin)
    // Until the connection is cut it goes on, so that something of it has arrived whenever that is.
    const more = setInterval(() => response.write(chunk('and ')), 5)
    void closed.then(() => clearInterval(more))
    heard.resolve({ closed })
  }
  const body = { model: 'openai-chat-cut', input: 'Tell me a story.', background: true }
  const { id: response } = (await (await g.call('/v1/responses', key, body)).json()) as { id: string }
  const { closed } = await heard.promise
  await until(async () => (await ask(response, key)).status, 'in_progress')
  await ask(`${response}/cancel`, key, true)
  await closed
  const shown = await known(key, response)
  assert.equal(shown.status, 'cancelled')
  const cost = await charged(id)
  // Cut off before the first byte, nothing is owed and nothing is there; after it, what is shown is what is paid.
  if (cost === 0n) assert.deepEqual(shown.output, [])
  else assert.deepEqual([textOf(shown).startsWith(PARTIAL), cost], [true, costOf(shown)])
})

test('all of it agrees with the ledger', async () => {
  await g.settled()
  assert.deepEqual(await g.problems(), [])
})
