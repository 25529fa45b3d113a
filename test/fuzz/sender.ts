// The thread that makes requests and sends them, beside the one in which the gateway runs.
import { parentPort, workerData } from 'node:worker_threads'
import fc from 'fast-check'
import { Pool } from 'undici'
import { count, each } from '../faults/raw-client.ts'
import { type Answer, fault } from './answer.ts'
import { type FuzzedRequest, fuzzed } from './requests.ts'

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

/** What the thread says while it sends; the last message is the run. */
export type Report = { readonly sofar: number } | FuzzRun

const FINDINGS_MAX = 5
const REPORT_EVERY_MS = 5_000
const HANGS_MS = 30_000

const sending = workerData as Sending
const pool = new Pool(sending.url, { connections: sending.atOnce, headersTimeout: HANGS_MS, bodyTimeout: HANGS_MS })

async function send(request: FuzzedRequest): Promise<Answer> {
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
    ms: performance.now() - startedMs,
  }
}

async function wrongWith(request: FuzzedRequest): Promise<string | undefined> {
  try {
    return fault(request, await send(request), sending.slowMsMax)
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
const found: number[] = []
let slowestMs = 0
let slow = 0
let sent = 0
let reportedMs = performance.now()

/** One request, one seed: whoever sends that seed alone sends the same request. */
await each(count(sending.runs), sending.atOnce, async (index) => {
  if (found.length >= FINDINGS_MAX) return
  const seed = sending.seed + index
  const [request] = fc.sample(fuzzed, { seed, numRuns: 1 })
  let wrong: string | undefined
  try {
    const answer = await send(request!)
    byStatus[answer.status] = (byStatus[answer.status] ?? 0) + 1
    slowestMs = Math.max(slowestMs, answer.ms)
    const { endpoint } = request!
    if (endpoint !== undefined && answer.status === 200) taken[endpoint] = (taken[endpoint] ?? 0) + 1
    wrong = fault(request!, answer, Number.POSITIVE_INFINITY)
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
  if (wrong !== undefined) found.push(seed)
})

const findings: string[] = []
for (const seed of found) {
  const [request] = fc.sample(fuzzed, { seed, numRuns: 1 })
  const { request: least, wrong } = (await shrink(seed)) ?? { request: request!, wrong: 'not when it is sent again' }
  findings.push(
    `${wrong}\n  ${JSON.stringify(least).slice(0, 2_000)}\n  Again: npm run fuzz -- --runs 1 --seed ${seed}`,
  )
}
await pool.close()
parentPort!.postMessage({ sent, byStatus, taken, slowestMs, slow, findings } satisfies Report)
