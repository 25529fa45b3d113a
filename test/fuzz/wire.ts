// A request as bytes of our own, cut where we like, and the bytes that come back: exactly one answer for each request.
import { connect, type Socket } from 'node:net'
import type { Answer } from './answer.ts'
import type { FuzzedRequest } from './requests.ts'

/** How a request travels. */
export interface Wire {
  readonly chunked: boolean
  /** Where its bytes are cut, in shares of the whole. */
  readonly cuts: readonly number[]
  /** Bytes that are announced and not sent before the answer is there. */
  readonly unsent: number
  /** The next request is sent with this one. */
  readonly pipelined: boolean
  /** The caller hangs up before the last piece. */
  readonly leaves: boolean
}

type Read = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Buffer }

const NEXT = Buffer.from('GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n')
const NEXT_ANSWER = '{"ok":true}'
/** What was announced and is owed after an answer that leaves the connection open. */
const OWED_BYTES_MAX = 65_536
const NO_BODY = new Set([204, 304])

/** The pieces of a text between the cuts. */
export function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((share) => Math.floor(share * bytes.length)), bytes.length].sort((a, b) => a - b)
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end)).filter(({ length }) => length > 0)
}

export function inChunks(pieces: readonly Buffer[]): Buffer {
  const chunks = pieces.flatMap((piece) => [
    Buffer.from(`${piece.length.toString(16)}\r\n`),
    piece,
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}

function bytesOf({ method, path, headers, body }: FuzzedRequest, wire: Wire, key: string | undefined): Buffer {
  const content = Buffer.from(body ?? '')
  const isFramed = body !== undefined || wire.unsent > 0
  const framing = !isFramed
    ? []
    : wire.chunked
      ? ['transfer-encoding: chunked']
      : [`content-length: ${content.length + wire.unsent}`]
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'host: gateway',
    ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...framing,
  ]
  const sent = isFramed && wire.chunked ? inChunks(cutAt(content, wire.cuts)) : content
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), sent])
}

/** Undefined for a caller who hung up. */
export async function sendOnWire(
  url: string,
  request: FuzzedRequest & { readonly wire: Wire },
  key: string | undefined,
  patienceMs: number,
): Promise<Answer | undefined> {
  const { wire } = request
  const startedMs = performance.now()
  const line = new Line(connect(Number(new URL(url).port), '127.0.0.1'), patienceMs)
  try {
    const pieces = cutAt(bytesOf(request, wire, key), wire.cuts)
    if (wire.pipelined) pieces.push(NEXT)
    if (wire.leaves) {
      await line.send(pieces.slice(0, -1))
      return undefined
    }
    await line.send(pieces)
    const { status, headers, body } = await line.answer(request.method === 'HEAD')
    const ms = performance.now() - startedMs
    const wrong = await rest(line, headers.connection === 'close', wire)
    return {
      status,
      type: headers['content-type'] ?? '',
      requestId: headers['x-request-id'],
      text: body.toString(),
      headers: JSON.stringify(headers),
      ms,
      ...(wrong === undefined ? {} : { wrong }),
    }
  } finally {
    line.socket.destroy()
  }
}

/** After the answer: either the connection ends, or the next request gets its own; and nothing else comes. */
async function rest(line: Line, isLast: boolean, wire: Wire): Promise<string | undefined> {
  try {
    if (isLast) await line.ended()
    else {
      if (wire.unsent > OWED_BYTES_MAX) return 'the connection stays open for more than is read'
      if (!wire.pipelined) await line.send([Buffer.alloc(wire.unsent, 32), NEXT])
      const { status, body } = await line.answer(false)
      if (body.toString() !== NEXT_ANSWER)
        return `the next request on the connection was answered with ${status} ${body}`
    }
  } catch (error) {
    return `after the answer: ${String(error)}`
  }
  return line.surplus === 0 ? undefined : `${line.surplus} bytes more than the answers`
}

class Line {
  readonly socket: Socket
  #got = Buffer.alloc(0)
  #over: Error | undefined
  #look: () => void = () => {}
  readonly #patienceMs: number

  constructor(socket: Socket, patienceMs: number) {
    this.socket = socket
    this.#patienceMs = patienceMs
    socket.setNoDelay(true)
    socket.on('data', (piece: Buffer) => {
      this.#got = Buffer.concat([this.#got, piece])
      this.#look()
    })
    const over = (why: string) => () => {
      this.#over ??= new Error(why)
      this.#look()
    }
    socket.on('end', over('the connection ended'))
    socket.on('close', over('the connection was closed'))
    socket.on('error', (error) => over(String(error))())
  }

  get surplus(): number {
    return this.#got.length
  }

  /** One segment after another; whoever is told that the connection ends stops sending, as clients do. */
  async send(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      if (this.#over || this.#isRefused()) return
      const written = new Promise<void>((resolve) => {
        if (piece.length === 0 || this.socket.write(piece, () => resolve())) resolve()
        else this.#look = resolve
      })
      await this.#within(written, 'nobody reads')
      await new Promise(setImmediate)
    }
  }

  #isRefused(): boolean {
    return this.#got.length > 0 && /\r\nconnection: close\r\n/i.test(this.#got.toString('latin1', 0, 4_096))
  }

  async answer(isHead: boolean): Promise<Read> {
    for (;;) {
      const read = await this.#until(() => this.#take(isHead))
      if (read.status >= 200) return read
    }
  }

  ended(): Promise<true> {
    return this.#until(() => (this.#over ? true : undefined))
  }

  #until<T>(take: () => T | undefined): Promise<T> {
    const found = new Promise<T>((resolve, reject) => {
      this.#look = () => {
        const got = take()
        if (got !== undefined) resolve(got)
        else if (this.#over) reject(this.#over)
      }
      this.#look()
    })
    return this.#within(found, 'nothing came')
  }

  async #within<T>(work: Promise<T>, why: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${why} for ${this.#patienceMs} ms`)), this.#patienceMs)
    })
    try {
      return await Promise.race([work, late])
    } finally {
      clearTimeout(timer)
      this.#look = () => {}
    }
  }

  /** One answer from the front of what has come, if it is whole. */
  #take(isHead: boolean): Read | undefined {
    const end = this.#got.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [first = '', ...lines] = this.#got.toString('latin1', 0, end).split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const status = Number(first.split(' ')[1])
    const bodyless = isHead || NO_BODY.has(status) || status < 200
    const found = bodyless ? { body: Buffer.alloc(0), to: end + 4 } : this.#body(end + 4, headers)
    if (!found) return undefined
    this.#got = this.#got.subarray(found.to)
    return { status, headers, body: found.body }
  }

  #body(from: number, headers: Record<string, string>): { body: Buffer; to: number } | undefined {
    if (headers['transfer-encoding'] === 'chunked') return this.#chunks(from)
    const length = headers['content-length']
    if (length === undefined) return this.#over && { body: this.#got.subarray(from), to: this.#got.length }
    const to = from + Number(length)
    return to <= this.#got.length ? { body: this.#got.subarray(from, to), to } : undefined
  }

  #chunks(from: number): { body: Buffer; to: number } | undefined {
    const pieces: Buffer[] = []
    for (let at = from; ; ) {
      const line = this.#got.indexOf('\r\n', at)
      if (line < 0) return undefined
      const size = Number.parseInt(this.#got.toString('latin1', at, line), 16)
      const to = line + 2 + size
      if (!(to + 2 <= this.#got.length)) return undefined
      pieces.push(this.#got.subarray(line + 2, to))
      at = to + 2
      if (size === 0) return { body: Buffer.concat(pieces), to: at }
    }
  }
}
