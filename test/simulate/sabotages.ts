// Ways to break the gateway on purpose, each at the one statement where it would do its harm. A simulator that lets one of
// them pass proves nothing.
import type { Queryable, Statement, Value } from '../../src/database/database.ts'
import type { Sabotage } from './faulty-database.ts'

interface Settle {
  readonly i: number
  readonly id: string
  readonly kind: string
  readonly charge: string
}

/** Alters the settlements of a flush; those that are left out are answered as if they had been made. */
function onSettles(alter: (settles: Settle[], chance: () => boolean) => Settle[] | undefined): Sabotage {
  return (statement, values, run, chance) => {
    if (statement.name !== 'ledger_flush') return undefined
    const settles = JSON.parse(String(values[2])) as Settle[]
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
  const numbered = altered.map((settle, i) => ({ ...settle, i }))
  const [row] = await run<{ flushed: { settles: unknown[]; reserves: unknown[] } }>(statement, [
    values[0]!,
    values[1]!,
    JSON.stringify(numbered),
    values[3]!,
  ])
  const done = asked.map(({ i, kind, charge }) => [i, kind, charge, '0', '0', '0'])
  return [{ flushed: { ...row!.flushed, settles: done } }]
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
    const reserves = statement.name === 'ledger_flush' ? (JSON.parse(String(values[3])) as Array<{ want: string }>) : []
    if (reserves.length === 0 || String(values[2]) !== '[]' || !chance()) return undefined
    const held = reserves.map(({ want }, i) => [i, 'held', want, want, want, null])
    return Promise.resolve([{ flushed: { settles: null, reserves: held } }])
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
  'a neglected job is never found': instead('job_neglected', 'where open', 'where open and false'),
}
