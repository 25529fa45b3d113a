// The functions and triggers in the database, in files of their own: applied anew whenever their text has changed, but never
// by an older version over a newer one's, as when an old process restarts while an upgrade goes through the fleet.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../kernel/fault.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { isNewer, VERSION } from '../kernel/version.ts'
import type { Queryable } from './database.ts'
import { ADDED_UP, INTO_HOURS } from './usage-hour.ts'

const FOLDER = join(import.meta.dirname, 'functions')
/** The digest stands beside the migrations, as one that comes before all others: it belongs to the schema, not to the data. */
const NUMBER = 0

/** The columns of `usage` that the ledger works out itself. All others are facts that a call brings along. */
const MONEY_COLUMNS = ['id', 'account_id', 'outcome', 'charged', 'loss', 'held', 'at']

/** Inside the transaction of the migrations, after them. */
export async function applyFunctions(tx: Queryable, version = VERSION): Promise<void> {
  const facts = await readFacts(tx)
  const words = (await isDistributed(tx)) ? DISTRIBUTED : PLAIN
  const others = words.folder === undefined ? [] : await readdir(join(FOLDER, words.folder))
  const names = [...new Set([...(await readdir(FOLDER)), ...others])].filter((name) => name.endsWith('.sql')).sort()
  const pathOf = (name: string) => (others.includes(name) ? join(words.folder ?? '', name) : name)
  const files = await Promise.all(
    names.map(async (name) => ({ name, text: await readFile(join(FOLDER, pathOf(name)), 'utf8') })),
  )
  const texts = files.map(({ name, text }) => ({ name, text: withWords(withFacts(text, facts), words) }))
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

/** Whether the accounts are spread over several servers by Citus: deploy/citus. */
export async function isDistributed(on: Queryable): Promise<boolean> {
  const [known] = await on.query<{ is: boolean }>({ text: `select to_regclass('pg_dist_partition') is not null as is` })
  if (!known?.is) return false
  const rows = await on.query({ text: `select 1 from pg_dist_partition where logicalrelid = to_regclass('account')` })
  return rows.length > 0
}

interface Words {
  /** A statement that concerns the one account of a flush says so of this column. */
  readonly one: (column: string) => string
  /** What names the account of a new row. */
  readonly own: (expression: string) => string
  readonly others: Readonly<Record<string, string>>
  /** Whether a statement may write to several tables. */
  readonly together: boolean
  /** Has files of its own, which take the place of those of the same name. */
  readonly folder?: string
}

/** A flush is of many accounts, and a plan is good for all of them. */
const PLAIN: Words = {
  together: true,
  one: () => '',
  own: (expression) => expression,
  others: {
    plans: 'force_generic_plan',
    'at first': '',
    'beside own': '',
    'where limits': '',
    'limits of accounts': "account_id > ''",
    'limits now': 'l as scope',
    'as a scope': 'r.scope',
    'where own limits':
      "where l.account_id = any(accounts || ''::text) and l.scope = any(keys || array['account', 'system@' || process, 'system@jobs']) ",
    each: '',
    'end each': '',
    declare: '',
  },
}
/**
 * Citus sends a statement to the server of its account, if it says which one that is when it is planned. A flush is of one account there. Rows
 * cannot be handed to functions where they lie, and what locks rows must lie on one server: limits are read account by account, the system's first.
 * New rows are made where they go only if they are selected from their account; else they are sent there, and all is committed in two phases.
 */
const DISTRIBUTED: Words = {
  together: false,
  folder: 'distributed',
  one: (column) => ` and ${column} = accounts[1]`,
  own: () => 'o.id',
  others: {
    plans: 'force_custom_plan',
    'at first': `  perform ledger_wait_briefly();
  if r_job is not null or s_given_up is not null then
    perform ledger_commit_together();
  end if;\n`,
    'beside own': ', account o',
    'where limits': ` where account_id = accounts[1]) or exists (select 1 from limited where account_id = ''`,
    'limits of accounts': 'account_id = accounts[1]',
    'limits now': 'l.*',
    'as a scope': 'jsonb_populate_record(null::limited, to_jsonb(r))',
    'where own limits': 'where l.account_id = whose ',
    each: "    foreach whose in array array['', accounts[1]] loop\n",
    'end each': '    end loop;\n',
    declare: '  whose text;\n',
  },
}

/** `with done as (…), a as (insert … from done), b as (insert …) insert …;` is written as three statements, each from what was `done`, where it cannot be one. */
function apart(text: string): string {
  const begin = text.indexOf('with done as (')
  if (begin < 0) return text
  const indent = text.slice(text.lastIndexOf('\n', begin) + 1, begin)
  const end = `\n${indent})`
  const first = text.indexOf(end, begin)
  const second = text.indexOf(end, first + 1)
  const third = text.indexOf(end, second + 1)
  const inside = (from: number, to: number) => text.slice(text.indexOf('(\n', from) + 2, to)
  const done = inside(begin, first)
  const alone = (part: string) => part.replace('from done', () => `from (\n${done}${end} done`)
  const rest = text.slice(third + end.length + 1)
  return `${text.slice(0, begin)}${alone(inside(first, second))};\n${alone(inside(second, third))};\n${alone(rest)}`
}

/** For how many seconds requests may be given to a process ahead. */
const AHEAD = 16
/** For how many seconds a call may have waited and is still judged by when it came: longer than anybody waits for its hold. */
const WAITED = 6
/** Of a scope's minute: the present second and the 60 before it, those of calls that waited, and those ahead. */
export const MINUTE_BUCKETS = 1 + 60 + WAITED + AHEAD

/** The same wherever the accounts lie. */
const ALIKE: Readonly<Record<string, string>> = {
  ...{ 'into hours': INTO_HOURS, 'added up': ADDED_UP },
  ...{ ahead: String(AHEAD), buckets: String(MINUTE_BUCKETS) },
}

function withWords(text: string, { one, own, others, together }: Words): string {
  return (together ? text : apart(text))
    .replaceAll(/\{\{test ([a-z._[\]]+)\}\}/g, (_, column: string) => IS_TEST(column))
    .replaceAll(/\{\{own ([a-z_[\]]+)\}\}/g, (_, expression: string) => own(expression))
    .replaceAll(/\{\{one ([a-z._]+)\}\}/g, (_, column: string) => one(column))
    .replaceAll(/\{\{([a-z ]+)\}\}/g, (all, name: string) => others[name] ?? ALIKE[name] ?? all)
}

interface Fact {
  readonly name: string
  readonly type: string
  /** As an expression; null where the column has none. */
  readonly preset: string | null
  readonly required: boolean
}

async function readFacts(tx: Queryable): Promise<Fact[]> {
  return tx.query<Fact>(
    {
      text: `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, pg_get_expr(d.adbin, d.adrelid) as preset, a.attnotnull as required
        from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = 'usage'::regclass and a.attnum > 0 and not a.attisdropped and a.attname <> all($1) order by a.attnum`,
    },
    [MONEY_COLUMNS],
  )
}

/**
 * A column of `usage` is named by its migration and nowhere else in SQL. Each is a parameter with a default, so that the
 * processes of the version before, which do not send it, go on while an upgrade goes through the fleet. Documents come as one
 * array of them: quoting each inside an array of arrays costs more.
 */
function withFacts(text: string, facts: readonly Fact[]): string {
  const isDocument = ({ type }: Fact) => type === 'jsonb'
  const parameter = (fact: Fact) => `s_${fact.name} ${fact.type}${isDocument(fact) ? '' : '[]'} default null`
  const document = ({ name, required }: Fact) =>
    required ? `s_${name} -> (i - 1)` : `nullif(s_${name} -> (i - 1), 'null'::jsonb)`
  const given = (fact: Fact) => (isDocument(fact) ? document(fact) : `s_${fact.name}[i]`)
  const written = (fact: Fact) =>
    `s_${fact.name} => ${isDocument(fact) ? `jsonb_build_array(j.${fact.name})` : `array[j.${fact.name}]`}`
  // What is written as null gets no default from the table.
  const value = (fact: Fact) => (fact.preset === null ? given(fact) : `coalesce(${given(fact)}, ${fact.preset})`)
  return text
    .replace('{{facts as parameters}}', facts.map(parameter).join(', '))
    .replaceAll('{{facts as columns}}', facts.map(({ name }) => name).join(', '))
    .replace('{{facts as values}}', facts.map(value).join(', '))
    .replace('{{facts of a journal row}}', facts.map(written).join(', '))
}
