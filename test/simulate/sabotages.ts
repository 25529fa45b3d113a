// Ways to break the gateway on purpose, each at the one statement where it would do its harm. A simulator that lets one of
// them pass proves nothing.
import type { Queryable, Statement, Value } from '../../src/database/database.ts'
import { FLUSH_PARAMETERS } from '../../src/ledger/flush.ts'
import type { Sabotage } from './faulty-database.ts'

/** Where the columns of a flush stand among its values. */
const at = (name: string) => FLUSH_PARAMETERS.indexOf(name)
const AT = {
  id: at('s_id'),
  kind: at('s_kind'),
  charge: at('s_charge'),
  lines: at('s_lines'),
  last: at('s_kept') - 1,
  want: at('r_want'),
}

interface Settle {
  readonly id: string
  readonly kind: string
  readonly charge: string
  /** All columns of it. */
  readonly row: readonly string[]
}

function column(values: readonly Value[], at: number): string[] {
  if (values[at] === null) return []
  const text = String(values[at])
  if (at === AT.lines) return (JSON.parse(text) as unknown[]).map((lines) => JSON.stringify(lines))
  return text === '{}' ? [] : text.slice(1, -1).split(',')
}

function readSettles(values: readonly Value[]): Settle[] {
  const columns = Array.from({ length: AT.last - AT.id + 1 }, (_, i) => column(values, AT.id + i))
  return columns[0]!.map((id, i) => {
    const row = columns.map((all) => all[i]!)
    return { id, kind: row[AT.kind - AT.id]!, charge: row[AT.charge - AT.id]!, row }
  })
}

/** Alters the settlements of a flush; those that are left out are answered as if they had been made. */
function onSettles(alter: (settles: Settle[], chance: () => boolean) => Settle[] | undefined): Sabotage {
  return (statement, values, run, chance) => {
    if (statement.name !== 'ledger_flush') return undefined
    const settles = readSettles(values)
    const altered = settles.length > 0 ? alter(settles, chance) : undefined
    return altered && flush(statement, values, settles, altered, run)
  }
}

async function flush(
  statement: Statement,
  values: readonly Value[],
  asked: readonly Settle[],
  altered: readonly Settle[],
  run: Queryable['query'],
): Promise<unknown[]> {
  const changed = values.map((value, at) => {
    if (at < AT.id || at > AT.last) return value
    const cells = altered.map(({ id, charge, row }) =>
      at === AT.id ? id : at === AT.charge ? charge : row[at - AT.id],
    )
    return at === AT.lines ? `[${cells}]` : `{${cells}}`
  })
  const [row] = await run<object>(statement, changed)
  const none = asked.map(() => '0')
  const done = [asked.map(({ kind }) => kind), asked.map(({ charge }) => charge), none, none, none, none]
  return [{ ...row, resolved: done.join(';') }]
}

/** Runs another text in place of the statement's own. */
function instead(name: string, from: string | RegExp, to: string): Sabotage {
  return (statement, values, run) => {
    if (statement.name !== name) return undefined
    const text = statement.text.replace(from, to)
    if (text === statement.text) throw new Error(`${name} cannot be broken in this way any more`)
    return run({ text }, values)
  }
}

export const SABOTAGES: Readonly<Record<string, Sabotage>> = {
  'a charge is acknowledged and never made': onSettles((settles, chance) =>
    settles.some(({ kind }) => kind === 'settled') && chance()
      ? settles.filter(({ kind }) => kind !== 'settled')
      : undefined,
  ),
  'a release is forgotten': onSettles((settles, chance) =>
    settles.some(({ kind }) => kind === 'released') && chance()
      ? settles.filter(({ kind }) => kind !== 'released')
      : undefined,
  ),
  'a charge is made twice': onSettles((settles, chance) =>
    settles.some(({ kind }) => kind === 'settled') && chance()
      ? settles.flatMap((settle) =>
          settle.kind === 'settled' ? [settle, { ...settle, id: `${settle.id}+again` }] : [settle],
        )
      : undefined,
  ),
  'another amount is charged than was told': onSettles((settles, chance) =>
    chance() ? settles.map((settle) => ({ ...settle, charge: String(BigInt(settle.charge) + 1n) })) : undefined,
  ),
  'a usage row is dropped': (statement, values, run, chance) => {
    if (statement.name !== 'ledger_flush' || !chance()) return undefined
    return run(statement, values).then(async (rows) => {
      await run({ text: 'delete from usage where id = (select min(id) from usage)' })
      return rows
    })
  },
  'a hold is promised and not made': (statement, values, _run, chance) => {
    const wants = statement.name === 'ledger_flush' ? column(values, AT.want) : []
    if (wants.length === 0 || column(values, AT.id).length > 0 || !chance()) return undefined
    const reserved = [wants.map(() => 'held'), wants, wants, wants].join(';')
    return Promise.resolve([{ resolved: null, reserved, details: null }])
  },
  'the holds of the dead are never given back': (statement) =>
    statement.name === 'expire' ? Promise.resolve([{ gone: 0 }]) : undefined,
  'a submission of which nothing is known is made again': (statement, values, run) => {
    if (statement.name !== 'job_claim') return undefined
    return run<Record<string, unknown>>(statement, values).then(async (rows) => {
      await run({ text: 'update job set submit_started_at = null where id = any($1) and task_id is null' }, [
        values[0]!,
      ])
      return rows.map((row) => ({ ...row, submit_age_ms: null }))
    })
  },
  'an order leaves before it is written down that it does': instead(
    'job_begin_submission',
    'submit_started_at = now()',
    'submit_started_at = null',
  ),
  'a job is closed before it has ended': instead(
    'job_put_down',
    'open = e.after_ms is not null',
    'open = e.after_ms is not null and e.version % 5 > 0',
  ),
  'a job is taken from a worker that has it': instead(
    'job_claim',
    'and (lease_until is null or lease_until < now())',
    '',
  ),
  'a worker that has lost a job puts it down': instead('job_put_down', 'and job.version = e.version', ''),
  'a worker that has lost a job decides its end': instead('job_decide', 'and version = $2', 'and $2::int > 0'),
  'an order leaves whoever has the job, and whether one has left before': instead(
    'job_begin_submission',
    /and version = \$2[\s\S]*and submit_started_at is null/,
    'and $2::int > 0',
  ),
  'a neglected job is never found': instead('job_neglected', 'where open', 'where open and false'),
}
