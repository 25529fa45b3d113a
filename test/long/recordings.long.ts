// Replays exchanges that others recorded with real vendors: each request is sent through the gateway to a vendor that
// answers with the recorded bytes. The recordings are in a folder outside the checkout, named by TOLLGATE_RECORDINGS;
// nothing of them is kept here.

import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import type { CatalogInput } from '../../src/catalog/document.ts'
import type { ClientFormatName } from '../../src/meter/kind.ts'
import { CLIENT_FORMATS, requestTo } from '../formats.ts'
import { after, assert, before, type Listening, listen, startGateway, type TestGateway, test } from '../gateway.ts'
import { type Recorded, readCassettes } from './cassettes.ts'
import { eventsOf, type Loose, type Said, saidBy, type Tokens } from './said.ts'

const FOLDER = process.env.TOLLGATE_RECORDINGS ?? ''
const LANES = 4
const CHECKS = ['request', 'answer', 'charge', 'text', 'thoughts', 'calls', 'end', 'usage', 'error'] as const
type Check = (typeof CHECKS)[number]

/** Credits per million tokens. */
const PRICE = { input: 1_000, cachedInput: 100, cacheWrite: 1_250, cacheWriteHour: 2_000, output: 5_000 }
const MEDIA = { inputAudio: '1000', inputImage: '1000', outputAudio: '5000', outputImage: '5000' }
const FREE = { webSearch: '0', fileSearch: '0', codeRun: '0', image: '0' }

/** A vendor that answers one exchange at a time, with the recorded bytes. */
interface Lane extends Listening {
  readonly name: string
  now: Recorded | undefined
  got: Buffer | undefined
}

interface Outcome {
  readonly vendor: string
  readonly format: ClientFormatName
  readonly check: Check
  readonly file: string
  /** Absent: as it should be. */
  readonly wrong?: string
}

/** Requests that the gateway is to reject, and why. */
const MEANT: readonly (readonly [RegExp, string])[] = [
  [
    /refers to|Item not found|response not found|Conversation not found/i,
    'names an object that the vendor keeps for the recorder, not for this account',
  ],
  [
    /runs at the vendor and has no price/,
    'a tool that runs at the vendor, of which the vendor reports no count to price',
  ],
  [
    /is paid or set up by the operator|reads stores of the operator's account/,
    'a setting or a store of the operator’s account at the vendor',
  ],
]
/** Differences that are meant, and why. */
const EXPLAINED: readonly (readonly [Check, RegExp, string])[] = [
  [
    'request',
    /provider|^rejected, with `models`/,
    '`provider` and `models` are for this gateway, unless a model has `vendorRouting`',
  ],
  ['answer', /lost undefined, added \.usage$/, 'the replay asks every chat stream for its usage, the recorder did not'],
  ['answer', /lost undefined, added \S*parallel_tool_calls/, 'three members that SDKs need are added'],
  ['answer', /^unreadable/, 'the recorded answer is not in its format'],
  ['request', /"service_tier"/, 'a tier that may cost more and has no price'],
  ['request', /must be a (?:number|string)/, 'not valid in its format'],
]
const meant = new Map<string, number>()
let g: TestGateway
let key: string
const lanes: Lane[] = []
const outcomes: Outcome[] = []
const charges: { id: string; tokens: Tokens; outcome: Outcome }[] = []

before(async () => {
  if (!existsSync(FOLDER)) return
  for (let i = 0; i < LANES; i++) lanes.push(await openLane(`lane-${i}`))
  // The answers in other formats belong to longer requests than the short ones that are sent for them.
  g = await startGateway({ catalog: addLanes, mayExceedHolds: true })
  key = (await g.account({ credits: 9_000_000_000_000_000n })).key
})
after(async () => {
  for (const { close } of lanes) await close()
  await g?.close()
})

async function openLane(name: string): Promise<Lane> {
  const lane = { name, now: undefined, got: undefined } as Lane
  const server = await listen(async (request, response) => {
    lane.got = await buffer(request)
    response.writeHead(lane.now?.status ?? 500, { 'content-type': typeOf(lane.now) })
    response.end(lane.now?.answer)
  })
  return Object.assign(lane, server)
}

