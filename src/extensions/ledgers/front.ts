// One installation, several ledgers: each is a gateway of its own in the same process, with its own pool, leases and
// sweeps. The gateway of the control database listens; what is an account's is answered by the gateway of its ledger.
import type { IncomingMessage } from 'node:http'
import type { Accounts } from '../../admission/accounts.ts'
import { type ApiKeys, keyIn } from '../../admission/api-key.ts'
import type { Keys } from '../../admission/keys.ts'
import type { WebServer } from '../../api/server/server.ts'
import type { Changes } from '../../database/changes.ts'
import type { Database } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import type { World } from '../../kernel/world.ts'
import type { HERE, Resource } from '../../operator/resource.ts'
import { decideAccount } from './crossings.ts'
import { delegationOf } from './delegation.ts'
import { createEvents } from './events.ts'
import { createHomes, type Home } from './homes.ts'

/** A gateway of this process: that of control, or of a ledger. */
export interface Cell {
  readonly app: Pick<WebServer, 'dispatch' | 'upgrade' | 'posted' | 'router'>
  readonly keys: Pick<Keys, 'create' | 'revokeGrant' | 'grantLives'>
  readonly accounts: Pick<Accounts, 'createIn' | 'created' | 'close' | 'change' | 'read'>
  readonly database: Database
  readonly office: { readonly routes: { readonly resources: readonly Resource[] } }
}

export interface ControlCell extends Cell {
  readonly app: WebServer
  /** The account that a token of an extension speaks for. */
  readonly accountIn: (token: string) => string | undefined
  readonly world: World
  readonly apiKeys: Pick<ApiKeys, 'digestsOf'>
  readonly changes: Pick<Changes, 'watch'>
  readonly office: Cell['office'] & { delegate(by: typeof HERE): void }
}

export interface Ledgers {
  readonly names: readonly string[]
  /** Undefined: its database did not answer yet. */
  of(name: string): Cell | undefined
  /** Of those of a region that answer, the one where accounts are stored next; null: none lies there. */
  roomiest(region: string | undefined): Promise<string | null>
  /** Does at once what control has decided for one of them, if it answers. */
  cross(name: string): Promise<void>
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
    if (EVENTS.test(request.url ?? '')) return events
    const home = homeOf(request)
    if (home instanceof Promise) return home.then((found) => at(found)?.app)
    return at(home)?.app
  })
  const events = createEvents({ control, ofAccount: homes.ofAccount, ledgers, at })

  function homeOf(request: IncomingMessage): Home | Promise<Home> {
    const { url = '/', headers } = request
    const [, played, sold] = NAMED.exec(url) ?? []
    const named = played ?? sold
    if (named !== undefined) return homes.ofAccount(named)
    if (OWN.test(url)) return null
    const given = headers['x-api-key'] ?? headers['x-goog-api-key']
    const xApiKey = typeof given === 'string' ? given : (GOOGLE_KEY.exec(url)?.[1] ?? undefined)
    const offered = SUBPROTOCOL.exec(headers['sec-websocket-protocol'] ?? '')?.[1]
    const key = offered ?? keyIn({ authorization: headers.authorization, xApiKey })
    if (key === undefined) return null
    const account = control.accountIn(key)
    return account === undefined ? homes.ofKey(key) : homes.ofAccount(account)
  }

  // A key is made, and ends, where its account lies.
  const { create, grantLives } = control.keys
  const revokeGrant = control.keys.revokeGrant.bind(control.keys)
  const keysOf = async (grant: string) => at(await homes.ofGrant(grant))?.keys
  Object.assign(control.keys, {
    create: async (...of) => (at(await homes.ofAccount(of[0]))?.keys.create ?? create)(...of),
    grantLives: async (grant) => ((await keysOf(grant))?.grantLives ?? grantLives)(grant),
    async revokeGrant(grant, by) {
      const there = await keysOf(grant)
      await (there ? there.revokeGrant(grant, by) : revokeGrant(grant, by))
    },
  } satisfies Cell['keys'])

  const { createIn, close, change, read } = control.accounts
  const accountsOf = async (id: string) => at(await homes.ofAccount(id))?.accounts
  Object.assign(control.accounts, {
    async createIn(tx, input, by) {
      const name = await ledgers.roomiest(input.region)
      if (name === null && input.region !== undefined)
        throw new Fault('unavailable', { message: `No ledger lies in ${input.region} now.`, retryAfterSeconds: 60 })
      if (name === null) return createIn(tx, input, by)
      return decideAccount(tx, { name, world: control.world }, input, by)
    },
    async created(id) {
      const home = await homes.ofAccount(id)
      if (home !== null) await ledgers.cross(home)
    },
    close: async (...of) => ((await accountsOf(of[0]))?.close ?? close)(...of),
    change: async (...of) => ((await accountsOf(of[0]))?.change ?? change)(...of),
    read: async (id) => ((await accountsOf(id))?.read ?? read)(id),
  } satisfies Cell['accounts'])

  control.office.delegate(delegationOf(control, ledgers, homes))
}

/** What the console plays, it calls for an account; and what providers report to an account that sells. */
const NAMED = /^\/(?:console\/api\/accounts\/([\w+-]{1,100})\/play\/|webhooks\/purses\/([\w+-]{1,100}))/
/** Reports of payment providers, and the pages of the simulated one. */
const EVENTS = /^\/(?:webhooks\/(?!purses\/)|test-payments\/)/
const SUBPROTOCOL = /openai-insecure-api-key\.([\w-]+)/
/** Control's own: people, operators, pages. */
const OWN = /^\/(?:admin|console|oauth|scim|docs|assets|branding|sso|\.well-known|healthz|readyz|metrics)(?:[/?]|$)/
const GOOGLE_KEY = /[?&]key=([^&#]+)/

export function ledgerAway(name: string): Fault {
  return new Fault('unavailable', {
    message: `The ledger of this account (${name}) does not answer right now. Nothing was charged; try again shortly.`,
    retryAfterSeconds: 1,
  })
}
