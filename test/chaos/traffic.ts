// Calls of every kind against one or more gateways, and a record of what each caller was told.
import { Agent, type Dispatcher } from 'undici'
import { wavFile } from '../../sandbox/wav.ts'
import { parseCredits } from '../../src/kernel/credits.ts'
import { MEDIA, type MediaFormat } from '../formats.ts'

export type Kind =
  | 'chat'
  | 'messages'
  | 'responses'
  | 'stream'
  | 'data'
  | 'image'
  | 'rerank'
  | 'moderation'
  | 'audio'
  | 'speech'
  | 'embedding'
  | 'kept'
  | 'leave'
  | 'fail'

export interface Told {
  readonly kind: Kind
  readonly url: string
  readonly sentMs: number
  readonly ms: number
  /** 0: no answer, or one that was cut. */
  readonly status: number
  readonly requestId: string | undefined
  /** In micro-credits; set when the answer was complete. */
  readonly charge: bigint | undefined
  readonly retryAfterSeconds: number
  readonly text: string
}

export interface Traffic {
  readonly told: Told[]
  readonly running: number
  /** Complete answers that named their charge. */
  acknowledged(): Told[]
  stop(): Promise<void>
}

export interface TrafficOptions {
  readonly urls: () => readonly string[]
  readonly key: string
  readonly kinds: readonly Kind[]
  /** So many calls at once, each followed by the next. */
  readonly atOnce?: number
  /** So many calls a second, whether the earlier ones have ended or not. */
  readonly perSecond?: number
  readonly model?: string
  /** How long a caller waits for an answer. */
  readonly patienceMs?: number
}

export function startTraffic(options: TrafficOptions): Traffic {
  const told: Told[] = []
  const running = new Set<Promise<Told>>()
  // Connections are kept for the next call: on few cores a client that is cheap leaves more to the gateways.
  const client = new Agent({ connect: { timeout: PATIENCE_MS }, headersTimeout: PATIENCE_MS, bodyTimeout: PATIENCE_MS })
  let stopped = false
  let number = 0

  function begin(): Promise<Told> {
    const index = number++
    const urls = options.urls()
    const kind = options.kinds[index % options.kinds.length]!
    const call = ask(client, urls[index % urls.length]!, kind, options).then((entry) => {
      told.push(entry)
      return entry
    })
    running.add(call)
    return call.finally(() => running.delete(call))
  }

  async function loop(): Promise<void> {
    while (!stopped) {
      const { status } = await begin()
      // Or those who are refused would take the processor from whoever is to serve them again.
      if (status !== 200) await new Promise((resolve) => setTimeout(resolve, REFUSED_PAUSE_MS))
    }
  }
  const loops = Array.from({ length: options.atOnce ?? 0 }, loop)
  let timer: NodeJS.Timeout | undefined
  if (options.perSecond) {
    const startedMs = performance.now()
    timer = setInterval(() => {
      const due = ((performance.now() - startedMs) / 1000) * options.perSecond!
      while (number < due && !stopped) void begin()
    }, 10)
  }
  return {
    told,
    get running() {
      return running.size
    },
    acknowledged: () => told.filter(({ charge }) => charge !== undefined),
    async stop() {
      stopped = true
      clearInterval(timer)
      await Promise.all(loops)
      await Promise.all(running)
      await client.close()
    },
  }
}

const PATIENCE_MS = 60_000
const REFUSED_PAUSE_MS = 50
/** Of a vendor of its own: its breaker opens, and no other call is refused for it. */
const FAILING_MODEL = 'epsilon-k3'

const MEDIA_OF: Partial<Record<Kind, MediaFormat>> = {
  image: MEDIA['openai-images'],
  rerank: MEDIA.rerank,
  moderation: MEDIA['openai-moderations'],
  speech: MEDIA['openai-speech'],
  embedding: MEDIA['openai-embeddings'],
}
/** Of all others. */
const CHAT_PATH = '/v1/chat-completions'
const PATHS: Partial<Record<Kind, string>> = {
  messages: '/beta/v1/messages',
  responses: '/alpha/responses',
  data: '/v1/siteanalytics/websites/visits?keys=example.com',
  audio: '/v1/audio/transcriptions',
}

