// The live test of a vendor: it lists the models and makes the smallest call of the vendor's format, in the same way as
// customers' calls. It reports each step and the cause of a failure. No account is charged; the vendor bills about one
// token.

import type { CatalogDocument, Model } from '../../catalog/document.ts'
import type { EndpointSpec } from '../../catalog/endpoint.ts'
import { readTextTraits } from '../../catalog/traits.ts'
import { asFault, Fault } from '../../kernel/fault.ts'
import { isObject } from '../../kernel/json.ts'
import { NEVER, unlessAborted } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import { KIND_NAMES, kindRow } from '../../meter/kind.ts'
import type { PriceTier } from '../../meter/price.ts'
import { inputTokensOf } from '../../meter/usage.ts'
import type { Exchange, PaidRequest, Target } from '../../protocols/protocol.ts'
import { type ModelFacts, modelsAddress } from '../../protocols/text/text.ts'
import { loggedIn, vendorCall } from '../../protocols/vendor-call.ts'
import { isUnknownModel } from '../../protocols/vendor-fault.ts'
import { readErrorBody, type VendorError, withoutKeys, withoutSecrets } from '../../protocols/vendor-words.ts'
import type { VendorChecks } from '../../routing/checks.ts'
import type { TestStep, VendorTest } from '../../routing/views.ts'
import type { Deadlines, HttpCall, Upstream, UpstreamReply } from '../../upstream/call.ts'
import { isLoginRefused, type Logins, loginProblem } from '../../upstream/login.ts'
import { type FreeCheck, freeCheck, smallestRequest } from './free-check.ts'

const DEADLINES = { connectMs: 5_000, firstByteMs: 30_000, idleMs: 10_000, totalMs: 40_000 }
const BODY_BYTES_MAX = 8 * 1024 * 1024
/** Other paths of the same host, tried when the given address is not found. */
const OTHER_PATHS = ['/v1', '/api/v1', '/openai/v1', '/compatibility/v1', '/v1beta/openai', '/inference/v1', '']
const LOST: ReadonlySet<number | null> = new Set([404, 405, 410])

interface TestDeps {
  readonly upstream: Upstream
  readonly logins: Logins
  readonly world: World
  /** The endpoints of extensions. */
  readonly added: readonly EndpointSpec[]
  /** The credential is an account's own: no address inside it is called. */
  readonly isForeign: boolean
}

interface Heard {
  readonly status: number
  readonly latencyMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The target with what was sent to it, such as the token of a login. */
  readonly at: Target
}

/** `call`: the model to call; absent: the first one of the vendor's list. */
export async function testVendor(target: Target, call: ModelFacts | undefined, deps: TestDeps): Promise<VendorTest> {
  const check = freeCheck(target)
  if (check && target.protocol !== 'openai-images') return resultOf([await makeCheck(check, target, deps)])
  if (target.cloud !== undefined) return resultOf([await callInCloud(target, call, deps)])
  const listing = await listModels(target, deps)
  const model = target.model || listing.models[0] || ''
  const asked = call && { ...target, model }
  const paidRequest = asked && model !== '' ? smallestRequest(asked.protocol, call, deps.added) : undefined
  const steps: [TestStep, ...TestStep[]] = [listing.step]
  // A vendor that could not be reached is not called a second time.
  const called =
    paidRequest && listing.step.status !== null
      ? await makeCall(paidRequest, asked ?? target, listing.models, deps)
      : undefined
  if (called) steps.push(called)
  else if (check && listing.step.status !== null) steps.push(await makeCheck(check, target, deps))
  const last = steps.at(-1) ?? listing.step
  const elsewhere =
    LOST.has(last.status) || last.message.startsWith('It answers, but not') ? await findAddress(target, deps) : null
  return resultOf(steps, listing.models, elsewhere)
}

/** A cloud lists no models at the vendor's address, so one must be named. */
async function callInCloud(target: Target, call: ModelFacts | undefined, deps: TestDeps): Promise<TestStep> {
  const paidRequest = call && target.model !== '' ? smallestRequest(target.protocol, call, deps.added) : undefined
  if (paidRequest) return makeCall(paidRequest, target, [], deps)
  const about = { what: 'call', method: 'POST', address: target.baseUrl, model: null } as const
  const message = 'This cloud lists no models here. Name one to test with.'
  return { ...about, ok: false, status: null, latencyMs: 0, message, inputTokens: null, outputTokens: null }
}

function resultOf(
  steps: [TestStep, ...TestStep[]],
  models: string[] = [],
  elsewhere: string | null = null,
): VendorTest {
  const { ok, status, latencyMs, message } = steps.at(-1) ?? steps[0]
  const said = elsewhere === null ? message : `${message} It does answer at ${elsewhere}: use that address.`
  return { ok, status, latencyMs, message: said, steps, models, addressSuggested: elsewhere }
}

