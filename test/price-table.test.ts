// Every member of the usage objects that vendors publish, held against the charge: a scripted vendor reports it, and what is charged is price times
// quantity, whichever way the call took.
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { CatalogInput } from '../src/catalog/document.ts'
import { TEXT_PROTOCOLS, type TextProtocolName } from '../src/catalog/kind.ts'
import type { Unit } from '../src/meter/usage.ts'
import { OPERATOR_TOKEN, testGateway } from './gateway.ts'
import { connect } from './mcp/client.ts'
import { type Cell, type Due, MEANINGS, PUBLISHED, publishedMembers } from './published-usage.ts'

test('every published member of a usage object has a meaning here: a new one is noticed by its name', () => {
  for (const format of TEXT_PROTOCOLS) {
    const published = new Set(PUBLISHED[format].flatMap(([file, name]) => publishedMembers(file, name)))
    const known = Object.keys(MEANINGS[format])
    assert.deepEqual([...published].filter((name) => !known.includes(name)).sort(), [], `${format}: not read`)
    assert.deepEqual(
      known.filter((name) => !published.has(name)),
      [],
      `${format}: not published`,
    )
  }
})

const CELLS: readonly (Cell & { readonly format: TextProtocolName })[] = TEXT_PROTOCOLS.flatMap((format) =>
  Object.entries(MEANINGS[format]).flatMap(([member, meaning]) => {
    if (typeof meaning === 'string') return []
    const [usage, due, asks] = meaning
    return [{ format, member, usage, due, ...(asks ? { asks } : {}) }]
  }),
)

// ---- The vendor: it answers each format, and reports what the number in the prompt says.

const json = (response: ServerResponse, value: object) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
const event = (data: object, name?: string) =>
  `${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(name ? { type: name, ...data } : data)}\n\n`

const WHOLE: Record<TextProtocolName, (usage: object) => object> = {
  'openai-chat': (usage) => ({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
    usage,
  }),
  'openai-responses': (usage) => ({
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'completed',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Yes.', annotations: [] }],
      },
    ],
    usage,
  }),
  'anthropic-messages': (usage) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Yes.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  }),
  gemini: (usage) => ({
    candidates: [{ content: { role: 'model', parts: [{ text: 'Yes.' }] }, finishReason: 'STOP', index: 0 }],
    modelVersion: 'm',
    usageMetadata: usage,
  }),
}

/** The pieces of a stream; after each of the first three a caller may leave. `MARK` is text that the caller sees. */
const MARK = '@@'
const STREAMED: Record<TextProtocolName, (usage: object) => readonly string[]> = {
  'openai-chat': (usage) => {
    const chunk = (more: object) =>
      event({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', ...more })
    const said = (content: string, finish: string | null = null) =>
      chunk({ choices: [{ index: 0, delta: content ? { content } : {}, finish_reason: finish }] })
    const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    return [
      chunk({ choices: [{ index: 0, delta: { role: 'assistant' }, finish_reason: null }], usage: zeros }) + said(MARK),
      said('Yes.') + said(MARK),
      chunk({ choices: [], usage }) + said(MARK),
      `${said('', 'stop') + chunk({ choices: [], usage: zeros })}data: [DONE]\n\n`,
    ]
  },
  'openai-responses': (usage) => {
    const whole = WHOLE['openai-responses'](usage)
    const delta = (text: string) =>
      event({ output_index: 0, content_index: 0, item_id: 'msg_1', delta: text }, 'response.output_text.delta')
    return [
      event({ response: { ...whole, status: 'in_progress', output: [], usage: null } }, 'response.created') +
        delta(MARK),
      delta('Yes.') + delta(MARK),
      delta(MARK),
      event({ response: whole }, 'response.completed'),
    ]
  },
  'anthropic-messages': (usage) => {
    const { output_tokens: _, ...prompt } = usage as { output_tokens: number }
    const delta = (text: string) => event({ index: 0, delta: { type: 'text_delta', text } }, 'content_block_delta')
    const message = { ...WHOLE['anthropic-messages']({ ...prompt, output_tokens: 1 }), content: [], stop_reason: null }
    return [
      event({ message }, 'message_start') +
        event({ index: 0, content_block: { type: 'text', text: '' } }, 'content_block_start') +
        delta(MARK),
      delta('Yes.') + delta(MARK),
      // A vendor that counts the prompt only when it begins.
      event(
        { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { ...usage, input_tokens: 0 } },
        'message_delta',
      ) + delta(MARK),
      event({ index: 0 }, 'content_block_stop') + event({}, 'message_stop'),
    ]
  },
  gemini: (usage) => {
    const piece = (text: string, more: object = {}) =>
      event({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }], modelVersion: 'm' })
    return [
      piece(MARK),
      piece('Yes.') + piece(MARK),
      event({ candidates: [{ content: { role: 'model', parts: [{ text: MARK }] }, index: 0 }], usageMetadata: usage }),
      event(WHOLE.gemini(usage)) + event({ usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 } }),
    ]
  },
}

