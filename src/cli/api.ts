// A client of the operator API.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { bearer, type Deadlines, type Upstream, type UpstreamReply } from '../upstream/call.ts'
import { createUpstream } from '../upstream/exchange.ts'
import { CliError, type Settings } from './command.ts'

export interface Api {
  call<T = unknown>(method: Method, path: string, body?: unknown, headers?: Record<string, string>): Promise<T>
  /** Streams a download. */
  download(path: string, accept: string, write: (text: string) => void): Promise<void>
  /** Streams a file, with its name from the gateway. */
  save(path: string, accept: string, write: (chunk: Buffer, name: string) => Promise<void>): Promise<void>
  /** As a caller, with an API key. */
  ask(
    method: Method,
    path: string,
    asking: Asking,
  ): Promise<{ value: unknown; headers: Readonly<Record<string, string>> }>
  /** An endpoint of OAuth. */
  form(path: string, fields: Record<string, string>): Promise<OpenAnswer>
  /** JSON, without the token. */
  post(path: string, body: object): Promise<OpenAnswer>
  /** Any path of the server, without the token: for /healthz. */
  probe(path: string): Promise<{ status: number; text: string }>
  close(): Promise<void>
}

interface OpenAnswer {
  readonly status: number
  readonly value: Readonly<Record<string, unknown>>
}

interface Asking {
  readonly key: string
  readonly body?: unknown
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A verification of many millions of rows takes minutes. */
const DEADLINES = { connectMs: 3_000, firstByteMs: 900_000, idleMs: 60_000, totalMs: 3_600_000 }
const PROBE_DEADLINES = { connectMs: 2_000, firstByteMs: 5_000, idleMs: 5_000, totalMs: 5_000 }
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const PREFIX = '/admin/v1'

interface Sending {
  readonly headers: Record<string, string>
  readonly body?: unknown
  /** Sent as it is, instead of a body of JSON. */
  readonly text?: string
  readonly deadlines?: Deadlines
}

/** `note`: takes what is said beside the answer. */
export function createApi(settings: Settings, world: World, note?: (text: string) => void): Api {
  let upstream: Upstream | undefined
  const base = settings.url.replace(/(?<!\/)\/+$/, '')

  async function send(
    method: Method,
    path: string,
    { headers, body, text = body === undefined ? undefined : JSON.stringify(body), deadlines = DEADLINES }: Sending,
  ): Promise<UpstreamReply> {
    upstream ??= createUpstream({ world })
    try {
      return await upstream.send(
        {
          method,
          url: base + path,
          headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
          ...(text === undefined ? {} : { body: text }),
        },
        { deadlines, signal: new AbortController().signal },
      )
    } catch (error) {
      if (error instanceof Fault && error.kind === 'upstream_timeout')
        throw new CliError(`Tollgate at ${base} did not answer in time.`)
      throw new CliError(
        `Tollgate does not answer at ${base} (${settings.urlSource}). Start it with "npm start", or set TOLLGATE_URL.`,
      )
    }
  }

  async function openAnswer(reply: UpstreamReply): Promise<OpenAnswer> {
    const bytes = await reply.read(ANSWER_BYTES_MAX)
    // Of each member it is asked what it is.
    const value = bytes.length === 0 ? {} : (readAnswer(bytes, base) as Record<string, unknown>)
    return { status: reply.status, value: { message: messageIn(value), ...value } }
  }

  function authorization(): Record<string, string> {
    if (settings.token === undefined)
      throw new CliError(
        `There is no operator token: TOLLGATE_OPERATOR_TOKEN is not set, and there is none in ${settings.dataDirectory}. Set it, or run this where the gateway keeps its data.`,
      )
    return { authorization: bearer(settings.token) }
  }

  return {
    async call<T>(method: Method, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
      const sent = { ...authorization(), accept: 'application/json', ...headers }
      const reply = await send(method, PREFIX + path, { headers: sent, body })
      const answer = readAnswer(await reply.read(ANSWER_BYTES_MAX), base)
      const missing = reply.headers['x-tollgate-missing']
      if (missing !== undefined) note?.(`These ledgers do not answer, and their accounts are missing: ${missing}.\n`)
      if (reply.status < 300) return answer.data as T
      throw refusal(reply.status, answer, settings)
    },
    async ask(method, path, { key, body }) {
      const headers = { authorization: bearer(key), accept: 'application/json' }
      const reply = await send(method, path, { headers, body })
      const value: unknown = readAnswer(await reply.read(ANSWER_BYTES_MAX), base)
      if (reply.status < 300) return { value, headers: reply.headers }
      throw new CliError(`${messageIn(value) ?? `It answered ${reply.status}.`} (${reply.headers['x-request-id']})`)
    },
    async download(path, accept, write) {
      const reply = await send('GET', PREFIX + path, { headers: { ...authorization(), accept } })
      if (reply.status >= 300)
        throw refusal(reply.status, readAnswer(await reply.read(ANSWER_BYTES_MAX), base), settings)
      const decoder = new TextDecoder()
      await reply.pipe((chunk) => {
        write(decoder.decode(chunk, { stream: true }))
        return undefined
      })
    },
    async save(path, accept, write) {
      const reply = await send('GET', PREFIX + path, { headers: { ...authorization(), accept } })
      if (reply.status >= 300)
        throw refusal(reply.status, readAnswer(await reply.read(ANSWER_BYTES_MAX), base), settings)
      const name = /filename\*=UTF-8''(\S+)/.exec(reply.headers['content-disposition'] ?? '')?.[1] ?? 'download'
      await reply.pipe((chunk) => write(chunk, decodeURIComponent(name)))
    },
    async form(path, fields) {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      return openAnswer(await send('POST', path, { headers, text: String(new URLSearchParams(fields)) }))
    },
    post: async (path, body) => openAnswer(await send('POST', path, { headers: {}, body })),
    async probe(path) {
      const reply = await send('GET', path, { headers: {}, deadlines: PROBE_DEADLINES })
      return { status: reply.status, text: (await reply.read(ANSWER_BYTES_MAX)).toString() }
    },
    close: async () => upstream?.close(),
  }
}

/** The gateway rejected the request. */
export class Refused extends CliError {
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

interface AnswerBody {
  readonly data?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown }
}

function readAnswer(bytes: Buffer, base: string): AnswerBody {
  try {
    return JSON.parse(bytes.toString()) as AnswerBody
  } catch {
    throw new CliError(`The server at ${base} is not Tollgate: its answer is not JSON.`)
  }
}

/** Reads the message from any form of error body in the contract. */
function messageIn(value: unknown): string | undefined {
  // Whatever it is, these are looked for and tested.
  const { message, error } = (value ?? {}) as { message?: unknown; error?: { message?: unknown } }
  return [message, error?.message].find((one) => typeof one === 'string')
}

function refusal(status: number, answer: AnswerBody, settings: Settings): CliError {
  if (status === 401)
    return new Refused(
      `The operator token was rejected. It came from ${settings.tokenSource}; the gateway at ${settings.url} has another one.`,
      status,
    )
  const message = typeof answer.error?.message === 'string' ? answer.error.message : `It answered ${status}.`
  return new Refused(message, status)
}
