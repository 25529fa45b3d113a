// Answers of every endpoint to the example of its entry, recorded from a gateway with the simulated vendors, for the
// documentation. What differs from run to run (ids, times, addresses) is replaced, so that a run on any day records the
// same.
import { type EndpointSpec, exampleBody } from '../../src/catalog/endpoint.ts'
import { ALL_ENDPOINTS } from '../../src/entries.ts'
import type { RecordedAnswer } from '../../src/extensions/docs/endpoint-page.ts'
import { realWorld, type World } from '../../src/kernel/world.ts'
import { startGateway, type TestGateway } from '../gateway.ts'
import { PICTURE } from '../picture.ts'
import { wav } from '../sound.ts'
import { until } from '../until.ts'

/** When everything is recorded: reports of websites tell of the days before. */
const BEGIN = Date.parse('2026-11-15T12:00:00Z')
const LIST_MAX = 2
const NUMBERS_MAX = 4
const TEXT_CHARS_MAX = 240
/** Enough that no call is capped by what others hold. */
const CREDITS = 100_000_000_000n

const LINES = [
  { custom_id: 'greeting', method: 'POST', url: '/v1/chat/completions', body: exampleBody(endpoint('chat')) },
]
  .map((line) => JSON.stringify(line))
  .join('\n')

function endpoint(id: string): EndpointSpec {
  const found = ALL_ENDPOINTS.find((one) => one.id === id)
  if (!found) throw new Error(`There is no endpoint ${id}.`)
  return found
}

/** What later requests ask for: made by the ones before. */
type Made = { readonly values: Map<string, string>; readonly key: string; readonly gateway: TestGateway }

/** Which of what was made stands in a path: `/v1/files/{id}` is about the file. */
const OWNERS = [
  'messages/batches',
  'responses',
  'conversations',
  'files',
  'batches',
  'jobs',
  'videos',
  'social',
] as const

function pathOf(spec: EndpointSpec, { values }: Made): string {
  return spec.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const owner = OWNERS.find((one) => spec.id.startsWith(`${one}/`))
    const value = name === 'item' ? values.get('item') : owner && name === 'id' ? values.get(owner) : undefined
    return encodeURIComponent(value ?? spec.params?.[name]?.example ?? '')
  })
}

function queryOf(spec: EndpointSpec): string {
  const required = Object.entries(spec.params ?? {}).filter(([, field]) => field.required && field.in !== 'path')
  const query = new URLSearchParams(required.map(([name, field]) => [name, field.example]))
  return query.size > 0 ? `?${query}` : ''
}

function formOf(spec: EndpointSpec): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(exampleBody(spec)))
    if (name === 'image') form.append('image', new Blob([new Uint8Array(PICTURE)], { type: 'image/png' }), 'photo.png')
    else if (name !== 'file') form.append(name, String(value))
    else if (spec.id === 'files/create') form.append('file', new Blob([LINES]), 'lines.jsonl')
    else form.append('file', new Blob([new Uint8Array(wav(3))]), 'recording.wav')
  return form
}

async function ask(spec: EndpointSpec, made: Made): Promise<Response> {
  const { gateway, key, values } = made
  const authorization = `Bearer ${key}`
  const address = gateway.url + pathOf(spec, made) + queryOf(spec)
  if (spec.form) return fetch(address, { method: 'POST', headers: { authorization }, body: formOf(spec) })
  if (!spec.body) return fetch(address, { method: spec.method, headers: { authorization } })
  const example = exampleBody(spec)
  const body = 'input_file_id' in example ? { ...example, input_file_id: values.get('files') } : example
  const headers = { authorization, 'content-type': 'application/json' }
  return fetch(address, { method: spec.method, headers, body: JSON.stringify(body) })
}

/** Asked before the endpoint itself, so that there is something to ask about, or to end. */
const BEFORE: Readonly<Record<string, readonly string[]>> = {
  'responses/{id}/cancel': ['responses background'],
  'batches/{id}/cancel': ['files/create', 'batches/create'],
  'messages/batches/{id}/cancel': ['messages/batches/create'],
  'jobs/{id}/cancel': ['video'],
  'files/{id}/delete': ['files/create'],
}

/** What an answer makes, by its id. */
const MAKES: Readonly<Record<string, string>> = {
  responses: 'responses',
  'conversations/create': 'conversations',
  'files/create': 'files',
  'batches/create': 'batches',
  'messages/batches/create': 'messages/batches',
  'video/create': 'videos',
}

type Named = { id?: string; jobId?: string }

