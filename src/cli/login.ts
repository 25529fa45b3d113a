// Single sign-on on the command line, login links, and resets of second factors.
import { readFile } from 'node:fs/promises'
import type { LinkView, LoginPolicy, LoginProvider, NewToken, ProviderTest, TokenView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import { at, CliError, type Command, type Invocation, takes, text, told } from './command.ts'
import { card, list } from './table.ts'

function show(provider: LoginProvider): string {
  return card({
    ...provider,
    scopes: provider.scopes.join(' '),
    domains: provider.domains
      .map(({ domain, account, role, ssoOnly }) =>
        [domain, account, role, ssoOnly ? 'only' : ''].filter(Boolean).join(' '),
      )
      .join(', '),
    groups: provider.groups
      .map(({ group, account, role }) => [group, '=', account, role].filter(Boolean).join(' '))
      .join(', '),
  })
}

/** The secret comes from the environment or standard input, so that process lists do not show it. */
async function secretOf(call: Invocation): Promise<{ secret?: string }> {
  const name = text(call, 'secret-env')
  if (name === undefined) return {}
  const value = name === '-' ? (await call.input()).trim() : call.settings.credential(name)
  if (!value) throw new CliError(`There is no value for the client secret in ${name}.`)
  return { secret: value }
}

export const LOGIN_COMMANDS: readonly Command[] = [
  {
    name: 'login-providers list',
    summary: 'The OpenID Connect providers that people sign in by.',
    async run(call) {
      const { items } = await call.api.call<Page<LoginProvider>>('GET', '/login-providers')
      const columns = {
        ID: 'id',
        NAME: 'name',
        ISSUER: 'issuer',
        DOMAINS: (row: LoginProvider) => row.domains.map(({ domain }) => domain).join(','),
        ENABLED: 'enabled',
      } as const
      return list(items, columns, 'None yet. Add one with: tollgate login-providers set <id> <file>')
    },
  },
  {
    name: 'login-providers set',
    summary: 'Adds or replaces a login provider from a JSON file.',
    args: ['id', 'file'],
    about:
      'The file has the fields of PUT /login-providers/{id}: name, issuer, clientId, and if needed scopes, groupsClaim, domains, groups, provesSecondFactor, enabled.',
    options: {
      'secret-env': takes(
        'name',
        'The environment variable with the client secret; - reads it from the standard input. Without it, a stored secret stays.',
      ),
    },
    async run(call) {
      const [id, file = ''] = call.args
      const document = await readFile(file, 'utf8').catch((error: Error) => {
        throw new CliError(`${file} could not be read: ${error.message}`)
      })
      let fields: unknown
      try {
        fields = JSON.parse(document)
      } catch {
        throw new CliError(`${file} is not JSON.`)
      }
      if (typeof fields !== 'object' || fields === null) throw new CliError(`${file} is not a JSON object.`)
      const body = { ...fields, ...(await secretOf(call)) }
      return told(call.api.call<LoginProvider>('PUT', at`/login-providers/${id}`, body), show)
    },
  },
  {
    name: 'login-providers test',
    summary: 'Reads the metadata of a login provider.',
    args: ['id'],
    async run(call) {
      const answer = await call.api.call<ProviderTest>('POST', at`/login-providers/${call.args[0]}/test`)
      return { answer, words: answer.message, failed: !answer.ok }
    },
  },
  {
    name: 'login-providers remove',
    summary: 'Removes a login provider. People and memberships stay.',
    args: ['id'],
    run: (call) => told(call.api.call('DELETE', at`/login-providers/${call.args[0]}`), () => 'Removed.'),
  },
  {
    name: 'login-policy',
    summary: 'The roles that need a second factor; with --roles, sets them.',
    options: {
      roles: takes('list', 'Roles with commas between them; none: nobody needs one.'),
    },
    run(call) {
      const roles = text(call, 'roles')
      const words = ({ secondFactorRoles: all }: LoginPolicy) =>
        all.length === 0 ? 'No role needs a second factor.' : `These roles need a second factor: ${all.join(', ')}.`
      if (roles === undefined) return told(call.api.call<LoginPolicy>('GET', '/login-policy'), words)
      const secondFactorRoles = roles === 'none' ? [] : roles.split(',').map((role) => role.trim())
      return told(call.api.call<LoginPolicy>('PUT', '/login-policy', { secondFactorRoles }), words)
    },
  },
  {
    name: 'login-link',
    summary: 'Creates a link that signs somebody in once, within 15 minutes. Use it when a login provider is down.',
    args: ['email'],
    run: (call) => told(call.api.call<LinkView>('POST', '/login-links', { email: call.args[0] }), ({ link }) => link),
  },
  {
    name: 'second-factor-reset',
    summary: 'Removes all second factors of somebody who has lost them, and ends their sessions.',
    args: ['email'],
    run: (call) =>
      told(
        call.api.call<{ email: string }>('POST', '/second-factor-resets', { email: call.args[0] }),
        ({ email }) => `${email} has no second factor any more and is signed out everywhere.`,
      ),
  },
]

// Tokens of the operator API on the command line.

const ACCOUNT = {
  account: takes('account', 'Of this account; otherwise of the whole gateway.', { refersTo: 'account' }),
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
      scopes: takes(
        'list',
        'Rights such as keys:read, whole resources such as keys, or * for everything; with commas between.',
      ),
      expires: takes('time', 'When it ends, such as 2027-01-01T00:00:00Z; never by default.'),
      addresses: takes('list', 'Addresses or ranges from which it may be used; any by default.'),
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
