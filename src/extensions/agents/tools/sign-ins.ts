// Sign-ins of people at tool servers: listing, starting, completing and ending them. The operator's own sign-in is used
// to list tools.
import * as z from 'zod'
import type { CoreParts } from '../../../extension.ts'
import type { Flows } from '../../../identity/flows.ts'
import type { Permission } from '../../../identity/roles.ts'
import { Fault } from '../../../kernel/fault.ts'
import { page } from '../../../kernel/view.ts'
import { type Actor, type Resource, requireRight, resource, text } from '../../../operator/resource.ts'
import { toolConnectionView } from '../views.ts'
import type { ServerAt, ToolConnections } from './connections.ts'

export interface ToolConnectionDeps extends Pick<CoreParts, 'catalog' | 'publicUrl'> {
  readonly toolConnections: ToolConnections
  readonly flows: Flows
}

/** The sign-in for keys without a member, instead of one's own. */
const shared = z.boolean().default(false)
const FLOW_MINUTES = 10

interface Begun {
  readonly sealed: string
  readonly account: string | null
  readonly person: string | null
  readonly session: string
}

export function toolConnectionResources(deps: ToolConnectionDeps): Resource[] {
  const { catalog, toolConnections, flows, publicUrl } = deps

  function serverAt(name: string): ServerAt {
    const { toolServers, vendors } = catalog.current.document
    const server = Object.hasOwn(toolServers, name) ? toolServers[name] : undefined
    if (server?.auth !== 'person')
      throw new Fault('not_found', { message: `There is no tool server "${name}" at which people sign in.` })
    return { name, url: vendors[server.vendor]?.baseUrl ?? '' }
  }

  async function listed(account: string | null, actor: Actor) {
    const mine = actor.session?.person.id
    const { toolServers } = catalog.current.document
    const made = (await toolConnections.of(account))?.list ?? []
    const items = Object.entries(toolServers).flatMap(([name, server]) => {
      if (server.auth !== 'person') return []
      const { url } = serverAt(name)
      const at = (person: string | null) =>
        made
          .find((one) => one.server === name && one.person === person && one.url === url)
          ?.connectedAt.toISOString() ?? null
      return [
        {
          server: name,
          title: server.title ?? null,
          url,
          mySignInAt: mine === undefined ? null : at(mine),
          sharedSignInAt: at(null),
        },
      ]
    })
    return { items, next: null }
  }

  /** Without an account it is the operator's sign-in. A shared sign-in needs the right `teams:write`. */
  function ownerOf(account: string | null, isShared: boolean, actor: Actor) {
    if (account === null) return { account, person: null }
    if (isShared) requireRight(actor, 'teams:write', account)
    return { account, person: isShared ? null : personOf(actor, account).person.id }
  }

  const of = (prefix: '' | '/accounts/{id}', right: readonly [read: Permission, write: Permission]): Resource[] => {
    const ofWhom = prefix === '' ? '' : ' for an account'
    const accountIn = (params: object) => ('id' in params ? String(params.id) : null)
    return [
      resource(`GET ${prefix}/tool-connections`, right[0], {
        title: `List tool sign-ins${ofWhom}`,
        answer: page(toolConnectionView),
        run: ({ params, actor }) => listed(accountIn(params), actor),
      }),
      resource(`POST ${prefix}/tool-connections/{server}`, right[1], {
        title: `Sign in at a tool server${ofWhom}`,
        body: z.strictObject({ shared }),
        answer: z.object({ redirect: z.string() }),
        async run({ params, body, actor }) {
          const session = sessionOf(actor)
          const owner = ownerOf(accountIn(params), body.shared, actor)
          const begun = await toolConnections.begin(serverAt(params.server), `${publicUrl()}/console/signed-in-at-tool`)
          const data: Begun = { ...owner, sealed: begun.pending, session: session.id }
          const state = await flows.begin('tool-connection', data, { person: session.person.id, minutes: FLOW_MINUTES })
          begun.url.searchParams.set('state', state)
          return { redirect: begun.url.href }
        },
      }),
      resource(`PUT ${prefix}/tool-connections`, right[1], {
        title: `Finish a sign-in at a tool server${ofWhom}`,
        body: z.strictObject({ parameters: text(8_000) }),
        answer: page(toolConnectionView),
        async run({ params, body, actor, by }) {
          const answer = new URLSearchParams(body.parameters)
          const { id: session, person } = sessionOf(actor)
          const flow = await flows.finish<Begun>('tool-connection', answer.get('state') ?? undefined)
          const account = accountIn(params)
          if (flow?.person !== person.id || flow.data.session !== session || flow.data.account !== account)
            throw new Fault('not_found', { message: 'This sign-in was not started here, or has expired. Start again.' })
          await toolConnections.finish(flow.data.sealed, { account, person: flow.data.person }, answer, by)
          return listed(account, actor)
        },
      }),
      resource(`DELETE ${prefix}/tool-connections/{server}`, right[1], {
        title: `Sign out of a tool server${ofWhom}`,
        query: z.strictObject({ shared: z.enum(['true', 'false']).optional() }),
        answer: page(toolConnectionView),
        async run({ params, query, actor, by }) {
          const account = accountIn(params)
          const owner = ownerOf(account, query.shared === 'true', actor)
          if (!(await toolConnections.remove(owner, params.server, by)))
            throw new Fault('not_found', { message: 'There is no such sign-in.' })
          return listed(account, actor)
        },
      }),
    ]
  }
  return [
    ...of('/accounts/{id}', ['tool-connections:read', 'tool-connections:write']),
    ...of('', ['vendors:read', 'vendors:write']),
  ]
}

function sessionOf({ session }: Actor) {
  if (!session) throw new Fault('access_denied', { message: 'Only a person in the console can sign in at a server.' })
  return session
}

/** An operator who does not belong to the account has no keys there. */
function personOf(actor: Actor, account: string) {
  if (!actor.roles.has(account)) throw new Fault('access_denied', { message: 'You do not belong to this account.' })
  return sessionOf(actor)
}
