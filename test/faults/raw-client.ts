// A client that leaves when and how it likes.
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { CHAT_PATH } from './chat-vendor.ts'

/** A gateway that says nothing for so long never will. */
const SILENCE_MS_MAX = 180_000

export interface RawCall {
  readonly request: ClientRequest
  readonly response: Promise<IncomingMessage>
  /** Resolves with what has come so far, as soon as `condition` holds for it; also at the end of the answer. */
  until(condition: (text: string) => boolean): Promise<string>
  /** The whole answer; rejects when it is cut. */
  text(): Promise<string>
  /** Closes the connection in the ordinary way. */
  leave(): void
  /** Closes it with a reset. */
  reset(): void
  readonly received: string
}

export interface RawOptions {
  readonly key: string
  readonly body: string | Buffer
  readonly path?: string
  readonly headers?: Record<string, string>
  /** False: nothing is read until `until` or `text` is called. */
  readonly read?: boolean
}

/** A connection of its own, so that cutting it cuts nothing else. */
export function post(url: string, options: RawOptions): RawCall {
  let received = ''
  let ended = false
  let failure: Error | undefined
  let looking: Array<() => void> = []
  const look = () => {
    for (const run of looking) run()
  }
  const sent = request(url + (options.path ?? CHAT_PATH), {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${options.key}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(options.body)),
      ...options.headers,
    },
  })
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', (answer) => {
      answer.setEncoding('utf8')
      answer.on('error', (error) => {
        failure = error
        look()
      })
      answer.on('end', () => {
        ended = true
        look()
      })
      answer.on('close', () => {
        if (!ended) failure ??= new Error('cut')
        look()
      })
      if (options.read !== false)
        answer.on('data', (piece: string) => {
          received += piece
          look()
        })
      resolve(answer)
    })
    sent.on('error', (error) => {
      failure = error
      reject(error)
      look()
    })
  })
  response.catch(() => undefined)
  sent.setTimeout(SILENCE_MS_MAX, () => sent.destroy(new Error('the gateway said nothing for minutes')))
  sent.end(options.body)

  const wait = (done: () => string | undefined) =>
    new Promise<string>((resolve, reject) => {
      const check = () => {
        const result = done()
        if (result !== undefined) resolve(result)
        else if (failure) reject(failure)
        else return
        looking = looking.filter((entry) => entry !== check)
      }
      looking.push(check)
      check()
    })

  return {
    request: sent,
    response,
    get received() {
      return received
    },
    until: (condition) => wait(() => (condition(received) || ended ? received : undefined)),
    text: () => wait(() => (ended ? received : undefined)),
    leave: () => void sent.destroy(),
    reset: () => void (sent.socket as Socket | null)?.resetAndDestroy(),
  }
}

/** Runs them with at most so many at once. */
export async function each<T>(items: Iterable<T>, atOnce: number, run: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let next = rest.next(); !next.done; next = rest.next()) await run(next.value)
    }),
  )
}

export function* count(to: number): Generator<number> {
  for (let i = 0; i < to; i++) yield i
}
