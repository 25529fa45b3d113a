import type { Page } from '../kernel/view.ts'
import type { OwnKeyStored, OwnKeyView } from '../operator/views.ts'
import { at, CliError, type Command, text, told } from './command.ts'
import { table } from './table.ts'

function feeInWords(fee: OwnKeyView['fee']): string {
  if (fee === null) return 'by model'
  const share = fee.share === undefined ? undefined : `${fee.share} of the price`
  const call = fee.call === undefined ? undefined : `${fee.call} a call`
  return [call, share].filter((part) => part !== undefined).join(' + ')
}

function inWords(items: readonly OwnKeyView[]): string {
  return table([...items], {
    VENDOR: 'vendor',
    KEY: ({ stored, last4 }) => (stored ? `stored${last4 === null ? '' : ` …${last4}`}` : 'none'),
    FALLBACK: ({ stored, fallback }) => (stored ? (fallback ? 'yes' : 'no') : ''),
    FEE: ({ fee, taken }) => (taken ? feeInWords(fee) : 'not taken any more'),
    MODELS: ({ products }) => products.map(({ uid }) => uid).join(', '),
  })
}

export const OWN_KEY_COMMANDS: readonly Command[] = [
  {
    name: 'own-keys list',
    summary: 'Lists the vendors for which an account may bring its own key, and its keys.',
    args: ['account'],
    async run(call) {
      const { items } = await call.api.call<Page<OwnKeyView>>('GET', at`/accounts/${call.args[0]}/own-keys`)
      return { answer: items, words: inWords(items) }
    },
  },
  {
    name: 'own-keys set',
    summary: 'Tests an account’s own key at a vendor and stores it, encrypted; or changes the fallback.',
    args: ['account', 'vendor'],
    about:
      'Calls of the account then go by it and cost the fee of the catalog instead of the price. The key is read from standard input with --key-stdin, because arguments end up in the history of the shell.',
    options: {
      'key-stdin': { type: 'boolean', help: 'Reads the key from standard input' },
      fallback: {
        type: 'string',
        value: 'yes|no',
        help: 'Whether calls may use the gateway’s credential, at the full price, if the key fails; no by default',
      },
    },
    async run(call) {
      const value = call.values['key-stdin'] ? (await call.input()).trim() : undefined
      const fallback = text(call, 'fallback')
      if (fallback !== undefined && fallback !== 'yes' && fallback !== 'no')
        throw new CliError('--fallback is yes or no.', 2)
      if (!value && fallback === undefined) throw new CliError('Give --key-stdin, --fallback or both.', 2)
      const stored = await call.api.call<OwnKeyStored>('PUT', at`/accounts/${call.args[0]}/own-keys/${call.args[1]}`, {
        ...(value ? { value } : {}),
        ...(fallback === undefined ? {} : { fallback: fallback === 'yes' }),
      })
      const said = stored.test ? `${stored.test.message}\n` : ''
      return { answer: stored, words: `${said}${inWords(stored.items.filter((one) => one.stored))}` }
    },
  },
  {
    name: 'own-keys remove',
    summary: 'Removes an account’s own key at a vendor: its calls cost the price again.',
    args: ['account', 'vendor'],
    run: (call) =>
      told(
        call.api.call<Page<OwnKeyView>>('DELETE', at`/accounts/${call.args[0]}/own-keys/${call.args[1]}`),
        () => 'It is no longer stored.',
      ),
  },
]
