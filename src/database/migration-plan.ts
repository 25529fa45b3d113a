// What a migration does to the tables that calls use, read from its SQL: which lock each statement takes, and whether
// it reads or writes every row while it has it. `tollgate migrate --plan` says it, and a test rejects what would stop
// calls.
import { TABLES } from './tables.ts'

/** `moment`: as long as a change of the schema takes. `whole`: as long as it takes to read or write all rows. */
type Hold = 'none' | 'moment' | 'whole'

export interface Step {
  readonly line: number
  readonly text: string
  /** Empty: none that existed before. */
  readonly table: string
  /** How long other statements on the table wait. */
  readonly hold: Hold
  /** Whether it reads or writes every row. */
  readonly everyRow: boolean
  /** Of `create index concurrently`, which runs outside a transaction. */
  readonly index?: Index
}

export interface Index {
  readonly name: string
  readonly unique: boolean
  readonly table: string
  /** `(account_id, region) where region is not null` */
  readonly rest: string
}

const CONSTANT = /default\s+(null|true|false|now\(\)|-?[\d.]+|'(?:[^']|'')*'(?:::[\w[\]]+)?)(?=\s|,|;|$)/g
const WHOLE =
  /\btype\b|\bset not null\b|\bgenerated\b|\bdefault\b|\breferences\b|\bunique\b|\bprimary key\b|\bcheck\b|\badd constraint\b|\bset (logged|unlogged|tablespace|access method)\b|\battach partition\b/

/** Each statement of a migration. Tables that it makes itself are empty, and count as none. */
export function stepsOf(sql: string): Step[] {
  const made = new Set<string>()
  return splitStatements(sql).map(({ line, text }) => {
    const step = judge(text)
    const created = /^create table (?:if not exists )?(\w+)/.exec(text)?.[1]
    if (created) made.add(created)
    return made.has(step.table) ? { line, text, table: '', hold: 'none', everyRow: false } : { line, text, ...step }
  })
}

/** Why a statement may not be part of a migration, or undefined. */
export function objectionTo({ line, text, table, hold, index }: Step, all: readonly Step[]): string | undefined {
  const what = `line ${line}: ${text.slice(0, 100)}`
  if (/^do\b/.test(text)) return `${what} … A block cannot be read by the plan. Write plain statements.`
  if (!index && all.some((step) => step.index))
    return `${what} … An index that is built concurrently needs a migration of its own, outside a transaction.`
  if (TABLES[table.replace(/_(\d{4}_\d{2}|rest|kept)$/, '')]?.hot && hold === 'whole')
    return `${what} … It keeps calls waiting while every row of ${table} is read or written. Build indexes concurrently, add columns without a computed default, constraints as not valid, and fill in rows by a backfill.`
  return undefined
}

function judge(text: string): Omit<Step, 'line' | 'text'> {
  const index = /^create (unique )?index (concurrently )?(?:if not exists )?(\w+) on (\w+) (.*)$/.exec(text)
  if (index) {
    const [, unique, concurrently, name = '', table = '', rest = ''] = index
    if (!concurrently) return { table, hold: 'whole', everyRow: true }
    return { table, hold: 'none', everyRow: true, index: { name, table, rest, unique: unique !== undefined } }
  }
  const altered = /^alter table (?:if exists )?(?:only )?(\w+) (.*)$/.exec(text)
  if (altered) {
    const [, table = '', action = ''] = altered
    const whole = !/\bnot valid$/.test(action) && WHOLE.test(action.replaceAll(CONSTANT, '').replaceAll(/'[^']*'/g, ''))
    // The check of a constraint lets everybody else go on.
    if (/^validate constraint/.test(action)) return { table, hold: 'none', everyRow: true }
    return { table, hold: whole && !SETS_DEFAULT.test(action) ? 'whole' : 'moment', everyRow: whole }
  }
  const written =
    /^(?:update|delete from|insert into|truncate(?: table)?|cluster|vacuum full|reindex table) (\w+)/.exec(text)
  if (written)
    return { table: written[1] ?? '', hold: /^insert.* values /.test(text) ? 'none' : 'whole', everyRow: true }
  const dropped =
    /^(?:drop table|create trigger .* on|drop trigger .* on|create (?:or replace )?trigger .* on) (?:if exists )?(\w+)/.exec(
      text,
    )
  return { table: dropped?.[1] ?? '', hold: dropped ? 'moment' : 'none', everyRow: false }
}
/** A default for rows to come touches none that exists. */
const SETS_DEFAULT = /^alter column \w+ (set|drop) default\b[^,]*$/

/** In lower case, without comments and in one line each. */
function splitStatements(sql: string): Array<{ line: number; text: string }> {
  const found: Array<{ line: number; text: string }> = []
  let [text, line, at] = ['', 1, 1]
  for (const [piece] of sql.matchAll(/--[^\n]*|'(?:[^']|'')*'|(\$\w*\$)[\s\S]*?\1|\n|;|[^\n;'$-]+|[\s\S]/g)) {
    if (piece === ';') {
      if (text.trim() !== '') found.push({ line: at, text: text.trim().replaceAll(/\s+/g, ' ') })
      text = ''
    } else if (!piece.startsWith('--')) {
      if (text.trim() === '' && piece.trim() !== '') at = line
      text += /^['$]/.test(piece) ? piece : piece.toLowerCase()
    }
    line += piece.split('\n').length - 1
  }
  if (text.trim() !== '') found.push({ line: at, text: text.trim().replaceAll(/\s+/g, ' ') })
  return found
}
