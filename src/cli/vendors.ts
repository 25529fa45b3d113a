import type { CredentialView, VendorView } from '../http/views.ts'
import type { Page } from '../kernel/view.ts'
import type { VendorTest } from '../routing/views.ts'
import { at, CliError, type Command, told } from './command.ts'
import { table } from './table.ts'

/** What a test did, a line for each request. */
export function testInWords({ steps, message, ok }: VendorTest): string {
  const lines = steps.map(
    ({ method, address, status, latencyMs, message: said }) =>
      `${method} ${address}: ${status ?? 'no answer'} in ${latencyMs} ms. ${said}`,
  )
  return ok ? lines.join('\n') : [...lines, `Not working: ${message}`].join('\n')
}

export const VENDOR_COMMANDS: readonly Command[] = [
  {
    name: 'vendors list',
    summary: 'The vendors, whether they have their credential, and how they do.',
    async run(call) {
      const { items } = await call.api.call<Page<VendorView>>('GET', '/vendors')
      const words = table(items, {
        VENDOR: 'name',
        ADDRESS: (row) => (row.simulated ? 'simulated' : row.baseUrl),
        CREDENTIAL: ({ credential: { name, source } }) => (name === null ? 'none needed' : `${name}: ${source}`),
        BREAKER: 'breaker',
        CALLS: 'requests',
        ERRORS: 'errors',
        'P50 MS': 'latencyMsP50',
        'LAST ERROR': 'lastError',
      })
      return { answer: items, words }
    },
  },
  {
    name: 'vendors test',
    summary: 'Lists a vendor’s models and makes the smallest real call, and says what came of it.',
    args: ['vendor'],
    async run(call) {
      const answer = await call.api.call<VendorTest>('POST', at`/vendors/${call.args[0]}/test`)
      return { answer, words: testInWords(answer), failed: !answer.ok }
    },
  },
  {
    name: 'vendors credential',
    summary: 'Stores a vendor’s credential, encrypted. Reads it from standard input.',
    args: ['vendor'],
    about: 'It is not taken as an argument, because arguments end up in the history of the shell.',
    async run(call) {
      const value = (await call.input()).trim()
      if (!value)
        throw new CliError(
          'Give the credential on standard input, for example: tollgate vendors credential NAME < file',
          2,
        )
      const stored = call.api.call<CredentialView>('PUT', at`/vendors/${call.args[0]}/credential`, { value })
      return told(stored, ({ name }) => `Stored as ${name}.`)
    },
  },
  {
    name: 'vendors forget',
    summary: 'Removes a stored credential.',
    args: ['vendor'],
    run: (call) =>
      told(
        call.api.call<CredentialView>('DELETE', at`/vendors/${call.args[0]}/credential`),
        ({ name }) => `${name} is no longer stored.`,
      ),
  },
]
