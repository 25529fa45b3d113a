// Settings are read by statements of calls, and so each ledger has its own copy of those that operators made.
import { type Database, type Queryable, statement } from '../../database/database.ts'
import { putSetting } from '../../database/setting.ts'

/** What operators set; everything else is a note that each database makes for itself. */
const OPERATORS = ['billing', 'branding', 'invoices', 'login', 'payments', 'sign-up', 'system-limits']
const READ = statement('settings_shared', 'select name, value from setting where name = any($1::text[]) order by name')

/** Brings a ledger's settings to those of control. */
export async function mirrorSettings(control: Queryable, ledger: Database): Promise<void> {
  const [there, here] = await Promise.all([control, ledger].map((on) => readAll(on)))
  const changed = OPERATORS.filter((name) => there?.get(name) !== here?.get(name))
  if (changed.length === 0) return
  await ledger.transaction(async (tx) => {
    for (const name of changed) await putSetting(tx, name, there?.get(name) ?? null)
  })
}

async function readAll(on: Queryable): Promise<Map<string, string>> {
  const rows = await on.query<{ name: string; value: string }>(READ, [OPERATORS])
  return new Map(rows.map(({ name, value }) => [name, value]))
}