/** A free check, for vendors whose smallest call would be expensive. */
async function makeCheck(check: FreeCheck, target: Target, deps: TestDeps): Promise<TestStep> {
  const about = { what: 'check', ...place(check.call), model: null, inputTokens: null, outputTokens: null } as const
  const heard = await hear(check.call, target, deps)
  if (heard instanceof Failure) return { ...about, ...heard.found }
  const { status, latencyMs } = heard
  const ok = check.shownBy(status)
  return { ...about, ok, status, latencyMs, message: ok ? check.words : refusalOf(heard) }
}

async function listModels(target: Target, deps: TestDeps): Promise<{ step: TestStep; models: string[] }> {
  const call: HttpCall = { method: 'GET', url: modelsAddress(target), headers: { accept: 'application/json' } }
  const about = { what: 'models', ...place(call), model: null, inputTokens: null, outputTokens: null } as const
  const heard = await hear(call, target, deps)
  if (heard instanceof Failure) return { step: { ...about, ...heard.found }, models: [] }
  const { status, latencyMs } = heard
  if (status >= 200 && status < 300) {
    const models = listedModels(heard.body)
    const message = models ? `It lists ${models.length} models.` : 'It answers, but not with a list of models.'
    return { step: { ...about, ok: models !== undefined, status, latencyMs, message }, models: models ?? [] }
  }
  return { step: { ...about, ok: false, status, latencyMs, message: refusalOf(heard) }, models: [] }
}

async function makeCall(
  paidRequest: PaidRequest,
  target: Target,
  models: readonly string[],
  deps: TestDeps,
): Promise<TestStep> {
  const { world } = deps
  const exchange = await paidRequest.open(target, {
    requestId: 'test',
    createdSeconds: Math.floor(world.nowMs() / 1000),
    signal: AbortSignal.timeout(DEADLINES.totalMs),
  })
  const about = { what: 'call', ...place(exchange.call), model: target.model } as const
  const heard = await hear(exchange.call, target, deps)
  if (heard instanceof Failure) return { ...about, ...heard.found, inputTokens: null, outputTokens: null }
  const { status, latencyMs } = heard
  if (status >= 200 && status < 300)
    return { ...about, status, latencyMs, ...(await readAnswer(heard, exchange, target)) }
  const message = refusalOf(heard, exchange.vendorError?.(heard.body), models)
  return { ...about, ok: false, status, latencyMs, message, inputTokens: null, outputTokens: null }
}

async function readAnswer({ body, headers }: Heard, exchange: Exchange, target: Target) {
  try {
    const { usage } = await exchange.answer(body, headers)
    const inputTokens = usage ? inputTokensOf(usage) : null
    const outputTokens = usage ? (usage.output ?? 0) : null
    const counted = usage
      ? `${inputTokens} tokens in, ${outputTokens} out`
      : 'it counted no tokens, so charges are estimated'
    return { ok: true, message: `${target.model} answers: ${counted}.`, inputTokens, outputTokens }
  } catch (error) {
    return { ok: false, message: causeOf(error, target.baseUrl), inputTokens: null, outputTokens: null }
  }
}

/** The vendor did not answer. */
export class Failure {
  readonly found: Pick<TestStep, 'ok' | 'status' | 'latencyMs' | 'message'>

  /** The credential itself is wrong, as its login says. */
  readonly isLoginRefused: boolean

  constructor(fault: Fault, { baseUrl }: Target, latencyMs: number) {
    this.found = { ok: false, status: null, latencyMs, message: causeOf(fault, baseUrl) }
    this.isLoginRefused = isLoginRefused(fault)
  }
}

interface Hearing {
  readonly deadlines: Deadlines
  readonly read: (reply: UpstreamReply) => Promise<Buffer>
  readonly signal: AbortSignal
  /** On the clock for durations; absent: it begins now. */
  readonly startedMs?: number
}

const USUAL: Hearing = { deadlines: DEADLINES, read: (reply) => reply.read(BODY_BYTES_MAX), signal: NEVER }