function addLanes(document: CatalogInput): void {
  const base = document.models['beta-haiku-4-5']!
  for (const { name, url: baseUrl } of lanes) {
    document.vendors[name] = { baseUrl, passesUnknown: true, probe: false }
    for (const format of CLIENT_FORMATS)
      document.models[`${name}-${format}`] = {
        ...base,
        family: 'none',
        // More than any recorded request asks for: the gateway lowers a limit above the model's.
        limits: { contextTokens: 2_000_000, outputTokensMax: 1_000_000 },
        clientFormats: [...CLIENT_FORMATS],
        routes: [{ vendor: name, protocol: format, model: 'vendor-model' }],
        traits: { hostedTools: [], vendorState: true },
        pricing: {
          unit: 'credits',
          tiers: [
            {
              ...Object.fromEntries(Object.entries(PRICE).map(([unit, rate]) => [unit, String(rate)])),
              ...MEDIA,
              ...FREE,
            },
          ],
        },
      }
  }
}

const PATHS: readonly (readonly [RegExp, ClientFormatName])[] = [
  [/\/chat\/completions$/, 'openai-chat'],
  [/\/responses$/, 'openai-responses'],
  [/(?<!\/threads\/[^/]+)\/messages$/, 'anthropic-messages'],
  [/:(?:streamG|g)enerateContent$/, 'gemini'],
]

const formatOf = ({ path }: Recorded) => PATHS.find(([pattern]) => pattern.test(path))?.[1]
const isStream = ({ answer, type }: Recorded) =>
  /event-stream/.test(type) || /^(?:event|data):/.test(answer.toString('utf8', 0, 6))
const typeOf = (one: Recorded | undefined) => (one && isStream(one) ? 'text/event-stream' : 'application/json')

function parsed(bytes: Buffer): Loose {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** A short request at each format, with the tools that the answer calls. */
function shortRequest(format: ClientFormatName, calls: Said['calls']): Loose {
  const names = [...new Set(calls.map(({ name }) => name))]
  const schema = { type: 'object', properties: {} }
  const tools = <T>(write: (name: string) => T) => (names.length > 0 ? { tools: names.map(write) } : {})
  const messages = [{ role: 'user', content: 'Hello' }]
  switch (format) {
    case 'openai-chat':
      return { messages, ...tools((name) => ({ type: 'function', function: { name, parameters: schema } })) }
    case 'openai-responses':
      return { input: 'Hello', ...tools((name) => ({ type: 'function', name, parameters: schema })) }
    case 'anthropic-messages':
      return { messages, max_tokens: 60_000, ...tools((name) => ({ name, input_schema: schema })) }
    case 'gemini': {
      const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]
      return {
        contents,
        ...(names.length > 0 ? { tools: [{ functionDeclarations: names.map((name) => ({ name })) }] } : {}),
      }
    }
  }
}

type Asked = { readonly status: number; readonly id: string; readonly body: Buffer; readonly leftOut: string }

async function ask(
  lane: Lane,
  [front, back]: readonly ClientFormatName[],
  body: Loose,
  stream: boolean,
): Promise<Asked> {
  const model = `${lane.name}-${back}`
  lane.got = undefined
  // The recorded model is another one.
  const { model: _, ...rest } = body
  const { path, body: asked } = requestTo(front!, model, rest, stream)
  if (front === 'openai-chat' && stream) asked.stream_options = { include_usage: true, ...asked.stream_options }
  const response = await g.call(path, key, asked)
  const { headers, status } = response
  const answer = Buffer.from(await response.arrayBuffer())
  return {
    status,
    id: headers.get('x-request-id') ?? '',
    body: answer,
    leftOut: headers.get('x-tollgate-left-out') ?? '',
  }
}

/** The first member of `sent` that is absent or different in `got`. */
function lost(sent: Loose, got: Loose, path = ''): string | undefined {
  // Absent and null mean the same; the gateway may fill it, and writes loose forms as the documents do.
  if (sent === null) return undefined
  if (typeof sent === 'string' && got?.url === sent) return undefined
  if (Array.isArray(got) && !Array.isArray(sent) && got.length === 1) return lost(sent, got[0], path)
  if (typeof sent !== 'object' || sent === null || typeof got !== 'object' || got === null)
    return isDeepStrictEqual(sent, got) ? undefined : path
  if (Array.isArray(sent) && sent.length !== got.length) return path
  for (const name of Object.keys(sent)) {
    const found = lost(sent[name], got[name], `${path}.${Array.isArray(sent) ? '' : name}`)
    if (found !== undefined) return found
  }
  return undefined
}

