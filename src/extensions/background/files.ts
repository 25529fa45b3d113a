// Callers' files: the input of batches and their results. A file is visible only to its account.

import type { Readable } from 'node:stream'
import type { AssetStore, AssetWriter } from '../../assets/store.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { newId, type World } from '../../kernel/world.ts'
import { FILE_SECONDS_MAX } from './batch-endpoints.ts'

export interface FileRow {
  readonly account_id: string
  readonly id: string
  /** The key that created the file; null in rows of an earlier version. */
  readonly key_id: string | null
  readonly purpose: string
  readonly filename: string
  readonly bytes: bigint
  readonly asset: string
  readonly created_at: Date
  readonly expires_at: Date
}

type NewFile = Pick<FileRow, 'purpose' | 'filename'> & { readonly seconds: number }

/** A file that is being written. */
export interface Upload {
  write(piece: Buffer): Promise<void>
  /** Written bytes that are not in the store yet. */
  readonly bytesInMemory: number
  /** Makes the bytes durable. `record` then makes it a file of the account. */
  commit(): Promise<{ record(file: NewFile, on?: Queryable): Promise<FileRow>; remove(): Promise<void> }>
  abort(): Promise<void>
}

export type Files = ReturnType<typeof createFiles>

interface FilePage {
  readonly after?: string | undefined
  readonly limit: number
  readonly order: 'asc' | 'desc'
  readonly purpose?: string | undefined
  /** Only files that this key created. */
  readonly key?: string | null
}

const MB = 1_048_576
export const FILE_BYTES_MAX = 100 * MB
const FILES_MAX = 1_000
const ALL_BYTES_MAX = 1_000 * MB
const UPLOADS_AT_ONCE_MAX = 4

const INSERT = sql('file_insert')`
  insert into stored_file (account_id, id, purpose, filename, bytes, asset, expires_at, key_id)
   values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7), $8) returning *`
const USED = sql('file_used')`select count(*)::int as files, coalesce(sum(bytes), 0)::float8 as bytes from stored_file
   where account_id = $1 and expires_at > now()`
const FIND = sql('file_find')`select * from stored_file where account_id = $1 and id = $2 and expires_at > now()`
const NAMES = sql('file_names')`
  select id, filename from stored_file where account_id = $1 and id = any($2) and expires_at > now()`
const LIST_OF = (ORDER: 'asc' | 'desc', SIGN: '<' | '>') =>
  sql(`file_list_${ORDER}`)`
    select * from stored_file where account_id = $1 and expires_at > now() and ($2::text is null or id ${SIGN} $2)
       and ($3::text is null or purpose = $3) and ($5::text is null or key_id = $5) order by id ${ORDER} limit $4`
const LIST = { asc: LIST_OF('asc', '>'), desc: LIST_OF('desc', '<') }
const REMOVE = sql('file_remove')`delete from stored_file f where account_id = $1 and id = $2
     and not exists (select 1 from batch b where b.account_id = $1 and b.input_file_id = $2 and b.open) returning asset`
/** Deletes rows only: the store expires the bytes by itself. */
const PRUNE = sql('file_prune')`with gone as (
     delete from stored_file where ctid = any(array(select ctid from stored_file where expires_at < now() limit 5000)) returning 1
   ) select count(*)::int as count from gone`

