// Codes that grant credits: made in batches, redeemed once or n times. Unknown, used and ended codes get the same
// answer, and every failed attempt counts towards a limit, so that codes cannot be found by guessing.
import { createHash } from 'node:crypto'
import type { Audit, By } from '../../database/audit.ts'
import { type Database, sql } from '../../database/database.ts'
import type { Attempts } from '../../identity/attempts.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import { asPage, asView, type Page, type Paging } from '../../kernel/view.ts'
import { newId, type World } from '../../kernel/world.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { lockBuyer } from './payment-rows.ts'
import { type CodeBatchView, codeBatchView, type NewCodeBatch, type RedeemedView } from './views.ts'

interface CodeBatchInput {
  readonly name: string
  readonly credits: Credits
  readonly codes: number
  readonly usesMax: number
  readonly endsAtMs?: number | undefined
  readonly creditDays?: number | undefined
  readonly products?: readonly string[] | undefined
  readonly priority?: number | undefined
}

interface BatchRow {
  readonly id: string
  readonly name: string
  readonly credits: bigint
  readonly ends_at: Date | null
  readonly lot_days: number | null
  readonly products: string[] | null
  readonly priority: number | null
}

const DAY_MS = 86_400_000
/** No letters and digits that look alike. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789'
const CODE_CHARS = 16
/** Attempts per hour, by account and by IP address. */
const TRIES = { account: 10, address: 30, perSeconds: 3_600 }

