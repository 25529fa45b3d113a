// What comes after an answer that something can be done with: a response that is kept, a job.
import { Chance } from '../simulate/virtual-world.ts'
import type { Answer } from './answer.ts'
import type { FuzzedRequest } from './requests.ts'

export type Step = { readonly request: FuzzedRequest; readonly statuses: readonly number[] }

const STEPS_MAX = 4

/** What may be asked next, and how it must be answered. */
export function stepsAfter(request: FuzzedRequest, { status, text }: Answer, seed: number): Step[] {
  const { endpoint, path, headers } = request
  // An answer that is given again may be of something that is gone.
  if (status !== 200 || headers['idempotency-key'] !== undefined) return []
  if (endpoint === 'responses') return afterResponse(path, text, new Chance(seed))
  if (endpoint === 'conversations/create') return afterConversation(text)
  if (endpoint === 'files/create') return afterFile(text, new Chance(seed))
  const job = endpoint === 'video' ? /"jobId":"(\d+)"/.exec(text)?.[1] : undefined
  if (job === undefined) return []
  const at = { path: `/v1/jobs/${job}`, headers: {}, surface: 'native' } as const
  return [
    { request: { ...at, method: 'GET', endpoint: 'jobs/{id}' }, statuses: [200] },
    { request: { ...at, method: 'DELETE', endpoint: 'jobs/{id}/cancel' }, statuses: [200, 409] },
  ]
}

function afterResponse(door: string, text: string, chance: Chance): Step[] {
  const id = /"id":"(resp_[\w-]+)"/.exec(text)?.[1]
  if (id === undefined) return []
  let isKept = text.includes('"store":true')
  const path = `${door.split('?')[0]!}/${id}`
  const made = (endpoint: string, method: string, below = ''): Step => ({
    request: { method, path: path + below, headers: {}, surface: 'responses', endpoint },
    statuses: [isKept ? 200 : 404],
  })
  return Array.from({ length: 1 + chance.below(STEPS_MAX) }, () => {
    const step = chance.pick([
      () => made('responses/{id}', 'GET'),
      () => made('responses/{id}/input_items', 'GET', '/input_items?limit=2'),
      () => made('responses/{id}/delete', 'DELETE'),
      () => goOn(door, text, id, isKept),
    ])()
    if (step.request.method === 'DELETE') isKept = false
    return step
  })
}

function afterConversation(text: string): Step[] {
  const id = /"id":"(conv_[\w-]+)"/.exec(text)?.[1]
  if (id === undefined) return []
  const path = `/v1/conversations/${id}`
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ items: [{ type: 'message', id: 'msg_named', role: 'user', content: 'Hello.' }] })
  const at = { headers: {}, surface: 'responses' } as const
  const changed = { ...at, method: 'POST', path, headers, body: '{"metadata":{"a":"b"}}' } as const
  const item = { ...at, path: `${path}/items/msg_named` } as const
  return [
    { request: { ...at, method: 'GET', path, endpoint: 'conversations/{id}' }, statuses: [200] },
    {
      request: {
        ...at,
        method: 'POST',
        path: `${path}/items`,
        headers,
        body,
        endpoint: 'conversations/{id}/items/create',
      },
      statuses: [200],
    },
    { request: { ...at, method: 'GET', path: `${path}/items`, endpoint: 'conversations/{id}/items' }, statuses: [200] },
    { request: { ...item, method: 'GET', endpoint: 'conversations/{id}/items/{item}' }, statuses: [200] },
    { request: { ...item, method: 'DELETE', endpoint: 'conversations/{id}/items/{item}/delete' }, statuses: [200] },
    { request: { ...changed, endpoint: 'conversations/{id}/update' }, statuses: [200] },
    { request: { ...at, method: 'DELETE', path, endpoint: 'conversations/{id}/delete' }, statuses: [200] },
    { request: { ...at, method: 'GET', path, endpoint: 'conversations/{id}' }, statuses: [404] },
  ]
}

function afterFile(text: string, chance: Chance): Step[] {
  const id = /"id":"(file[\w-]+)"/.exec(text)?.[1]
  if (id === undefined) return []
  const at = { path: `/v1/files/${id}`, headers: {}, surface: 'chat' } as const
  const body = JSON.stringify({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' })
  const headers = { 'content-type': 'application/json' }
  const looks: Step[] = [
    { request: { ...at, method: 'GET', endpoint: 'files/{id}' }, statuses: [200] },
    { request: { ...at, path: `${at.path}/content`, method: 'GET', endpoint: 'files/{id}/content' }, statuses: [200] },
  ]
  // A file that a batch reads stays.
  const last = chance.pick<Partial<FuzzedRequest> & { method: string }>([
    { method: 'DELETE', endpoint: 'files/{id}/delete' },
    { method: 'POST', path: '/v1/batches', headers, body, endpoint: 'batches/create' },
  ])
  return [...looks, { request: { ...at, ...last }, statuses: [200] }]
}

function goOn(path: string, text: string, id: string, isKept: boolean): Step {
  // Not that of a member which only the simulated vendors have.
  const model = /"model":"(?!not-the-model)([^"]+)"/.exec(text)?.[1]
  const body = JSON.stringify({ model, input: 'Go on.', previous_response_id: id, store: false })
  const request = { method: 'POST', path, headers: { 'content-type': 'application/json' }, body } as const
  return { request: { ...request, surface: 'responses' }, statuses: [isKept ? 200 : 400] }
}
