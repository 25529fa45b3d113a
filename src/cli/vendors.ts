import type { Page } from '../kernel/view.ts'
import type { CredentialView, VendorCredentialView, VendorView } from '../operator/views.ts'
import type { VendorTest } from '../routing/views.ts'
import { at, CliError, type Command, type Invocation, told } from './command.ts'
import { table } from './table.ts'

/** What a test did, a line for each request. */
export function testInWords({ steps, message, ok }: VendorTest): string {
  const lines = steps.map(
    ({ method, address, status, latencyMs, message: said }) =>
      `${method} ${address}: ${status ?? 'no answer'} in ${latencyMs} ms. ${said}`,
  )
  return ok ? lines.join('\n') : [...lines, `Not working: ${message}`].join('\n')
}

const CREDENTIAL_COLUMNS: Parameters<typeof table<VendorCredentialView>>[1] = {
  CREDENTIAL: 'name',
  ENDS: ({ last4 }) => (last4 === null ? '' : `…${last4}`),
  FROM: 'source',
  WEIGHT: 'weight',
  'SET ASIDE UNTIL': ({ asideUntil }) => asideUntil ?? '',
  WHY: ({ why, status }) => (why === null ? '' : `${why} (${status})`),
  'LAST SUCCESS': ({ lastSuccessAt }) => lastSuccessAt ?? '',
}

async function changedCredentials(call: Invocation): Promise<Page<VendorCredentialView>> {
  const [vendor] = call.args
  const { set, remove, weight, force } = call.values
  if (set !== undefined && remove !== undefined) throw new CliError('Give either --set or --remove.', 2)
  if (remove !== undefined)
    return call.api.call(
      'DELETE',
      `${at`/vendors/${vendor}/credentials/${String(remove)}`}${force ? '?force=true' : ''}`,
    )
  if (set === undefined) return call.api.call('GET', at`/vendors/${vendor}/credentials`)
  const value = call.values['key-stdin'] ? (await call.input()).trim() : call.settings.credential(String(set))
  if (call.values['key-stdin'] && !value) throw new CliError('There was no credential on standard input.', 2)
  return call.api.call('PUT', at`/vendors/${vendor}/credentials/${String(set)}`, {
    ...(value ? { value } : {}),
    ...(weight === undefined ? {} : { weight: Number(weight) }),
  })
}

export const VENDOR_COMMANDS: readonly Command[] = [
  {
    name: 'vendors list',
    summary: 'Lists vendors with their credentials and health.',
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
    summary: 'Tests a vendor: lists its models and makes the smallest real call.',
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
    about: 'It cannot be an argument, because arguments end up in the shell history.',
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
    name: 'vendors credentials',
    summary: 'The credentials of one vendor: lists them, or adds, changes or removes one of several.',
    args: ['vendor'],
    about:
      'A credential that is refused or limited is put aside by itself, and the others go on. Without --key-stdin the value is taken from this shell where it has a variable of that name; otherwise the gateway must have it.',
    options: {
      set: { type: 'string', value: 'NAME', help: 'Adds this credential, or changes its value or weight' },
      weight: { type: 'string', value: 'n', help: 'Its weight relative to the others; 1 by default' },
      'key-stdin': { type: 'boolean', help: 'Reads the value from standard input' },
      remove: { type: 'string', value: 'NAME', help: 'Removes this one' },
      force: { type: 'boolean', help: 'Even if it has running jobs' },
    },
    async run(call) {
      const { items } = await changedCredentials(call)
      return { answer: items, words: table(items, CREDENTIAL_COLUMNS) }
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