const formatOf = (path: string): TextProtocolName =>
  path.includes('/chat/completions')
    ? 'openai-chat'
    : path.includes('/responses')
      ? 'openai-responses'
      : path.includes('/messages')
        ? 'anthropic-messages'
        : 'gemini'

let vendorPort = 0
const vendor = createServer(async (request, response) => {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  const body = Buffer.concat(pieces).toString()
  const format = formatOf(request.url ?? '')
  const [, number, cut] = /cell (\d+)(?: cut (\d))?/.exec(body) ?? []
  const { usage } = CELLS[Number(number)]!
  const isStream =
    format === 'gemini' ? request.url?.includes('stream') : (JSON.parse(body) as { stream?: boolean }).stream
  if (!isStream) return json(response, WHOLE[format](usage))
  response.on('error', () => {})
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const events = STREAMED[format](usage)
  if (cut === undefined) return response.end(events.join(''))
  // It says no more: whatever the gateway does after its caller has left, this is what was reported.
  response.write(events.slice(0, Number(cut)).join(''))
  response.once('close', () => response.destroy())
  leaves.push(() => response.destroy())
})
const leaves: (() => void)[] = []

// ---- The gateway.

const RATES = {
  input: 101,
  cachedInput: 11,
  cacheWrite: 131,
  cacheWriteHour: 211,
  inputAudio: 307,
  output: 1009,
  outputAudio: 2003,
  webSearch: 7,
} as const satisfies Partial<Record<Unit, number>>
const PER_PIECE: ReadonlySet<string> = new Set(['webSearch'])

/** In micro-credits. Tokens are priced by the million, so that a rate is what one costs. */
function price(due: Due, part = 1): bigint {
  const whole = Object.entries(due).reduce((sum, [unit, count]) => {
    const rate = RATES[unit as keyof typeof RATES]
    assert.ok(rate !== undefined, `${unit} has a rate`)
    return sum + rate * (PER_PIECE.has(unit) ? 1_000_000 : 1) * count
  }, 0)
  return BigInt(Math.ceil(whole * part))
}

const nameOf = (format: TextProtocolName, more = '') => `table-${format}${more}`
before(async () => {
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  vendorPort = (vendor.address() as AddressInfo).port
})
after(() => {
  vendor.closeAllConnections()
  vendor.close()
})

const g = testGateway({ env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN, HOUSE_KEY: 'sk-house' } }, async () => {
  while (vendorPort === 0) await new Promise((resolve) => setImmediate(resolve))
  const document = structuredClone(g.gateway.catalog.current.input) as CatalogInput
  const baseUrl = `http://127.0.0.1:${vendorPort}`
  document.vendors.table = { baseUrl, credential: 'HOUSE_KEY', ownKeyFee: { share: '0.5' } }
  const tiers = [Object.fromEntries(Object.entries(RATES).map(([unit, rate]) => [unit, String(rate)]))]
  for (const format of TEXT_PROTOCOLS)
    document.models[nameOf(format)] = {
      name: nameOf(format),
      type: 'text',
      family: 'table',
      doors: [...TEXT_PROTOCOLS],
      limits: { contextTokens: 1_000_000, outputTokensMax: 60_000 },
      routes: [{ vendor: 'table', protocol: format, model: 'm' }],
      pricing: { unit: 'credits', tiers },
      batchFactor: '0.5',
      cache: { ttlSeconds: 600 },
    }
  await g.gateway.catalog.apply(document, { actor: 'test', ip: null, requestId: null }, '')
})

