import { buffer } from 'node:stream/consumers'
import { listen } from './started.ts'

/** 0: the connection ends without an answer. */
type Mood = { readonly status: number; readonly retryAfter?: number }

export interface KeyedVendor {
  readonly url: string
  /** By credential: how it answers; without an entry the credential is not known. */
  readonly moods: Map<string, Mood>
  /** How it answers a request that has this word in it, whatever its credential. */
  readonly words: Map<string, Mood>
  /** The credentials of the requests, in their order, with what was asked. */
  readonly asked: { readonly key: string; readonly method: string; readonly path: string }[]
  keysAsked(): string[]
  close(): void
}

const FILES = '/-files'
export const WORKS: Mood = { status: 200 }

/** `behind`: the address of the simulated vendor, such as `http://127.0.0.1:4000/openai`. */
export async function startKeyedVendor(behind: () => string): Promise<KeyedVendor> {
  const moods = new Map<string, Mood>()
  const words = new Map<string, Mood>()
  const asked: KeyedVendor['asked'] = []
  const makers = new Map<string, string>()
  const { url, close } = await listen(async (req, res) => {
    const sent = await buffer(req)
    const { method = 'GET', url: path = '/' } = req
    // Files that the simulated vendor has made, which anybody may fetch.
    if (path.startsWith(FILES)) {
      const file = await fetch(`${new URL(behind()).origin}${path.slice(FILES.length)}`)
      const type = file.headers.get('content-type') ?? 'application/octet-stream'
      return res.writeHead(file.status, { 'content-type': type }).end(Buffer.from(await file.arrayBuffer()))
    }
    const key = (req.headers.authorization ?? '').replace(/^Bearer /, '')
    asked.push({ key, method, path })
    const said = [...words].find(([word]) => sent.includes(word))?.[1]
    const mood = said ?? moods.get(key) ?? { status: 401 }
    const refuse = (status: number, message: string) =>
      res
        .writeHead(status, {
          'content-type': 'application/json',
          ...(mood.retryAfter === undefined ? {} : { 'retry-after': String(mood.retryAfter) }),
        })
        .end(JSON.stringify({ error: { message, type: 'error', code: `http_${status}` } }))
    if (mood.status === 0) return req.socket.destroy()
    if (mood.status !== 200) return refuse(mood.status, `Not with ${key}.`)
    const ids = [...makers.keys()].filter((id) => path.includes(id))
    if (ids.some((id) => makers.get(id) !== key)) return refuse(404, 'There is no such thing.')
    const answer = await fetch(`${behind()}${path}`, {
      method,
      headers: { ...plain(req.headers), authorization: 'Bearer sandbox' },
      ...(sent.length === 0 ? {} : { body: sent }),
    })
    const own = `http://${req.headers.host}${FILES}`
    const body = Buffer.from((await answer.text()).replaceAll(new URL(behind()).origin, own))
    if (method === 'POST' && answer.ok) {
      const id = /"id":\s*"([^"]+)"/.exec(body.toString())?.[1]
      if (id !== undefined) makers.set(id, key)
    }
    const type = answer.headers.get('content-type') ?? 'application/json'
    return res.writeHead(answer.status, { 'content-type': type }).end(body)
  })
  return { url, moods, words, asked, keysAsked: () => asked.map(({ key }) => key), close }
}

function plain(headers: NodeJS.Dict<string | string[]>): Record<string, string> {
  const own = ['host', 'connection', 'content-length', 'authorization', 'transfer-encoding', 'accept-encoding']
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && !own.includes(name) ? [[name, value]] : [],
    ),
  )
}
