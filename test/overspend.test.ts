// F70: nothing is spent that nobody has. Without an output limit of the caller's, the vendor is told a cap that the
// hold covers: a share of what the account and its limits leave.
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { freshDatabase } from './database.ts'
import {
  chunk,
  DONE,
  MODEL,
  STREAM_HEADERS,
  startVendor,
  usage,
  usageChunk,
  wholeAnswer,
} from './faults/chat-vendor.ts'
import { CLIENT_FORMATS } from './formats.ts'
import { startGateway, type TestGateway } from './gateway.ts'
import { assert, atLeast, atOnce, before, none, pluck, started, test, until } from './kit.ts'
import { connect } from './mcp/client.ts'
import { openSocket } from './socket-client.ts'

const CREDIT = 1_000_000n
const PROMPT_TOKENS = 10
/** Credits per token of output: 1,000 per million. */
const OUTPUT_MICRO = 1_000n
const OUTPUT_TOKENS_MAX = 64_000
const RESERVE_TOKENS = 4_096

/** What the model would write; it stops at the limit that it is told. */
let writes = 0
/** The vendor answers nobody before this. */
let gate = Promise.resolve()

const vendor = started(startVendor)
before(async () => {
  vendor.answer = async ({ body, response }) => {
    const { max_tokens: cap, stream } = JSON.parse(body) as { max_tokens?: number; stream?: boolean }
    await gate
    // Without a limit it would write as much as it can.
    const tokens = Math.min(writes, cap ?? Number.POSITIVE_INFINITY)
    const finish = tokens < writes ? 'length' : 'stop'
    response.writeHead(200, stream ? STREAM_HEADERS : { 'content-type': 'application/json' })
    const used = usage(PROMPT_TOKENS, tokens)
    if (stream)
      response.end(
        chunk('word').replace('{"content"', '{"role":"assistant","content"') +
          chunk('', finish) +
          usageChunk(used) +
          DONE,
      )
    else response.end(wholeAnswer('word', used).replace('"stop"', `"${finish}"`))
  }
})
/** Four processes on one database. */
const database = started(freshDatabase)
const processes = Array.from({ length: 4 }, () =>
  started(() => startGateway({ database, catalog: withModel, env: { TOLLGATE_CREDIT_WAIT_SECONDS: '0' } })),
)
const g = processes[0]!

function withModel(document: any): void {
  document.vendors.mock = { baseUrl: vendor.url }
  document.models[MODEL] = {
    name: 'Writer',
    type: 'text',
    family: 'fault',
    clientFormats: [...CLIENT_FORMATS],
    limits: { contextTokens: 200_000, outputTokensMax: OUTPUT_TOKENS_MAX },
    pricing: { unit: 'credits', tiers: [{ input: '100', output: '1000' }] },
    routes: [{ vendor: 'mock', protocol: 'openai-chat', model: 'writer' }],
  }
}

const BODY = { model: MODEL, messages: [{ role: 'user', content: 'Write.' }] }

interface ChargedCall {
  status: number
  charged: bigint
  held: bigint
  loss: bigint
  output: number
  attemptLog: { cutAtTokens?: number } | null
}

/** One call; answers its status. */
type Way = (g: TestGateway, key: string) => Promise<number>

const overHttp: Way = async (process, key) => {
  const response = await process.call('/v1/chat-completions', key, BODY)
  await response.arrayBuffer()
  return response.status
}

/** A response on a socket of its own. */
const overSocket: Way = async ({ url }, key) => {
  const socket = await openSocket(`${url}/v1/responses`, { key })
  socket.send({ type: 'response.create', model: MODEL, input: 'Write as much as you can.', store: false })
  const { type, status } = await socket.next('response.completed', 'response.incomplete', 'error')
  socket.ws.close()
  return type === 'error' ? status : 200
}

/** All calls at once, over so many processes; the vendor answers when every call has reached it or was refused. */
async function burst(key: string, calls: number, over: number, way = overHttp): Promise<number[]> {
  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  const before = vendor.calls.length
  let refused = 0
  const going = Array.from({ length: calls }, async (_, at) => {
    const status = await way(processes[at % over]!, key)
    if (status !== 200) refused += 1
    return status
  })
  await until(() => vendor.calls.length - before + refused, atLeast(calls))
  resolve()
  return Promise.all(going)
}

async function rowsOf(account: string): Promise<ChargedCall[]> {
  for (const one of processes) await one.settled()
  return g.sql<ChargedCall>(
    'select status, charged, held, loss, attempt_log as "attemptLog", (select coalesce(sum((x ->> 1)::int), 0)::int from jsonb_array_elements(lines) x where x ->> 0 = $2) as output from usage where account_id = $1',
    [account, 'output'],
  )
}

const sum = (rows: readonly ChargedCall[], of: 'charged' | 'loss') => rows.reduce((all, row) => all + row[of], 0n)