const INSERT = sql('code_batch_insert')`
  insert into code_batch (id, name, credits, codes, uses_max, ends_at, lot_days, products, priority, created_by) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
const INSERT_CODES = sql('code_insert')`
  insert into code (hash, batch_id) select decode(x, 'hex'), $1 from unnest($2::text[]) x`
const BATCH = `select b.*, (select count(*)::int from code_use u where u.batch_id = b.id) as used from code_batch b`
const LIST = sql('code_batch_list')`${BATCH} where b.id < $1 order by b.id desc limit $2`
const OFFERED = sql('code_batch_offered')`select 1 from code_batch where ends_at is null or ends_at > now() limit 1`
const ONE = sql('code_batch_one')`${BATCH} where b.id = $1`
const END = sql('code_batch_end')`update code_batch set ends_at = least(ends_at, now()) where id = $1 returning ends_at`
/** Locks the code: a second request waits, and then finds it used. */
const FIND = sql('code_find')`select b.*, 0 as used from code c join code_batch b on b.id = c.batch_id
   where c.hash = $1 and c.uses < b.uses_max and (b.ends_at is null or b.ends_at > now()) for update of c`
const USE = sql('code_use')`update code set uses = uses + 1 where hash = $1`
const USED_BY = sql('code_used_by')`select 1 from code_use where account_id = $1 and hash = $2`
const KEEP_USE = sql('code_use_keep')`
  insert into code_use (account_id, hash, batch_id, transfer_id) values ($1, $2, $3, $4)`

export type Codes = ReturnType<typeof createCodes>

export function createCodes(options: {
  database: Database
  world: World
  ledger: Pick<Ledger, 'grant' | 'posted'>
  audit: Audit
  attempts: Pick<Attempts, 'brake'>
}) {
  const { database, world, ledger, audit, attempts } = options

  async function readBatch(id: string): Promise<CodeBatchView> {
    const [row] = await database.query<BatchRow>(ONE, [id])
    if (!row) throw batchUnknown()
    return batchView(row)
  }

  return {
    async create(
      { name, credits, codes, usesMax, endsAtMs, creditDays, products, priority }: CodeBatchInput,
      by: By,
    ): Promise<NewCodeBatch> {
      if (endsAtMs !== undefined && endsAtMs <= world.nowMs())
        throw invalid('endsAt: must lie in the future.', 'endsAt')
      const id = `codes_${newId(world)}`
      const list = Array.from({ length: codes }, () => newCode(world))
      await database.transaction(async (tx) => {
        const endsAt = endsAtMs === undefined ? null : new Date(endsAtMs)
        const of = [endsAt, creditDays ?? null, products ? [...products] : null, priority ?? null, by.actor]
        await tx.query(INSERT, [id, name, credits, codes, usesMax, ...of])
        await tx.query(INSERT_CODES, [id, list.map((code) => hashOf(code).toString('hex'))])
        const detail = { name, credits: formatCredits(credits), codes, usesMax }
        await audit.write(tx, by, { action: 'codes.create', object: id, detail, rows: [['code_batch', id]] })
      })
      return { ...(await readBatch(id)), list }
    },

    async list({ cursor = '~', limit }: Paging): Promise<Page<CodeBatchView>> {
      const rows = await database.query<BatchRow>(LIST, [cursor, limit + 1])
      return asPage(rows, limit, batchView)
    },

    /** Whether any code can be redeemed. */
    areOffered: async (): Promise<boolean> => (await database.query(OFFERED)).length > 0,

    /** Ends a batch: its codes can no longer be redeemed. Credits that they granted stay. */
    async end(id: string, by: By): Promise<CodeBatchView> {
      await database.transaction(async (tx) => {
        const [was] = await tx.query<BatchRow>(ONE, [id])
        const [is] = await tx.query<Pick<BatchRow, 'ends_at'>>(END, [id])
        if (!is) throw batchUnknown()
        await audit.write(tx, by, {
          action: 'codes.end',
          object: id,
          rows: [['code_batch', id]],
          before: { endsAt: was?.ends_at ?? null },
          after: { endsAt: is.ends_at },
        })
      })
      return readBatch(id)
    },

    async redeem(account: string, code: string, by: By & { readonly ip: string | null }): Promise<RedeemedView> {
      if (isTestAccount(account)) throw new Fault('conflict', { message: 'A test account has no codes.' })
      await attempts.brake([
        { subject: `code-account:${account}`, max: TRIES.account, perSeconds: TRIES.perSeconds },
        ...(by.ip === null
          ? []
          : [{ subject: `code-address:${by.ip}`, max: TRIES.address, perSeconds: TRIES.perSeconds }]),
      ])
      const hash = hashOf(code)
      await ledger.posted(account)
      return database.transaction(async (tx) => {
        const [batch] = await tx.query<BatchRow>(FIND, [hash])
        const isUsed = (await tx.query(USED_BY, [account, hash])).length > 0
        if (!batch || isUsed) throw notValid()
        const { posted } = await lockBuyer(tx, account)
        if (posted + batch.credits > CREDITS_MAX)
          throw new Fault('conflict', { message: 'The balance would exceed what an account can have.' })
        const endsAt = batch.lot_days === null ? undefined : new Date(world.nowMs() + batch.lot_days * DAY_MS)
        const note = batch.name
        const lot = {
          source: 'code',
          endsAt,
          products: batch.products ?? undefined,
          priority: batch.priority ?? undefined,
        } as const
        const granted = await ledger.grant(
          { account, amount: batch.credits, note, actor: by.actor, kind: 'code', lot },
          tx,
        )
        await tx.query(USE, [hash])
        await tx.query(KEEP_USE, [account, hash, batch.id, granted?.id ?? ''])
        const detail = { amount: formatCredits(batch.credits), transfer: granted?.id, note, batch: batch.id }
        await audit.write(tx, by, { action: 'code.redeem', object: account, detail })
        return { credits: formatCredits(batch.credits), endsAt: endsAt?.toISOString() ?? null }
      })
    },
  }
}

/** "K7QH-2MXA-…": 16 characters, 78 bits. */
function newCode(world: World): string {
  let code = ''
  while (code.length < CODE_CHARS)
    // A byte beyond the last whole alphabet would make some letters likelier than others.
    for (const byte of world.bytes(CODE_CHARS))
      if (byte < 240 && code.length < CODE_CHARS) code += ALPHABET.charAt(byte % ALPHABET.length)
  return code.replaceAll(/(.{4})(?!$)/g, '$1-')
}

/** However it was typed. */
function hashOf(code: string): Buffer {
  return createHash('sha256')
    .update(code.toUpperCase().replaceAll(/[^A-Z0-9]/g, ''))
    .digest()
}

/** The same for every code that grants nothing. */
const notValid = () => invalid('code: this code is not valid.', 'code')
const batchUnknown = () => new Fault('not_found', { message: 'There is no batch of codes with this id.' })

const batchView = (row: BatchRow): CodeBatchView => ({ ...asView(codeBatchView, row), creditDays: row.lot_days })
