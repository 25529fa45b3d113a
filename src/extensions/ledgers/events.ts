// Reports of payment providers come to one address. Each is for the ledger that has the payment, or the account that it
// names; the signature is checked there.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WebServer } from '../../api/server/server.ts'
import { type Database, SHORT_MS, sql } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Home } from './homes.ts'

const BODY_BYTES_MAX = 262_144
const NAMES_MAX = 500
const ACCOUNT = /\bacc_[0-9a-z]{26}\b/
/** What ids and references of providers and of payments look like. */
const NAME = /"([\w.-]{6,200})"/g
const KNOWS = sql('ledger_knows_payment', SHORT_MS)`
  select 1 from payment where id = any($1) or provider_id = any($1)
  union all select 1 from payment_customer where customer_id = any($1) limit 1`

interface EventsDeps {
  readonly control: { readonly app: WebServer }
  readonly ofAccount: (account: string) => Home | Promise<Home>
  readonly ledgers: { readonly names: readonly string[]; of(name: string): { readonly database: Database } | undefined }
  readonly at: (home: Home) => { readonly app: Pick<WebServer, 'router'> } | undefined
}

/** Has a request answered where what its body, or the end of its address, is about is known. */
export function createEvents({ control, ofAccount, ledgers, at }: EventsDeps) {
  async function homeOf(text: string): Promise<Home> {
    const [account] = ACCOUNT.exec(text) ?? []
    if (account !== undefined) return ofAccount(account)
    const names = [...text.matchAll(NAME)].slice(0, NAMES_MAX).map(([, name = '']) => name)
    let isAway = false
    for (const ledger of ledgers.names) {
      const found = await ledgers
        .of(ledger)
        ?.database.query(KNOWS, [names])
        .catch(() => undefined)
      if (found && found.length > 0) return ledger
      isAway ||= found === undefined
    }
    // It may be for that one: the provider reports again.
    if (isAway) throw new Fault('unavailable', { retryAfterSeconds: 60 })
    return null
  }

  return {
    dispatch(request: IncomingMessage, response: ServerResponse): void {
      const { url = '/', method = '' } = request
      const opened = control.app.open(request, response)
      void control.app.answer(opened, async () => {
        control.app.bodyDeadline(response)
        const bytes = await opened.body(BODY_BYTES_MAX)
        const home = await homeOf(`${bytes.toString()} "${url.split('/').at(-1)?.split('?')[0]}"`)
        const { router } = at(home)?.app ?? control.app
        const found = router.find(method, url)
        const route = found?.place.methods.get(method)
        if (!route?.route?.handle) throw new Fault('not_found')
        const params = Object.fromEntries(route.names.map((name, index) => [name, found?.values?.[index] ?? '']))
        return route.route.handle({ ...opened, ip: opened.ip, params, body: async () => bytes })
      })
    },
    upgrade: control.app.upgrade,
  }
}
