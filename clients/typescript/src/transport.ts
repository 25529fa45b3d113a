// One call: its key, its deadlines, and its repetitions, which are made only where nothing can be paid twice.
import { ConnectionError, refusalOf, secondsOf, TimeoutError, TollgateError } from './errors.ts'
import { uuid } from './random.ts'

/** What is told of a call while it runs, for logs. The key is in none of it. */
export interface Hooks {
  onRequest?(call: { method: string; url: string; attempt: number }): void
  onAnswer?(call: {
    method: string
    url: string
    attempt: number
    status: number
    durationMs: number
    requestId: string | undefined
    cost: Cost | undefined
  }): void
  onRetry?(call: { method: string; url: string; attempt: number; delayMs: number; error: TollgateError }): void
}

export interface ClientOptions {
  /** `tg_live_…`. Absent: the environment's TOLLGATE_KEY. */
  apiKey?: string
  /** Absent: the environment's TOLLGATE_URL, or http://127.0.0.1:8080. */
  baseUrl?: string
  /** For one attempt, up to the end of its answer; 300,000 unless given. */
  timeoutMs?: number
  /** For a call with all its repetitions; 600,000 unless given. */
  deadlineMs?: number
  /** Repetitions after a failure; 5 unless given. */
  retriesMax?: number
  headers?: Record<string, string>
  fetch?: typeof globalThis.fetch
  hooks?: Hooks
}

export interface CallOptions {
  signal?: AbortSignal
  timeoutMs?: number
  deadlineMs?: number
  retriesMax?: number
  /** Of a paid POST: one is made where none is given. Sent again within a day, it is answered with the same result. */
  idempotencyKey?: string
  headers?: Record<string, string>
}

/** What a call cost, as a decimal of credits. What is left, `account()` says. */
export interface Cost {
  readonly charge: string
}

/** An answer, and beside its members what was said of the call. These two are not part of its JSON. */
export type Answer<T> = T & {
  /** Absent where nothing was charged by this answer, as of a repetition. */
  readonly cost?: Cost
  readonly requestId: string
}

export interface Ask {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly paid?: boolean
  /** Its answer is read as it comes. */
  readonly stream?: boolean
}

/** `end` is to be called when a stream is over. */
type Read<T> = (answer: Response, end: () => void) => Promise<T>
export type Send = <T>(ask: Ask, options: CallOptions | undefined, read: Read<T>) => Promise<T>

const ENVIRONMENT = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {}
const RETRIED = [408, 429, 502, 503, 504]
const DELAY_MS = 500
const DELAY_MS_MAX = 8_000
/** Errors of a connection that was never made: no byte of the request has left. */
const NOT_CONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

export interface Transport {
  readonly baseUrl: string
  readonly apiKey: string
  readonly fetch: typeof globalThis.fetch
  readonly send: Send
  /** A JSON answer as it is. */
  json<T>(ask: Ask, options?: CallOptions): Promise<Answer<T>>
  /** The `data` of a native envelope. */
  data<T>(ask: Ask, options?: CallOptions): Promise<Answer<T>>
  /** What a stream holds, as it comes. */
  events<T>(ask: Ask, options: CallOptions | undefined, parse: (body: Body) => AsyncGenerator<T>): AsyncGenerator<T>
}

export type Body = ReadableStream<Uint8Array> | null