const said = (prompt: string) => [{ role: 'user', content: prompt }]
const BODIES: Record<TextProtocolName, (prompt: string) => object> = {
  'openai-chat': (prompt) => ({ messages: said(prompt), max_tokens: 50_000 }),
  'openai-responses': (prompt) => ({ input: prompt, max_output_tokens: 50_000, store: false }),
  'anthropic-messages': (prompt) => ({ messages: said(prompt), max_tokens: 50_000 }),
  gemini: (prompt) => ({
    contents: [{ role: 'user', parts: [{ text: prompt }] }],
    generationConfig: { maxOutputTokens: 50_000 },
  }),
}
const PATHS: Record<Exclude<TextProtocolName, 'gemini'>, string> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
}

interface Asking {
  readonly front?: TextProtocolName
  readonly stream?: boolean
  readonly headers?: Record<string, string>
  readonly cut?: number
  readonly signal?: AbortSignal
}

function ask(key: string, index: number, { front, stream = false, headers = {}, cut, signal }: Asking = {}) {
  const cell = CELLS[index]!
  const door = front ?? cell.format
  const model = nameOf(cell.format)
  const prompt = `cell ${index}${cut === undefined ? '' : ` cut ${cut}`}`
  const named = door === 'gemini' ? {} : { model, ...(stream ? { stream } : {}) }
  const path =
    door === 'gemini'
      ? `/gemini/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`
      : PATHS[door]
  return fetch(g.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...named, ...BODIES[door](prompt), ...cell.asks }),
    ...(signal ? { signal } : {}),
  })
}

interface Row {
  charged: bigint
  estimated: boolean
  loss: bigint
  lines: [unit: string, quantity: number, rate: string][]
}

/** Of the account's calls, in their order. */
async function rowsOf(account: string): Promise<Row[]> {
  await g.settled()
  const text = 'select charged, estimated, loss, lines from usage where account_id = $1 order by id'
  return g.gateway.database.query<Row>({ text }, [account])
}

const CREDITS = 1_000_000_000_000n
const indexes = [...CELLS.keys()]
/** What another format can carry. */
const carried = indexes.filter((index) => CELLS[index]?.asks === undefined)

/** One account per way, one call per cell, in order. */
async function checkWay(
  way: string,
  cells: readonly number[],
  run: (account: { id: string; key: string }) => Promise<void>,
  part = 1,
) {
  const account = await g.account({ credits: CREDITS })
  await run(account)
  const rows = await rowsOf(account.id)
  const expected = cells.map(
    (index) => `${CELLS[index]?.format} ${CELLS[index]?.member}: ${price(CELLS[index]!.due, part)}`,
  )
  const found = rows.map(({ charged }, at) => {
    const cell = CELLS[cells[at] ?? -1]
    return `${cell?.format} ${cell?.member}: ${charged}`
  })
  assert.deepEqual(found, expected, way)
  for (const [at, { lines, estimated, loss }] of rows.entries()) {
    assert.ok(!estimated && loss === 0n)
    const { due } = CELLS[cells[at]!]!
    assert.deepEqual(
      Object.fromEntries(lines.filter(([unit]) => unit !== 'call').map(([unit, quantity]) => [unit, quantity])),
      due,
      `${way}: each by its own unit`,
    )
  }
}

async function each(cells: readonly number[], run: (index: number) => Promise<Response>): Promise<void> {
  for (const index of cells) {
    const answer = await run(index)
    const text = await answer.text()
    assert.equal(answer.status, 200, `${CELLS[index]?.format} ${CELLS[index]?.member}: ${text}`)
  }
}

test('a whole answer costs price times quantity of every member that is reported', () =>
  checkWay('whole', indexes, ({ key }) => each(indexes, (index) => ask(key, index))))

test('so does a stream, with zeros before and after the report', () =>
  checkWay('streamed', indexes, ({ key }) => each(indexes, (index) => ask(key, index, { stream: true }))))

test('so does an answer in another format than its vendor’s, whole and streamed', async () => {
  for (const stream of [false, true])
    for (const front of ['openai-chat', 'anthropic-messages'] as const)
      await checkWay(`${front} ${stream}`, carried, ({ key }) =>
        each(carried, (index) => ask(key, index, { front, stream })),
      )
})

