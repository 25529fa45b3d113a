// The table of price-table.test.ts for everything that is no text: each report that a vendor of such a format can give,
// by every way that the format has, costs price times quantity. Where a format has no such way, its reason stands here.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { CatalogInput } from '../src/catalog/document.ts'
import { ENDPOINT_URLS } from '../src/extensions/background/lines.ts'
import type { Unit } from '../src/meter/kind.ts'
import { KINDS, type KindName, PROTOCOLS, type ProtocolName } from '../src/meter/kind.ts'
import { answered, callersGone, sendBatch } from './batches.ts'
import { post } from './faults/raw-client.ts'
import { mediaOf } from './formats.ts'
import { assert, BY, listen, started, test, testGateway, textOf } from './gateway.ts'
import { connect } from './mcp/client.ts'
import { PICTURE } from './picture.ts'
import { cellsOf, isByCatalog, isText, price, tiersOf } from './published-usage.ts'
import { form, wav } from './sound.ts'

const FORMATS = PROTOCOLS.filter((format) => !isText(format) && !isByCatalog(format))
const CELLS = cellsOf(FORMATS)
const FILM = Buffer.concat([Buffer.from('00000018667479706d70343200000000', 'hex'), Buffer.alloc(64)])
const SECONDS = 3
const b64_json = PICTURE.toString('base64')

// ---- The vendor.