async function note(id: string, answer: Response, { values }: Made): Promise<void> {
  // Our own answers; what is not there stays undefined.
  const body = (await answer
    .clone()
    .json()
    .catch(() => ({}))) as { id?: string; data?: Named | Named[] }
  const first = Array.isArray(body.data) ? body.data[0] : body.data
  if (id === 'video') values.set('jobs', first?.jobId ?? '')
  if (id === 'social/users') values.set('social', first?.id ?? '')
  if (id === 'conversations/{id}/items') values.set('item', first?.id ?? '')
  const owner = MAKES[id]
  if (owner !== undefined) values.set(owner, body.id ?? '')
}

/**
 * The balance before it is spent, lists after there is something to list, deletions last, so that what they delete has
 * been shown, and a part of a thing before the thing.
 */
function order({ id, path }: EndpointSpec): number {
  if (id === 'account') return -2
  if (id.endsWith('/create')) return -1
  if (id === 'jobs/{id}/cancel') return 100
  return /\/(?:delete|cancel)$/.test(id) ? 50 - path.split('/').length : 0
}

async function recordAll(made: Made): Promise<Record<string, RecordedAnswer>> {
  const recorded: Record<string, RecordedAnswer> = {}
  const specs = [...ALL_ENDPOINTS].sort((a, b) => order(a) - order(b))
  for (const spec of specs) {
    if (spec.id === 'jobs') {
      await ended('jobs', made)
      await ended('videos', made)
    }
    // Its vendor would have made the video before anybody cancels it.
    if (spec.id === 'jobs/{id}/cancel') await made.gateway.sandbox.close()
    const answer = await prepared(spec, made)
    await note(spec.id, answer, made)
    // One after the other, so that lists always have their files in the same order.
    if (spec.id === 'batches/create') await ended('batches', made)
    if (spec.id === 'messages/batches/create') await ended('messages/batches', made)
    recorded[spec.id] = await recordedOf(spec, answer)
  }
  return Object.fromEntries(ALL_ENDPOINTS.map(({ id }) => [id, recorded[id] ?? missing(id)]))
}

const missing = (id: string): never => {
  throw new Error(`Nothing was recorded for ${id}.`)
}

/** What can be cancelled may end first; then another one is made. */
async function prepared(spec: EndpointSpec, made: Made, triesLeft = 20): Promise<Response> {
  for (const before of BEFORE[spec.id] ?? []) {
    const [id = '', background] = before.split(' ')
    const other = endpoint(id)
    const body = { ...exampleBody(other), ...(background ? { background: true } : {}) }
    const answer = background ? await made.gateway.call(other.path, made.key, body) : await ask(other, made)
    await note(id, answer, made)
  }
  // A job that is just being handed to its vendor says so, and wants to be asked again.
  const tried = async () => {
    const answer = await ask(spec, made)
    return { answer, text: await answer.clone().text() }
  }
  const { answer } = await until(tried, ({ text }) => !text.includes('try to cancel it again'))
  const isCancelled = answer.ok && /status":"cancel/i.test(await answer.clone().text())
  const isLate = spec.id.endsWith('/cancel') && !isCancelled
  return isLate && triesLeft > 0 ? prepared(spec, made, triesLeft - 1) : answer
}

async function ended(
  what: 'jobs' | 'videos' | 'batches' | 'messages/batches',
  { gateway, key, values }: Made,
): Promise<void> {
  await until(async () => {
    const answer = await gateway.call(`/v1/${what}/${values.get(what)}`, key)
    return /status":"(?:completed|ended)"/i.test(await answer.text())
  })
}

/** How far something had come when it was cancelled is a matter of moments. */
const PINNED: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'batches/{id}/cancel': {
    status: 'cancelling',
    in_progress_at: null,
    finalizing_at: null,
    cancelled_at: null,
    output_file_id: null,
    request_counts: { total: 0, completed: 0, failed: 0 },
  },
  'messages/batches/{id}/cancel': {
    processing_status: 'canceling',
    ended_at: null,
    results_url: null,
    request_counts: { processing: 1, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
  },
  'realtime/client_secrets': { value: 'ek_5Gk0s8Qm…' },
  'jobs/{id}/cancel': { status: 'CANCELLED', startedAt: null },
  // What runs at the same time is held.
  quote: { available: '1000' },
}

/** Before a vendor was asked it has fewer members: these it always has. */
const CANCELLED = ['id', 'object', 'created_at', 'status', 'background', 'output', 'model', 'error', 'usage']