test('so do the lines of a batch, at the price of batches', () =>
  checkWay(
    'batch',
    carried,
    async ({ key }) => {
      const lines = carried.map((index) => {
        const body = { model: nameOf(CELLS[index]!.format), ...BODIES['openai-chat'](`cell ${index}`) }
        return JSON.stringify({ custom_id: `cell-${index}`, method: 'POST', url: '/v1/chat/completions', body })
      })
      const headers = { authorization: `Bearer ${key}` }
      const form = new FormData()
      form.set('purpose', 'batch')
      form.set('file', new Blob([lines.join('\n')]), 'lines.jsonl')
      const file = (await (await fetch(`${g.url}/v1/files`, { method: 'POST', headers, body: form })).json()) as {
        id: string
      }
      const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
      const made = (await (await g.call('/v1/batches', key, order)).json()) as { id: string }
      await until(async () => {
        const batch = (await (await g.call(`/v1/batches/${made.id}`, key)).json()) as {
          status: string
          request_counts: object
        }
        assert.ok(!['failed', 'expired', 'cancelled'].includes(batch.status), JSON.stringify(batch))
        return batch.status === 'completed'
      })
    },
    0.5,
  ))

test('so do responses in the background', () =>
  checkWay('background', carried, async ({ key }) => {
    for (const index of carried) {
      const body = {
        model: nameOf(CELLS[index]!.format),
        input: `cell ${index}`,
        max_output_tokens: 50_000,
        background: true,
      }
      const { id } = (await (await g.call('/v1/responses', key, body)).json()) as { id: string }
      await until(async () => {
        const { status } = (await (await g.call(`/v1/responses/${id}`, key)).json()) as { status: string }
        assert.ok(['queued', 'in_progress', 'completed'].includes(status), status)
        return status === 'completed'
      })
    }
  }))

test('so does a model that is asked through a tool', () =>
  checkWay('tool', carried, async ({ key }) => {
    const client = await connect(g.url, key)
    for (const index of carried) {
      const args = { model: nameOf(CELLS[index]!.format), prompt: `cell ${index}`, max_tokens: 50_000 }
      const result = (await client.callTool({ name: 'ask_model', arguments: args })) as {
        isError?: boolean
        content: unknown
      }
      assert.ok(!result.isError, JSON.stringify(result.content))
    }
    await client.close()
  }))

test('so does an answer from the response cache, which has no price of its own here', () =>
  checkWay(
    'cached',
    indexes.flatMap((index) => [index, index]),
    ({ key }) =>
      each(
        indexes.flatMap((index) => [index, index]),
        (index) => ask(key, index, { headers: { 'x-tollgate-cache': 'on' } }),
      ),
  ))

test('a call by an own key costs its share of exactly that', () =>
  checkWay(
    'own key',
    indexes,
    async ({ id, key }) => {
      const by = { actor: 'test', ip: null, requestId: null }
      await g.gateway.ownKeys.store(
        id,
        { vendor: 'table', value: 'sk-own-0000', fallback: false, origin: `http://127.0.0.1:${vendorPort}` },
        by,
      )
      await each(indexes, (index) => ask(key, index))
    },
    0.5,
  ))

test('whoever leaves after the report pays it, and before it never less than what was reported by then', async () => {
  for (const format of TEXT_PROTOCOLS) {
    const index = indexes.find((one) => CELLS[one]?.format === format)!
    const { due } = CELLS[index]!
    for (const cut of [1, 2, 3]) {
      const { id, key } = await g.account({ credits: CREDITS })
      const leaving = new AbortController()
      const answer = await ask(key, index, { stream: true, cut, signal: leaving.signal })
      assert.equal(answer.status, 200)
      const reader = answer.body!.getReader()
      let text = ''
      while (text.split(MARK).length <= cut) {
        const { value, done } = await reader.read()
        assert.ok(!done, `${format} ${cut}: ${text}`)
        text += Buffer.from(value).toString()
      }
      leaving.abort()
      for (const leave of leaves.splice(0)) leave()
      const [row] = await rowsOf(id)
      assert.ok(row, `${format} ${cut}`)
      // Responses report at their end only, chat before it where it is asked to, the others count the prompt as they go.
      const prompt = price({ input: due.input ?? 0 })
      const isWhole = cut === 3 && (format === 'openai-chat' || format === 'anthropic-messages')
      const reported = isWhole
        ? price(due)
        : format === 'anthropic-messages' || (format === 'gemini' && cut === 3)
          ? prompt
          : 1n
      assert.ok(row.charged >= reported, `${format} ${cut}: ${row.charged} of ${reported}`)
      if (isWhole) assert.equal(row.charged, price(due), format)
    }
  }
})

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20))
}
