// The comparison of payments with the provider's list on the command line.

import { type Command, takes, text } from '../../cli/command.ts'
import { type Columns, table } from '../../cli/table.ts'
import type { Difference, ReconciliationView } from './views.ts'

const DIFFERENCES: Columns<Difference> = {
  ...({ PAYMENT: 'payment', ACCOUNT: 'account', 'AT THE PROVIDER': 'providerId', PROBLEM: 'problem' } as const),
  CORRECTED: ({ corrected }) => (corrected ? 'yes' : 'no'),
}
function showRun({ checked, differences, failure }: ReconciliationView): string {
  if (failure !== null) return `It failed: ${failure}`
  if (differences.length === 0) return `${checked} payments compared. None differs.`
  return [`${checked} payments compared. ${differences.length} differ:`, table(differences, DIFFERENCES)].join('\n\n')
}

export const PAYMENT_COMMANDS: readonly Command[] = [
  {
    name: 'payments reconcile',
    summary: 'Compares payments with Stripe’s own list now, and names every difference.',
    about: 'It runs every night too. Exits with 1 if a difference is left.',
    options: {
      from: takes('time', 'Since then; by default since the last time, and three days before it.'),
      to: takes('time', 'Until then; by default now.'),
    },
    async run(call) {
      const range = { from: text(call, 'from'), to: text(call, 'to') }
      const run = await call.api.call<ReconciliationView>('POST', '/reconciliations', range)
      const failed = run.failure !== null || run.differences.some(({ corrected }) => !corrected)
      return { answer: run, words: showRun(run), failed }
    },
  },
]