/** The answer without what the gateway is to change: the model's name, the place of the usage in a chat stream. */
function comparable(format: ClientFormatName, bytes: Buffer, stream: boolean): unknown {
  const unnamed = (value: Loose): Loose => {
    const { model: _, modelVersion: _1, ...rest } = value
    for (const nested of ['response', 'message']) if (rest[nested]) rest[nested] = unnamed(rest[nested])
    return rest
  }
  if (!stream) return unnamed(JSON.parse(bytes.toString('utf8')))
  const events = eventsOf(bytes).flat().map(unnamed)
  if (format !== 'openai-chat') return events.filter(({ type }: Loose) => type !== 'ping')
  const usage = events.findLast((event: Loose) => event.usage)?.usage
  const chunks = events
    .map(({ usage: _, ...chunk }: Loose) => chunk)
    .filter(({ choices }: Loose) => choices?.length > 0)
  return { chunks, usage: usage ?? null }
}

async function replay(lane: Lane, one: Recorded, format: ClientFormatName): Promise<void> {
  const note = (check: Check, wrong?: string): Outcome => {
    const outcome = { vendor: one.host, format, check, file: one.file, ...(wrong === undefined ? {} : { wrong }) }
    outcomes.push(outcome)
    return outcome
  }
  lane.now = one
  const stream = isStream(one)
  const sent = parsed(one.sent)
  if (sent?.background) delete sent.background // It would run later, beside the lane's next exchange.
  const pair = [format, format] as const
  let answered = sent && (await ask(lane, pair, sent, stream))
  if (sent && lane.got) {
    const { model: _, stream_options: _1, ...rest } = sent
    const wrong = lost(rest, parsed(lane.got))
    note(
      'request',
      wrong === undefined ? undefined : `lost ${wrong}${answered.leftOut && `, left out ${answered.leftOut}`}`,
    )
  } else if (sent) {
    const why = String(parsed(answered.body)?.error?.message)
    if (one.status >= 400 && answered.status === 503) return
    const reason = MEANT.find(([pattern]) => pattern.test(why))?.[1]
    if (reason) meant.set(reason, (meant.get(reason) ?? 0) + 1)
    else note('request', `rejected${sent.models ? ', with `models`' : ''}: ${why}`)
  }
  if (one.status >= 400) {
    if (lane.got) note('error', answered.status >= 400 ? undefined : `status ${answered.status}`)
    return
  }
  const said = saidBy(format, one.answer, stream)
  if (!said) return
  if (!lane.got) answered = await ask(lane, pair, shortRequest(format, said.calls), stream)
  const whole =
    answered.status === 200 &&
    isDeepStrictEqual(comparable(format, answered.body, stream), comparable(format, one.answer, stream))
  const answer = note(
    'answer',
    whole ? undefined : `status ${answered.status}: ${difference(format, answered.body, one.answer, stream)}`,
  )
  if (said.tokens && !answer.wrong?.startsWith('status 5'))
    charges.push({ id: answered.id, tokens: said.tokens, outcome: note('charge') })
  for (const front of CLIENT_FORMATS) if (front !== format) await convert(lane, one, said, { front, format, note })
}

function difference(format: ClientFormatName, got: Buffer, sent: Buffer, stream: boolean): string {
  try {
    const [a, b] = [comparable(format, got, stream), comparable(format, sent, stream)]
    return `lost ${lost(b, a)}, added ${lost(a, b)}`
  } catch {
    return got.toString('utf8').slice(0, 300)
  }
}

async function convert(
  lane: Lane,
  one: Recorded,
  said: Said,
  {
    front,
    format,
    note,
  }: { front: ClientFormatName; format: ClientFormatName; note(check: Check, wrong?: string): Outcome },
): Promise<void> {
  const stream = isStream(one)
  const answered = await ask(lane, [front, format], shortRequest(front, said.calls), stream)
  const got = answered.status === 200 ? saidBy(front, answered.body, stream) : undefined
  if (!got) {
    note('text', `as ${front}: status ${answered.status} ${answered.body.toString('utf8').slice(0, 200)}`)
    return
  }
  const same = (check: Check, a: unknown, b: unknown) =>
    note(
      check,
      isDeepStrictEqual(a, b)
        ? undefined
        : `as ${front}: ${JSON.stringify(a)?.slice(0, 150)} for ${JSON.stringify(b)?.slice(0, 150)}`,
    )
  same('text', got.text, said.text)
  const unspaced = (text: string) => text.replaceAll(/\s+/g, '')
  if (said.thoughts !== '') same('thoughts', unspaced(got.thoughts), unspaced(said.thoughts))
  if (said.calls.length > 0) same('calls', got.calls, said.calls)
  same('end', got.end, said.end)
  if (said.tokens) same('usage', sums(got.tokens), sums(said.tokens))
}

