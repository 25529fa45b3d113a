// ClickHouse over its HTTP interface. Statements are built from constants and from values that `literal` has written,
// because old servers know no parameters.
import { Fault } from '../../kernel/fault.ts'
import { NEVER } from '../../kernel/timers.ts'
import type { Deadlines, Upstream } from '../../upstream/call.ts'

/** Why the server did not do it, as a sentence for its operator. */
export class StoreFault extends Error {}

const DEADLINES: Deadlines = { connectMs: 5_000, firstByteMs: 60_000, idleMs: 30_000, totalMs: 120_000 }
const ANSWER_BYTES_MAX = 256 * 1_048_576
const MESSAGE_CHARS_MAX = 300
/** Of a report: an answer that takes longer would come too late. */
const SECONDS_MAX = 50

export type ClickHouse = ReturnType<typeof openClickHouse>

/** `http://user:password@host:8123/database`. It is the operator's own server, so its address may be a private one. */
export function openClickHouse(address: string, { send }: Pick<Upstream, 'send'>) {
  const { origin, pathname, username, password } = new URL(address)
  const database = decodeURIComponent(pathname.slice(1)) || 'default'
  const settings = {
    database,
    max_execution_time: String(SECONDS_MAX),
    // Newer servers write them as numbers, which JSON would round.
    output_format_json_quote_64bit_integers: '1',
  }
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    ...(username ? { 'x-clickhouse-user': decodeURIComponent(username) } : {}),
    ...(password ? { 'x-clickhouse-key': decodeURIComponent(password) } : {}),
  }

  async function ask(text: string, rows?: string, within = settings): Promise<string> {
    // The statement of an insert stands in the address, and its rows are the body.
    const query = new URLSearchParams(rows === undefined ? within : { ...within, query: text })
    const call = { method: 'POST' as const, url: `${origin}/?${query}`, headers, body: rows ?? text }
    const reply = await send(call, { deadlines: DEADLINES, signal: NEVER }).catch((error: unknown) => {
      const isLate = error instanceof Fault && error.kind === 'upstream_timeout'
      throw new StoreFault(isLate ? 'It did not answer in time.' : 'The connection failed.')
    })
    const answer = await reply.read(ANSWER_BYTES_MAX).catch(() => {
      throw new StoreFault('Its answer broke off.')
    })
    if (reply.status === 200) return answer.toString()
    const said = answer.toString().replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')
    throw new StoreFault(`It answered with status ${reply.status}: ${said.slice(0, MESSAGE_CHARS_MAX).trim()}`)
  }

  return {
    /** Without credentials: for people, and to notice that it is another one. */
    place: `${origin}/${database}`,
    /** Rejects with a sentence. */
    async run(text: string, rows?: string): Promise<void> {
      await ask(text, rows)
    },
    /** Its own database, where it is not there yet and the user may. */
    async makeDatabase(): Promise<void> {
      const name = database.replaceAll(/[`\\]/g, '')
      await ask(`create database if not exists \`${name}\``, undefined, { ...settings, database: 'default' })
    },
    /** 64-bit numbers are `bigint`, others `number`. */
    async read<R>(text: string) {
      const { meta, data }: Answer = JSON.parse(await ask(`${text} format JSONCompact`))
      const toRow = (row: Answer['data'][number]) => meta.map(({ name, type }, at) => [name, toMember(row[at], type)])
      return data.map((row) => Object.fromEntries(toRow(row)) as R) // Its columns are named so.
    },
  }
}

interface Answer {
  readonly meta: readonly { readonly name: string; readonly type: string }[]
  readonly data: readonly (readonly unknown[])[]
}

function toMember(value: unknown, type: string): unknown {
  return value !== null && /^(Nullable\()?U?Int64\b/.test(type) ? BigInt(String(value)) : value
}

const ESCAPES: Readonly<Record<string, string>> = { "'": "\\'", '\\': '\\\\', '\0': '\\0' }

/** A value as a part of a statement: the only way in. */
export function literal(value: string | number | bigint | readonly (string | number)[]): string {
  if (typeof value === 'string')
    return `'${value.toWellFormed().replaceAll(/['\\\0]/g, (char) => ESCAPES[char] ?? '')}'`
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'number') return `[${value.map(literal).join(', ')}]`
  if (!Number.isSafeInteger(value)) throw new Error(`${value} is no whole number.`)
  return String(value)
}
