// What the archive leaves of an account for each of its months: what a replay of the account starts at.
import { sign } from '../../kernel/secret.ts'

/** What an account's transfers of a month come to. */
export interface Checkpoint {
  readonly account: string
  readonly month: string
  readonly moved_us: bigint
  readonly balance: bigint
  readonly hash: Buffer
  /** [kind, transfers, amount, loss] */
  readonly sums: readonly (readonly [kind: string, rows: string, amount: string, loss: string])[]
  /** What calls moved of each lot. What was given or taken back of it stays in the ledger. */
  readonly lots: readonly (readonly [lot: string, amount: string])[]
  readonly folder: string
}

/**
 * By the gateway's secret, together with the one before it: none can be changed, put there or removed by whoever can
 * write to the database alone.
 */
export function signatureOf(key: Buffer, before: Buffer | null, one: Checkpoint): Buffer {
  const { account, month, moved_us, balance, hash, sums, lots, folder } = one
  const said = [account, month, String(moved_us), String(balance), hash.toString('hex'), sums, lots, folder]
  return sign(key, JSON.stringify([...said, before?.toString('hex') ?? null]))
}

export interface StoredCheckpoint extends Checkpoint {
  readonly place: string
  readonly signature: Buffer
}

export const CHECKPOINTS_OF = `select to_char(month, 'YYYY-MM-DD') as month, moved_at::text as place, (extract(epoch from moved_at) * 1000000)::bigint as moved_us,
     account_id as account, balance, hash, sums, lots, folder, signature from ledger_checkpoint where account_id = $1`