export async function hear(
  call: HttpCall,
  target: Target,
  deps: Omit<TestDeps, 'added'>,
  how = USUAL,
): Promise<Heard | Failure> {
  const { upstream, world } = deps
  const { deadlines, read, startedMs = world.elapsedMs() } = how
  const since = () => Math.round(world.elapsedMs() - startedMs)
  const signal = AbortSignal.any([how.signal, AbortSignal.timeout(deadlines.totalMs)])
  let reply: UpstreamReply | undefined
  try {
    const at = await unlessAborted(loggedIn(target, deps), signal).catch((cause: unknown) => {
      if (cause instanceof Fault) throw cause
      throw new Fault('upstream_timeout', { internal: { login: 'It gave no token in time.' }, cause })
    })
    reply = await upstream.send(vendorCall(call, at), { deadlines, signal })
    // The token of a login may end early; the next one is another.
    if (reply.status === 401 && at.dropToken?.()) {
      reply.abort()
      return await hear(call, target, deps, { ...how, signal, startedMs })
    }
    const { status, headers } = reply
    return { status, headers, body: await read(reply), latencyMs: since(), at }
  } catch (error) {
    reply?.abort()
    const fault = error instanceof Fault ? error : new Fault('upstream_timeout', { cause: error })
    return new Failure(fault, target, since())
  }
}

const place = ({ method, url }: HttpCall) => ({ method, address: url })

export function refusalOf(
  { status, body, headers, at: target }: Heard,
  said: VendorError | undefined = readErrorBody(body),
  models: readonly string[] = [],
): string {
  const words = quoted(said?.message, target)
  if (status >= 300 && status < 400)
    return `It answers ${status} and points elsewhere${headers.location ? `, to ${originOf(headers.location, target)}` : ''}; redirects are not followed.`
  if (status === 401 || status === 403) return `It does not accept the credential.${words}`
  if (status === 402) return `The account there has no money left.${words}`
  if (status === 429) return `It accepts the credential, but its rate limit is reached.${words}`
  if ((status === 404 || status === 400) && isUnknownModel(said?.words ?? [], said?.message ?? '', target.model)) {
    const like = nearest(target.model, models)
    const has = like.length > 0 ? ` It lists ${like.join(', ')}.` : ''
    return `The model "${target.model}" is not there.${has}${words}`
  }
  if (LOST.has(status)) return `There is nothing at this address (${status}).${words}`
  if (status >= 500) return `It answers with a fault of its own (${status}).${words}`
  return `It rejects the call (${status}).${words}`
}

function originOf(location: string, { baseUrl }: Target): string {
  return URL.parse(location, baseUrl)?.origin ?? 'an address that cannot be read'
}

/** A URL of the same host that lists models, or would with a valid credential. */
async function findAddress(target: Target, deps: TestDeps): Promise<string | null> {
  const base = URL.parse(target.baseUrl)
  if (!base) return null
  const path = base.pathname
    .replace(/\/(chat\/completions|responses|messages|embeddings|models)$/, '')
    .replace(/(?<!\/)\/+$/, '')
  const shorter = path.replace(/\/v\d+$/, '')
  const paths = [path, shorter, ...OTHER_PATHS.map((one) => path + one), ...OTHER_PATHS]
  const others = [...new Set(paths)].map((one) => base.origin + one).filter((one) => one !== target.baseUrl)
  for (const baseUrl of others) {
    const heard = await hear({ method: 'GET', url: modelsAddress({ ...target, baseUrl }), headers: {} }, target, deps)
    if (heard instanceof Failure) return null
    if (heard.status === 200 && listedModels(heard.body)) return baseUrl
    if (heard.status === 401 && readErrorBody(heard.body)) return baseUrl
  }
  return null
}

// Why a vendor could not be used, worded for an operator: the connection's error, or the vendor's message.

const WORDS_MAX = 300

const BY_CODE: readonly (readonly [RegExp, (host: string) => string])[] = [
  [/^(ENOTFOUND|EAI_NODATA|EAI_NONAME)$/, (host) => `The name ${host} is not known (DNS). Is the address right?`],
  [/^EAI_AGAIN$/, (host) => `The name servers did not answer for ${host} (DNS).`],
  [/^ECONNREFUSED$/, (host) => `Nothing listens at ${host}: the connection was refused.`],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, (host) => `There is no route to ${host} in the network.`],
  [/ALTNAME/, (host) => `TLS: the certificate there is not for ${host}.`],
  [/NOT_YET_VALID/, (host) => `TLS: the certificate of ${host} is not valid yet. Is the clock of this machine right?`],
  [/EXPIRED/, (host) => `TLS: the certificate of ${host} has expired.`],
  [/SELF_SIGNED|UNABLE_TO|CERT_/, (host) => `TLS: the certificate of ${host} is not signed by a trusted authority.`],
  [/^(EPROTO|ERR_SSL|ERR_TLS)/, (host) => `TLS: ${host} does not support it. Should the address begin with http://?`],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, (host) => `${host} closed the connection without an answer.`],
  [/^HPE_/, (host) => `The server at ${host} does not use HTTP. Should the address begin with https://?`],
]

