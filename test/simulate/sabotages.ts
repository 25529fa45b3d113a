// Ways to break the gateway on purpose, each at the one statement where it would do its harm. A simulator that lets one
// of them pass proves nothing.
import type { Value } from '../../src/database/database.ts'
import { Fault } from '../../src/kernel/fault.ts'
import type { Sabotage, Stage } from './faulty-database.ts'

/** A row of the journal, or what else a statement of the ledger has in its JSON. */
type StatementRow = Readonly<Record<string, unknown>>

function rowsOf(value: Value | undefined): StatementRow[] {
  const rows: unknown = JSON.parse(String(value))
  if (!Array.isArray(rows)) throw new Error('a statement of the ledger cannot be read in this way any more')
  return rows as StatementRow[]
}

type Settle = StatementRow & { readonly id: string; readonly outcome: string; readonly charged: string }
type Settled = readonly [id: string, outcome: string, paid: string, loss: string, hold: string]

/**
 * Those that settlements go with now: what would be written into the journal goes directly, as it does when that fails.
 */
function onResolve(alter: (...of: Parameters<Sabotage>) => ReturnType<Sabotage>): Sabotage {
  return (statement, ...rest) => {
    if (statement.name?.startsWith('journal_write')) return Promise.reject(new Fault('unavailable'))
    return statement.name === 'ledger_resolve' ? alter(statement, ...rest) : undefined
  }
}

/** Alters settlements; those that are left out are answered as if they had been made. */
function onSettles(alter: (settles: Settle[], chance: () => boolean) => Settle[] | undefined): Sabotage {
  return onResolve((statement, [account, calls], run, chance) => {
    const asked = rowsOf(calls) as Settle[]
    if (asked.some(({ charged }) => charged === undefined))
      throw new Error('a settlement cannot be read in this way any more')
    const altered = alter(asked, chance)
    if (!altered) return undefined
    return run<{ answer: Settled[] }>(statement, [account!, JSON.stringify(altered)]).then(([row]) => {
      const made = new Map(row!.answer.map((one) => [one[0], one]))
      const answer = asked.map(({ id, outcome, charged }): Settled => made.get(id) ?? [id, outcome, charged, '0', '0'])
      // What was told is what was asked for.
      return [
        {
          answer: answer.map(([id, outcome, paid, ...rest], i) => [
            id,
            outcome,
            outcome === asked[i]!.outcome ? asked[i]!.charged : paid,
            ...rest,
          ]),
        },
      ]
    })
  })
}

type Leased = StatementRow & { readonly added: string | null }

/** Alters what is asked for or answered of leases. */
function onLease(ask: (change: StatementRow) => StatementRow, answer: (leased: Leased) => Leased): Sabotage {
  return (statement, [account, process, changes, version], run) => {
    if (statement.name !== 'ledger_lease') return undefined
    const asked = rowsOf(changes)
    if (asked.some(({ give, add }) => give === undefined || add === undefined))
      throw new Error('a change of a lease cannot be read in this way any more')
    return run<{ answer: Leased[] }>(statement, [account!, process!, JSON.stringify(asked.map(ask)), version!]).then(
      ([row]) => [{ answer: row!.answer.map(answer) }],
    )
  }
}

const asIs = <T>(it: T): T => it

type Slice = StatementRow & { readonly version?: string }

/**
 * Alters what a process says of the gateway's limits, or is answered. The parameters are those of
 * functions/quota-slice.sql.
 */
