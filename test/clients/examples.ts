// The examples of a page, a guide unless another directory is named: each fenced block in its language, in order.
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const GUIDES = join(import.meta.dirname, '..', '..', 'docs', 'guides')

export async function examplesIn(page: string, language: string, directory = GUIDES): Promise<string[]> {
  const text = await readFile(join(directory, page), 'utf8')
  // Those that say that they are not run are left out.
  const blocks = new RegExp(`(?<!^<!-- not run: .*\\n)^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm')
  return [...text.matchAll(blocks)].map(([, code = '']) => code)
}

const SECRET_BYTES = Buffer.from('0123456789abcdef0123456789abcdef')
export const WEBHOOK_SECRET = `whsec_${SECRET_BYTES.toString('base64')}`

/** As the gateway sends it when a job has ended. */
export function webhookRequest() {
  const job = {
    id: '1789000000000000001',
    status: 'COMPLETED',
    inputParams: {},
    outputResult: [{ url: ['https://x/a.mp4'] }],
  }
  const times = { createdAt: '2026-11-15T00:00:00.000Z', startedAt: null, completedAt: '2026-11-15T00:01:00.000Z' }
  const body = JSON.stringify({ type: 'job.completed', timestamp: times.completedAt, data: { ...job, ...times } })
  const seconds = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', SECRET_BYTES).update(`msg_1.${seconds}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${signature}`,
  }
  return { url: 'http://localhost/hook', init: { method: 'POST', headers, body } }
}
