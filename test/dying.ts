// A process that dies between two words to its databases.
import { type Database, type Queryable, type Statement, withLast } from '../src/database/database.ts'

export class Died extends Error {}

/**
 * Databases as a process sees them that dies at its n-th word to any, just before or just after it was heard.
 */
export function dieAt(step: number, databases: readonly Database[]): Database[] {
  const left = { words: Math.ceil(step / 2) }
  const isAfter = step % 2 === 0
  return wordByWord(databases, async (say) => {
    left.words -= 1
    if (left.words < 0 || (left.words === 0 && !isAfter)) throw new Died()
    const answer = await say()
    if (left.words <= 0) throw new Died()
    return answer
  })
}

/** As one sees them that dies just before it says a statement for the n-th time. */
export function dieBefore(name: string, times: number, databases: readonly Database[]): Database[] {
  let left = times
  return wordByWord(databases, async (say, what) => {
    if (what?.name === name) left -= 1
    if (left <= 0) throw new Died()
    return say()
  })
}

type Word = <T>(say: () => Promise<T>, what?: Statement) => Promise<T>

const wordByWord = (databases: readonly Database[], word: Word): Database[] =>
  databases.map((database) => ({
    ...database,
    query: ((what, values) => word(() => database.query(what, values), what)) as Database['query'],
    // The connection is cut with the process: what was not committed is not done. The commit is a word of its own.
    transaction: (run, patience) =>
      word(() =>
        database.transaction(
          (tx) =>
            withLast(
              { query: ((what, values) => word(() => tx.query(what, values), what)) as Queryable['query'] },
              run,
            ),
          patience,
        ),
      ),
  }))