function onShare(say: (values: Value[]) => Value[], answer: (slice: Slice) => Slice): Sabotage {
  return (statement, values, run) => {
    if (statement.name !== 'ledger_quota_slice') return undefined
    return run<{ answer: Slice }>(statement, say([...values])).then(([row]) => [{ answer: answer(row!.answer) }])
  }
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
    settles.some(({ outcome }) => outcome === 'settled') && chance()
      ? settles.filter(({ outcome }) => outcome !== 'settled')
      : undefined,
  ),
  'a release is forgotten': onSettles((settles, chance) =>
    settles.some(({ outcome }) => outcome === 'released') && chance()
      ? settles.filter(({ outcome }) => outcome !== 'released')
      : undefined,
  ),
  'a charge is made twice': onSettles((settles, chance) =>
    settles.some(({ outcome }) => outcome === 'settled') && chance()
      ? settles.flatMap((settle) =>
          settle.outcome === 'settled' ? [settle, { ...settle, id: `${settle.id}+again` }] : [settle],
        )
      : undefined,
  ),
  'another amount is charged than was told': onSettles((settles, chance) =>
    chance() ? settles.map((settle) => ({ ...settle, charged: String(BigInt(settle.charged) + 1n) })) : undefined,
  ),
  'a settlement is acknowledged and not written into the journal': (statement, [rows], _run, chance) => {
    if (!statement.name?.startsWith('journal_write') || !chance()) return undefined
    return Promise.resolve(rowsOf(rows).map(({ id }) => ({ id })))
  },
  // A process that posts rows of an account posts those of others with them.
  'what the dead wrote into the journal is never posted': (statement, [account, told], run) => {
    const { name } = statement
    if (name === 'journal_unposted' || name === 'journal_of_account') return Promise.resolve([])
    return name === 'ledger_post' ? run(statement, [account!, told!, false]) : undefined
  },
  'a settlement of the journal is posted twice': (statement, values, run) => {
    if (statement.name !== 'ledger_post') return undefined
    const again = `insert into journal select (jsonb_populate_record(j, jsonb_build_object('id', j.id || '+again'))).* from journal j where account_id = $1`
    return run({ text: again }, values).then(() => run(statement, values))
  },
  'a usage row is dropped': onResolve((statement, values, run, chance) => {
    if (!chance()) return undefined
    return run(statement, values).then(async (rows) => {
      await run({ text: 'delete from usage where id = (select min(id) from usage)' })
      return rows
    })
  }),
  'a hold is promised and not made': (statement, [, , calls], _run, chance) => {
    if (statement.name !== 'ledger_reserve' || !chance()) return undefined
    return Promise.resolve([{ answer: rowsOf(calls).map(({ want }) => ({ as: 'held', amount: want })) }])
  },
  'the holds of the dead are never given back': ({ name }) =>
    name === 'ledger_expire' ? Promise.resolve([{ answer: [0, '0'] }]) : undefined,
  'a lease is believed to be more than it is': onLease(asIs, (leased) => ({
    ...leased,
    added: leased.added && String(BigInt(leased.added) * 3n),
  })),
  'what a lease gives back is taken twice': onLease(
    ({ give, ...change }) => ({ ...change, give: String(BigInt(String(give)) * 2n) }),
    asIs,
  ),
  'a process is taken for dead while it still believes in its leases': (...of) =>
    instead('ledger_silent', /secs => \$1/g, 'secs => $1 - 19')(...of) ??
    instead('ledger_expire', 'secs => $2', 'secs => $2 - 19')(...of),
  'a slice of the gateway’s limits is believed to be more than it is': onShare(asIs, (slice) => {
    const more = Object.entries(slice).filter(([name]) => /^(credits|calls|requests|tokens)$/.test(name))
    return {
      ...slice,
      ...Object.fromEntries(more.map(([name, amount]) => [name, String(BigInt(String(amount)) * 3n)])),
    }
  }),
  'what calls hold of the gateway’s limits is given to others': onShare(
    (values) => values.with(2, JSON.stringify({ credits: '0', calls: 0 })),
    asIs,
  ),
  'what was not used of the gateway’s minute is given back three times': onShare(
    (values) => values.with(3, JSON.stringify(rowsOf(values[3]).flatMap((row) => [row, row, row]))),
    asIs,
  ),
  'what is leased and asked for is not given back': (statement) =>
    statement.name === 'lease_recalled' ? Promise.resolve([]) : undefined,
  'a submission of which nothing is known is made again': (statement, values, run) => {
    if (statement.name !== 'job_take') return undefined
    return run<Record<string, unknown>>(statement, values).then(async (rows) => {
      await run({ text: 'update job set submit_started_at = null where id = any($1) and task_id is null' }, [
        rows.map(({ id }) => id as string), // It is the id of a job.
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
    'job_release',
    `e.ending ? 'afterMs'`,
    `e.ending ? 'afterMs' and e.version % 5 > 0`,
  ),
  'a job is taken from a worker that has it': instead(
    'job_take',
    /and \(lease_until is null or lease_until < now\(\)\)/g,
    '',
  ),
  'a worker that has lost a job puts it down': instead('job_release', 'and job.version = e.version', ''),
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
  'a job that a dead worker had is never found': instead('job_take', /or lease_until < now\(\)/g, ''),
  'a delivery that a dead worker had is never found': instead('delivery_take', /or lease_until < now\(\)/g, ''),
}

/** Of several ledgers. */
export const LEDGER_SABOTAGES: Readonly<Record<string, Sabotage>> = {
  'a grant that crosses a move is made twice': (statement, [id, ...values], run) => {
    if (statement.name !== 'grant_once') return undefined
    const again = String(id).replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    return run(statement, [id!, ...values]).then((rows) => run(statement, [again, ...values]).then(() => rows))
  },
  'what was written while a move copied is not copied': instead('move_page_transfer', '>= $3', '>= $3 and false'),
}

/** Those that do harm in few stories, and what must happen for it. */
export const STAGES: Readonly<Record<string, Stage>> = {
  'what is leased and asked for is not given back': { fair: true },
  'a slice of the gateway’s limits is believed to be more than it is': { limited: true },
  'what calls hold of the gateway’s limits is given to others': { limited: true },
  'what was not used of the gateway’s minute is given back three times': { limited: true },
  'a worker that has lost a job says that its order was taken': { stoppedBefore: /^job_submitted/ },
  'a worker that has lost a job says that it is being made': { stoppedBefore: /^job_processing/ },
  'a worker that has lost a job decides its end': { stoppedBefore: /^job_decide/ },
  'a worker that has lost a job concludes it': { stoppedBefore: /^job_conclude/ },
  'a delivery that a dead worker had is never found': { diesBefore: /^delivery_release/ },
}
