// The thread that makes requests and sends them, beside the one in which the gateway runs.
import { once } from 'node:events'
import { parentPort } from 'node:worker_threads'
import fc from 'fast-check'
import { Pool } from 'undici'
import { count, each } from '../faults/raw-client.ts'
import { CLIENT_FORMATS } from '../formats.ts'
import { type Answer, fault } from './answer.ts'
import { stepsAfter } from './follow.ts'
import { type FuzzedRequest, fuzzed, scriptedBy } from './requests.ts'
import { lasting, RECORDINGS, startFuzzVendor, vendorFaultIn, wholeName } from './vendor.ts'
import { sendOnWire } from './wire.ts'

export interface Sending {
  readonly url: string
  readonly key: string
  readonly runs: number
  readonly seed: number
  readonly atOnce: number
  readonly slowMsMax: number
}

export interface FuzzRun {
  readonly sent: number
  readonly byStatus: Record<string, number>
  /** How many requests each door took, so that it shows when a grammar no longer gets past the first check. */
  readonly taken: Record<string, number>
  readonly slowestMs: number
  /** Requests that were too slow once, and not when they were sent again. */
  readonly slow: number
  readonly findings: string[]
}

/** What the thread says: first where its vendor is, upon which it is told what to send; the last message is the run. */
export type Report = { readonly vendor: string } | { readonly sofar: number } | FuzzRun

const FINDINGS_MAX = 5
const REPORT_EVERY_MS = 5_000
/** Longer than a busy machine holds anybody up. */
const HANGS_MS = 180_000

/** Who was left in the middle of a request gets none. */
const NO_ANSWER: Answer = { status: 0, type: '', text: '', headers: '', requestId: undefined, ms: 0 }

const vendor = await startFuzzVendor()
parentPort!.postMessage({ vendor: vendor.url } satisfies Report)
const [sending] = (await once(parentPort!, 'message')) as [Sending]
const pool = new Pool(sending.url, { connections: sending.atOnce, headersTimeout: HANGS_MS, bodyTimeout: HANGS_MS })
/** The answers to recordings that were not cut. */
const wholes = new Map<string, string>()

async function send(request: FuzzedRequest): Promise<Answer> {
  const { wire } = request
  if (wire) {
    const key = request.anonymous ? undefined : sending.key
    return (await sendOnWire(sending.url, { ...request, wire }, key, HANGS_MS)) ?? NO_ANSWER
  }
  const startedMs = performance.now()
  const { statusCode, headers, body } = await pool.request({
    method: request.method as 'GET',
    path: request.path,
    headers: { authorization: `Bearer ${sending.key}`, ...request.headers },
    ...(request.body === undefined ? {} : { body: request.body }),
  })
  return {
    status: statusCode,
    type: String(headers['content-type'] ?? ''),
    requestId: headers['x-request-id'] as string | undefined,
    text: await body.text(),
    headers: request.script ? JSON.stringify(headers) : '',
    ms: performance.now() - startedMs,
  }
}

/** Undefined: as it should be, with everything that follows from it. */
let judged = 0

async function judge(request: FuzzedRequest, answer: Answer, slowMsMax: number): Promise<string | undefined> {
  if (answer === NO_ANSWER) return undefined
  const { script } = request
  const isAsked = script !== undefined && vendor.asked.delete(script.act)
  const wrong = fault(request, answer, slowMsMax) ?? (script && vendorFaultIn(script, answer, isAsked, wholes))
  if (wrong !== undefined) return wrong
  // Of its own for each: answers of one kind may all have the same length, and then nothing but one way would ever be
  // gone.
  for (const step of stepsAfter(request, answer, judged++)) {
    const next = await send(step.request)
    const { method, path, endpoint } = step.request
    if (!step.statuses.includes(next.status))
      return `then ${method} ${path}: ${next.status} instead of ${step.statuses.join(' or ')}: ${next.text.slice(0, 300)}`
    if (endpoint !== undefined && next.status === 200) taken[endpoint] = (taken[endpoint] ?? 0) + 1
    const then = fault(step.request, next, slowMsMax)
    if (then !== undefined) return `then ${method} ${path}: ${then}`
  }
  return undefined
}

