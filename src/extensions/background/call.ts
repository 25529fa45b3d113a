// One background call, on the same path as every paid call. It has its own idempotency key, so it is charged once
// however often and by however many processes it is retried.

import type { Principal } from '../../admission/api-key.ts'
import { dropStoredAnswer, runsWith, storedAnswers } from '../../admission/idempotency.ts'
import type { Labels } from '../../admission/labels.ts'
import { sdkBody } from '../../api/server/envelope.ts'
import type { Database } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { asFault, Fault, type FaultName, invalid } from '../../kernel/fault.ts'
import { NEVER } from '../../kernel/timers.ts'
import { newId } from '../../kernel/world.ts'
import { type ArriveDeps, arrive, readBody, readFor } from '../../pipeline/arrive.ts'
import { inBatch } from '../../pipeline/in-batch.ts'
import { broughtBy, type Incoming, type PaidSpec } from '../../pipeline/read.ts'
import { BufferedSink } from '../../pipeline/response-sink.ts'
import { serve } from '../../pipeline/serve.ts'
import { rollUpKept } from '../../protocols/text/openai-responses/pass.ts'
import { readEvents } from '../../protocols/text/relay.ts'
import { openaiError } from '../../protocols/vendor-fault.ts'

export type BackgroundCallDeps = Pick<CoreParts, 'catalog'> & ArriveDeps

interface BackgroundCall {
  readonly account: string
  /** Undefined: the key that made the request is revoked or expired. */
  readonly principal: Principal | undefined
  readonly spec: PaidSpec
  readonly body: Buffer
  /** Unique for this call: its idempotency key is made from it. */
  readonly name: string
  /** The batch of this call, for the usage row. The call gets the batch price. */
  readonly batch?: string
  /** What the request that ordered it was labelled with. */
  readonly labels?: Labels | undefined
  /**
   * Aborts a call that was cancelled. Absent: the call is never aborted, because an aborted call is charged in part and
   * its retry again in full.
   */
  readonly signal?: AbortSignal
  /** Receives the answer piece by piece. Only with it may the answer be a stream, in the Responses format. */
  readonly out?: BufferedSink
}

export interface Told {
  readonly status: number
  readonly requestId: string
  /** JSON in one line. */
  readonly body: string
}

/** The call must be retried later. `told` is its result if there is no retry. */
interface Later {
  readonly afterMs: number
  readonly told: Told
  /**
   * A vendor failed, which is retried only a few times. Rate limits and faults of the gateway are retried for as long
   * as they last.
   */
  readonly isVendors: boolean
}

const WAIT_MS: Partial<Record<FaultName, number>> = {
  rate_limited: 1_000,
  unavailable: 2_000,
  conflict: 1_000,
  upstream_rate_limited: 5_000,
  upstream_unavailable: 5_000,
  upstream_timeout: 5_000,
  upstream_failed: 2_000,
}

export function isLater(ending: Told | Later): ending is Later {
  return 'afterMs' in ending
}

/** Reads a request like that of an interactive call, but rejects streams unless there is a sink for them. */
export function readBackgroundCall(
  {
    principal,
    spec,
    body,
    labels: ordered,
    brought,
  }: Pick<BackgroundCall, 'spec' | 'body' | 'labels'> & Pick<Incoming, 'principal' | 'brought'>,
  deps: Pick<BackgroundCallDeps, 'catalog' | 'read'>,
  mayStream: boolean,
): ReturnType<typeof readFor> {
  const found = readFor({ spec, principal, brought, params: {}, query: '', body: readBody(spec, body), ordered }, deps)
  if (found.asked.paidRequest.stream && !mayStream)
    throw invalid('"stream" must be false: this request runs in the background.', 'stream')
  return found
}