export function createTransport(options: ClientOptions): Transport {
  const apiKey = options.apiKey ?? ENVIRONMENT.TOLLGATE_KEY ?? ''
  if (!apiKey) throw new TollgateError('There is no API key: give apiKey, or set TOLLGATE_KEY.')
  const baseUrl = (options.baseUrl ?? ENVIRONMENT.TOLLGATE_URL ?? 'http://127.0.0.1:8080').replace(/\/+$/, '')
  const fetch = options.fetch ?? globalThis.fetch.bind(globalThis)

  async function attempt<T>(call: Attempt, read: Read<T>): Promise<T> {
    const { ask, url, headers, body, number, hooks } = call
    const startedMs = Date.now()
    hooks.onRequest?.({ method: ask.method, url, attempt: number })
    const limit = limited(call.timeoutMs, call.signal)
    try {
      const answer = await fetch(url, {
        method: ask.method,
        headers,
        signal: limit.signal,
        ...(body === undefined ? {} : { body }),
      })
      hooks.onAnswer?.({
        method: ask.method,
        url,
        attempt: number,
        status: answer.status,
        durationMs: Date.now() - startedMs,
        requestId: answer.headers.get('x-request-id') ?? undefined,
        cost: costOf(answer.headers),
      })
      if (!answer.ok) throw new Refused(refusalOf(answer.status, answer.headers, await answer.text()), answer.headers)
      if (ask.stream) limit.extend(call.untilMs - Date.now())
      const result = await read(answer, limit.end)
      if (!ask.stream) limit.end()
      return result
    } catch (error) {
      limit.end()
      if (call.signal?.aborted) throw call.signal.reason
      if (limit.late()) throw new TimeoutError(`No answer came within ${call.timeoutMs} ms.`, {}, { cause: error })
      throw error
    }
  }

  const send: Send = async (ask, given = {}, read) => {
    const hooks = options.hooks ?? {}
    const untilMs = Date.now() + (given.deadlineMs ?? options.deadlineMs ?? 600_000)
    const retriesMax = given.retriesMax ?? options.retriesMax ?? 5
    const key = ask.paid && ask.method === 'POST' ? (given.idempotencyKey ?? (await uuid())) : undefined
    const body = ask.body === undefined ? undefined : JSON.stringify(ask.body)
    const search = new URLSearchParams(ask.query).toString()
    const url = `${baseUrl}${ask.path}${search ? `?${search}` : ''}`
    const headers = {
      authorization: `Bearer ${apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...options.headers,
      ...given.headers,
    }
    const safe = key !== undefined || !ask.paid
    for (let number = 1, failures = 0; ; number++) {
      given.signal?.throwIfAborted()
      const leftMs = untilMs - Date.now()
      const timeoutMs = Math.max(1, Math.min(given.timeoutMs ?? options.timeoutMs ?? 300_000, leftMs))
      try {
        return await attempt({ ask, url, headers, body, number, hooks, timeoutMs, untilMs, signal: given.signal }, read)
      } catch (thrown) {
        if (given.signal?.aborted) throw given.signal.reason
        const waits = waitOf(thrown, safe)
        const error = asError(thrown)
        if (waits === undefined || (waits.counts && ++failures > retriesMax)) throw error
        const delayMs = waits.seconds === undefined ? backoff(failures) : waits.seconds * 1000
        if (Date.now() + delayMs >= untilMs) throw error
        hooks.onRetry?.({ method: ask.method, url, attempt: number, delayMs, error })
        await pause(delayMs, given.signal)
      }
    }
  }

  async function readJson<T>(answer: Response, pick: (body: unknown) => unknown): Promise<Answer<T>> {
    const value = pick(await answer.json())
    return withCost(value as T, answer.headers)
  }

  async function* events<T>(ask: Ask, given: CallOptions | undefined, parse: (body: Body) => AsyncGenerator<T>) {
    const opened = await send({ ...ask, stream: true }, given, async (answer, end) => ({ body: answer.body, end }))
    try {
      yield* parse(opened.body)
    } catch (error) {
      throw given?.signal?.aborted ? given.signal.reason : asError(error)
    } finally {
      opened.end()
    }
  }

  return {
    baseUrl,
    apiKey,
    fetch,
    send,
    events,
    json: (ask, given) => send(ask, given, (answer) => readJson(answer, (body) => body)),
    data: (ask, given) => send(ask, given, (answer) => readJson(answer, (body) => (body as { data: unknown }).data)),
  }
}

interface Attempt {
  readonly ask: Ask
  readonly url: string
  readonly headers: Record<string, string>
  readonly body: string | undefined
  readonly number: number
  readonly hooks: Hooks
  readonly timeoutMs: number
  readonly untilMs: number
  readonly signal: AbortSignal | undefined
}

/** An error of the gateway with the headers that say whether to try again. */
class Refused extends Error {
  readonly error: TollgateError
  readonly headers: Headers

  constructor(error: TollgateError, headers: Headers) {
    super(error.message)
    this.error = error
    this.headers = headers
  }
}

function asError(thrown: unknown): TollgateError {
  if (thrown instanceof Refused) return thrown.error
  if (thrown instanceof TollgateError) return thrown
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  return new ConnectionError(
    `The gateway could not be asked, or its answer did not arrive: ${why}`,
    {},
    { cause: thrown },
  )
}

/** How long to wait before another attempt; undefined: there must be none. */
function waitOf(thrown: unknown, safe: boolean): { seconds: number | undefined; counts: boolean } | undefined {
  if (thrown instanceof Refused) {
    const { status } = thrown.error
    const seconds = secondsOf(thrown.headers)
    if (thrown.headers.get('x-should-retry') === 'false') return undefined
    // The same request still runs, or ran in a process that died: its result, or its turn, will come.
    if (status === 409 && seconds !== undefined) return { seconds, counts: false }
    return RETRIED.includes(status) || (status === 500 && safe) ? { seconds, counts: true } : undefined
  }
  if (thrown instanceof TollgateError && !(thrown instanceof TimeoutError)) return undefined
  // An answer that was lost may have been paid for: it is asked for again only where that costs nothing.
  return safe || wasNotConnected(thrown) ? { seconds: undefined, counts: true } : undefined
}

function wasNotConnected(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined
  return typeof cause?.code === 'string' && NOT_CONNECTED.includes(cause.code)
}

/** Half of it is chance, so that those who failed together do not come back together. */
function backoff(failures: number): number {
  const most = Math.min(DELAY_MS_MAX, DELAY_MS * 2 ** (failures - 1))
  return most / 2 + (Math.random() * most) / 2
}

/** Not AbortSignal.any: Node 18 has none. */
function limited(timeoutMs: number, outer: AbortSignal | undefined) {
  const controller = new AbortController()
  let late = false
  const stopLate = () => {
    late = true
    controller.abort()
  }
  let timer = setTimeout(stopLate, timeoutMs)
  const stop = () => controller.abort(outer?.reason)
  outer?.addEventListener('abort', stop)
  return {
    signal: controller.signal,
    late: () => late,
    extend(ms: number) {
      clearTimeout(timer)
      timer = setTimeout(stopLate, ms)
    },
    end() {
      clearTimeout(timer)
      outer?.removeEventListener('abort', stop)
    },
  }
}

export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

function costOf(headers: Headers): Cost | undefined {
  const charge = headers.get('x-tollgate-charge')
  return charge === null ? undefined : { charge }
}

/** Beside the members of the answer, and not in its JSON. */
export function withCost<T>(value: T, headers: Headers): Answer<T> {
  const told = { cost: costOf(headers), requestId: headers.get('x-request-id') ?? '' }
  if (typeof value === 'object' && value !== null)
    for (const [name, is] of Object.entries(told))
      if (is !== undefined) Object.defineProperty(value, name, { value: is, configurable: true })
  return value as Answer<T>
}