async function wrongWith(request: FuzzedRequest): Promise<string | undefined> {
  try {
    return await judge(request, await send(request), sending.slowMsMax)
  } catch (error) {
    return `no answer: ${String(error)} ${String((error as { cause?: unknown }).cause ?? '')}`
  }
}

/** A request that hangs does so each time it is sent; a machine that was busy for a moment does not. */
async function slowAgain(request: FuzzedRequest): Promise<string | undefined> {
  return (await wrongWith(request)) && (await wrongWith(request))
}

/** The smallest request that is answered as wrongly, by fast-check's own shrinking. */
async function shrink(seed: number): Promise<{ request: FuzzedRequest; wrong: string | undefined } | undefined> {
  let least: { request: FuzzedRequest; wrong: string | undefined } | undefined
  await fc.check(
    fc.asyncProperty(fuzzed, async (request) => {
      const wrong = await wrongWith(request)
      if (wrong === undefined) return true
      least = { request, wrong }
      return false
    }),
    { seed, numRuns: 1 },
  )
  return least
}

const byStatus: Record<string, number> = {}
const taken: Record<string, number> = {}
const found: { readonly seed: number; readonly wrong: string }[] = []
let slowestMs = 0
let slow = 0
let sent = 0
let reportedMs = performance.now()

for (const front of CLIENT_FORMATS)
  for (const back of CLIENT_FORMATS)
    for (const stream of [true, false])
      for (const [act, recording] of RECORDINGS.entries()) {
        const script = { act, front, back, stream }
        const { status, text } = await send(scriptedBy(script))
        if (status !== 200) throw new Error(`the whole recording ${wholeName(script, recording)}: ${status} ${text}`)
        wholes.set(wholeName(script, recording), lasting(text))
      }

/** One request, one seed: whoever sends that seed alone sends the same request. */
await each(count(sending.runs), sending.atOnce, async (index) => {
  if (found.length >= FINDINGS_MAX) return
  const seed = sending.seed + index
  const [request] = fc.sample(fuzzed, { seed, numRuns: 1 })
  let wrong: string | undefined
  try {
    const answer = await send(request!)
    const status = answer === NO_ANSWER ? 'left' : answer.status
    byStatus[status] = (byStatus[status] ?? 0) + 1
    slowestMs = Math.max(slowestMs, answer.ms)
    const { endpoint } = request!
    if (endpoint !== undefined && answer.status === 200) taken[endpoint] = (taken[endpoint] ?? 0) + 1
    wrong = await judge(request!, answer, Number.POSITIVE_INFINITY)
    if (wrong === undefined && answer.ms > sending.slowMsMax) {
      wrong = await slowAgain(request!)
      if (wrong === undefined) slow += 1
    }
  } catch (error) {
    wrong = String(error)
  }
  sent += 1
  if (performance.now() - reportedMs > REPORT_EVERY_MS) {
    reportedMs = performance.now()
    parentPort!.postMessage({ sofar: sent } satisfies Report)
  }
  if (wrong !== undefined) found.push({ seed, wrong })
})

const findings: string[] = []
for (const { seed, wrong: first } of found) {
  const [request] = fc.sample(fuzzed, { seed, numRuns: 1 })
  const alone = { request: request!, wrong: `${first} (not when it is sent again)` }
  const { request: least, wrong } = (await shrink(seed)) ?? alone
  findings.push(
    `${wrong}\n  ${JSON.stringify(least).slice(0, 2_000)}\n  Again: npm run fuzz -- --runs 1 --seed ${seed}`,
  )
}
await pool.close()
vendor.close()
parentPort!.postMessage({ sent, byStatus, taken, slowestMs, slow, findings } satisfies Report)