function chosen({ id }: EndpointSpec, body: unknown): unknown {
  if (id !== 'responses/{id}/cancel') return pinned(body, PINNED[id] ?? {})
  const { ...members } = body as Record<string, unknown> // A response is an object.
  return Object.fromEntries(
    CANCELLED.map((name) => [name, name === 'output' ? [] : name === 'usage' ? null : members[name]]),
  )
}

function pinned(value: unknown, pins: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      Object.hasOwn(pins, name) && name !== 'data' ? pins[name] : pinned(one, pins),
    ]),
  )
}

async function recordedOf(spec: EndpointSpec, answer: Response): Promise<RecordedAnswer> {
  const type = answer.headers.get('content-type') ?? ''
  const charge = answer.headers.get('x-tollgate-charge')
  const head = { status: answer.status, type: type.split(';')[0] ?? '', ...(charge === null ? {} : { charge }) }
  if (answer.status >= 300) throw new Error(`${spec.id} was answered ${answer.status}: ${await answer.text()}`)
  if (type.startsWith('application/json')) return { ...head, body: chosen(spec, steady(await answer.json())) }
  if (type.startsWith('audio/')) return { ...head, bytes: (await answer.arrayBuffer()).byteLength }
  const text = await answer.text()
  const events = text.split('\n\n').filter(Boolean)
  return {
    ...head,
    text: steadyText(type.includes('event-stream') ? events.slice(0, LIST_MAX + 1).join('\n\n') : text),
  }
}

const ID =
  /\b(acc|key|chatcmpl|cmpl|resp|msg|req|file|batch|batch_req|conv|call|rs|fc|cmp|rerank|modr|embd|evt|item|ws)([-_])[A-Za-z0-9]{12,}(?:_\d+\b)?(?![A-Za-z0-9])/g
const SAMPLE_ID = '01kd0c9w7qj8h5m2x4v6t3z1ab'
const OWN_ID = /(?<![A-Za-z0-9])01[0-9a-hjkmnp-tv-z]{24}(?![A-Za-z0-9])/g
const JOB_ID = /(?<![0-9])\d{18,20}\b/g
const INSTANT = /\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g
const ADDRESS = /http:\/\/127\.0\.0\.1:\d+(\/[^\s"\\]*)?/g

const steadyText = (text: string) =>
  text
    .replaceAll(ADDRESS, (_, path: string | undefined) => `https://gateway.example${steadyPath(path ?? '')}`)
    .replaceAll(ID, (_, kind: string, sign: string) => `${kind}${sign}${SAMPLE_ID}`)
    .replaceAll(OWN_ID, SAMPLE_ID)
    .replaceAll(INSTANT, '2026-11-15T12:00:00.000Z')
    .replaceAll(JOB_ID, '1794744000000000001')
    .replaceAll(/"(created|created_at|completed_at|expires_at)":\d{10}\b/g, '"$1":1794744000')

/** Signed addresses are random from their first part on. */
const steadyPath = (path: string) =>
  path.replace(
    /^(\/assets\/)[^?.]*(\.\w+)?.*$/,
    (_, base: string, ending = '') => `${base}${SAMPLE_ID}${ending}?exp=1795348800&sig=9c1f0e`,
  )

const SECONDS = /(?:^created$|_at$|^expires$)/
const DURATIONS = /(?:Ms|_ms)$/

function steady(value: unknown, name = ''): unknown {
  if (typeof value === 'string') {
    const text = steadyText(value)
    return text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text
  }
  if (typeof value === 'number') {
    if (SECONDS.test(name) && value > 1e9) return 1_794_744_000
    return DURATIONS.test(name) ? 1_200 : value
  }
  if (Array.isArray(value))
    return value
      .slice(0, value.every((one) => typeof one === 'number') ? NUMBERS_MAX : LIST_MAX)
      .map((one) => steady(one))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, steady(one, key)]))
}

/** The same days for whoever records, and time that passes. */
function recordingWorld(): World {
  const startMs = realWorld.nowMs()
  return { ...realWorld, nowMs: () => BEGIN + realWorld.nowMs() - startMs }
}

/** The text of the file. Needs the test server. */
export async function answersFile(): Promise<string> {
  const world = recordingWorld()
  await using gateway = await startGateway({
    plain: true,
    world,
    vendorWorld: world,
    catalog: (all) => Object.assign(all, { allClientFormats: true }),
  })
  const { key } = await gateway.account({ credits: CREDITS })
  const answers = await recordAll({ gateway, key, values: new Map() })
  return `${JSON.stringify(answers, null, 2)}\n`
}
