// A ledger has the tables of accounts: calls, money, keys. What is not an account's (people, catalog, credentials) has
// one place, the control database, and is mounted in each ledger under the same names, so that every statement works
// unchanged. Statements of calls name only tables of the ledger itself, so that control may be away.

import { hash } from 'node:crypto'
import type pg from 'pg'
import { splitAddress } from '../../database/address.ts'
import { openDatabase, PATIENT, type Queryable } from '../../database/database.ts'
import { type Migrations, migrate } from '../../database/migrate.ts'
import { putSetting, readSetting } from '../../database/setting.ts'
import { SHARED } from '../../database/tables.ts'

/** Its own tables of the same names, which stay empty, for the migrations. */
const SPARE = 'spare'
/** Where a ledger's own tables are looked up, also those that control has in their place. */
export const UNMOUNTED = `public, ${SPARE}`
/** In a ledger no row can refer to a membership. */
export const MEMBERS_ELSEWHERE =
  'alter table tool_connection drop constraint if exists tool_connection_person_id_account_id_fkey'
const LOCK = 7_046_029_266n
/** A statement that waits for a lock there, or for a server that vanished. */
const SESSION = '-c lock_timeout=5s -c idle_in_transaction_session_timeout=15s -c statement_timeout=30s'

export interface ControlAddress {
  /** As the servers of the ledgers reach it. */
  readonly connection: pg.PoolConfig
  readonly ledger: string
  /** The control database's own id. */
  readonly installation: string
}

/** Of which installation a database is a ledger, and its name there. */
export const BELONGS = 'ledger-of'
/** A view of shared tables goes with them: it would show those that are empty here. */
const MOUNTED = [...SHARED, 'team_person']

/** Migrates a ledger, and mounts the tables of the control database, which has been migrated before. */
export async function prepareLedger(connection: pg.PoolConfig, control: ControlAddress): Promise<Migrations> {
  const own = openDatabase({ connection, connectionsMax: 2, schemas: UNMOUNTED })
  try {
    const migrations = await migrate(own)
    await own.transaction((tx) => mount(tx, control, migrations.latest), PATIENT)
    return migrations
  } finally {
    await own.close()
  }
}

/** Undefined: it is the ledger that is meant, or none yet. */
export async function belongsElsewhere(own: Queryable, { ledger, installation }: ControlAddress) {
  const belongs = await readSetting(own, BELONGS)
  const [of, name] = belongs?.split(' ') ?? [installation, ledger]
  if (of !== installation) return 'It is a ledger of another installation. Name another database.'
  return name === ledger ? undefined : `It is the ledger ${name} of this installation: use that name.`
}

async function mount(tx: Queryable, control: ControlAddress, migration: number): Promise<void> {
  const { connection, ledger, installation } = control
  const run = (text: string) => tx.query({ text })
  await tx.query({ text: 'select pg_advisory_xact_lock($1)' }, [LOCK])
  const elsewhere = await belongsElsewhere(tx, control)
  if (elsewhere !== undefined) throw new Error(`The database of the ledger ${ledger} is not its own: ${elsewhere}`)
  const server = serverOptions(connection)
  const told = tellControl(ledger)
  const mark = hash('sha256', JSON.stringify([migration, server, told, MOUNTED]))
  const [is] = await tx.query<{ mark: string | null }>({
    text: `select obj_description(to_regnamespace('control'), 'pg_namespace') as mark`,
  })
  if (is?.mark === mark) return
  await run('create extension if not exists postgres_fdw')
  await run('drop server if exists control cascade; drop schema if exists control cascade')
  await run(`create schema if not exists ${SPARE}; create schema control`)
  for (const TABLE of MOUNTED) await run(`alter table if exists public.${TABLE} set schema ${SPARE}`)
  const { user, password, ...place } = server
  await run(MEMBERS_ELSEWHERE)
  await run(`create server control foreign data wrapper postgres_fdw options (${listed(place)})`)
  await run(`create user mapping for current_user server control options (${listed({ user, password })})`)
  await run(
    `import foreign schema public limit to (${MOUNTED.join(', ')}) from server control into control options (import_default 'true')`,
  )
  await run(told)
  await putSetting(tx, BELONGS, `${installation} ${ledger}`)
  await run(`comment on schema control is ${literal(mark)}`)
}