const sums = (tokens: Tokens | undefined) =>
  tokens && [tokens.input + tokens.cached + tokens.written + tokens.writtenHour, tokens.output]

const micros = ({ input, cached, written, writtenHour, output }: Tokens) =>
  input * PRICE.input +
  cached * PRICE.cachedInput +
  written * PRICE.cacheWrite +
  writtenHour * PRICE.cacheWriteHour +
  output * PRICE.output

async function checkCharges(): Promise<void> {
  await g.settled()
  const rows = await g.sql<{ id: string; charged: bigint }>('select id, charged from usage')
  const charged = new Map(rows.map((row) => [row.id, row.charged]))
  for (const { id, tokens, outcome } of charges) {
    const due = micros(tokens)
    const paid = charged.get(id.replace(/^req_/, ''))
    if (paid !== BigInt(due))
      outcomes[outcomes.indexOf(outcome)] = {
        ...outcome,
        wrong: `charged ${paid} for ${due}: ${JSON.stringify(tokens)}`,
      }
  }
}

/** Vendor × format × check: how many passed of how many. */
function table(): string {
  const rows = new Map<string, Map<Check, [passed: number, all: number]>>()
  for (const { vendor, format, check, wrong } of outcomes) {
    const name = `${vendor} | ${format}`
    const row = rows.get(name) ?? new Map()
    rows.set(name, row)
    const [passed, all] = row.get(check) ?? [0, 0]
    row.set(check, [passed + (wrong === undefined ? 1 : 0), all + 1])
  }
  const cells = (row: Map<Check, [number, number]>) =>
    CHECKS.map((check) => {
      const [passed, all] = row.get(check) ?? [0, 0]
      return all === 0 ? '' : passed === all ? String(all) : `${passed} of ${all}`
    })
  const lines = [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, row]) => `| ${name} | ${cells(row).join(' | ')} |`)
  return [`| Vendor | Format | ${CHECKS.join(' | ')} |`, `|---|---|${'---|'.repeat(CHECKS.length)}`, ...lines].join(
    '\n',
  )
}

test('recorded exchanges with real vendors pass whole, are charged as reported, and keep their meaning in other formats', async (t) => {
  if (!existsSync(FOLDER)) {
    const why = 'TOLLGATE_RECORDINGS names no folder with recorded exchanges'
    console.log(`Recordings were not replayed: ${why}`)
    return t.skip(why)
  }
  const seen = new Set<string>()
  const waiting = readCassettes(FOLDER)
  const failed: [Recorded, ClientFormatName][] = []
  const run = async (lane: Lane): Promise<void> => {
    for (let next = waiting.next(); !next.done; next = waiting.next()) {
      const one = next.value
      const format = formatOf(one)
      const digest = createHash('sha1').update(one.path).update(one.sent).update(one.answer).digest('hex')
      if (!format || one.answer.length === 0 || seen.has(digest)) continue
      seen.add(digest)
      if (one.status >= 400) {
        failed.push([one, format])
        continue
      }
      await replay(lane, one, format).catch((error) => {
        outcomes.push({ vendor: one.host, format, check: 'answer', file: one.file, wrong: `unreadable: ${error}` })
      })
    }
  }
  await Promise.all(lanes.map(run))
  // Last, because the gateway stops calling a vendor that fails.
  for (const [one, format] of failed) await replay(lanes[0]!, one, format)
  await checkCharges()
  const wrong = outcomes.filter(({ wrong: why, check }) => {
    if (why === undefined) return false
    const reason = EXPLAINED.find(([of, pattern]) => of === check && pattern.test(why))?.[2]
    if (reason) meant.set(reason, (meant.get(reason) ?? 0) + 1)
    return reason === undefined
  })
  const kept = [...meant].map(([reason, count]) => `${count} as meant: ${reason}`)
  console.log([`${seen.size} exchanges`, table(), ...kept].join('\n'))
  if (process.env.TOLLGATE_RECORDINGS_REPORT)
    writeFileSync(process.env.TOLLGATE_RECORDINGS_REPORT, JSON.stringify(wrong, null, 1))
  assert.deepEqual(wrong.slice(0, 20), [])
})