/** After calls at once on this balance: nothing is spent that was not there, and nothing is lost. */
async function checkSpent(account: string, balance: bigint, statuses: readonly number[]): Promise<void> {
  const rows = await rowsOf(account)
  none(
    // A busy machine may tell some to come again.
    [...new Set(statuses)],
    (status) => ![200, 402, 429, 503].includes(status),
  )
  assert.ok(statuses.includes(200))
  assert.equal(sum(rows, 'loss'), 0n)
  assert.ok(sum(rows, 'charged') <= balance)
  for (const row of rows) assert.ok(row.charged <= row.held, 'the cap is what is held')
  const { posted, held } = await g.balance(account)
  assert.deepEqual([posted, held], [balance - sum(rows, 'charged'), 0n])
}

for (const over of [1, 4])
  for (const calls of [12, 200])
    for (const tokens of [1, 4_096, 64_000])
      test(`${calls} calls at once that write ${tokens} tokens spend no more than the balance, over ${over} processes`, async () => {
        const balance = 50n * CREDIT
        const account = await g.account({ credits: balance })
        writes = tokens
        await checkSpent(account.id, balance, await burst(account.key, calls, over))
      })

for (const tokens of [1, 64_000])
  test(`24 responses at once on WebSockets that write ${tokens} tokens spend no more than the balance, over 4 processes`, async () => {
    const balance = 50n * CREDIT
    const account = await g.account({ credits: balance })
    writes = tokens
    await checkSpent(account.id, balance, await burst(account.key, 24, 4, overSocket))
  })

test('12 Realtime sessions at once that would never end spend no more than the balance, over 4 processes', async () => {
  const balance = 2n * CREDIT
  const { id, key } = await g.account({ credits: balance })
  const sessions = await atOnce(12, async (at) => {
    const session = await openSocket(`${processes[at % 4]!.url}/v1/realtime?model=alpha-realtime-1`, { key })
    await session.next('session.created')
    const content = [{ type: 'input_text', text: '[[long=100000]] [[slow=500]] Go on.' }]
    session.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
    return session
  })
  // Text only: sound would take a processor's time, and is held for in the same way.
  for (const session of sessions) session.send({ type: 'response.create', response: { output_modalities: ['text'] } })
  const statuses = await Promise.all(
    sessions.map(async (session) => {
      const { type, status, response } = await session.next('response.done', 'error')
      session.ws.close()
      if (type === 'response.done') assert.equal(response.status, 'incomplete')
      return type === 'error' ? status : 200
    }),
  )
  await checkSpent(id, balance, statuses)
})

test('a lone call writes as much as the model can, and fifty at once on 1,000 credits are all served', async () => {
  writes = OUTPUT_TOKENS_MAX
  for (const over of [1, 4]) {
    const account = await g.account({ credits: 1_000n * CREDIT })
    // Often enough that its calls are covered by a lease.
    for (let call = 0; call < 6; call++) assert.deepEqual(await burst(account.key, 1, 1), [200])
    const alone = await rowsOf(account.id)
    assert.deepEqual(
      pluck(alone, 'output', 'attemptLog'),
      alone.map(() => [OUTPUT_TOKENS_MAX, null]),
    )
    const another = await g.account({ credits: 1_000n * CREDIT })
    const statuses = await burst(another.key, 50, over)
    assert.deepEqual([...new Set(statuses)], [200])
    const rows = await rowsOf(another.id)
    for (const { output } of rows) assert.ok(output >= Math.min(RESERVE_TOKENS, OUTPUT_TOKENS_MAX))
    assert.equal(sum(rows, 'loss'), 0n)
  }
})

test('an answer that ends because credit ended has a length finish, is charged as delivered, and its call says why', async () => {
  writes = OUTPUT_TOKENS_MAX
  const account = await g.account({ credits: 2n * CREDIT })
  const response = await g.call('/v1/chat-completions', account.key, BODY)
  const { choices, usage } = (await response.json()) as {
    choices: Array<{ finish_reason: string }>
    usage: { completion_tokens: number }
  }
  assert.equal(choices[0]?.finish_reason, 'length')
  const [row] = await rowsOf(account.id)
  assert.equal(row?.attemptLog?.cutAtTokens, usage.completion_tokens)
  assert.equal(row.charged, BigInt(usage.completion_tokens) * OUTPUT_MICRO + BigInt(PROMPT_TOKENS) * 100n)
})

