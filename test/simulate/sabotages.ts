// Ways to break the gateway on purpose, each at the one statement where it would do its harm. A simulator that lets one of
// them pass proves nothing.
import type { Queryable, Statement, Value } from '../../src/database/database.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { JOURNAL } from '../../src/ledger/columns.ts'
import type { Sabotage, Stage } from './faulty-database.ts'

/** A flush of the ledger: its values by the names of the function's parameters. */
class Flush {
  readonly #statement: Statement
  readonly #values: readonly Value[]
  readonly #at: ReadonlyMap<string, number>

  constructor(statement: Statement, values: readonly Value[]) {
    const given = [...statement.text.matchAll(/(\w+) => \$(\d+)/g)]
    this.#statement = statement
    this.#values = values
    this.#at = new Map(given.map(([, name, place]) => [name!, Number(place) - 1]))
  }

  get names(): string[] {
    return [...this.#at.keys()]
  }

  /** A column; undefined when the flush has nothing of its kind. */
  read(name: string): string[] | undefined {
    const value = this.#values[this.#at.get(name) ?? -1]
    if (typeof value !== 'string') return undefined
    if (value.startsWith('[')) return (JSON.parse(value) as unknown[]).map((cell) => JSON.stringify(cell))
    return value === '{}' ? [] : value.slice(1, -1).split(',')
  }

  /** Runs it with other columns. */
  run<R>(run: Queryable['query'], columns: Readonly<Record<string, readonly string[]>> = {}): Promise<R[]> {
    const values = [...this.#values]
    for (const [name, cells] of Object.entries(columns)) {
      const at = this.#at.get(name)!
      values[at] = String(values[at]).startsWith('[') ? `[${cells}]` : `{${cells}}`
    }
    return run<R>(this.#statement, values)
  }
}

/** What is not a row for each settlement. */
const BESIDE = new Set(['s_kept', 's_given_up', 's_again'])

type Alter = (flush: Flush, run: Queryable['query'], chance: () => boolean) => Promise<unknown[]> | undefined

/** Alters flushes. What would be written into the journal goes in a flush, as it does when that fails. */
function onFlush(alter: Alter): Sabotage {
  return (statement, values, run, chance) => {
    if (statement.name?.startsWith('journal_write')) return Promise.reject(new Fault('unavailable'))
    if (!statement.name?.startsWith('ledger_flush')) return undefined
    const flush = new Flush(statement, values)
    if (!flush.names.includes('accounts')) throw new Error('a flush cannot be read in this way any more')
    return alter(flush, run, chance)
  }
}

interface Settle {
  readonly kind: string
  /** A cell for each column. */
  readonly row: Readonly<Record<string, string>>
}

/** Alters the settlements of a flush; those that are left out are answered as if they had been made. */
function onSettles(alter: (settles: Settle[], chance: () => boolean) => Settle[] | undefined): Sabotage {
  return onFlush((flush, run, chance) => {
    const names = flush.names.filter((name) => name.startsWith('s_') && !BESIDE.has(name) && flush.read(name))
    const columns = new Map(names.map((name) => [name, flush.read(name)!]))
    const asked = (columns.get('s_kind') ?? []).map((kind, i) => ({
      kind,
      row: Object.fromEntries([...columns].map(([name, cells]) => [name, cells[i]!])),
    }))
    const altered = asked.length > 0 ? alter(asked, chance) : undefined
    if (!altered) return undefined
    const cells = Object.fromEntries(names.map((name) => [name, altered.map(({ row }) => row[name]!)]))
    const none = asked.map(() => '0')
    const done = [asked.map(({ kind }) => kind), asked.map(({ row }) => row['s_charge']), none, none, none, none]
    return flush.run<object>(run, cells).then(([row]) => [{ ...row, resolved: done.join(';') }])
  })
}

function altering(settle: Settle, name: string, alter: (cell: string) => string): Settle {
  return { ...settle, row: { ...settle.row, [name]: alter(settle.row[name]!) } }
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
          settle.kind === 'settled' ? [settle, altering(settle, 's_id', (id) => `${id}+again`)] : [settle],
        )
      : undefined,
  ),
  'another amount is charged than was told': onSettles((settles, chance) =>
    chance()
      ? settles.map((settle) => altering(settle, 's_charge', (charge) => String(BigInt(charge) + 1n)))
      : undefined,
  ),
  'a settlement is acknowledged and not written into the journal': (statement, values, _run, chance) => {
    if (!statement.name?.startsWith('journal_write') || !chance()) return undefined
    // One, or an array of them.
    const ids = String(values[Object.keys(JOURNAL).indexOf('id')]).replaceAll(/[{}"]/g, '').split(',')
    return Promise.resolve(ids.map((id) => ({ id })))
  },
  'what the dead wrote into the journal is never booked': (statement) =>
    statement.name === 'journal_unbooked' ? Promise.resolve([]) : undefined,
  'a settlement of the journal is booked twice': (statement, values, run) => {
    if (statement.name !== 'journal_post') return undefined
    const again = `insert into journal select (jsonb_populate_record(j, jsonb_build_object('id', j.id || '+again'))).* from journal j where process_id = $1`
    return run({ text: again }, [values[0] ?? null]).then(() => run(statement, values))
  },
  'a usage row is dropped': onFlush((flush, run, chance) => {
    if (!chance()) return undefined
    return flush.run(run).then(async (rows) => {
      await run({ text: 'delete from usage where id = (select min(id) from usage)' })
      return rows
    })
  }),
  'a hold is promised and not made': onFlush((flush, _run, chance) => {
    const wants = flush.read('r_want')
    if (!wants || flush.read('s_id') || flush.read('l_add') || !chance()) return undefined
    const reserved = [wants.map(() => 'held'), wants, wants, wants].join(';')
    return Promise.resolve([{ resolved: null, reserved, leased: null, details: null }])
  }),
  'the holds of the dead are never given back': (statement) =>
    statement.name === 'expire' ? Promise.resolve([{ gone: 0 }]) : undefined,
  'a lease is believed to be more than it is': onFlush((flush, run) => {
    if (!flush.read('l_add')) return undefined
    return flush.run<{ leased: string }>(run).then(([row]) => {
      const [added = '', ...rest] = row!.leased.split(';')
      const more = added.split(',').map((amount) => (Number(amount) > 0 ? String(Number(amount) * 3) : amount))
      return [{ ...row, leased: [more, ...rest].join(';') }]
    })
  }),
  'what a lease gives back is taken twice': onFlush((flush, run) => {
    const gives = flush.read('l_give')
    if (!gives?.some((give) => give !== '0')) return undefined
    return flush.run(run, { l_give: gives.map((give) => String(Number(give) * 2)) })
  }),
  'a process is taken for dead while it still believes in its leases': instead(
    'expire',
    'secs => $1',
    'secs => $1 - 19',
  ),
  'what is leased and asked for is not given back': (statement) =>
    statement.name === 'lease_recalled' ? Promise.resolve([]) : undefined,
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
  'a worker that has lost a job says that its order was taken': instead(
    'job_submitted',
    'and version = $2',
    'and $2::int > 0',
  ),
  'a worker that has lost a job says that it is being made': instead(
    'job_processing',
    'and version = $2',
    'and $2::int > 0',
  ),
  'a worker that has lost a job concludes it': instead('job_conclude', 'and version = $2', 'and $2::int > 0'),
  'a neglected job is never found': instead('job_neglected', 'where open', 'where open and false'),
  'a neglected delivery is never found': instead(
    'delivery_neglected',
    'where next_at is not null',
    'where next_at is not null and false',
  ),
}

/** Those that do harm in few stories, and what must happen for it. */
export const STAGES: Readonly<Record<string, Stage>> = {
  'what is leased and asked for is not given back': { fair: true },
  'a worker that has lost a job says that its order was taken': { stoppedBefore: /^job_submitted/ },
  'a worker that has lost a job says that it is being made': { stoppedBefore: /^job_processing/ },
  'a worker that has lost a job decides its end': { stoppedBefore: /^job_decide/ },
  'a worker that has lost a job concludes it': { stoppedBefore: /^job_conclude/ },
}
