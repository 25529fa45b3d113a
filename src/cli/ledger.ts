// The verification and the archive of the ledger, which take a while: their progress is shown.
import { sleep } from '../kernel/timers.ts'
import type { ArchiveState, VerificationRun, VerificationState } from '../ledger/views.ts'
import { CliError, type Command, flag, type Invocation, takes } from './command.ts'
import { table } from './table.ts'

const LOOK_EVERY_MS = 500

/** Starts a run, or waits for the current one, and shows its progress. */
async function verified(call: Invocation, full: boolean): Promise<VerificationRun> {
  for (;;) {
    const begun = await call.api.call<VerificationRun>('POST', '/ledger/verify', { full })
    let shown = ''
    for (;;) {
      const { running, last } = await call.api.call<VerificationState>('GET', '/ledger/verify')
      if (running?.id !== begun.id) {
        if (!last) throw new CliError('The verification was interrupted.')
        // The run that was in progress was not a full one: start another.
        if (full && !last.full) break
        return last
      }
      const { accounts, total } = running.progress
      const line = total > 0 ? `${accounts} of ${total} accounts, ${running.checked.transfers} transfers …\n` : ''
      if (line !== shown) call.note(line)
      shown = line
      await sleep(call.world, LOOK_EVERY_MS)
    }
  }
}

/** Starts what is due, or the check of a month, and shows how far it has come. */
async function archived(call: Invocation, check: string | undefined): Promise<ArchiveState> {
  let state = await call.api.call<ArchiveState>('POST', '/ledger/archive', check === undefined ? {} : { check })
  for (let shown = ''; state.running; state = await call.api.call<ArchiveState>('GET', '/ledger/archive')) {
    const { month, accounts, transfers } = state.months.find(({ running }) => running) ?? {}
    const line = `${month}: ${transfers} transfers of ${accounts} accounts …\n`
    if (line !== shown) call.note(line)
    shown = line
    await sleep(call.world, LOOK_EVERY_MS)
  }
  return state
}

function archiveWords({ place, due, waitsFor, months }: ArchiveState): string[] {
  if (place === null) return ['No place is set for the archive, so nothing is archived: TOLLGATE_LEDGER_ARCHIVE.']
  const rows = months.map(({ archivedAt, checkedAt, failure, problems, bytes, ...month }) => ({
    ...month,
    size: `${(bytes / 1_048_576).toFixed(1)} MB`,
    state: failure ?? (archivedAt === null ? 'not complete' : problems.length > 0 ? problems.join(' ') : 'archived'),
    checked: checkedAt ?? '',
  }))
  const columns = {
    MONTH: 'month',
    TRANSFERS: 'transfers',
    ACCOUNTS: 'accounts',
    SIZE: 'size',
    STATE: 'state',
    CHECKED: 'checked',
    FOLDER: 'folder',
  } as const
  const waits = waitsFor === null ? [] : [`${due.join(', ')} could be archived, but: ${waitsFor}`]
  return [
    ...(rows.length > 0 ? [table(rows, columns)] : ['No month is in the archive yet.']),
    `It lies in ${place}.`,
    ...waits,
  ]
}

export const LEDGER_COMMANDS: readonly Command[] = [
  {
    name: 'ledger verify',
    summary: 'Verifies the ledger: balances, holds, limits, usage, jobs, grants, and every charge from its rates.',
    about:
      'Continues where the last run ended, and shows its progress. Exits with 1 when something does not add up. May run while the gateway is under load.',
    options: { full: flag('Reads everything from the beginning.') },
    async run(call) {
      const answer = await verified(call, call.values.full === true)
      const counts = Object.entries(answer.checked).map(([what, count]) => `${count} ${what}`)
      const found = answer.ok ? ['Everything adds up.'] : answer.problems.map((problem) => `  ${problem}`)
      if (answer.failure !== null) found.push(`It could not come to an end: ${answer.failure}`)
      const took = ((answer.durationMs ?? 0) / 1000).toFixed(1)
      const checked = `Checked ${counts.join(', ')}. Recomputed the price and cost of ${answer.checked.charges} calls. Took ${took} s.`
      return { answer, words: [checked, ...found].join('\n'), failed: !answer.ok }
    },
  },
  {
    name: 'ledger archive',
    summary: 'Archives the months of the ledger that are due, or checks one again from its files.',
    about:
      'The gateway does the same by itself every hour. Shows its progress, then all months. Exits with 1 when a month could not be archived or is not what was archived. May run under load.',
    options: { check: takes('month', 'Reads the files of this month again, and compares them with its checkpoints.') },
    async run(call) {
      const check = typeof call.values.check === 'string' ? call.values.check : undefined
      const answer = await archived(call, check)
      const failed = answer.months.some(({ failure, problems }) => failure !== null || problems.length > 0)
      return { answer, words: archiveWords(answer).join('\n'), failed }
    },
  },
]
