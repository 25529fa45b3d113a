// Tokens of the operator API on the command line.
import type { NewToken, TokenView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import { at, CliError, type Command, type Invocation, text, told } from './command.ts'
import { card, list } from './table.ts'

const ACCOUNT = {
  account: {
    type: 'string',
    value: 'account',
    refersTo: 'account',
    help: 'Of this account; otherwise of the whole gateway.',
  },
} as const

function pathOf(call: Invocation): string {
  const account = text(call, 'account')
  return account === undefined ? '/tokens' : at`/accounts/${account}/tokens`
}

const words = (value: string | undefined) => value?.split(/[\s,]+/).filter(Boolean)

export const TOKEN_COMMANDS: readonly Command[] = [
  {
    name: 'tokens list',
    summary: 'The tokens of the operator API, and when each was last used.',
    options: ACCOUNT,
    async run(call) {
      const { items } = await call.api.call<Page<TokenView>>('GET', pathOf(call))
      const rows = items.map((row) => ({ ...row, scopes: row.scopes.join(' ') }))
      const columns = {
        NAME: 'name',
        SCOPES: 'scopes',
        EXPIRES: 'expiresAt',
        'LAST USE': 'lastUsedAt',
        REVOKED: 'revokedAt',
        ID: 'id',
      } as const
      return list(rows, columns, 'No tokens yet. Create one with: tollgate tokens create <name> --scopes <rights>')
    },
  },
  {
    name: 'tokens create',
    summary: 'Creates a token and prints it, once.',
    args: ['name'],
    options: {
      ...ACCOUNT,
      scopes: {
        type: 'string',
        value: 'list',
        help: 'Rights such as keys:read, whole resources such as keys, or * for everything; with commas between.',
      },
      expires: { type: 'string', value: 'time', help: 'When it ends, such as 2027-01-01T00:00:00Z; never by default.' },
      addresses: {
        type: 'string',
        value: 'list',
        help: 'Addresses or ranges from which it may be used; any by default.',
      },
    },
    run(call) {
      const scopes = words(text(call, 'scopes'))
      if (!scopes) throw new CliError('Say what it may do with --scopes, for example --scopes accounts:read,keys.', 2)
      const [expiresAt = null, ipRanges = null] = [text(call, 'expires'), words(text(call, 'addresses'))]
      const body = { name: call.args[0], scopes, expiresAt, ipRanges }
      return told(call.api.call<NewToken>('POST', pathOf(call), body), (made) =>
        card({ id: made.id, token: made.token, scopes: made.scopes.join(' ') }),
      )
    },
  },
  {
    name: 'tokens revoke',
    summary: 'Ends a token at once.',
    args: ['tokenId'],
    options: ACCOUNT,
    run: (call) => told(call.api.call('DELETE', `${pathOf(call)}${at`/${call.args[0]}`}`), () => 'Revoked.'),
  },
]
