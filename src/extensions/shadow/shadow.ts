// Shadow traffic: a copy of some text calls is sent to another model or vendor, and its answer is discarded. The
// operator pays for it: nothing is held or charged, and its cost is in the metrics, the log and the unbilled costs.
// Copies have the lowest priority: if there is no free capacity, they are dropped.

import { createHash } from 'node:crypto'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { asFault, Fault } from '../../kernel/fault.ts'
import { isObject } from '../../kernel/json.ts'
import type { Log } from '../../kernel/log.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import type { World } from '../../kernel/world.ts'
import { chargeOf } from '../../meter/charge.ts'
import { inputTokensOf, outputTokensOf, type Usage } from '../../meter/usage.ts'
import type { Held, PathDeps } from '../../pipeline/call.ts'
import type { Shadows } from '../../pipeline/hooks.ts'
import type { Read } from '../../pipeline/read.ts'
import { estimatedUsage, possibleUsage, withUses } from '../../pipeline/settle.ts'
import type { PaidRequest } from '../../protocols/protocol.ts'
import { type Attempted, attempt } from '../../routing/attempt.ts'
import { isNamed } from '../../routing/preference.ts'
import { type Candidate, routeRequest } from '../../routing/route.ts'
import type { Vendors } from '../../routing/vendor.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Overload } from '../../telemetry/overload.ts'

export interface ShadowDeps extends Pick<PathDeps, 'upstream' | 'logins' | 'vendors' | 'routes' | 'unbilled'> {
  readonly world: World
  readonly log: Log
  readonly overload: Pick<Overload, 'spare'>
  readonly meter: Metrics['shadow']
}

/** Of this process, and of one account. */
const RUNNING_MAX = 16
const ACCOUNT_RUNNING_MAX = 4
const DEADLINE_MS = 120_000
/** Longer requests are not copied, so that copies take little memory. */
const SENT_CHARS_MAX = 1_048_576
const ANSWER_BYTES_MAX = 4_194_304
const RECORDER = { all: false, add() {}, decided() {} }
const SPAN = 2 ** 32

export function createShadows(deps: ShadowDeps): Shadows {
  const { world, overload, meter, log } = deps
  /** With the calling account of each. */
  const running = new Map<AbortController, string>()
  let closed = false

  function hasRoom(account: string, sent: string): boolean {
    const own = [...running.values()].filter((one) => one === account).length
    return (
      running.size < RUNNING_MAX &&
      own < ACCOUNT_RUNNING_MAX &&
      sent.length <= SENT_CHARS_MAX &&
      overload.spare &&
      !closed
    )
  }

  return {
    copy(held: Held) {
      const { shadow, requestId, principal, paidRequest, seen } = held
      if (!shadow || !isDrawn(requestId, shadow.share) || !mayBeCopied(held)) return
      const { model: product } = shadow
      if (!hasRoom(principal.accountId, paidRequest.sent ?? '')) return meter(product, 'dropped')
      const controller = new AbortController()
      running.set(controller, principal.accountId)
      const cancel = world.after(DEADLINE_MS, () => controller.abort(new Fault('upstream_timeout')))
      const end = (outcome: Parameters<typeof meter>[1], cost?: Credits) => {
        cancel()
        running.delete(controller)
        meter(product, outcome, cost)
      }
      // Said now: a fast call ends before its copy is sent.
      seen.decided(`The rule "${shadow.rule}" copies this call to "${product}", which is not charged.`)
      // Reading the request once more does not keep its caller waiting.
      world.after(0, () => {
        send(held, controller, deps).then(
          (sent) => end(sent ? sent.outcome : 'dropped', sent?.cost),
          (error: unknown) => {
            log.info({ requestId, product, fault: asFault(error).kind }, 'shadow call failed')
            end('failed')
          },
        )
      })
    },
    close() {
      closed = true
      for (const controller of running.keys()) controller.abort(new Fault('unavailable'))
    },
  }
}

/** The same calls in every process, and independent of anything that a caller chooses. */
function isDrawn(requestId: string, share: number): boolean {
  return createHash('sha256').update(`shadow ${requestId}`).digest().readUInt32BE() < share * SPAN
}

/**
 * Not copied: calls of test accounts, calls with a BYOK key, requests that continue a stored response, and requests
 * with side effects.
 */
function mayBeCopied({ principal, catalog, own, paidRequest, objectOwner }: Held): boolean {
  if (isTestAccount(principal.accountId) || catalog.simulated || own || objectOwner) return false
  if ('order' in paidRequest || paidRequest.once || paidRequest.continues || paidRequest.gather) return false
  return paidRequest.sent !== undefined
}

/** Members of a request that let a vendor do something, beside its tools. */
const ACTING = ['web_search_options', 'mcp_servers', 'container', 'plugins', 'background', 'conversation']

function acts(sent: string): boolean {
  const body: unknown = JSON.parse(sent)
  if (!isObject(body)) return true
  const { tools = [] } = body
  return ACTING.some((name) => body[name]) || !Array.isArray(tools) || !tools.every(isCallersTool)
}

/** A tool that the caller runs itself. For a copy, nobody runs it. */
function isCallersTool(tool: unknown): boolean {
  if (!isObject(tool)) return false
  if (tool.type !== undefined) return tool.type === 'function' || tool.type === 'custom'
  return 'input_schema' in tool || Object.keys(tool).every((name) => /^function_?declarations$/i.test(name))
}

