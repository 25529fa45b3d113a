// The public API of the development mock: a scripted chat, and the sandbox's vendors for pictures, films and data.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { makeClip } from '../../src/sandbox/clip.ts'
import type { Sandbox } from '../../src/sandbox/server.ts'
import type * as wire from '../src/wire.ts'
import { HOSTILE, iso, usage } from './mock-data.ts'

export const files = new Map<string, { type: string; bytes: Buffer }>()
export const jobs: wire.Job[] = [
  job('1789000000000000001', 'A paper boat drifts down a rain-soaked street, close to the water', 'COMPLETED', 9),
  job('1789000000000000002', 'Fog rolls over a pine forest at dawn, slow aerial shot', 'FAILED', 26),
  job('1789000000000000003', `Neon sign that reads ${HOSTILE}`, 'CANCELLED', 50),
]

function job(id: string, prompt: string, status: wire.JobStatus, hoursAgo: number): wire.Job {
  const created = Date.now() - hoursAgo * 3_600_000
  const done = status === 'COMPLETED'
  const over = done || status === 'FAILED' || status === 'CANCELLED'
  files.set(`${id}.mp4`, {
    type: 'video/mp4',
    bytes: makeClip({ prompt, ratio: '16:9', resolution: '720p', seconds: 2, seed: 7 }),
  })
  return {
    id,
    status,
    inputParams: { model: 'videogen-2.5', prompt, duration: 5, resolution: '720p' },
    outputResult: done ? [{ url: [`https://gateway.example/assets/${id}.mp4`] }] : null,
    createdAt: iso(created),
    startedAt: over ? iso(created + 4000) : null,
    completedAt: over ? iso(created + 96_000) : null,
    error: status === 'FAILED' ? { code: 50000, message: 'The provider refused the prompt.' } : null,
    product: 'videogen-2.5',
    charged: done ? '45' : over ? '0' : null,
  }
}

let count = 0

/** Adds the call to the usage, as the gateway does before the last byte. */
function settle(product: string, units: Record<string, number>, amount: string): string {
  const id = `req_01kplay${String(++count).padStart(4, '0')}`
  const first = usage[0]
  if (!first) return id
  const lines = Object.entries(units).map(([unit, quantity]) => ({
    unit,
    quantity,
    rate: '250',
    per: 1_000_000,
    amount: '0.1',
  }))
  usage.unshift({
    ...first,
    id,
    at: iso(Date.now()),
    product,
    units,
    lines,
    charged: amount,
    keyName: null,
    status: 200,
    outcome: 'settled',
  })
  return id
}

const ANSWER = `Here is a **short answer** with \`inline code\`, a list and a block.

1. A gateway checks the key and the limits.
2. It holds the worst case, calls the vendor and settles what was used.

- Hostile text stays text: ${HOSTILE} <script>alert(2)</script>
- A [link](https://example.com/docs) is a link; [this one](javascript:alert(3)) is not.

\`\`\`python
answer = client.chat.completions.create(model="alpha-5.4", messages=messages)
print(answer.choices[0].message.content)
\`\`\`

| unit | rate |
|---|---|
| input | 250 |
| output | 1500 |
`

export async function play(
  req: IncomingMessage,
  res: ServerResponse,
  url: URL,
  body: Record<string, unknown>,
  sandbox: Sandbox,
) {
  const path = url.pathname
  if (path === '/v1/chat-completions') return chat(res, body)
  if (path === '/alpha/v1/images/generations') return image(res, body, sandbox)
  if (path === '/v1/video/seedance') return startVideo(res, body)
  const id = /^\/v1\/jobs\/(\d+)$/.exec(path)?.[1]
  const found = jobs.find((one) => one.id === id)
  if (found && req.method === 'DELETE')
    Object.assign(found, { status: 'CANCELLED', completedAt: iso(Date.now()), charged: '0' })
  if (found) return json(res, 200, { success: true, data: found, requestId: 'req_job' })
  const data = path.replace('/v1/siteanalytics/', '/analytics/').replace('/v1/social/', '/social/')
  if (data !== path) return relay(res, new URL(dataPath(data, url), sandbox.url), path)
  json(res, 404, {
    success: false,
    error: { code: 30000, message: 'There is nothing at this address.' },
    requestId: 'req_404',
  })
}