export async function runBackgroundCall(call: BackgroundCall, deps: BackgroundCallDeps): Promise<Told | Later> {
  const { path } = deps
  const requestId = `req_${newId(path.world)}`
  try {
    const { principal, spec, body, labels, name, batch, signal = NEVER } = call
    const { out = new BufferedSink(signal, Number.POSITIVE_INFINITY) } = call
    if (!principal) throw new Fault('key_unknown')
    const brought = await broughtBy(principal, deps.read)
    const { catalog, asked } = readBackgroundCall(
      { principal, spec, body, labels, brought },
      deps,
      call.out !== undefined,
    )
    const endpoint = batch === undefined ? spec.id : `batch:${spec.id}`
    const idempotency = { key: keyOf(name), digest: body, keepsAll: true as const }
    const arrival = { requestId, principal, endpoint, out, client: batch, idempotency }
    const arrived = arrive(arrival, batch === undefined ? asked : inBatch(asked), catalog, path)
    await serve(arrived, path)
    const again = out.headers['idempotent-replayed'] && (await paidBefore(call, [name], deps)).get(name)
    if (again) return again
    return told(out.status, requestId, out.body)
  } catch (error) {
    const fault = asFault(error)
    const ending = endingOf(fault, { ...call, requestId }, deps)
    // What was stored is paid for, and final.
    if (isLater(ending) && !fault.details.headers?.['idempotent-replayed']) return ending
    return (await paidBefore(call, [call.name], deps)).get(call.name) ?? ending
  }
}

/**
 * Stored answers of calls that were settled before their process crashed. They are final, whatever has changed since.
 */
export async function paidBefore(
  { account, spec }: Pick<BackgroundCall, 'account' | 'spec'>,
  names: readonly string[],
  { path }: Pick<BackgroundCallDeps, 'path'>,
): Promise<ReadonlyMap<string, Told>> {
  const stored = await storedAnswers(path, account, names.map(keyOf))
  return new Map(
    stored.map(({ key, hold, status, answer }): [string, Told] => {
      const requestId = `req_${hold}`
      if (!(answer instanceof Fault)) return [key.slice(1), told(status, requestId, answer)]
      return [key.slice(1), { status, requestId, body: sdkBody(answer, spec.surface, requestId) }]
    }),
  )
}

/** Whether a call of this name is in flight, in this or another process. */
export function isUnderWay(account: string, name: string, database: Database): Promise<boolean> {
  return runsWith(database, account, keyOf(name))
}

/** Deletes the stored answer of a call that has ended. */
export function dropStoredResult(account: string, name: string, database: Database): Promise<void> {
  return dropStoredAnswer(database, account, keyOf(name))
}

/** A caller's key cannot begin with a space, so the two never collide. */
const keyOf = (name: string) => ` ${name}`

function endingOf(
  fault: Fault,
  { spec, requestId }: { spec: PaidSpec; requestId: string },
  { path }: BackgroundCallDeps,
): Told | Later {
  if (fault.kind === 'internal') path.log.error({ requestId, error: fault.cause ?? fault }, 'background call failed')
  const told = { status: fault.status, requestId, body: sdkBody(fault, spec.surface, requestId) }
  const waitMs = WAIT_MS[fault.kind]
  const { retryAfterSeconds, isFinal } = fault.details
  if (waitMs === undefined || isFinal) return told
  return {
    afterMs: Math.max(waitMs, (retryAfterSeconds ?? 0) * 1000),
    told,
    isVendors: fault.kind.startsWith('upstream_'),
  }
}

/** Turns a stream into its whole answer. A broken stream was charged as far as it came, so the call is not repeated. */
function told(status: number, requestId: string, body: Buffer): Told {
  if (body.length === 0 || body[0] === 0x7b) return { status, requestId, body: inOneLine(body.toString()) }
  try {
    return { status, requestId, body: JSON.stringify(rollUpKept(readEvents(body))) }
  } catch (error) {
    const { code, message } = openaiError(asFault(error))
    return { status: 502, requestId, body: JSON.stringify({ error: { code, message } }) }
  }
}

/** In JSON, raw line breaks occur only between values, never inside strings. */
function inOneLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, ' ').trim()
}
