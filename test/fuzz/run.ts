// Sends fuzzed requests to a gateway, and says what must never come back.
import fc from 'fast-check'
import { each } from '../faults/raw-client.ts'
import type { TestGateway } from '../gateway.ts'
import { type FuzzedRequest, fuzzed } from './requests.ts'

export interface FuzzRun {
  readonly sent: number
  readonly byStatus: Record<string, number>
  readonly slowestMs: number
  readonly findings: string[]
}

const FINDINGS_MAX = 20
const INTERNAL =
  /\bat [\w.<>]+ \(|\bat file:|node:internal|\.ts:\d+|\bselect \w+ from\b|\binsert into\b|SQLSTATE|pg_catalog|ECONNREFUSED|Cannot read propert/

export async function fuzz(
  g: TestGateway,
  options: { runs: number; seed: number; atOnce: number; slowMsMax: number },
): Promise<FuzzRun> {
  const { key } = await g.account({ credits: 1_000_000_000_000_000n })
  const byStatus: Record<string, number> = {}
  const findings: string[] = []
  let slowestMs = 0
  let sent = 0

  async function send(request: FuzzedRequest): Promise<void> {
    if (findings.length >= FINDINGS_MAX) return
    const startedMs = performance.now()
    const told = JSON.stringify(request).slice(0, 1_500)
    try {
      const answer = await fetch(g.url + request.path, {
        method: request.method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...request.headers },
        ...(request.body === undefined ? {} : { body: request.body }),
        redirect: 'manual',
        signal: AbortSignal.timeout(60_000),
      })
      const text = await answer.text()
      byStatus[answer.status] = (byStatus[answer.status] ?? 0) + 1
      if (answer.status >= 500) findings.push(`${answer.status} ${text.slice(0, 300)}\n  ${told}`)
      if (answer.status >= 400 && INTERNAL.test(text)) findings.push(`internal text: ${text.slice(0, 300)}\n  ${told}`)
      if (answer.status >= 400 && request.method !== 'HEAD') JSON.parse(text)
    } catch (error) {
      findings.push(`${String(error)} ${String((error as { cause?: unknown }).cause ?? '')}\n  ${told}`)
    }
    const ms = performance.now() - startedMs
    slowestMs = Math.max(slowestMs, ms)
    if (ms > options.slowMsMax) findings.push(`${Math.round(ms)} ms\n  ${told}`)
    sent += 1
  }

  const block = 2_000
  for (let from = 0; from < options.runs; from += block) {
    const requests = fc.sample(fuzzed, { numRuns: Math.min(block, options.runs - from), seed: options.seed + from })
    await each(requests, options.atOnce, send)
    if (findings.length >= FINDINGS_MAX) break
  }
  return { sent, byStatus, slowestMs, findings }
}
