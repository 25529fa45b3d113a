// The functions and triggers in the database, in files of their own. They are applied again whenever their text has changed. An older version
// never overwrites those of a newer one, e.g. when an old process restarts during a rolling upgrade.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../kernel/fault.ts'
import { isNewer, VERSION } from '../kernel/version.ts'
import type { Queryable } from './database.ts'

const FOLDER = join(import.meta.dirname, 'functions')
/** The digest is stored in the migration table, as number 0, because it belongs to the schema and not to the data. */
const NUMBER = 0

/** Runs in the transaction of the migrations, after them. */
export async function applyFunctions(tx: Queryable, version = VERSION): Promise<void> {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.sql')).sort()
  const texts = await Promise.all(
    names.map(async (name) => ({ name, text: await readFile(join(FOLDER, name), 'utf8') })),
  )
  const digest = createHash('sha256').update(JSON.stringify(texts)).digest('hex')
  const [row] = await tx.query<{ name: string }>({ text: 'select name from migration where number = $1' }, [NUMBER])
  const [made = '0', of] = row?.name.split(' ') ?? []
  if (of === digest || isNewer(made, version)) return
  for (const { name, text } of texts) {
    try {
      await tx.query({ text })
    } catch (cause) {
      if (cause instanceof Fault) throw cause
      throw new Error(
        `The functions of ${name} could not be made, and nothing was changed: ${(cause as Error).message}`,
        {
          cause,
        },
      )
    }
  }
  await tx.query(
    {
      text: 'insert into migration (number, name) values ($1, $2) on conflict (number) do update set name = excluded.name, at = now()',
    },
    [NUMBER, `${version} ${digest}`],
  )
}
