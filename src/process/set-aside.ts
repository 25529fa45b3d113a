// What is stored and unknown to this version of Tollgate, because another version wrote it. It is not used, and calls
// go on without it; operators are told at start, on the page System and by an alert.
import type { Catalog } from '../catalog/store.ts'
import { type Queryable, sql } from '../database/database.ts'
import { ACCOUNT_ROLES, OPERATOR_ROLES, RIGHTS } from '../identity/roles.ts'
import type { Log } from '../kernel/log.ts'
import { LIMIT_NAMES } from '../meter/limits.ts'

export interface SetAside {
  list(): readonly string[]
  /** Names in columns are looked for at start and every hour; parts of the catalog are known with each version. */
  look(): Promise<void>
}

/**
 * Of counters, `budget` is the name of all that belong to budgets. Scopes of tokens name a right, a resource, or all.
 */
const NAMES = sql('set_aside_names')`
  select 'limit' as what, name, count(*)::int as rows from counter where name <> 'budget' and name <> all($1) group by name
   union all select 'operator role', operator_role, count(*)::int from person where operator_role <> all($2) group by operator_role
   union all select 'role', role, count(*)::int from membership where role <> all($3) group by role
   union all select 'permission', s, count(*)::int from access_token, unnest(scopes) s where revoked_at is null and s <> all($4) group by s
   order by 1, 2 limit 100`
const SCOPES = ['*', ...RIGHTS.flatMap(({ permission }) => [permission, permission.split(':')[0] ?? ''])]

export function createSetAside(deps: {
  readonly database: Queryable
  readonly catalog: { readonly current: Catalog }
  readonly log: Log
}): SetAside {
  let named: string[] = []
  let told: readonly string[] = []
  const list = () => [...deps.catalog.current.setAside, ...named]
  return {
    list,
    async look() {
      const rows = await deps.database.query<{ what: string; name: string; rows: number }>(NAMES, [
        LIMIT_NAMES,
        OPERATOR_ROLES,
        ACCOUNT_ROLES,
        SCOPES,
      ])
      named = rows.map(({ what, name, rows: count }) => `${what} ${name}: in ${count} ${count === 1 ? 'row' : 'rows'}`)
      const now = list()
      if (now.some((part) => !told.includes(part)))
        deps.log.warn({ setAside: now }, 'stored data is unknown to this version of Tollgate and is not used')
      told = now
    },
  }
}
