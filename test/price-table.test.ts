// Every member of the usage objects that vendors publish, held against the charge: a scripted vendor reports it, and
// what is charged is price times quantity, whichever way the call took.

import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { CatalogInput } from '../src/catalog/document.ts'
import { type ClientFormatName, PROTOCOLS, type ProtocolName, UNIT_NAMES } from '../src/meter/kind.ts'
import { answered, callersGone, sendBatch } from './batches.ts'
import { post } from './faults/raw-client.ts'
import { CLIENT_FORMATS, chatChunk, event, FORMATS, formatOf, requestTo } from './formats.ts'
import { assert, BY, type Call, listen, none, OPERATOR_TOKEN, started, test, testGateway, until } from './gateway.ts'
import { connect } from './mcp/client.ts'
import {
  cellsOf,
  isByCatalog,
  isText,
  MEANINGS,
  MODALITIES,
  PUBLISHED,
  price,
  publishedMembers,
  publishedModalities,
  tiersOf,
} from './published-usage.ts'

test('every published member of a usage object has a meaning here: a new one is noticed by its name', () => {
  for (const [format, declared] of Object.entries(PUBLISHED)) {
    const published = new Set(declared.flatMap(([file, name]) => publishedMembers(file, name)))
    // What a member is about stands behind a blank.
    const known = Object.keys(MEANINGS[format as ProtocolName]) // The keys of a table by format.
    const members = new Set(
      known.filter((name) => !name.includes(' unpublished')).map((name) => name.split(' ')[0] ?? ''),
    )
    assert.deepEqual([...published].filter((name) => !members.has(name)).sort(), [], `${format}: not read`)
    none(members, (name) => !published.has(name), `${format}: not published`)
  }
  assert.deepEqual(publishedModalities().sort(), Object.keys(MODALITIES).sort())
})

test('every format and every unit of prices has a cell', () => {
  const cells = cellsOf(PROTOCOLS)
  none(
    PROTOCOLS,
    (name) => !isByCatalog(name) && !cells.some(({ format }) => format === name),
    'formats without a cell',
  )
  none(UNIT_NAMES, (unit) => !isByCatalog(unit) && !cells.some(({ due }) => due[unit]), 'units without a cell')
})

const CELLS = cellsOf(CLIENT_FORMATS).flatMap((cell) => (isText(cell.format) ? [{ ...cell, format: cell.format }] : []))

// ---- The vendor: it answers each format, and reports what the number in the prompt says.

const json = (response: ServerResponse, value: object) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
type Traces = readonly object[]
/** The pieces of a stream; after each of the first three a caller may leave. `MARK` is text that the caller sees. */
const MARK = '@@'
const STREAMED: Record<ClientFormatName, (usage: object, traces?: Traces) => readonly string[]> = {
  'openai-chat': (usage) => {
    const { delta } = FORMATS['openai-chat']
    const choice = (finish_reason: string | null) => ({ index: 0, delta: {}, finish_reason })
    const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    return [
      chatChunk({ choices: [choice(null)], usage: zeros }) + delta(MARK),
      delta('Yes.') + delta(MARK),
      chatChunk({ choices: [], usage }) + delta(MARK),
      `${chatChunk({ choices: [choice('stop')] }) + chatChunk({ choices: [], usage: zeros })}data: [DONE]\n\n`,
    ]
  },
  'openai-responses': (usage, traces) => {
    const { answer, delta } = FORMATS['openai-responses']
    const whole = answer(usage, 'Yes.', traces)
    const begun = { ...whole, status: 'in_progress', output: [], usage: null }
    return [
      event({ response: begun }, 'response.created') + delta(MARK),
      delta('Yes.') + delta(MARK),
      delta(MARK),
      event({ response: whole }, 'response.completed'),
    ]
  },
  'anthropic-messages': (usage) => {
    const { answer, delta } = FORMATS['anthropic-messages']
    const { output_tokens: _, ...prompt } = usage as { output_tokens: number }
    const message = { ...answer({ ...prompt, output_tokens: 1 }), content: [], stop_reason: null }
    const stop = { stop_reason: 'end_turn', stop_sequence: null }
    return [
      event({ message }, 'message_start') +
        event({ index: 0, content_block: { type: 'text', text: '' } }, 'content_block_start') +
        delta(MARK),
      delta('Yes.') + delta(MARK),
      // A vendor that counts the prompt only when it begins.
      event({ delta: stop, usage: { ...usage, input_tokens: 0 } }, 'message_delta') + delta(MARK),
      event({ index: 0 }, 'content_block_stop') + event({}, 'message_stop'),
    ]
  },
  gemini: (usage, traces) => {
    const { answer, delta } = FORMATS.gemini
    const counted = delta(MARK).replace('{', `{"usageMetadata":${JSON.stringify(usage)},`)
    const zeros = event({ usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 } })
    return [delta(MARK), delta('Yes.') + delta(MARK), counted, event(answer(usage, 'Yes.', traces)) + zeros]
  },
}

