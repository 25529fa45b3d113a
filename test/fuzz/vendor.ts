// A vendor that plays whatever the number in a prompt says: recorded answers, cut anywhere; refusals in every shape and
// errors inside of streams, with our secrets in them; bytes that are nothing. The same number, the same bytes.

import { createServer, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { CatalogInput } from '../../src/catalog/document.ts'
import type { ClientFormatName } from '../../src/meter/kind.ts'
import { HEADER, HOUSE, KEYS, PROMPT, secretIn, spellings } from '../faults/canary.ts'
import { faultModel } from '../faults/chat-vendor.ts'
import { CLIENT_FORMATS } from '../formats.ts'
import { Chance } from '../simulate/virtual-world.ts'
import { listen } from '../started.ts'
import { fixture, randomlyCut } from '../text-replay.ts'
import type { Answer } from './answer.ts'

/** What the vendor is to do, as the request tells it. */
export interface Script {
  /** The first few are the recordings themselves, whole. */
  readonly act: number
  readonly front: ClientFormatName
  readonly back: ClientFormatName
  readonly stream: boolean
}

export const RECORDINGS = ['text', 'reasoning', 'tools', 'length'] as const
/** So many that a breaker is closed for most of them, whatever the others did. */
const VENDORS = 24
export const ENV = { FUZZ_KEY_0: KEYS[0], FUZZ_KEY_1: KEYS[1] }

const modelOf = (protocol: ClientFormatName, n: number) => `fuzz-${protocol}-${String(n).padStart(2, '0')}`

export function addVendors(document: CatalogInput, baseUrl: string): void {
  for (let n = 0; n < VENDORS; n++) {
    document.vendors[`fuzz-${n}`] = { baseUrl, credential: `FUZZ_KEY_${n % 2}`, headers: { 'x-tenant': HEADER } }
    for (const protocol of CLIENT_FORMATS)
      document.models[modelOf(protocol, n)] = {
        ...faultModel([]),
        clientFormats: [...CLIENT_FORMATS],
        routes: [{ vendor: `fuzz-${n}`, protocol, model: 'vendor-model' }],
      }
  }
}

/** One format has the model, and whether it streams, in its address. */
export function pathFor({ act, back, stream }: Script, path: string): string {
  if (!path.includes('{model}')) return path
  const named = path.replace('{model}', modelOf(back, act % VENDORS))
  return stream ? `${named.replace(':generate', ':streamGenerate')}?alt=sse` : named
}

export function bodyFor({ act, front, back, stream }: Script): object {
  // Of one length, so that the tokens that a stream begins with are the same in each.
  const said = `fuzz ${String(act).padStart(12, '0')} ${back} ${PROMPT}`
  if (front === 'gemini') return { contents: [{ parts: [{ text: said }] }], generationConfig: { maxOutputTokens: 50 } }
  const asked = front === 'openai-responses' ? { input: said } : { messages: [{ role: 'user', content: said }] }
  return { model: modelOf(back, act % VENDORS), max_tokens: 50, ...asked, stream }
}

type Act =
  | { readonly kind: 'answers'; readonly recording: string; readonly pieces: readonly Buffer[] }
  | { readonly kind: 'refuses'; readonly status: number; readonly body: string; readonly code?: string }
  | { readonly kind: 'errs' | 'hangs up'; readonly pieces: readonly Buffer[] }

const STATUSES = [401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529]
const CODES = ['context_length_exceeded', 'content_filter', 'invalid_image', 'unsupported_parameter', 'invalid_value']
const PLAIN_SHAPES = 4

type Said = Readonly<{ message: string; type: string; code: string; param: string; details: object }>

/** The first of them are read by everybody; what the others say need not be understood. */
const SHAPES: ReadonlyArray<(error: Said, status: number) => string> = [
  (error) => JSON.stringify({ error }),
  (error) => JSON.stringify({ type: 'error', error, request_id: error.param }),
  (error) => JSON.stringify([{ error }]),
  (error) => JSON.stringify(error),
  ({ message, code }, status) => JSON.stringify({ error: { code: status, status: code, message } }),
  ({ message, code }) => JSON.stringify({ base_resp: { status_code: code, status_msg: message } }),
  ({ message }) => JSON.stringify({ detail: message }),
  ({ message }) => JSON.stringify({ error: message }),
  ({ message, code }) => JSON.stringify({ errors: [{ title: message, detail: code }] }),
  ({ message }) => JSON.stringify({ error: { message: { text: message } } }),
  ({ message }) => `<html><body>${message}</body></html>`,
  ({ message }) => message,
  (error) => JSON.stringify({ error }).slice(0, -9),
  () => '',
]

function errorOf(chance: Chance, key: string): Said {
  const form = chance.pick(spellings(key))
  const word = () => (chance.is(0.5) ? chance.pick(CODES) : chance.pick([form.slice(0, 200), 'internal_tenant_17']))
  const message = `Refused ${HEADER} at ${HOUSE.join(' and ')}: ${form} while reading "${PROMPT}".`
  const code = word()
  return {
    type: 'invalid_request_error',
    code,
    param: word(),
    message: chance.is(0.2) ? 'x '.repeat(chance.below(2_000)) + message : message,
    details: { error_code: CODES.includes(code) ? code : word(), unsupported: [form] },
  }
}

const named = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const FAILED = { id: 'resp_1', object: 'response', model: 'm', status: 'failed', output: [] }

/** How each format says inside a stream that it failed. */
const ERRORS: Record<ClientFormatName, ReadonlyArray<(error: Said) => string>> = {
  'openai-chat': [(error) => `data: ${JSON.stringify({ error })}\n\n`],
  'openai-responses': [
    (error) => named('response.failed', { response: { ...FAILED, error } }),
    (error) => named('error', { ...error, sequence_number: 9 }),
  ],
  'anthropic-messages': [(error) => named('error', { error })],
  gemini: [(error) => `data: ${JSON.stringify({ error })}\n\n`],
}

/** From the number alone, so that the sender knows as well what was done. */
export function actOf({ act, back, stream }: Pick<Script, 'act' | 'back' | 'stream'>): Act {
  const chance = new Chance(act)
  const recorded = (name: string) => fixture(back, `${name}.${stream ? 'sse' : 'json'}`)
  const first = RECORDINGS[act]
  if (first) return { kind: 'answers', recording: first, pieces: [recorded(first)] }
  const recording = chance.pick(RECORDINGS)
  const bytes = recorded(recording)
  const kind = chance.below(10)
  if (kind < 5) return { kind: 'answers', recording, pieces: randomlyCut(bytes, chance) }
  const error = errorOf(chance, KEYS[(act % VENDORS) % 2]!)
  if (kind < 8) {
    const status = chance.is(0.5) ? 400 : chance.pick(STATUSES)
    const shape = chance.below(chance.is(0.5) ? PLAIN_SHAPES : SHAPES.length)
    const code = status === 400 && shape < PLAIN_SHAPES && CODES.includes(error.code) ? error.code : undefined
    return { kind: 'refuses', status, body: SHAPES[shape]!(error, status), ...(code === undefined ? {} : { code }) }
  }
  const said = stream ? chance.pick(ERRORS[back])(error) : JSON.stringify({ error })
  const before = stream ? bytes.subarray(0, bytes.indexOf('\n\n', chance.below(bytes.length >> 1)) + 2) : ''
  if (kind < 9)
    return { kind: 'errs', pieces: randomlyCut(Buffer.concat([Buffer.from(before), Buffer.from(said)]), chance) }
  return { kind: 'hangs up', pieces: randomlyCut(bytes.subarray(0, chance.below(bytes.length)), chance) }
}

export interface FuzzVendor {
  readonly url: string
  /** What it was asked to do. */
  readonly asked: Set<number>
  close(): void
}

export async function startFuzzVendor(): Promise<FuzzVendor> {
  const asked = new Set<number>()
  const server = createServer({ noDelay: true }, async (request, response) => {
    response.on('error', () => {})
    const body = await text(request).catch(() => undefined)
    if (body === undefined) return
    const [, number, back] = /fuzz (\d{1,12}) ([a-z-]{1,30}) /.exec(body) ?? []
    const act = Number(number)
    asked.add(act)
    const stream = body.includes('"stream":true') || (request.url ?? '').includes(':stream')
    await play(response, actOf({ act, back: back as ClientFormatName, stream }), stream)
  })
  return { ...(await listen(server)), asked }
}

async function play(response: ServerResponse, act: Act, isStream: boolean): Promise<void> {
  if (act.kind === 'refuses') {
    response.writeHead(act.status, { 'content-type': 'application/json', 'x-request-id': KEYS[0], 'x-note': HEADER })
    response.end(act.body)
    return
  }
  response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json', 'x-note': HEADER })
  for (const piece of act.pieces) {
    if (piece.length > 0) response.write(piece)
    await new Promise(setImmediate)
  }
  if (act.kind === 'hangs up') response.destroy()
  else response.end()
}

// ---- What must come of it.

const ALLOWED = new Set([200, 400, 404, 409, 413, 422, 429, 502, 503, 504])

/** What changes from one answer to the next. */
export function lasting(text: string): string {
  return text
    .replaceAll(/^:.*\n+/gm, '')
    .replaceAll(/fuzz-[a-z]+(?:-[a-z]+)?-\d+/g, 'fuzz')
    .replaceAll(/"(\w*[iI]d|obfuscation)": ?"[^"]*"/g, '"$1":""')
    .replaceAll(/"(created|created_at|completed_at)": ?[\d.]+/g, '"$1":0')
}

export const wholeName = ({ front, back, stream }: Script, recording: string) =>
  `${front} ${back} ${stream} ${recording}`

/** Undefined: as it should be. `wholes`: the answers to recordings that were not cut. */
export function vendorFaultIn(
  script: Script,
  { status, text, headers }: Answer,
  isAsked: boolean,
  wholes: ReadonlyMap<string, string>,
): string | undefined {
  const secret = secretIn(text) ?? secretIn(headers)
  if (secret !== undefined) return `${secret} got out: ${status} ${headers} ${text.slice(0, 2_000)}`
  if (!ALLOWED.has(status)) return `${status} for what a vendor did: ${text.slice(0, 300)}`
  // A breaker may be open.
  if (!isAsked) return status === 503 ? undefined : `the vendor was not asked: ${status} ${text.slice(0, 300)}`
  const act = actOf(script)
  if (act.kind === 'refuses' && act.code !== undefined && !(status === 400 && text.includes(`"${act.code}"`)))
    return `the code ${act.code} became ${status} ${text.slice(0, 600)}`
  if (act.kind !== 'answers') return undefined
  const whole = wholes.get(wholeName(script, act.recording))
  if (whole === undefined || (status === 200 && lasting(text) === whole)) return undefined
  return `${status}: cut into ${act.pieces.map(({ length }) => length)}, it reads ${text}`
}