function dataPath(path: string, url: URL): string {
  const query = new URLSearchParams(url.search)
  const username = query.get('username')?.replace(/^@/, '')
  if (username) {
    query.delete('username')
    return `/social/2/users/by/username/${username}?${query}`
  }
  if (path.startsWith('/social/')) return `${path.replace('/social/', '/social/2/')}?${query}`
  const day = (back: number) => iso(Date.now() - back * 86_400_000).slice(0, 10)
  const month = path.includes('history') || path.includes('ranks')
  query.set('from', (query.get('from') ?? (month ? '2026-05-01' : day(30))).replaceAll('-', '|'))
  query.set('to', (query.get('to') ?? (month ? '2026-10-31' : day(3))).replaceAll('-', '|'))
  if (!query.has('timeGranularity')) query.set('timeGranularity', month ? 'Monthly' : 'Daily')
  return `${path}?${query}`
}

async function relay(res: ServerResponse, target: URL, product: string) {
  const answer = await fetch(target)
  const text = await answer.text()
  if (!answer.ok)
    return json(res, answer.status, {
      success: false,
      error: { code: 10000, message: text.slice(0, 200) },
      requestId: 'req_data',
    })
  res
    .writeHead(200, { 'content-type': 'application/json', 'x-request-id': settle(product.slice(4), { call: 1 }, '1') })
    .end(text)
}

async function chat(res: ServerResponse, body: Record<string, unknown>) {
  const messages = body.messages as { role: string; content: string }[]
  const last = messages.at(-1)
  if (last?.content?.includes('fail'))
    return json(res, 402, {
      code: 40000,
      message: 'Not enough credits: this call needs 12.5, and 3 are available.',
      type: 'api_error',
      requestId: 'req_402',
    })
  const id = settle(String(body.model), { input: 41, output: 180 }, '0.28025')
  res.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': id })
  const send = (delta: object, finish: string | null = null) =>
    res.write(
      `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    )
  if (Array.isArray(body.tools) && last?.role !== 'tool') {
    send({
      tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '' } }],
    })
    send({ tool_calls: [{ index: 0, function: { arguments: '{"city":"Oslo"}' } }] })
    send({}, 'tool_calls')
  } else {
    send({ reasoning_content: 'The user wants a short overview, so I keep it brief.' })
    for (const word of ANSWER.split(/(?<= )/)) {
      if (res.destroyed) return
      send({ content: word })
      await wait(12)
    }
    send({}, 'stop')
  }
  res.end('data: [DONE]\n\n')
}

async function image(res: ServerResponse, body: Record<string, unknown>, sandbox: Sandbox) {
  const answer = await fetch(`${sandbox.url}/openai/v1/images/generations`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sandbox' },
    body: JSON.stringify({ model: 'alpha-image-2', prompt: body.prompt, size: '1024x1024', quality: 'low' }),
  })
  const made = (await answer.json()) as { data?: { b64_json: string }[] }
  const name = `${++count}.png`
  files.set(name, { type: 'image/png', bytes: Buffer.from(made.data?.[0]?.b64_json ?? '', 'base64') })
  const id = settle(String(body.model), { image: 1 }, '4.2')
  json(res, 200, { created: 1, data: [{ url: `https://gateway.example/assets/${name}` }] }, { 'x-request-id': id })
}

function startVideo(res: ServerResponse, body: Record<string, unknown>) {
  const made = job(String(1789000000000000100n + BigInt(++count)), String(body.prompt), 'PENDING', 0)
  jobs.unshift(made)
  const step = async () => {
    for (const status of ['CONNECT', 'PROCESSING', 'COMPLETED'] as const) {
      await wait(2000)
      if (made.status === 'CANCELLED') return
      made.status = status
      if (status === 'PROCESSING') made.startedAt = iso(Date.now())
    }
    made.completedAt = iso(Date.now())
    made.outputResult = [{ url: [`https://gateway.example/assets/${made.id}.mp4`] }]
    made.charged = '45'
  }
  void step()
  json(res, 200, { success: true, data: { jobId: made.id, status: 'PENDING' }, requestId: 'req_video' })
}

export function json(res: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  res
    .writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_mock', ...headers })
    .end(JSON.stringify(body))
}
