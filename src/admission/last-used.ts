// Which keys were used lately, written beside the calls.
import { type Database, sql } from '../database/database.ts'

const USED = sql('key_used')`update api_key set last_used_at = now() where id = any($1)`

export function createLastUsed(database: Database) {
  const ids = new Set<string>()
  /** Those whose use was written since that of all was. */
  const written = new Set<string>()
  let writing: Promise<void> = Promise.resolve()

  async function write(onlyFirst: boolean): Promise<void> {
    const due = [...ids].filter((id) => !(onlyFirst && written.has(id)))
    if (!onlyFirst) written.clear()
    if (due.length === 0) return
    for (const id of due) {
      ids.delete(id)
      written.add(id)
    }
    await database.query(USED, [due])
  }

  return {
    /** Of the keys that were used since it was written. */
    ids,
    /** Writes the uses of all, or of those alone of whom none was written since. Once at a time. */
    flush({ onlyFirst = false } = {}): Promise<void> {
      writing = writing.catch(() => undefined).then(() => write(onlyFirst))
      return writing
    },
  }
}