test('limits on spending and a quote are bounds that hold', async () => {
  writes = OUTPUT_TOKENS_MAX
  const limited = await g.account({ credits: 1_000n * CREDIT })
  const whole = await g.account({ credits: 1_000n * CREDIT })
  const set = [
    await g.operator('PATCH', `/keys/${limited.keyId}`, { limits: { spendTotal: '5' } }),
    await g.operator('PATCH', `/accounts/${whole.id}`, { limits: { spendPerDay: '50' } }),
  ]
  assert.deepEqual(pluck(set, 'status'), [200, 200])
  for (const [account, most] of [
    [limited, 5n],
    [whole, 50n],
  ] as const) {
    await burst(account.key, 12, 4)
    const rows = await rowsOf(account.id)
    assert.ok(rows.length > 0)
    assert.ok(sum(rows, 'charged') <= most * CREDIT, `${sum(rows, 'charged')} of ${most} credits`)
  }
  const quoted = await g.account({ credits: 1_000n * CREDIT })
  const quote = (await (await g.call('/v1/quote', quoted.key, BODY)).json()) as { data: { costAtMost: string } }
  await burst(quoted.key, 1, 1)
  const [row] = await rowsOf(quoted.id)
  assert.ok(Number(row!.charged) / 1e6 <= Number(quote.data.costAtMost))
})

test('the official SDKs read a stream that credit has cut short as complete, in every format that needs no limit', async () => {
  writes = OUTPUT_TOKENS_MAX
  const poor = async () => (await g.account({ credits: 300_000n })).key
  const chat = new OpenAI({ baseURL: `${g.url}/v1`, apiKey: await poor() })
  const messages = [{ role: 'user' as const, content: 'Write.' }]
  const completion = await chat.chat.completions.stream({ model: MODEL, messages }).finalChatCompletion()
  assert.equal(completion.choices[0]?.finish_reason, 'length')
  const responses = new OpenAI({ baseURL: `${g.url}/v1`, apiKey: await poor() })
  const whole = await responses.responses.stream({ model: MODEL, input: 'Write.' }).finalResponse()
  assert.deepEqual([whole.status, whole.incomplete_details?.reason], ['incomplete', 'max_output_tokens'])
  const genai = new GoogleGenAI({ apiKey: await poor(), httpOptions: { baseUrl: `${g.url}/gemini` } })
  const reasons: unknown[] = []
  for await (const piece of await genai.models.generateContentStream({ model: MODEL, contents: 'Write.' }))
    reasons.push(piece.candidates?.[0]?.finishReason)
  assert.equal(reasons.at(-1), 'MAX_TOKENS')
})

test('a Messages call names its limit: it is held for whole or refused before, and a stream that ends at it is complete to the SDK', async () => {
  writes = OUTPUT_TOKENS_MAX
  const { id, key } = await g.account({ credits: 300_000n })
  const client = new Anthropic({ baseURL: g.url, apiKey: key, maxRetries: 0 })
  const messages = [{ role: 'user' as const, content: 'Write.' }]
  const asked = vendor.calls.length
  await assert.rejects(
    client.messages.stream({ model: MODEL, max_tokens: 4_096, messages }).finalMessage(),
    (error: unknown) => error instanceof Anthropic.APIError && error.status === 402,
  )
  assert.equal(vendor.calls.length, asked, 'the vendor heard nothing')
  const message = await client.messages.stream({ model: MODEL, max_tokens: 200, messages }).finalMessage()
  assert.deepEqual([message.stop_reason, message.usage.output_tokens], ['max_tokens', 200])
  const [row] = await rowsOf(id)
  assert.deepEqual([row?.charged, row?.loss], [200n * OUTPUT_MICRO + BigInt(PROMPT_TOKENS) * 100n, 0n])
})

for (const tokens of [1, 4_096, 64_000])
  test(`max_cost of a tool is never overspent: 12 at once that write ${tokens} tokens`, async () => {
    const most = 5n * CREDIT
    const account = await g.account({ credits: 1_000n * CREDIT })
    writes = tokens
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    const before = vendor.calls.length
    const clients = await atOnce(12, (at) => connect(processes[at % 4]!.url, account.key))
    const going = clients.map((client) =>
      client.callTool({ name: 'ask_model', arguments: { model: MODEL, prompt: 'Write.', max_cost: '5' } }),
    )
    await until(() => vendor.calls.length - before, atLeast(going.length))
    resolve()
    for (const result of await Promise.all(going))
      assert.ok(!(result as { isError?: boolean }).isError, JSON.stringify(result))
    await Promise.all(clients.map((client) => client.close()))
    const rows = await rowsOf(account.id)
    assert.equal(rows.length, 12)
    for (const { charged, held, loss, output } of rows) {
      assert.ok(charged <= most && held <= most && loss === 0n, `${charged} charged, ${held} held, ${loss} lost`)
      // What is bounded is the answer: as much of it as the amount pays for.
      const paid = Number((most - BigInt(PROMPT_TOKENS) * 100n) / OUTPUT_MICRO)
      assert.ok(output === tokens || (output > paid * 0.9 && output <= paid), `${output} of ${tokens}`)
    }
  })
