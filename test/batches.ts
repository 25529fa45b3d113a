// Batches as callers send them.
import { assert, jsonOf, type TestGateway, until } from './gateway.ts'

const CHAT = '/v1/chat/completions'

/** A batch of lines with these bodies, called `line-0` and so on. */
export async function sendBatch(g: TestGateway, key: string, bodies: readonly object[], url = CHAT): Promise<string> {
  const lines = bodies.map((body, at) => JSON.stringify({ custom_id: `line-${at}`, method: 'POST', url, body }))
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([lines.join('\n')]), 'lines.jsonl')
  const headers = { authorization: `Bearer ${key}` }
  const sent = await fetch(`${g.url}/v1/files`, { method: 'POST', headers, body: form })
  const file = (await sent.json()) as { id: string }
  const order = { input_file_id: file.id, endpoint: url, completion_window: '24h' }
  const made = await g.call('/v1/batches', key, order)
  assert.equal(made.status, 200, await made.clone().text())
  return ((await made.json()) as { id: string }).id
}

interface Batch {
  readonly status: string
  readonly output_file_id: string | null
  readonly error_file_id: string | null
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number }
}

export const batchOf = (g: TestGateway, key: string, batch: string) =>
  jsonOf<Batch>(g.call(`/v1/batches/${batch}`, key))

export async function completed(g: TestGateway, key: string, batch: string): Promise<Batch> {
  const isOver = /completed|failed|expired|cancelled/
  const ended = await until(
    () => batchOf(g, key, batch),
    ({ status }) => isOver.test(status),
  )
  assert.equal(ended.status, 'completed')
  return ended
}

/** When it has completed: the request that answered each line, in their order. */
export async function answered(g: TestGateway, key: string, batch: string): Promise<string[]> {
  const { output_file_id } = await completed(g, key, batch)
  const written = await (await g.call(`/v1/files/${output_file_id}/content`, key)).text()
  const requests: string[] = []
  for (const line of written.trim().split('\n')) {
    const { custom_id, response } = JSON.parse(line) as { custom_id: string; response: { request_id: string } }
    requests[Number(custom_id.split('-')[1])] = response.request_id.replace('req_', '')
  }
  return requests
}

/** When every caller has gone: those that fetch keeps for later calls are closed. */
export function callersGone(g: TestGateway): Promise<unknown> {
  const { server } = g.gateway.app
  return until(() => {
    server.closeIdleConnections()
    return new Promise<number>((resolve) => server.getConnections((_, open) => resolve(open)))
  }, 0)
}