/** The cause of an exchange without an answer. */
function causeOf(error: unknown, baseUrl: string): string {
  const host = URL.parse(baseUrl)?.host ?? baseUrl
  const fault = asFault(error)
  const login = loginProblem(fault)
  if (login !== undefined) return `The login failed. ${login}`
  const { phase, code } = fault.details.internal ?? {}
  if (fault.kind === 'upstream_timeout')
    return phase === 'connect'
      ? `${host} did not accept the connection in time.`
      : `${host} accepted the connection, but did not answer in time.`
  if (fault.kind === 'upstream_garbled')
    return 'It answers, but not in this format. Is the address that of an API, and the format right?'
  const codes = [code, codeOf(fault.cause)].filter((one) => typeof one === 'string')
  for (const [pattern, words] of BY_CODE) if (codes.some((one) => pattern.test(one))) return words(host)
  return `${host} cannot be reached${codes[0] === undefined ? '' : ` (${codes[0]})`}.`
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** The vendor's message without secrets, in quotation marks; empty when there is none. */
function quoted(said: string | undefined, target: Target): string {
  const words = withoutKeys(withoutSecrets(said ?? '', target))
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (words === '') return ''
  return ` It says: “${words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX)}…` : words}”`
}

// Reads a vendor's list of models, in the shapes that vendors use.

const MODELS_MAX = 2_000
const NAME_CHARS_MAX = 200
const NEAREST_MAX = 5

/** Undefined when the body is not a list of models. */
function listedModels(body: Buffer): string[] | undefined {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
  const list = Array.isArray(value) ? value : isObject(value) ? (value.data ?? value.models) : undefined
  if (!Array.isArray(list)) return undefined
  const names = list.slice(0, MODELS_MAX).flatMap((entry: unknown) => {
    const name = isObject(entry) ? (entry.id ?? entry.name ?? entry.model) : entry
    // Google lists "models/…", and accepts the name without the prefix.
    return typeof name === 'string' && name !== '' && name.length <= NAME_CHARS_MAX
      ? [name.replace(/^models\//, '')]
      : []
  })
  return [...new Set(names)]
}

/** The listed names most similar to a missing one. */
function nearest(sought: string, names: readonly string[]): string[] {
  const wanted = pairsOf(sought)
  return names
    .map((name) => ({ name, likeness: likeness(wanted, pairsOf(name)) }))
    .filter(({ likeness }) => likeness > 0.4)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, NEAREST_MAX)
    .map(({ name }) => name)
}

function pairsOf(text: string): Set<string> {
  const word = text.toLowerCase()
  return new Set(Array.from({ length: Math.max(0, word.length - 1) }, (_, at) => word.slice(at, at + 2)))
}

function likeness(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  const shared = [...left].filter((pair) => right.has(pair)).length
  return (2 * shared) / Math.max(1, left.size + right.size)
}

// Chooses the route to test: the cheapest call that shows most about the vendor.

/** Kinds with a small call, the most telling ones first. */
const SMALL = KIND_NAMES.filter((kind) => kindRow(kind).batchable)

/** Undefined when no route uses the vendor. */
export const testedRoute: VendorChecks['testedRoute'] = (vendor, { models, endpoints }) => {
  const routes = Object.entries(models).flatMap(([uid, model]) =>
    model.routes.filter((route) => route.vendor === vendor).map((route) => ({ uid, model, route })),
  )
  const small = routes
    .filter(({ model }) => SMALL.includes(model.type))
    .sort((a, b) => SMALL.indexOf(a.model.type) - SMALL.indexOf(b.model.type) || rateOf(a.model) - rateOf(b.model))[0]
  if (small) return { uid: small.uid, route: small.route, facts: factsOf(small.uid, small.model) }
  const other = routes[0] ?? dataRoute(vendor, endpoints)
  return other && { uid: other.uid, route: other.route }
}

function dataRoute(vendor: string, endpoints: CatalogDocument['endpoints']) {
  for (const [uid, { routes }] of Object.entries(endpoints)) {
    const route = routes.find((one) => one.vendor === vendor)
    if (route) return { uid, route }
  }
  return undefined
}

/** Micro-credits; only for comparing. */
function rateOf({ pricing }: Model): number {
  const tier: PriceTier | undefined = pricing.tiers[0]
  return Number((tier?.input ?? 0n) + (tier?.output ?? 0n))
}

function factsOf(uid: string, model: Model): ModelFacts {
  return { uid, traits: readTextTraits(model.type === 'text' ? model.traits : {}), limits: model.limits }
}
