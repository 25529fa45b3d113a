// Sends fuzzed requests to a gateway from a thread of their own, and checks the log and the ledger afterwards.
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { verifyLedger } from '../../src/extensions/verify/verify.ts'
import type { Log } from '../../src/kernel/log.ts'
import { PROMPT, secretIn } from '../faults/canary.ts'
import { startGateway } from '../gateway.ts'
import type { FuzzRun, Report, Sending } from './sender.ts'
import { addVendors, ENV } from './vendor.ts'

const LOG_FINDINGS_MAX = 5
const JOBS_END_MS = 60_000

export async function fuzz(
  options: Pick<Sending, 'runs' | 'seed' | 'atOnce' | 'slowMsMax'>,
  onProgress: (sent: number) => void = () => {},
): Promise<FuzzRun> {
  const worker = new Worker(join(import.meta.dirname, 'sender.ts'))
  const [{ vendor }] = (await once(worker, 'message')) as [{ vendor: string }]
  const wrong: string[] = []
  await using g = await startGateway({
    env: ENV,
    log: watchedLog(wrong),
    // Fuzzed vendors report whatever tokens they like.
    mayExceedHolds: true,
    catalog: (document) => addVendors(document, vendor),
  })
  const { key } = await g.account({ credits: 1_000_000_000_000_000n })
  const run = await sendAll(worker, { url: g.url, key, ...options }, onProgress)
  const { database, catalog } = g.gateway
  for (let waitedMs = 0; ; waitedMs += 100) {
    const [row] = await database.query<{ holds: bigint }>({ text: 'select count(*) as holds from hold' })
    if (row!.holds === 0n) break
    if (waitedMs > JOBS_END_MS) {
      wrong.push(`${row!.holds} holds are left`)
      break
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const { problems } = await verifyLedger(database, catalog)
  return { ...run, findings: [...run.findings, ...wrong, ...problems] }
}

/** Nothing unexpected happens, and no line holds a secret or what a caller wrote. */
function watchedLog(wrong: string[]): Log {
  const write = (fields: object, message: string) => {
    const line = message + JSON.stringify(fields, (_, value) => (value instanceof Error ? value.stack : value))
    const secret = secretIn(line) ?? (line.includes(PROMPT) ? PROMPT : undefined)
    const why = secret ?? ('fault' in fields && fields.fault === 'internal' ? 'something unexpected' : undefined)
    if (why !== undefined && wrong.length < LOG_FINDINGS_MAX) wrong.push(`in the log, ${why}: ${line.slice(0, 1_000)}`)
  }
  return { debug: write, info: write, warn: write, error: write }
}

function sendAll(worker: Worker, sending: Sending, onProgress: (sent: number) => void): Promise<FuzzRun> {
  worker.postMessage(sending)
  return new Promise((resolve, reject) => {
    worker.on('message', (report: Exclude<Report, { vendor: string }>) =>
      'sofar' in report ? onProgress(report.sofar) : resolve(report),
    )
    worker.once('error', reject)
    worker.once('exit', (code) => reject(new Error(`the sender ended with ${code}`)))
  })
}
