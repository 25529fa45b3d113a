// A process that dies between two words to its databases.
import { type Database, type Queryable, withLast } from '../src/database/database.ts'

export class Died extends Error {}

/**
 * Databases as a process sees them that dies at its n-th word to any, just before or just after it was heard.
 */
export function dieAt(step: number, databases: readonly Database[]): Database[] {
  const left = { words: Math.ceil(step / 2) }
  const isAfter = step % 2 === 0
  async function word<T>(say: () => Promise<T>): Promise<T> {
    left.words -= 1
    if (left.words < 0 || (left.words === 0 && !isAfter)) throw new Died()
    const answer = await say()
    if (left.words <= 0) throw new Died()
    return answer
  }
  return databases.map((database) => ({
    ...database,
    query: ((what, values) => word(() => database.query(what, values))) as Database['query'],
    // The connection is cut with the process: what was not committed is not done. The commit is a word of its own.
    transaction: (run, patience) =>
      word(() =>
        database.transaction(
          (tx) =>
            withLast({ query: ((what, values) => word(() => tx.query(what, values))) as Queryable['query'] }, run),
          patience,
        ),
      ),
  }))
}
