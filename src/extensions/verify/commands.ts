// The verification of the ledger, which takes a while: its progress is shown.

import { CliError, type Command, flag, type Invocation } from '../../cli/command.ts'
import { sleep } from '../../kernel/timers.ts'
import type { VerificationRun, VerificationState } from './views.ts'

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

export const VERIFY_COMMAND: Command = {
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
}