/** Undefined: it was not sent. */
async function send(
  held: Held,
  controller: AbortController,
  deps: ShadowDeps,
): Promise<{ readonly outcome: 'answered' | 'failed'; readonly cost: Credits | undefined } | undefined> {
  const { shadow, requestId, guard, principal } = held
  const { signal } = controller
  const copy = signal.aborted || acts(held.paidRequest.sent ?? '') ? undefined : readCopy(shadow, guard?.guard)
  if (!shadow || !copy || 'order' in copy.paidRequest || copy.own || copy.paidRequest.continues) return undefined
  const paidRequest: PaidRequest = { ...copy.paidRequest, once: true }
  const candidate = candidateOf(copy, paidRequest, held, deps)
  const leave =
    candidate &&
    deps.vendors.enterCopy(candidate.vendorName, candidate.vendor, () => controller.abort(new Fault('unavailable')))
  if (!leave) return undefined
  const opening = openingOf(held, paidRequest, signal, deps)
  const heard = await attempt(paidRequest, [candidate], opening, { ...deps, vendors: unjudged(deps.vendors, leave) })
    .then((attempted) => listen(attempted, paidRequest))
    .catch((error: unknown) => {
      if (!signal.aborted) throw error
      // The copy was aborted before the headers, but the vendor already has the prompt.
      return { usage: estimatedUsage({ paidRequest }, 0), isWhole: false, price: undefined }
    })
    .finally(leave)
  const usage = possibleUsage({ paidRequest }, withUses({ paidRequest }, heard.usage))
  const { vendorName: vendor, cost: rates, target, credential } = candidate
  const cost = rates && chargeOf(rates, usage, { ...paidRequest.price, ...heard.price }).amount
  const outcome = heard.isWhole ? 'answered' : 'failed'
  const { product } = paidRequest
  const { accountId: account } = principal
  deps.unbilled.count({ kind: 'shadow', account, vendor, product, model: target.model, credential, usage, cost })
  const tokens = { inputTokens: inputTokensOf(usage), outputTokens: outputTokensOf(usage) }
  const about = { requestId, product, vendor, outcome, ...tokens }
  deps.log.info({ ...about, cost: cost === undefined ? null : formatCredits(cost) }, 'shadow call')
  return { outcome, cost }
}

function openingOf(
  { requestId, principal: { accountId: account }, admitted, callerHeaders }: Held,
  { outputOpen }: PaidRequest,
  signal: AbortSignal,
  { world }: ShadowDeps,
): Parameters<typeof attempt>[2] {
  const createdSeconds = Math.floor(world.nowMs() / 1000)
  const cap = Math.min(admitted.outputTokensCap ?? Number.POSITIVE_INFINITY, outputOpen?.mostTokens ?? 0)
  return {
    requestId,
    account,
    recorder: RECORDER,
    isRepeatable: false,
    createdSeconds,
    signal,
    callerHeaders,
    outputTokensCap: outputOpen && cap,
  }
}

/** Results of copies do not count for a vendor's breaker or figures. The copy already has its slot. */
function unjudged(vendors: Vendors, leave: () => void): Vendors {
  return { ...vendors, available: () => true, enter: () => leave, answered() {}, failed() {}, undecided() {} }
}

/** A request that the other model cannot take, or that the key may not send to it, is not copied. */
function readCopy(shadow: Held['shadow'], guard: Parameters<NonNullable<Held['shadow']>['copy']>[0]): Read | undefined {
  try {
    return shadow?.copy(guard)
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** The first route, with what the caller and the key say about vendors. It can be broken off at any time. */
function candidateOf(copy: Read, paidRequest: PaidRequest, held: Held, deps: ShadowDeps): Candidate | undefined {
  const { product, preference } = copy
  const { vendor: named } = held.shadow ?? {}
  const pool = copy.routes.filter(({ vendor }) => named === undefined || isNamed(vendor, named))
  const asked = { routes: product.routes, routing: product.routing, pool, preference }
  const [first] = pool.length === 0 ? [] : routeRequest(paidRequest, asked, held.catalog.document, deps.routes)
  // One credential, and no other if that is refused.
  const chosen = first?.credentials ? deps.vendors.credentials.choose(first, held.principal.accountId) : first
  if (!chosen || chosen instanceof Fault) return undefined
  const { credentials: _, ...candidate } = chosen
  return { ...candidate, vendor: { ...candidate.vendor, onAbort: 'cancel' }, firstTokenMs: undefined }
}

/** Reads the answer for what it used, and keeps nothing of it. */
async function listen({ reply, exchange }: Attempted, paidRequest: PaidRequest) {
  const relay = paidRequest.stream ? exchange.stream?.(reply.headers) : undefined
  const guess = (tokens: number, prompt?: Usage) => estimatedUsage({ paidRequest }, tokens, prompt)
  try {
    if (!relay) {
      const { usage, price } = await exchange.answer(await reply.read(ANSWER_BYTES_MAX), reply.headers)
      return { usage: usage ?? guess(0), isWhole: true, price }
    }
    let left = ANSWER_BYTES_MAX
    await reply.pipe((chunk) => {
      left -= chunk.length
      if (left < 0) throw new Fault('upstream_garbled', { internal: { why: 'the answer is too long for a copy' } })
      relay.push(chunk)
      return undefined
    })
    relay.end()
  } catch {
    reply.abort()
    if (!relay) return { usage: guess(0), isWhole: false }
  }
  const { usage, promptUsage, outputTokensSeen, terminal, fault, price } = relay.state
  return { usage: usage ?? guess(outputTokensSeen, promptUsage), isWhole: terminal && !fault, price }
}
