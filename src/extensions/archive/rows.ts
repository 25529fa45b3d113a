// A row of the archive, its place in the chain of its account, and the checkpoint of a month: what the writer of the
// archive and those who check it have in common.
import { createHash } from 'node:crypto'
import { DAY_MS, dayOfMs, formatDay, monthStart } from '../../kernel/calendar.ts'
import { GIVEN } from '../../ledger/views.ts'
import type { Checkpoint } from '../verify/checkpoint.ts'

export interface ArchivedRow {
  readonly id: string
  readonly kind: string
  readonly amount: bigint
  readonly loss: bigint
  readonly held: bigint
  readonly balance: bigint
  readonly note: string | null
  readonly actor: string | null
  /** As the database writes it, because the hash covers that. */
  readonly lots: string | null
  /** Microseconds since 1970, of its transaction and of its place in the statement. */
  readonly at_us: bigint
  readonly moved_us: bigint
}

/** The same as functions/chain.sql: each transfer's hash covers the one before it. */
function hashOf(before: Buffer | null, account: string, row: ArchivedRow): Buffer {
  const { id, kind, amount, loss, held, balance, note, actor, lots } = row
  const said = [account, id, kind, amount, loss, held, balance, note ?? '', actor ?? '', lots ?? ''].join('|')
  // Without lots the last bar is missing too.
  const text = lots === null ? said.slice(0, -1) : said
  return createHash('sha256')
    .update(before ?? '')
    .update(text)
    .digest()
}

/** `2026-01-01` */
const monthOfUs = (us: bigint) => formatDay(monthStart(dayOfMs(Number(us / 1000n))))
export const endOfMonth = (firstDay: number) => new Date(monthStart(firstDay, 1) * DAY_MS)

/** Adds up the transfers of an account, one after the other, and says at the end of each month what they came to. */
export class AccountMonths {
  readonly account: string
  readonly folder: string
  hash: Buffer | null
  private last: ArchivedRow | undefined
  private sums = new Map<string, [rows: bigint, amount: bigint, loss: bigint]>()
  private lots = new Map<string, bigint>()

  constructor(account: string, folder: string, before: Buffer | null) {
    this.account = account
    this.folder = folder
    this.hash = before
  }

  /** Answers the checkpoint of the month before it, if it is the first of another one. */
  add(row: ArchivedRow): Checkpoint | undefined {
    const ended = this.last && monthOfUs(row.moved_us) !== monthOfUs(this.last.moved_us) ? this.end() : undefined
    this.hash = hashOf(this.hash, this.account, row)
    this.last = row
    const [rows, amount, loss] = this.sums.get(row.kind) ?? [0n, 0n, 0n]
    this.sums.set(row.kind, [rows + 1n, amount + row.amount, loss + row.loss])
    if (row.lots !== null && !GIVEN.includes(row.kind))
      for (const [lot, moved] of Object.entries<number>(JSON.parse(row.lots)))
        this.lots.set(lot, (this.lots.get(lot) ?? 0n) + BigInt(moved))
    return ended
  }

  end(): Checkpoint | undefined {
    const { account, folder, hash, last } = this
    if (!last || !hash) return undefined
    const byName = <T>(all: Map<string, T>) => [...all].sort(([a], [b]) => (a < b ? -1 : 1))
    const checkpoint: Checkpoint = {
      account,
      folder,
      hash,
      month: monthOfUs(last.moved_us),
      moved_us: last.moved_us,
      balance: last.balance,
      sums: byName(this.sums).map(([kind, [rows, amount, loss]]) => [kind, `${rows}`, `${amount}`, `${loss}`]),
      lots: byName(this.lots).map(([lot, moved]) => [lot, `${moved}`]),
    }
    this.last = undefined
    this.sums = new Map()
    this.lots = new Map()
    return checkpoint
  }
}

export interface FileRow extends ArchivedRow {
  readonly account: string
}

const TEXTS = ['account', 'id', 'kind', 'note', 'actor', 'lots'] as const
const WHOLES = ['amount', 'loss', 'held', 'balance', 'at_us', 'moved_us'] as const

/** Amounts are micro-credits, moments microseconds. */
export async function parquetOf(rows: readonly FileRow[]): Promise<Buffer> {
  const { parquetWriteBuffer } = await import('hyparquet-writer')
  const texts = TEXTS.map((name) => ({ name, data: rows.map((row) => row[name]), type: 'STRING' as const }))
  const wholes = WHOLES.map((name) => ({ name, data: rows.map((row) => row[name]), type: 'INT64' as const }))
  return Buffer.from(parquetWriteBuffer({ createdBy: 'tollgate', columnData: [...texts, ...wholes] }))
}

export async function rowsOfParquet(bytes: Buffer): Promise<FileRow[]> {
  const { parquetReadObjects } = await import('hyparquet')
  // A copy: the bytes may be part of a larger buffer.
  const file = new Uint8Array(bytes).buffer
  const rows = await parquetReadObjects({ file })
  return rows.map((row) => {
    const text = (name: string) => (typeof row[name] === 'string' ? row[name] : null)
    const whole = (name: string) => BigInt(String(row[name]))
    return {
      account: text('account') ?? '',
      id: text('id') ?? '',
      kind: text('kind') ?? '',
      note: text('note'),
      actor: text('actor'),
      lots: text('lots'),
      amount: whole('amount'),
      loss: whole('loss'),
      held: whole('held'),
      balance: whole('balance'),
      at_us: whole('at_us'),
      moved_us: whole('moved_us'),
    }
  })
}

export const digestOfBytes = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