const vendor = started(() =>
  listen(async (request, response) => {
    const body = await text(request)
    const format = formatOf(request.url)
    const [, number, cut] = /cell (\d+)(?: cut (\d))?/.exec(body) ?? []
    const { usage, traces } = CELLS[Number(number)]!
    const isStream =
      format === 'gemini' ? request.url?.includes('stream') : (JSON.parse(body) as { stream?: boolean }).stream
    if (!isStream) return json(response, FORMATS[format].answer(usage, 'Yes.', traces))
    response.on('error', () => {})
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const events = STREAMED[format](usage, traces)
    if (cut === undefined) return response.end(events.join(''))
    const at = Number(cut)
    response.write(events.slice(0, at).join(''))
    await callersLeft
    // Some say no more: whatever the gateway does after its caller has left, this is what was reported.
    if (goesOn) response.end(events.slice(at).join(''))
    else response.destroy()
  }),
)
let callersLeft: Promise<void> = Promise.resolve()
let goesOn = true

// ---- The gateway.

/** Whatever a text model can be asked for. */
const TEXT_UNITS = UNIT_NAMES.filter((unit) => !['second', 'character', 'call', 'row'].includes(unit))

const nameOf = (format: ClientFormatName, more = '') => `table-${format}${more}`
const g = testGateway(() => ({
  env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN, HOUSE_KEY: 'sk-house' },
  catalog(document: CatalogInput) {
    document.vendors.table = { baseUrl: vendor.url, credential: 'HOUSE_KEY', byokFee: { share: '0.5' } }
    const tiers = tiersOf(TEXT_UNITS)
    for (const format of CLIENT_FORMATS)
      document.models[nameOf(format)] = {
        name: nameOf(format),
        type: 'text',
        family: 'table',
        clientFormats: [...CLIENT_FORMATS],
        limits: { contextTokens: 1_000_000, outputTokensMax: 60_000 },
        routes: [{ vendor: 'table', protocol: format, model: 'm' }],
        pricing: { unit: 'credits', tiers },
        batchFactor: '0.5',
        cache: { ttlSeconds: 600 },
      }
  },
}))

function bodyOf(door: ClientFormatName, prompt: string) {
  return { ...FORMATS[door].body(prompt, 50_000), ...(door === 'openai-responses' ? { store: false } : {}) }
}

interface Asking {
  readonly front?: ClientFormatName
  readonly stream?: boolean
  readonly headers?: Record<string, string>
  readonly cut?: number
}

function requestOf(index: number, { front, stream = false, cut }: Asking) {
  const cell = CELLS[index]!
  const door = front ?? cell.format
  const model = nameOf(cell.format)
  const prompt = `cell ${index}${cut === undefined ? '' : ` cut ${cut}`}`
  // This format counts as it goes; it is heard to its end where the model thinks.
  const thinking = cut !== undefined && door === 'anthropic-messages' ? { thinking: THINKING } : {}
  return requestTo(door, model, { ...bodyOf(door, prompt), ...thinking, ...cell.asks }, stream)
}
const THINKING = { type: 'enabled', budget_tokens: 2_000 }

function ask(key: string, index: number, asking: Asking = {}) {
  const { path, body } = requestOf(index, asking)
  return g.call(path, key, body, { headers: { ...asking.headers } })
}

