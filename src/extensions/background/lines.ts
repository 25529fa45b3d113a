// Splits a batch's file into lines and validates them all before the first one runs.
import { endpointsOf } from '../../catalog/index.ts'
import type { Catalog } from '../../catalog/store.ts'
import { ALL_ENDPOINTS } from '../../entries.ts'
import { asFault } from '../../kernel/fault.ts'
import { isObject, readJson } from '../../kernel/json.ts'
import { isBatchable } from '../../pipeline/in-batch.ts'
import type { PaidSpec } from '../../pipeline/read.ts'

export interface Line {
  readonly number: number
  readonly customId: string
  readonly firstByte: number
  readonly bytes: number
}

/** In the shape that the SDKs expect. */
export interface LineError {
  readonly code: string
  readonly line: number | null
  readonly message: string
  readonly param: string | null
}

/** Only so much of a shown result is read: its facts are at the beginning, and errors are short. */
export const HEAD_CHARS = 8_192
const LINES_MAX = 50_000
const LINE_BYTES_MAX = 4 * 1_048_576
const ERRORS_MAX = 100
const CUSTOM_ID_CHARS_MAX = 512
const LINE_BREAK = 10

/** Undefined: this gateway has none there whose requests a batch may have. */
export const endpointAt = (url: string, catalog: Catalog): PaidSpec | undefined =>
  endpointsOf(catalog)
    .filter(isBatchable)
    .find(({ path, aliases }) => path === url || aliases.includes(url))

/** The paths below /v1, as the SDKs name them. */
export const ENDPOINT_URLS: readonly string[] = ALL_ENDPOINTS.filter(isBatchable)
  .flatMap(({ path, aliases }) => [path, ...aliases])
  .filter((url) => url.startsWith('/v1/'))

/** The request body of a valid line. */
export function bodyOf(line: Buffer): Buffer {
  const json = readJson(line)
  return Buffer.from(json.text.slice(...(json.member('body') ?? [0, 0])))
}

interface LineTaker {
  /** Receives the valid lines, some at a time. */
  take?(lines: readonly Line[]): Promise<void>
  /** Validates the request of a line; throws its error. */
  review?(line: Buffer): void
}

/** Reads a file piece by piece. Returns the number of lines and the errors. */
export async function readLines(
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
  endpoint: string,
  { take = async () => {}, review = () => {} }: LineTaker,
): Promise<{ total: number; errors: readonly LineError[] }> {
  const reader = new LineReader(endpoint, review)
  for await (const piece of pieces) {
    reader.push(piece)
    if (reader.isEnough) break
    await take(reader.taken())
  }
  reader.end()
  await take(reader.taken())
  return { total: reader.total, errors: reader.errors }
}

class LineReader {
  readonly errors: LineError[] = []
  total = 0
  readonly #endpoint: string
  readonly #review: (line: Buffer) => void
  readonly #known = new Set<string>()
  #lines: Line[] = []
  #pieces: Buffer[] = []
  #bytes = 0
  #start = 0
  #number = 0

  constructor(endpoint: string, review: (line: Buffer) => void) {
    this.#endpoint = endpoint
    this.#review = review
  }

  /** Reading on would not change the result. */
  get isEnough(): boolean {
    return this.errors.length >= ERRORS_MAX || this.isTooMany
  }

  /** Blank lines count too: a file could have millions of them. */
  private get isTooMany(): boolean {
    return this.total > LINES_MAX || this.#number > LINES_MAX * 2
  }

  taken(): Line[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  push(piece: Buffer): void {
    let from = 0
    for (let at = piece.indexOf(LINE_BREAK); at >= 0; at = piece.indexOf(LINE_BREAK, from)) {
      this.#keep(piece.subarray(from, at))
      this.#finish()
      this.#start += 1
      from = at + 1
      if (this.isEnough) return
    }
    this.#keep(piece.subarray(from))
  }

  end(): void {
    if (this.isEnough) {
      if (this.isTooMany) this.#wrong('too_many_lines', null, `A file may have ${LINES_MAX} lines at most.`)
      return
    }
    this.#finish()
    if (this.total === 0 && this.errors.length === 0) this.#wrong('empty_file', null, 'The file has no lines.')
  }

  /** Counts every byte, but stores none beyond the line limit. */
  #keep(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes <= LINE_BYTES_MAX) this.#pieces.push(piece)
  }

  #finish(): void {
    const text = Buffer.concat(this.#pieces)
    const bytes = this.#bytes
    const firstByte = this.#start
    this.#pieces = []
    this.#bytes = 0
    this.#start += bytes
    this.#number += 1
    if (bytes > LINE_BYTES_MAX) {
      this.total += 1
      this.#wrong('line_too_long', this.#number, `A line may have ${LINE_BYTES_MAX} bytes at most.`)
      return
    }
    if (/^\s*$/.test(text.toString('latin1'))) return
    this.total += 1
    const customId = this.#check(text, this.#number)
    if (customId !== undefined) this.#lines.push({ number: this.#number, customId, firstByte, bytes })
  }

  #wrong(code: string, line: number | null, message: string, param: string | null = null): undefined {
    // A parser may quote half a surrogate pair from the file, which the database rejects in JSON.
    const said = message.toWellFormed().replaceAll(/\p{Cc}/gu, ' ')
    if (this.errors.length < ERRORS_MAX) this.errors.push({ code, line, message: said, param })
  }

  #check(text: Buffer, line: number): string | undefined {
    const read = parsed(text, line)
    if (typeof read === 'string') return this.#wrong('invalid_json_line', line, read)
    const { custom_id: customId, method, url, body } = read
    if (!isCustomId(customId))
      return this.#wrong(
        customId === undefined ? 'missing_required_parameter' : 'invalid_custom_id',
        line,
        `"custom_id" must be text of 1 to ${CUSTOM_ID_CHARS_MAX} characters, without control characters.`,
        'custom_id',
      )
    if (this.#known.has(customId))
      return this.#wrong('duplicate_custom_id', line, 'An earlier line has the same "custom_id".', 'custom_id')
    this.#known.add(customId)
    if (method !== 'POST') return this.#wrong('invalid_method', line, '"method" must be POST.', 'method')
    if (url !== this.#endpoint)
      return this.#wrong('invalid_url', line, `"url" must be the endpoint of the batch, ${this.#endpoint}.`, 'url')
    if (!isObject(body)) return this.#wrong('missing_required_parameter', line, '"body" must be an object.', 'body')
    try {
      this.#review(text)
    } catch (error) {
      const { kind, message, details } = asFault(error)
      return this.#wrong(kind, line, message, details.param ?? 'body')
    }
    return customId
  }
}

/** Parsed by the reader of request bodies, with its limits. A returned string is the error message. */
function parsed(text: Buffer, line: number): Record<string, unknown> | string {
  try {
    return readJson(text).value
  } catch (error) {
    return `Line ${line} is not a JSON object. ${asFault(error).message}`
  }
}

function isCustomId(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= CUSTOM_ID_CHARS_MAX &&
    value.isWellFormed() &&
    !/\p{Cc}/u.test(value)
  )
}