const numberIn = (text: string) => Number(/cell ?(\d+)/.exec(text)?.[1])
const json = (response: ServerResponse, value: object) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`

/** What is no format of MEDIA. */
const DATA: Readonly<Record<string, { answer: (usage: object) => object; address: (index: number) => string }>> = {
  'social-v2': {
    answer: () => ({ data: { id: '1', name: 'A', username: 'a' } }),
    address: (index) => `/v1/social/users?username=cell${index}`,
  },
  'site-analytics': { answer: (usage) => usage, address: (index) => `/v1/${SITE}?keys=cell${index}.example` },
}

/** In four pieces: after each of the first three a caller may leave. */
const STREAMED: Readonly<Record<string, (usage: object) => readonly string[]>> = {
  'openai-images': (usage) => {
    const partial = (at: number) => event({ type: 'image_generation.partial_image', b64_json, partial_image_index: at })
    return [partial(0), partial(1), partial(2), event({ type: 'image_generation.completed', b64_json, usage })]
  },
  'openai-audio': (usage) => {
    const said = (delta: string) => event({ type: 'transcript.text.delta', delta })
    return [said('@@'), said('@@'), said('@@'), event({ type: 'transcript.text.done', text: 'Yes.', usage })]
  },
  'openai-speech': (usage) => {
    const sound = event({ type: 'speech.audio.delta', audio: '@@==' })
    return [sound, sound, sound, event({ type: 'speech.audio.done', usage })]
  },
}

/** Where vendors have an address of their own. */
const PARTS_OF: Readonly<Record<string, string>> = {
  'video-task': '/contents/generations/tasks',
  'social-v2': '/2/users/',
}
const partOf = (format: ProtocolName) => PARTS_OF[format] ?? mediaOf(format)?.path.replace('/v1', '')

let callersLeft: Promise<void> = Promise.resolve()
const begun = new Map<number, () => void>()
const tasks: { id: string; status: string; safety_identifier: string; content: object }[] = []

const vendor = started(() => listen(answer))
async function answer(request: IncomingMessage, response: ServerResponse) {
  response.on('error', () => {})
  const body = (await buffer(request)).toString('latin1')
  const url = request.url ?? ''
  const format = FORMATS.find((one) => url.includes(partOf(one) ?? ' ')) ?? 'site-analytics'
  if (url === '/film.mp4') return response.writeHead(200, { 'content-type': 'video/mp4' }).end(FILM)
  if (format === 'video-task') return json(response, filmed(request.method ?? '', url, body))
  const number = numberIn(body || url)
  const { usage } = CELLS[number]!
  const isStream = /"stream": ?true|name="stream"|"stream_format": ?"sse"/.test(body)
  if (!isStream && format === 'openai-speech')
    return response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('sound')
  if (!isStream) return json(response, (mediaOf(format) ?? DATA[format])?.answer?.(usage) ?? {})
  const events = STREAMED[format]?.(usage) ?? []
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const cut = /cut (\d)/.exec(body)?.[1]
  if (cut === undefined) return response.end(events.join(''))
  response.write(events.slice(0, Number(cut)).join(''), () => begun.get(number)?.())
  await callersLeft
  return response.end(events.slice(Number(cut)).join(''))
}

/** Films are tasks: made by the first question, done when they are asked for. */
function filmed(method: string, url: string, body: string): object {
  if (method === 'POST') {
    const { safety_identifier } = JSON.parse(body) as { safety_identifier: string }
    const content = { video_url: `${vendor.url}/film.mp4` }
    const task = {
      id: `task-${tasks.length}`,
      status: 'succeeded',
      safety_identifier,
      content,
      ...CELLS[numberIn(body)]!.usage,
    }
    tasks.push(task)
    return { id: task.id }
  }
  const one = tasks.find(({ id }) => url.endsWith(`/${id}`))
  return one ?? { items: tasks, total: tasks.length }
}

// ---- The gateway.

const kindOf = (format: ProtocolName): KindName => {
  const found = Object.entries(KINDS).find(([, { protocols }]) => Object.hasOwn(protocols, format))
  assert.ok(found)
  return found[0] as KindName // A key of the kinds.
}
/** What the models of a format are priced by; where one price names this or that, the cell's own. */
const UNITS_OF: Partial<Record<ProtocolName, readonly Unit[]>> = {
  'openai-embeddings': ['input', 'inputImage', 'inputAudio'],
  'openai-images': ['image', 'input', 'inputImage', 'output', 'outputImage'],
}
const unitsOf = (index: number) => {
  const { format, due } = CELLS[index]!
  return UNITS_OF[format] ?? (Object.keys(due) as Unit[]) // Its keys are units.
}
const modelOf = (index: number) => `table-${CELLS[index]!.format}-${unitsOf(index).join('-').toLowerCase()}`
const KINDS_BATCHED: readonly KindName[] = ['embedding', 'rerank', 'moderation', 'ocr']
const SITE = 'siteanalytics/websites/similar-sites'

const g = testGateway(() => ({
  mayExceedHolds: true,
  env: { HOUSE_KEY: 'sk-house' },
  catalog(document: CatalogInput) {
    document.vendors.table = { baseUrl: vendor.url, credential: 'HOUSE_KEY', byokFee: { share: '0.5' } }
    const cache = { ttlSeconds: 600 }
    for (const [index, { format, due }] of CELLS.entries()) {
      const routes = [{ vendor: 'table', protocol: format, model: 'm' }]
      const pricing = { unit: 'credits' as const, tiers: tiersOf(unitsOf(index)) }
      const type = kindOf(format)
      if (format === 'social-v2') document.models.socialapi = { ...document.models.socialapi!, routes, pricing, cache }
      else if (type === 'data' && due.row) document.endpoints[SITE] = { routes, pricing, cache }
      else if (type !== 'data')
        document.models[modelOf(index)] = {
          name: modelOf(index),
          type,
          family: 'table',
          routes,
          pricing,
          ...(KINDS_BATCHED.includes(type) ? { batchFactor: '0.5' } : {}),
          ...(type === 'video' ? { traits: document.models['videogen-2.0']!.traits } : {}),
        }
    }
  },
}))

// ---- The ways of each format.

type Asked = { readonly stream?: boolean; readonly cut?: number; readonly headers?: Record<string, string> }
const words = (index: number, cut?: number) => `cell ${index}${cut === undefined ? '' : ` cut ${cut}`}`
const addressOf = (format: ProtocolName, index = 0) => mediaOf(format)?.path ?? DATA[format]!.address(index)
/** What is sold by the character has always as many. */
function requestOf(index: number, { stream, cut }: Asked): Record<string, any> {
  const { format } = CELLS[index]!
  const isSpeech = format === 'openai-speech'
  const streamed = isSpeech ? { stream_format: 'sse' } : { stream: format === 'openai-audio' ? 'true' : true }
  const asked = isSpeech ? words(index, cut).padEnd(25, '.') : words(index, cut)
  return { model: modelOf(index), ...mediaOf(format)?.body(asked), ...(stream ? streamed : {}) }
}

async function bodyOf(index: number, asked: Asked): Promise<{ type: string; bytes: Buffer }> {
  const body = requestOf(index, asked)
  if (CELLS[index]!.format !== 'openai-audio')
    return { type: 'application/json', bytes: Buffer.from(JSON.stringify(body)) }
  const made = new Request('http://x', { method: 'POST', body: form(body, wav(SECONDS)) })
  return { type: made.headers.get('content-type') ?? '', bytes: Buffer.from(await made.arrayBuffer()) }
}

async function ask(key: string, index: number, asked: Asked = {}): Promise<void> {
  const { format } = CELLS[index]!
  const isGet = kindOf(format) === 'data'
  const { type, bytes } = await bodyOf(index, asked)
  const text = await textOf(
    fetch(g.url + addressOf(format, index), {
      method: isGet ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${key}`, ...(isGet ? {} : { 'content-type': type }), ...asked.headers },
      ...(isGet ? {} : { body: bytes }),
    }),
  )
  if (format === 'video-task') await finished(key, (JSON.parse(text) as { data: { jobId: string } }).data.jobId)
}

async function finished(key: string, job: string): Promise<void> {
  const events = await (await g.call(`/v1/jobs/${job}/events`, key)).text()
  assert.match(events, /"status":"COMPLETED"/)
}

/** Calls, leaves after so many pieces, and lets the vendor end. */
async function leave(key: string, index: number, cut: number): Promise<void> {
  const left = Promise.withResolvers<void>()
  callersLeft = left.promise
  const { format } = CELLS[index]!
  const { type, bytes } = await bodyOf(index, { stream: true, cut })
  const started = new Promise<void>((resolve) => begun.set(index, resolve))
  const call = post(g.url, { key, path: addressOf(format, index), body: bytes, headers: { 'content-type': type } })
  // A picture is shown to its caller when it is whole; what else is begun is passed on.
  if (format === 'openai-images') await started
  else await call.until((text) => text.split('@@').length > cut)
  call.leave()
  await callersGone(g)
  left.resolve()
  await g.settled()
}

