// The archive takes a while: its progress is shown.
import { type Command, type Invocation, takes } from '../../cli/command.ts'
import { table } from '../../cli/table.ts'
import { sleep } from '../../kernel/timers.ts'
import type { ArchiveState } from './views.ts'

const LOOK_EVERY_MS = 500

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

export const ARCHIVE_COMMAND: Command = {
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
}
