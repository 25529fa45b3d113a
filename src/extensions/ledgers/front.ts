// One installation, several ledgers: each is a gateway of its own in the same process, with its own pool, leases and
// sweeps. The gateway of the control database listens; what is an account's is answered by the gateway of its ledger.
import type { IncomingMessage } from 'node:http'
import { type ApiKeys, keyIn } from '../../admission/api-key.ts'
import type { WebServer } from '../../api/server/server.ts'
import type { Changes } from '../../database/changes.ts'
import type { Database } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import type { HERE, Resource } from '../../operator/resource.ts'
import { delegationOf } from './delegation.ts'
import { createHomes, type Home } from './homes.ts'

/** A gateway of this process: that of control, or of a ledger. */
export interface Cell {
  readonly app: Pick<WebServer, 'dispatch' | 'upgrade' | 'posted'>
  readonly database: Database
  readonly office: { readonly routes: { readonly resources: readonly Resource[] } }
}

export interface ControlCell extends Cell {
  readonly app: WebServer
  readonly apiKeys: Pick<ApiKeys, 'digestsOf'>
  readonly changes: Pick<Changes, 'watch'>
  readonly office: Cell['office'] & { delegate(by: typeof HERE): void }
}

export interface Ledgers {
  readonly names: readonly string[]
  /** Undefined: its database did not answer yet. */
  of(name: string): Cell | undefined
  /** Of those that answer, the one where accounts are stored next. */
  roomiest(): Promise<string>
  /** After a change at control: what ledgers have a copy of. */
  changed(): Promise<unknown>
}

export function openFront(control: ControlCell, ledgers: Ledgers): void {
  const homes = createHomes(control)

  function at(home: Home): Cell | undefined {
    if (home === null) return undefined
    const cell = ledgers.of(home)
    if (!cell) throw ledgerAway(home)
    return cell
  }

  control.app.divert((request) => {
    const home = homeOf(request)
    if (home instanceof Promise) return home.then((found) => at(found)?.app)
    return at(home)?.app
  })

  function homeOf(request: IncomingMessage): Home | Promise<Home> {
    const { url = '/', headers } = request
    const played = PLAYED.exec(url)?.[1]
    if (played !== undefined) return homes.ofAccount(played)
    if (OWN.test(url)) return null
    const given = headers['x-api-key'] ?? headers['x-goog-api-key']
    const xApiKey = typeof given === 'string' ? given : (GOOGLE_KEY.exec(url)?.[1] ?? undefined)
    const key = keyIn({ authorization: headers.authorization, xApiKey })
    return key === undefined ? null : homes.ofKey(key)
  }

  control.office.delegate(delegationOf(control, ledgers, homes))
}

/** What the console plays, it calls for an account. */
const PLAYED = /^\/console\/api\/accounts\/([\w+-]{1,100})\/play\//
/** Control's own: people, operators, pages. */
const OWN = /^\/(?:admin|console|oauth|scim|docs|assets|branding|sso|\.well-known|healthz|readyz|metrics)(?:[/?]|$)/
const GOOGLE_KEY = /[?&]key=([^&#]+)/

export function ledgerAway(name: string): Fault {
  return new Fault('unavailable', {
    message: `The ledger of this account (${name}) does not answer right now. Nothing was charged; try again shortly.`,
    retryAfterSeconds: 1,
  })
}