const CREDITS = 1_000_000_000_000n
const indexes = [...CELLS.keys()]
/** What another format can carry. */
const carried = indexes.filter((index) => CELLS[index]?.asks === undefined)

/** One account per way, one call per cell, in order; where they run at once, `run` answers their ids in this order. */
async function checkWay(
  way: string,
  cells: readonly number[],
  run: (account: { id: string; key: string }) => Promise<unknown>,
  part = 1,
) {
  const account = await g.account({ credits: CREDITS })
  const order = await run(account)
  const rows = await g.calls(account.id)
  if (Array.isArray(order)) rows.sort((one, other) => order.indexOf(one.id) - order.indexOf(other.id))
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
      const bodies = carried.map((index) => ({
        model: nameOf(CELLS[index]!.format),
        ...bodyOf('openai-chat', `cell ${index}`),
      }))
      return answered(g, key, await sendBatch(g, key, bodies))
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
      await g.gateway.byokKeys.store(
        id,
        { vendor: 'table', value: 'sk-own-0000', fallback: false, origin: vendor.url },
        BY,
      )
      await each(indexes, (index) => ask(key, index))
    },
    0.5,
  ))

/**
 * Calls every cell, leaves when so much has come, and lets the vendor say the rest, or break off. What each call cost.
 */
async function leaving(cells: readonly number[], cut: number, ends: boolean): Promise<Call[]> {
  const left = Promise.withResolvers<void>()
  callersLeft = left.promise
  goesOn = ends
  const accounts = await Promise.all(
    cells.map(async (index) => {
      const { id, key } = await g.account({ credits: CREDITS })
      const { path, body } = requestOf(index, { stream: true, cut })
      const call = post(g.url, { key, path, body: JSON.stringify(body) })
      await call.until((text) => text.split(MARK).length > cut)
      call.leave()
      return id
    }),
  )
  await callersGone(g)
  left.resolve()
  const rows = await Promise.all(accounts.map(async (account) => (await g.calls(account))[0]))
  return rows.map((row, at) => {
    assert.ok(row, `${CELLS[cells[at] ?? -1]?.member}: no row`)
    return row
  })
}

test('whoever leaves, at whichever of three places, pays what the vendor reports when it ends', async () => {
  for (const cut of [1, 2, 3]) {
    const rows = await leaving(indexes, cut, true)
    for (const [index, { charged, estimated, status }] of rows.entries()) {
      const { format, member, due } = CELLS[index]!
      assert.deepEqual([charged, estimated, status], [price(due), false, 499], `${format} ${member} after ${cut}`)
    }
  }
})

/** Where a format has counted by the time that its vendor breaks off: what of it, by the place. */
const REPORTED: Record<ClientFormatName, readonly ('nothing' | 'prompt' | 'all')[]> = {
  'openai-chat': ['nothing', 'nothing', 'all'],
  'openai-responses': ['nothing', 'nothing', 'nothing'],
  'anthropic-messages': ['prompt', 'prompt', 'all'],
  gemini: ['nothing', 'nothing', 'all'],
}

test('where the vendor breaks off after its caller, what it had reported by then is paid, and of the rest what was delivered', async () => {
  for (const format of CLIENT_FORMATS) {
    const index = indexes.find((one) => CELLS[one]?.format === format)!
    const { due } = CELLS[index]!
    for (const cut of [1, 2, 3]) {
      const [row] = await leaving([index], cut, false)
      assert.ok(row)
      const units = Object.fromEntries(row.lines.map(([unit, quantity]) => [unit, quantity]))
      const reported = REPORTED[format][cut - 1]
      const at = `${format} after ${cut}: ${JSON.stringify(units)}`
      if (reported === 'all') assert.equal(row.charged, price(due), at)
      else {
        assert.ok(row.estimated, at)
        if (reported === 'prompt') assert.equal(units.input, due.input, at)
        else assert.ok((units.input ?? 0) > 0, at)
        // The words that were delivered: a mark at each place, and one word.
        assert.ok((units.output ?? 0) >= 1 && (units.output ?? 0) <= 10, at)
        assert.equal(row.charged, price(units), at)
      }
    }
  }
})
