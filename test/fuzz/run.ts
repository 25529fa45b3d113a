// Sends fuzzed requests to a gateway from a thread of their own, and checks the books afterwards.
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { startGateway } from '../gateway.ts'
import type { FuzzRun, Report, Sending } from './sender.ts'

const JOBS_END_MS = 60_000

export async function fuzz(
  options: Pick<Sending, 'runs' | 'seed' | 'atOnce' | 'slowMsMax'>,
  onProgress: (sent: number) => void = () => {},
): Promise<FuzzRun> {
  const g = await startGateway()
  try {
    const { key } = await g.account({ credits: 1_000_000_000_000_000n })
    const run = await sendAll({ url: g.url, key, ...options }, onProgress)
    const wrong: string[] = []
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
  } finally {
    await g.close()
  }
}

function sendAll(sending: Sending, onProgress: (sent: number) => void): Promise<FuzzRun> {
  const worker = new Worker(join(import.meta.dirname, 'sender.ts'), { workerData: sending })
  return new Promise((resolve, reject) => {
    worker.on('message', (report: Report) => ('sofar' in report ? onProgress(report.sofar) : resolve(report)))
    worker.once('error', reject)
    worker.once('exit', (code) => reject(new Error(`the sender ended with ${code}`)))
  })
}
