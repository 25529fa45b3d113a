// A call with its arithmetic, and the verification of the ledger.
import { sleep } from '../kernel/timers.ts'
import type { ArchiveState, UsageDetail, VerificationRun, VerificationState } from '../ledger/views.ts'
import { unitRow } from '../meter/kind.ts'
import { at, CliError, type Command, flag, type Invocation, takes } from './command.ts'
import { accountNames } from './names.ts'
import { card, table } from './table.ts'

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

const seconds = (ms: number) => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`)

/** "3 minutes ago" */
function ago(at: string, nowMs: number): string {
  const passed = Math.max(0, nowMs - Date.parse(at)) / 1_000
  const [size, unit] =
    passed < 60
      ? ([1, 'second'] as const)
      : passed < 3_600
        ? ([60, 'minute'] as const)
        : passed < 172_800
          ? ([3_600, 'hour'] as const)
          : ([86_400, 'day'] as const)
  const count = Math.floor(passed / size)
  return `${count} ${unit}${count === 1 ? '' : 's'} ago`
}

/** An empty cell. */
const BLANK = ' '

/** The charge, line by line, with their sum. */
function arithmetic({ lines, charged }: UsageDetail): string[] {
  if (lines.length === 0) return []
  const rows = [
    ...lines.map(({ unit, quantity, rate, per, amount }) => ({
      ...{ unit: quantity === 1 ? unitRow(unit).one : unitRow(unit).many, quantity, rate, amount },
      per: per === 1 ? 'each' : `per ${per.toLocaleString('en')}`,
    })),
    { unit: 'total', quantity: BLANK, rate: BLANK, amount: charged, per: BLANK },
  ]
  const columns = { UNIT: 'unit', QUANTITY: 'quantity', CREDITS: 'rate', ' ': 'per', AMOUNT: 'amount' } as const
  return [table(rows, columns), 'The total is rounded up to a millionth of a credit.']
}

function showCall(answer: UsageDetail, account: string, nowMs: number): string {
  const { id, at: when, product, endpoint, keyName, keyId, status, durationMs, firstByteMs, message } = answer
  const began = firstByteMs === null ? '' : `, first byte after ${seconds(firstByteMs)}`
  const attempts = answer.attemptLog?.attempts.length ?? 0
  const facts: Record<string, unknown> = {
    ...{ call: id, time: `${when.slice(0, 19).replace('T', ' ')} UTC, ${ago(when, nowMs)}` },
    ...{ account, key: keyName ?? keyId, model: product, endpoint },
    outcome: `${answer.outcome}, status ${status}`,
    ...(message === null ? {} : { cause: message }),
    credits: `${answer.charged} charged, ${answer.held} reserved before the call`,
    ...(answer.cost === undefined || answer.cost === null ? {} : { cost: `${answer.cost} credits to the vendor` }),
    ...(answer.vendor ? { vendor: answer.vendor } : {}),
    ...(answer.credential ? { credential: answer.credential } : {}),
    duration: `${seconds(durationMs)}${began}${answer.stream ? ', streamed' : ''}`,
    ...(attempts > 1 ? { attempts } : {}),
    ...(answer.client === '' ? {} : { agent: answer.client }),
    ...(answer.job === null ? {} : { job: answer.job }),
    ...(answer.content ? { content: `logged; read it with: tollgate content read ${id}` } : {}),
    ...(answer.trace === undefined ? {} : { trace: answer.trace }),
  }
  return [card(facts), ...arithmetic(answer)].join('\n\n')
}

export const MONEY_COMMANDS: readonly Command[] = [
  {
    name: 'usage show',
    summary: 'Shows one call and how its charge was computed.',
    args: ['call'],
    async run(call) {
      const answer = await call.api.call<UsageDetail>('GET', at`/usage/${call.args[0]}`)
      const names = await accountNames(call.api, [answer.account])
      const account = names.get(answer.account) ?? answer.account
      return { answer, words: showCall(answer, account, call.world.nowMs()) }
    },
  },
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