async function ask(client: Dispatcher, url: string, kind: Kind, options: TrafficOptions): Promise<Told> {
  const sentMs = performance.now()
  const body = bodyOf(kind, options.model ?? 'alpha-5.4')
  let status = 0
  let requestId: string | undefined
  let charge: bigint | undefined
  let retryAfterSeconds = 0
  let text = ''
  // A gateway that says nothing at all, and one that never ends its answer, are failures, not a wait without end.
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(new Error('no patience left')), options.patienceMs ?? PATIENCE_MS)
  try {
    const answer = await client.request({
      origin: url,
      path: MEDIA_OF[kind]?.path ?? PATHS[kind] ?? CHAT_PATH,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${options.key}`,
        ...(body ? { 'content-type': kind === 'audio' ? FORM_TYPE : 'application/json' } : {}),
      },
      body: body ?? null,
      signal: patience.signal,
    })
    requestId = answer.headers['x-request-id'] as string | undefined
    if (kind === 'leave' && answer.statusCode === 200) await firstPiece(answer.body)
    else text = await answer.body.text()
    status = answer.statusCode
    retryAfterSeconds = Number(answer.headers['retry-after'] ?? 0)
    charge = chargeOf(answer, text)
  } catch (error) {
    text ||= String((error as { cause?: unknown }).cause ?? error)
  }
  clearTimeout(timer)
  return {
    kind,
    url,
    sentMs,
    ms: performance.now() - sentMs,
    status,
    requestId,
    charge,
    retryAfterSeconds,
    text: status === 200 ? '' : text,
  }
}

/** Leaving closes the connection. */
async function firstPiece(body: Dispatcher.ResponseData['body']): Promise<void> {
  body.on('error', () => undefined)
  await new Promise<void>((resolve, reject) => {
    body.once('data', () => resolve())
    body.once('end', () => resolve())
    body.once('error', reject)
  })
  body.destroy()
}

const FORM_TYPE = 'multipart/form-data; boundary=x'
/** Two seconds of silence. */
const RECORDING = formOf(wavFile(Buffer.alloc(32_000)))

function formOf(file: Buffer): Buffer {
  const part = (head: string) => `--x\r\ncontent-disposition: form-data; ${head}\r\n\r\n`
  return Buffer.concat([
    Buffer.from(part('name="file"; filename="a.wav"')),
    file,
    Buffer.from(`\r\n${part('name="model"')}alpha-transcribe-1\r\n--x--`),
  ])
}

function bodyOf(kind: Kind, model: string): string | Buffer | undefined {
  const messages = [{ role: 'user', content: promptOf(kind) }]
  const media = MEDIA_OF[kind]
  if (media) return JSON.stringify({ model: media.model, ...media.body('a few words') })
  switch (kind) {
    case 'data':
      return undefined
    case 'audio':
      return RECORDING
    case 'kept':
      return JSON.stringify({ model, temperature: 0, messages: [{ role: 'user', content: sameAgain() }] })
    case 'messages':
      return JSON.stringify({ model: 'beta-haiku-4-5', max_tokens: 100, messages })
    case 'responses':
      return JSON.stringify({ model, input: promptOf(kind) })
    case 'fail':
      return JSON.stringify({ model: FAILING_MODEL, messages })
    default:
      return JSON.stringify({ model, messages, stream: kind === 'stream' || kind === 'leave' })
  }
}

let sames = 0
/** So many ask the same, some at once and some later. */
const SAME = 8
const sameAgain = () => `the same words ${Math.floor(sames++ / SAME)}`

function promptOf(kind: Kind): string {
  if (kind === 'fail') return 'please fail [[500]]'
  return kind === 'leave' ? 'a long story [[slow=20]]' : 'a few words'
}

function chargeOf({ statusCode, headers }: Dispatcher.ResponseData, text: string): bigint | undefined {
  if (statusCode !== 200) return undefined
  const said = headers['x-tollgate-charge'] ?? /^: tollgate charge=(\S+)/m.exec(text)?.[1]
  if (said === undefined) return undefined
  if (headers['content-type']?.includes('event-stream') && !text.trimEnd().endsWith('[DONE]')) return undefined
  return parseCredits(String(said)) ?? undefined
}

/** What went wrong, counted. */
export function countBy(told: readonly Told[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind, status } of told) {
    const name = `${kind} ${status === 0 ? 'cut' : status}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}
