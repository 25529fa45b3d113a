// The OpenID Connect providers for logins, as data: the address of each, the email domains for which it alone is
// responsible, and the accounts and roles that its groups and domains give. A client secret is a sealed credential
// named `login-<id>`.
import { accountUnknown } from '../../admission/accounts.ts'
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { type MayGive, requireCovered } from '../../identity/people.ts'
import type { AnyRole } from '../../identity/roles.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { asView } from '../../kernel/view.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import type { OidcClient } from './oidc.ts'
import { type LoginProvider, loginProvider } from './views.ts'

export type StoredProvider = Omit<LoginProvider, 'hasSecret' | 'redirectUri' | 'backchannelLogoutUri'>

interface ProviderInput extends Omit<StoredProvider, 'id' | 'updatedAt'> {
  /** Absent: it stays. */
  readonly secret?: string | undefined
}

export type Providers = ReturnType<typeof createProviders>

interface ProviderDeps extends Pick<CoreParts, 'database' | 'audit'> {
  readonly credentials: Pick<Credentials, 'get' | 'storeWith' | 'noticed' | 'remove'>
  readonly guard: Pick<GuardedFetch, 'check'>
}

const LIST = sql('provider_list')`
  select p.id, p.name, p.issuer, p.client_id, p.scopes, p.groups_claim, p.proves_second_factor, p.enabled, p.updated_at,
     coalesce((select json_agg(json_build_object('domain', d.domain, 'account', d.account_id, 'role', d.role, 'ssoOnly', d.sso_only) order by d.domain)
       from login_domain d where d.provider_id = p.id), '[]') as domains,
     coalesce((select json_agg(json_build_object('group', g.name, 'account', g.account_id, 'role', g.role) order by g.name, g.account_id)
       from login_group g where g.provider_id = p.id), '[]') as groups
   from login_provider p where $1::text is null or p.id = $1 order by p.name, p.id limit 200`
const PUT = sql('provider_put')`
  insert into login_provider (id, name, issuer, client_id, scopes, groups_claim, proves_second_factor, enabled)
   values ($1, $2, $3, $4, $5, $6, $7, $8)
   on conflict (id) do update set name = excluded.name, issuer = excluded.issuer, client_id = excluded.client_id, scopes = excluded.scopes,
     groups_claim = excluded.groups_claim, proves_second_factor = excluded.proves_second_factor, enabled = excluded.enabled, updated_at = clock_timestamp()`
const CLEAR = [
  sql('provider_clear_domains')`delete from login_domain where provider_id = $1`,
  sql('provider_clear_groups')`delete from login_group where provider_id = $1`,
]
const PUT_DOMAIN = sql('provider_put_domain')`
  insert into login_domain (domain, provider_id, account_id, role, sso_only) values ($1, $2, $3, $4, $5)
   on conflict do nothing returning domain`
const PUT_GROUP = sql('provider_put_group')`
  insert into login_group (provider_id, name, account_id, role) values ($1, $2, $3, $4) on conflict do nothing returning name`
const ACCOUNT = sql('provider_account')`select 1 from account where id = $1`
const REMOVE = sql('provider_remove')`delete from login_provider where id = $1 returning id`
const CHECK_MS = 10_000
/**
 * Whoever decides about a login provider can sign in as anybody of its domains, now and later: a directory may make any
 * of them an operator. So adding, changing and removing one needs all rights.
 */
const REACH: AnyRole = 'operator'
const credentialOf = (id: string) => `login-${id}`

export function createProviders({ database, audit, credentials, guard }: ProviderDeps) {
  async function read(on: Queryable, id: string | null): Promise<StoredProvider[]> {
    return (await on.query(LIST, [id])).map((row) => asView(loginProvider, row))
  }

  async function writeMappings(tx: Queryable, id: string, { domains, groups }: ProviderInput): Promise<void> {
    for (const text of CLEAR) await tx.query(text, [id])
    for (const account of new Set([...domains, ...groups].flatMap((one) => one.account ?? [])))
      if ((await tx.query(ACCOUNT, [account])).length === 0) throw accountUnknown()
    for (const { domain, account, role, ssoOnly } of domains) {
      const [row] = await tx.query(PUT_DOMAIN, [domain, id, account, role, ssoOnly])
      if (!row)
        throw new Fault('conflict', {
          message: `The domain ${domain} is listed twice, or belongs to another provider.`,
        })
    }
    for (const { group, account, role } of groups) {
      const [row] = await tx.query(PUT_GROUP, [id, group, account, role])
      if (!row) throw invalid(`groups: ${group} is listed twice for the same account or the gateway.`, 'groups')
    }
  }

  /** Throws not_found. */
  async function get(id: string): Promise<StoredProvider> {
    const [provider] = await read(database, id)
    if (!provider) throw new Fault('not_found', { message: 'There is no login provider with this id.' })
    return provider
  }

  return {
    list: (): Promise<StoredProvider[]> => read(database, null),
    get,

    /** Adds or replaces it. Throws request_invalid or conflict. */
    async put(id: string, input: ProviderInput, mayGive: MayGive, by: By): Promise<StoredProvider> {
      checkIssuer(input.issuer)
      requireCovered(mayGive, REACH)
      await guard.check(input.issuer, { signal: AbortSignal.timeout(CHECK_MS) })
      await database.transaction(async (tx) => {
        const [before] = await read(tx, id)
        const { name, issuer, clientId, scopes, groupsClaim, provesSecondFactor, enabled } = input
        await tx.query(PUT, [id, name, issuer, clientId, scopes, groupsClaim, provesSecondFactor, enabled])
        await writeMappings(tx, id, input)
        if (input.secret !== undefined) await credentials.storeWith(tx, credentialOf(id), input.secret, by)
        const [after] = await read(tx, id)
        await audit.write(tx, by, { action: 'provider.put', object: id, before: { ...before }, after: { ...after } })
      })
      await credentials.noticed()
      return get(id)
    },

    async remove(id: string, mayGive: MayGive, by: By): Promise<void> {
      await database.transaction(async (tx) => {
        const [before] = await read(tx, id)
        if (!before) throw new Fault('not_found', { message: 'There is no login provider with this id.' })
        requireCovered(mayGive, REACH)
        await tx.query(REMOVE, [id])
        await audit.write(tx, by, { action: 'provider.remove', object: id, before: { ...before }, after: {} })
      })
      await credentials.remove(credentialOf(id), by)
    },

    clientOf(provider: StoredProvider): OidcClient {
      const { id, issuer, clientId, scopes, groupsClaim, updatedAt } = provider
      return {
        id,
        issuer,
        clientId,
        scopes,
        groupsClaim,
        secret: credentials.get(credentialOf(id)),
        version: updatedAt,
      }
    },
    hasSecret: (id: string): boolean => credentials.get(credentialOf(id)) !== undefined,
  }
}

/** Codes and secrets must not be sent unencrypted, except on this machine. */
function checkIssuer(issuer: string): void {
  const { protocol, hostname, search, hash } = new URL(issuer)
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback))
    throw invalid('issuer: must be an https address.', 'issuer')
  if (search || hash) throw invalid('issuer: must be an address without a query.', 'issuer')
}
