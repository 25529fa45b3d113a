import type { CredentialView, VendorTest, VendorView } from '../http/views.ts'
import type { Page } from '../kernel/view.ts'
import { CliError, type Command } from './command.ts'
import { table } from './table.ts'

const vendorPath = (name: string, rest: string) => `/vendors/${encodeURIComponent(name)}/${rest}`

export const VENDOR_COMMANDS: readonly Command[] = [
  {
    name: 'vendors list',
    summary: 'The vendors, whether they have their credential, and how they do.',
    async run(call) {
      const { items } = await call.api.call<Page<VendorView>>('GET', '/vendors')
      if (call.json) return call.say(JSON.stringify(items))
      call.say(
        table(
          ['VENDOR', 'ADDRESS', 'CREDENTIAL', 'BREAKER', 'CALLS', 'ERRORS', 'P50 MS', 'LAST ERROR'],
          items.map((row) => [
            row.name,
            row.simulated ? 'simulated' : row.baseUrl,
            row.credential.name === null ? 'none needed' : `${row.credential.name}: ${row.credential.source}`,
            row.breaker,
            row.requests,
            row.errors,
            row.latencyMsP50,
            row.lastError,
          ]),
        ),
      )
    },
  },
  {
    name: 'vendors test',
    summary: 'Asks a vendor something harmless, and says whether it answers.',
    args: ['vendor'],
    async run(call) {
      const result = await call.api.call<VendorTest>('POST', vendorPath(call.args[0]!, 'test'))
      if (call.json) call.say(JSON.stringify(result))
      else call.say(`${result.message} (status ${result.status ?? 'none'}, ${Math.round(result.latencyMs)} ms)`)
      return result.ok ? 0 : 1
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
      const stored = await call.api.call<CredentialView>('PUT', vendorPath(call.args[0]!, 'credential'), { value })
      call.say(call.json ? JSON.stringify(stored) : `Stored as ${stored.name}.`)
    },
  },
  {
    name: 'vendors forget',
    summary: 'Removes a stored credential.',
    args: ['vendor'],
    async run(call) {
      const removed = await call.api.call<CredentialView>('DELETE', vendorPath(call.args[0]!, 'credential'))
      call.say(call.json ? JSON.stringify(removed) : `${removed.name} is no longer stored.`)
    },
  },
]
