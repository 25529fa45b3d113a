// What operators set and a ledger reads beside its own rows, some of it in statements of calls: each ledger has a copy.
// Where a destination's export stands is each ledger's own.
import { type Database, type Queryable, type Statement, sql } from '../../database/database.ts'

interface Copied {
  /** Rows of a key and a value, both text. */
  readonly read: Statement
  readonly put: Statement
  readonly remove: Statement
}

/** Every other setting is a note that each database makes for itself. */
const SETTINGS = `'billing', 'branding', 'invoices', 'login', 'payments', 'sign-up', 'system-limits'`

const COPIES: readonly Copied[] = [
  {
    read: sql('mirror_settings')`select name as key, value from setting where name in (${SETTINGS})`,
    put: sql('mirror_setting')`
      insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`,
    remove: sql('mirror_no_setting')`delete from setting where name = $1`,
  },
  {
    // Of the whole gateway.
    read: sql('mirror_alert_settings')`
      select scope as key, encode(sealed, 'hex') as value from alert_setting where scope = ''`,
    put: sql('mirror_alert_setting')`
      insert into alert_setting (scope, sealed) values ($1, decode($2, 'hex')) on conflict (scope) do update set sealed = excluded.sealed`,
    remove: sql('mirror_no_alert_setting')`delete from alert_setting where scope = $1`,
  },
  {
    read: sql('mirror_exports')`
      select id as key, jsonb_build_object('name', name, 'kind', kind, 'settings', settings)::text as value from export`,
    put: sql('mirror_export')`
      insert into export (id, name, kind, settings, cursor_posting, cursor_account, cursor_id)
      select $1, x.name, x.kind, x.settings, usage_horizon() - 1, '', ''
      from jsonb_to_record($2::jsonb) as x(name text, kind text, settings jsonb)
      on conflict (id) do update set name = excluded.name, settings = excluded.settings,
        version = export.version + 1, lease_until = null, step_at = now()`,
    remove: sql('mirror_no_export')`delete from export where id = $1`,
  },
  {
    read: sql('mirror_export_customers')`
      select export_id || ' ' || account_id as key, customer as value from export_customer`,
    put: sql('mirror_export_customer')`
      insert into export_customer (export_id, account_id, customer) values (split_part($1, ' ', 1), split_part($1, ' ', 2), $2)
      on conflict (export_id, account_id) do update set customer = excluded.customer`,
    remove: sql('mirror_no_export_customer')`
      delete from export_customer where export_id = split_part($1, ' ', 1) and account_id = split_part($1, ' ', 2)`,
  },
]

/** Brings a ledger's copies to what control has. */
export async function mirror(control: Queryable, ledger: Database): Promise<void> {
  for (const { read, put, remove } of COPIES) {
    const [there, here] = await Promise.all([readAll(control, read), readAll(ledger, read)])
    const changed = [...there].filter(([key, value]) => here.get(key) !== value)
    const gone = [...here.keys()].filter((key) => !there.has(key))
    if (changed.length + gone.length === 0) continue
    await ledger.transaction(async (tx) => {
      for (const key of gone) await tx.query(remove, [key])
      for (const of of changed) await tx.query(put, of)
    })
  }
}

async function readAll(on: Queryable, read: Statement): Promise<Map<string, string>> {
  const rows = await on.query<{ key: string; value: string }>(read)
  return new Map(rows.map(({ key, value }) => [key, value]))
}