const TOOLS: Partial<Record<ProtocolName, (index: number) => { name: string; arguments: Record<string, unknown> }>> = {
  'openai-images': (index) => ({
    name: 'generate_image',
    arguments: { model: modelOf(index), prompt: words(index), quality: 'low' },
  }),
  'video-task': (index) => ({
    name: 'create_video',
    arguments: { model: modelOf(index), prompt: words(index), duration: 5, resolution: '720p' },
  }),
  'mistral-ocr': (index) => ({
    name: 'read_document',
    arguments: { model: modelOf(index), url: `https://a.example/cell${index}`, pages: '0-4' },
  }),
  'social-v2': (index) => ({ name: 'social_user_by_name', arguments: { username: `cell${index}` } }),
  'site-analytics': (index) => ({ name: 'website_similar_sites', arguments: { keys: `cell${index}.example` } }),
}

async function throughTool(key: string, index: number): Promise<void> {
  const client = await connect(g.url, key)
  const result = (await client.callTool(TOOLS[CELLS[index]!.format]!(index))) as {
    isError?: boolean
    content: unknown
    structuredContent?: { jobId?: string }
  }
  assert.ok(!result.isError, JSON.stringify(result.content))
  if (result.structuredContent?.jobId) await finished(key, result.structuredContent.jobId)
  await client.close()
}

const WAYS = ['whole', 'streamed', 'cut', 'batch', 'background', 'tool', 'cached', 'own key'] as const
type Way = (typeof WAYS)[number]
const isData = (format: ProtocolName) => kindOf(format) === 'data'
/** Where a format does not have a way: why. */
function absence(format: ProtocolName, way: Way): string | undefined {
  const inOnePiece = STREAMED[format] ? undefined : 'its answer is one piece'
  const absent: Partial<Record<Way, string | undefined>> = {
    streamed: inOnePiece,
    cut: inOnePiece,
    batch: ENDPOINT_URLS.includes(addressOf(format))
      ? undefined
      : 'batches have lines of JSON that are answered with JSON',
    background: 'only responses run in the background',
    tool: TOOLS[format] ? undefined : 'no tool calls it',
    cached: isData(format) ? undefined : 'only text and data are kept for others',
  }
  return absent[way]
}

const RUNS: Record<Exclude<Way, 'background'>, (key: string, index: number) => Promise<void>> = {
  whole: (key, index) => ask(key, index),
  streamed: (key, index) => ask(key, index, { stream: true }),
  async cut(key, index) {
    for (const cut of [1, 2, 3]) await leave(key, index, cut)
  },
  async batch(key, index) {
    const { format } = CELLS[index]!
    await answered(g, key, await sendBatch(g, key, [requestOf(index, {})], addressOf(format)))
  },
  tool: throughTool,
  async cached(key, index) {
    for (let time = 0; time < 2; time++) await ask(key, index)
  },
  'own key': (key, index) => ask(key, index),
}
const TIMES: Partial<Record<Way, number>> = { cut: 3, cached: 2 }
const PARTS: Partial<Record<Way, number>> = { batch: 0.5, 'own key': 0.5 }

for (const way of WAYS)
  for (const format of FORMATS) {
    const why = absence(format, way)
    if (why !== undefined || way === 'background') continue
    test(`${format}, ${way}: costs price times quantity of every member that is reported`, async () => {
      for (const [index, { due, member }] of CELLS.entries()) {
        if (CELLS[index]?.format !== format) continue
        const { id, key } = await g.account({ credits: 1_000_000_000_000n })
        const own = { vendor: 'table', value: 'sk-own-0000', fallback: false, origin: vendor.url }
        if (way === 'own key') await g.gateway.byokKeys.store(id, own, BY)
        await RUNS[way](key, index)
        const rows = await g.calls(id)
        assert.equal(rows.length, TIMES[way] ?? 1, member)
        for (const { charged, loss, lines } of rows) {
          assert.deepEqual([charged, loss], [price(due, PARTS[way]), 0n], member)
          const priced = lines.filter(([, , rate]) => rate !== '0')
          assert.deepEqual(Object.fromEntries(priced.map(([unit, quantity]) => [unit, quantity])), due, member)
        }
        // What was cut short is exact as well: a picture is drawn to its end, sound is sold by what was sent.
        if (way !== 'cut')
          assert.ok(
            rows.every(({ estimated }) => !estimated),
            member,
          )
      }
    })
  }

test('a format without a way says why', () => {
  const absent = FORMATS.flatMap((format) => WAYS.map((way) => [format, way, absence(format, way)] as const))
  const ran = absent.filter(([, way, why]) => why === undefined && way !== 'background')
  // Every format is called and answered, and by a key of one's own.
  for (const format of FORMATS)
    for (const way of ['whole', 'own key'] as const)
      assert.ok(
        ran.some(([one, other]) => one === format && other === way),
        `${format} ${way}`,
      )
})
