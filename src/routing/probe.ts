// The real test of a vendor: its models are listed and the smallest call of its format is made, the way calls of customers are.
// Says what it did and, where it failed, why. Nobody is charged by us; the vendor takes what one token costs.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { inputTokensOf } from '../meter/usage.ts'
import { isUnknownModel } from '../protocols/error-codes.ts'
import { type FreeCheck, freeCheck } from '../protocols/free-check.ts'
import type { Ask, Exchange, Target } from '../protocols/protocol.ts'
import { smallestAsk } from '../protocols/smallest.ts'
import { type ModelFacts, modelsAddress } from '../protocols/text/text.ts'
import { vendorCall } from '../protocols/vendor-call.ts'
import { readErrorBody, type VendorSaid } from '../protocols/vendor-words.ts'
import type { HttpCall, Upstream, UpstreamReply } from '../upstream/call.ts'
import { causeOf, quoted } from './cause.ts'
import { listedModels, nearest } from './listed-models.ts'
import type { TestStep, VendorTest } from './views.ts'

const DEADLINES = { connectMs: 5_000, firstByteMs: 30_000, idleMs: 10_000, totalMs: 40_000 }
const BODY_BYTES_MAX = 8 * 1024 * 1024
/** Other addresses of the same host that are tried when there is nothing at the one that was given. */
const OTHER_PATHS = ['/v1', '/api/v1', '/openai/v1', '/compatibility/v1', '/v1beta/openai', '/inference/v1', '']
const LOST: ReadonlySet<number | null> = new Set([404, 405, 410])

interface ProbeDeps {
  readonly upstream: Upstream
  readonly world: World
}

interface Heard {
  readonly status: number
  readonly latencyMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** `call`: the model to ask; absent: whichever of its list is first. */
export async function probeVendor(target: Target, call: ModelFacts | undefined, deps: ProbeDeps): Promise<VendorTest> {
  const check = freeCheck(target)
  if (check && target.protocol !== 'openai-images') return resultOf([await makeCheck(check, target, deps)])
  const listing = await listModels(target, deps)
  const model = target.model || listing.models[0] || ''
  const asked = call && { ...target, model }
  const ask = asked && model !== '' ? smallestAsk(asked.protocol, call) : undefined
  const steps: [TestStep, ...TestStep[]] = [listing.step]
  // What could not be reached once is not asked a second time.
  const called =
    ask && listing.step.status !== null ? await makeCall(ask, asked ?? target, listing.models, deps) : undefined
  if (called) steps.push(called)
  else if (check && listing.step.status !== null) steps.push(await makeCheck(check, target, deps))
  const last = steps.at(-1) ?? listing.step
  const elsewhere =
    LOST.has(last.status) || last.message.startsWith('It answers, but not') ? await findAddress(target, deps) : null
  return resultOf(steps, listing.models, elsewhere)
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

/** For those whose least call is not small: what costs nothing. */
async function makeCheck(check: FreeCheck, target: Target, deps: ProbeDeps): Promise<TestStep> {
  const about = { what: 'check', ...place(check.call), model: null, inputTokens: null, outputTokens: null } as const
  const heard = await hear(check.call, target, deps)
  if (heard instanceof Failure) return { ...about, ...heard.found }
  const { status, latencyMs } = heard
  const ok = check.shownBy(status)
  return { ...about, ok, status, latencyMs, message: ok ? check.words : refusalOf(heard, target) }
}

async function listModels(target: Target, deps: ProbeDeps): Promise<{ step: TestStep; models: string[] }> {
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
  return { step: { ...about, ok: false, status, latencyMs, message: refusalOf(heard, target) }, models: [] }
}

async function makeCall(ask: Ask, target: Target, models: readonly string[], deps: ProbeDeps): Promise<TestStep> {
  const { world } = deps
  const exchange = await ask.open(target, {
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
  const message = refusalOf(heard, target, exchange.said?.(heard.body), models)
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

/** There was no answer. */
class Failure {
  readonly found: Pick<TestStep, 'ok' | 'status' | 'latencyMs' | 'message'>

  constructor(message: string, latencyMs: number) {
    this.found = { ok: false, status: null, latencyMs, message }
  }
}

async function hear(call: HttpCall, target: Target, { upstream, world }: ProbeDeps): Promise<Heard | Failure> {
  const startedMs = world.elapsedMs()
  const since = () => Math.round(world.elapsedMs() - startedMs)
  let reply: UpstreamReply | undefined
  try {
    const signal = AbortSignal.timeout(DEADLINES.totalMs)
    reply = await upstream.send(vendorCall(call, target), { deadlines: DEADLINES, signal })
    const { status, headers } = reply
    return { status, headers, body: await reply.read(BODY_BYTES_MAX), latencyMs: since() }
  } catch (error) {
    reply?.abort()
    const fault = error instanceof Fault ? error : new Fault('upstream_timeout', { cause: error })
    return new Failure(causeOf(fault, target.baseUrl), since())
  }
}

const place = ({ method, url }: HttpCall) => ({ method, address: url })

function refusalOf(
  { status, body, headers }: Heard,
  target: Target,
  said: VendorSaid | undefined = readErrorBody(body),
  models: readonly string[] = [],
): string {
  const words = quoted(said?.message, target)
  if (status >= 300 && status < 400)
    return `It answers ${status} and points elsewhere${headers.location ? `, to ${originOf(headers.location, target)}` : ''}; redirects are not followed.`
  if (status === 401 || status === 403) return `It does not accept the credential.${words}`
  if (status === 402) return `The account there has no money left.${words}`
  if (status === 429) return `It knows the credential, but takes no more calls for now.${words}`
  if ((status === 404 || status === 400) && isUnknownModel(said?.words ?? [], said?.message ?? '', target.model)) {
    const like = nearest(target.model, models)
    const has = like.length > 0 ? ` It lists ${like.join(', ')}.` : ''
    return `The model "${target.model}" is not there.${has}${words}`
  }
  if (LOST.has(status)) return `There is nothing at this address (${status}).${words}`
  if (status >= 500) return `It answers with a fault of its own (${status}).${words}`
  return `It refuses the call (${status}).${words}`
}

function originOf(location: string, { baseUrl }: Target): string {
  return URL.parse(location, baseUrl)?.origin ?? 'an address that cannot be read'
}

/** An address of the same host that lists models, or would if the credential were right. */
async function findAddress(target: Target, deps: ProbeDeps): Promise<string | null> {
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