export function createFiles(deps: { database: Database; store: AssetStore; world: World }) {
  const { database, store, world } = deps
  const writing = new Map<string, number>()

  async function checkRoom(account: string, more: number): Promise<void> {
    const [used = { files: 0, bytes: 0 }] = await database.query<{ files: number; bytes: number }>(USED, [account])
    if (used.files < FILES_MAX && used.bytes + more <= ALL_BYTES_MAX) return
    throw invalid(
      `This account keeps ${used.files} files of ${Math.ceil(used.bytes / MB)} MB; ${FILES_MAX} files of ${ALL_BYTES_MAX / MB} MB are the most. Delete some first.`,
      'file',
    )
  }

  function enter(account: string): () => void {
    const now = writing.get(account) ?? 0
    if (now >= UPLOADS_AT_ONCE_MAX)
      throw new Fault('rate_limited', {
        message: `This account uploads ${now} files already; try again when one has arrived.`,
        retryAfterSeconds: 1,
      })
    writing.set(account, now + 1)
    let left = false
    return () => {
      if (left) return
      left = true
      const rest = (writing.get(account) ?? 1) - 1
      if (rest === 0) writing.delete(account)
      else writing.set(account, rest)
    }
  }

  return {
    /**
     * Throws rate_limited when this account uploads too many files at once. `isOurs`: result files are exempt, since
     * their input bounds them.
     */
    async upload(
      { account_id: account, key_id }: Pick<FileRow, 'account_id' | 'key_id'>,
      isOurs: boolean = false,
    ): Promise<Upload> {
      const leave = isOurs ? () => {} : enter(account)
      let writer: AssetWriter
      try {
        if (!isOurs) await checkRoom(account, 1)
        writer = await store.create({ extension: 'jsonl', expiresMs: world.nowMs() + FILE_SECONDS_MAX * 1000 })
      } catch (error) {
        leave()
        throw error
      }
      let bytes = 0
      return {
        get bytesInMemory() {
          return writer.bytesInMemory
        },
        async write(piece) {
          bytes += piece.length
          if (bytes > FILE_BYTES_MAX && !isOurs)
            throw new Fault('request_too_large', { message: `A file may have ${FILE_BYTES_MAX / MB} MB at most.` })
          await writer.write(piece)
        },
        async commit() {
          const { name } = await writer.commit()
          leave()
          const remove = () => store.remove(name)
          return {
            remove,
            async record({ purpose, filename, seconds }, on = database) {
              const id = `file-${newId(world)}`
              const values = [account, id, purpose, filename, bytes, name, seconds, key_id]
              const [row] = await on.query<FileRow>(INSERT, values)
              return row! // The query inserts a row or throws.
            },
          }
        },
        async abort() {
          leave()
          await writer.abort()
        },
      }
    },
    find: async (account: string, id: string): Promise<FileRow | undefined> =>
      (await database.query<FileRow>(FIND, [account, id]))[0],
    /** The names of those files that exist. */
    async names(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      const rows = await database.query<Pick<FileRow, 'id' | 'filename'>>(NAMES, [account, ids])
      return new Map(rows.map(({ id, filename }) => [id, filename]))
    },
    async list(
      account: string,
      { after, limit, order, purpose, key }: FilePage,
    ): Promise<{ rows: FileRow[]; more: boolean }> {
      const values = [account, after ?? null, purpose ?? null, limit + 1, key ?? null]
      const rows = await database.query<FileRow>(LIST[order], values)
      return { rows: rows.slice(0, limit), more: rows.length > limit }
    },
    /** False: there is no such file. Throws `conflict` while a batch reads it. */
    async remove(account: string, id: string): Promise<boolean> {
      const [gone] = await database.query<{ asset: string }>(REMOVE, [account, id])
      if (gone) await store.remove(gone.asset)
      else if (await this.find(account, id))
        throw new Fault('conflict', { message: 'This file is the input of a batch that has not ended.' })
      return gone !== undefined
    },
    /**
     * The bytes from `start` to `end`, both included; by default the whole file. Undefined when the bytes are gone from
     * the store.
     */
    async read({ asset }: Pick<FileRow, 'asset'>, start: number = 0, end?: number): Promise<Readable | undefined> {
      const opened = await store.open(asset)
      if (!opened) return undefined
      const last = Math.min(end ?? opened.bytes - 1, opened.bytes - 1)
      if (last >= start) return opened.read(start, last)
      await opened.close()
      return undefined
    },
  }
}

export async function pruneFiles(database: Database): Promise<void> {
  await pruneAll(database, PRUNE)
}

export function viewFile({ id, bytes, created_at, expires_at, filename, purpose }: FileRow): object {
  return {
    id,
    object: 'file',
    bytes: Number(bytes),
    created_at: secondsOf(created_at),
    expires_at: secondsOf(expires_at),
    filename,
    purpose,
    status: 'processed',
    status_details: null,
  }
}

export function secondsOf(at: Date): number {
  return Math.floor(at.getTime() / 1000)
}