/** Which installation a ledger's server finds at the address of control. */
export async function installationSeen(own: Queryable): Promise<string | undefined> {
  const [row] = await own.query<{ value: string }>({
    text: `select value from control.control_setting where name = 'installation'`,
  })
  return row?.value
}

/** Of an account that arrives or is gone, control learns from where it lives. */
const LIVES_HERE = `new.frozen_until is distinct from 'infinity'`

/** What an account's ledger tells control: how it is called, its keys, what it redeemed, its invoices. */
const tellControl = (ledger: string) => `
    create foreign table control.home (id text, name text, status text, created_at timestamptz, ledger text, region text)
      server control options (schema_name 'public', table_name 'account');
    create foreign table control.control_setting (name text, value text)
      server control options (schema_name 'public', table_name 'setting');
    create or replace function account_home() returns trigger language plpgsql as $$ begin
      if tg_op = 'INSERT' then
        insert into control.home (id, name, status, created_at, ledger, region)
          values (new.id, new.name, new.status, new.created_at, ${literal(ledger)}, new.region)
          on conflict do nothing;
      else
        update control.home set name = new.name, status = new.status where id = new.id;
      end if;
      return null;
    end $$;
    create or replace trigger account_home_new after insert on account for each row
      when (${LIVES_HERE}) execute function account_home();
    create or replace trigger account_home after update of name, status on account for each row
      when (${LIVES_HERE} and (old.name, old.status) is distinct from (new.name, new.status))
      execute function account_home();
    create or replace function key_home() returns trigger language plpgsql as $$ begin
      insert into control.key_home (digest, key_id, grant_id, account_id)
        values (new.digest, new.id, new.grant_id, new.account_id) on conflict do nothing;
      return null;
    end $$;
    create or replace trigger key_home after insert or update of digest on api_key for each row execute function key_home();
    create or replace function code_crosses() returns trigger language plpgsql as $$ begin
      if exists (select 1 from account a where a.id = new.account_id and a.frozen_until = 'infinity') then
        return null;
      end if;
      insert into control.crossing (id, ledger, kind, detail) values (new.transfer_id, ${literal(ledger)}, 'code',
        jsonb_build_object('account', new.account_id, 'hash', encode(new.hash, 'hex')));
      return null;
    end $$;
    create or replace trigger code_crosses after insert on code_use for each row execute function code_crosses();
    create or replace function invoice_crosses() returns trigger language plpgsql as $$ begin
      if exists (select 1 from account a where a.id = new.account_id and a.frozen_until = 'infinity') then
        return null;
      end if;
      insert into control.crossing (id, ledger, kind, detail) values (new.id, ${literal(ledger)}, 'invoice',
        jsonb_build_object('account', new.account_id, 'seller', case when new.purse_id is null then '' else new.account_id end,
          'series', new.series, 'year', new.year, 'sequence', new.sequence));
      return null;
    end $$;
    create or replace trigger invoice_crosses after insert on invoice for each row execute function invoice_crosses();`

type ServerOptions = Readonly<Record<string, string | undefined>>

function serverOptions({ connectionString, ...parts }: pg.PoolConfig): ServerOptions {
  const urls = connectionString === undefined ? [] : splitAddress(connectionString).map((one) => new URL(one))
  const password = typeof parts.password === 'string' ? parts.password : undefined
  const [url] = urls
  const given = url
    ? {
        ...Object.fromEntries(url.searchParams),
        host: urls.map(({ hostname }) => decodeURIComponent(hostname)).join(','),
        port: urls.map(({ port }) => port || '5432').join(','),
        dbname: decodeURIComponent(url.pathname.slice(1)),
        user: decodeURIComponent(url.username),
        password: decodeURIComponent(url.password) || password,
        target_session_attrs: 'read-write',
      }
    : { host: parts.host, port: String(parts.port ?? 5432), dbname: parts.database, user: parts.user, password }
  return { connect_timeout: '3', keepalives_idle: '5', tcp_user_timeout: '15000', options: SESSION, ...given }
}

const listed = (options: ServerOptions) =>
  Object.entries(options)
    .flatMap(([NAME, value]) => (value ? [`${NAME} ${literal(value)}`] : []))
    .join(', ')

/** In text that takes no parameters. */
const literal = (value: string) => `'${value.replaceAll("'", "''")}'`
