// Mail domains that an account has proved to be its own, by a TXT record. A directory of the account may create people
// of these domains only.
import { accountUnknown } from '../../admission/accounts.ts'
import type { Audit, By } from '../../database/audit.ts'
import { type Database, sql } from '../../database/database.ts'
import { isShared, readDomain } from '../../identity/mailbox.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { sign } from '../../kernel/secret.ts'
import type { ReadTxt } from './txt.ts'
import type { DomainView } from './views.ts'

export type Domains = ReturnType<typeof createDomains>

const LIST = sql('domain_list')`select domain, proved_at from account_domain where account_id = $1 order by domain`
/** Whoever has a name server can prove any number of names below one. */
const DOMAINS_MAX = 100
const ACCOUNT = sql('domain_account')`select 1 from account where id = $1`
const PUT = sql('domain_put')`with had as (
     update account_domain set proved_at = now() where account_id = $1 and domain = $2 returning domain, proved_at
   ), made as (
     insert into account_domain (account_id, domain)
     select $1, $2 where not exists (select 1 from had) and (select count(*) from account_domain where account_id = $1) < $3
     on conflict do nothing returning domain, proved_at
   ) select * from had union all select * from made`
const REMOVE = sql('domain_remove')`delete from account_domain where account_id = $1 and domain = $2 returning domain`

interface DomainRow {
  readonly domain: string
  readonly proved_at: Date | null
}

export function createDomains(deps: { database: Database; audit: Audit; key: Buffer; readTxt: ReadTxt }) {
  const { database, audit, key, readTxt } = deps
  const viewOf = (account: string, { domain, proved_at: at }: DomainRow): DomainView => ({
    domain,
    record: `_tollgate.${domain}`,
    value: `tollgate-domain=${sign(key, `${account} ${domain}`).toString('base64url')}`,
    provedAt: at?.toISOString() ?? null,
  })
  return {
    list: async (account: string): Promise<DomainView[]> =>
      (await database.query<DomainRow>(LIST, [account])).map((row) => viewOf(account, row)),
    /** Looks for the record. Without it nothing is stored, and the answer says which record is missing. */
    async prove(account: string, given: string, by: By): Promise<DomainView> {
      const domain = readDomain(given)
      if (domain === undefined || isShared(domain))
        throw invalid('domain: must be a mail domain of your own, such as example.com.', 'domain')
      if (!(await database.query(ACCOUNT, [account]))[0]) throw accountUnknown()
      const wanted = viewOf(account, { domain, proved_at: null })
      if (!(await readTxt(wanted.record)).includes(wanted.value)) return wanted
      return database.transaction(async (tx) => {
        const [row] = await tx.query<DomainRow>(PUT, [account, domain, DOMAINS_MAX])
        if (!row)
          throw new Fault('conflict', { message: `This account has ${DOMAINS_MAX} domains already. Remove one first.` })
        await audit.write(tx, by, {
          action: 'domain.prove',
          object: account,
          detail: { domain },
          before: {},
          after: { domain },
        })
        return viewOf(account, row)
      })
    },
    async remove(account: string, domain: string, by: By): Promise<void> {
      await database.transaction(async (tx) => {
        if (!(await tx.query(REMOVE, [account, domain]))[0])
          throw new Fault('not_found', { message: 'This account has not proved such a domain.' })
        await audit.write(tx, by, {
          action: 'domain.remove',
          object: account,
          detail: { domain },
          before: { domain },
          after: {},
        })
      })
    },
  }
}
