// The console's API: the operator's resources for people with a session, and resources only for people. It never reads
// a bearer key, as the API never reads a cookie.
import { accountUnknown } from '../admission/accounts.ts'
import type { WebServer } from '../api/server/server.ts'
import type { WebRequest } from '../api/server/web.ts'
import { requireFactor, type Session } from '../identity/sessions.ts'
import { Fault } from '../kernel/fault.ts'
import type { ResourceDeps } from './admin.ts'
import { formResources } from './forms.ts'
import {
  type Actor,
  beforeFactor,
  checkOrigin,
  type Delegation,
  mountResources,
  type Resource,
  readSession,
  requireRight,
  sessionOf,
} from './resource.ts'
import { type BrandingDeps, brandingResources } from './resources/branding.ts'
import { securityResources, visitorResources } from './resources/login.ts'
import { type SessionDeps, sessionResources } from './resources/session.ts'

export interface ConsoleDeps extends ResourceDeps, SessionDeps, BrandingDeps {
  /** Of extensions: for visitors, and for people about themselves. */
  readonly personal: readonly Resource[]
  /** Calls the public API on behalf of an account, which answers. The request's body is not read yet. */
  readonly play: (request: WebRequest, call: { account: string; session: Session; url: string }) => void | Promise<void>
}

const CONSOLE_PREFIX = '/console/api'
const VISITOR: Actor = { name: 'visitor', role: null, roles: new Map(), session: null }
/** Only paths of the public API. */
const PLAYABLE = /^\/(v1|alpha|beta)\//

export function mountConsole(
  app: WebServer,
  resources: readonly Resource[],
  deps: ConsoleDeps,
  delegation: Delegation,
): void {
  async function authenticate(request: WebRequest): Promise<Actor> {
    const actor = await recognise(request)
    requireFactor(sessionOf(actor))
    return actor
  }
  async function recognise(request: WebRequest): Promise<Actor> {
    const cookie = readSession(request)
    const session = cookie === undefined ? undefined : await deps.sessions.find(cookie)
    if (!session) throw new Fault('key_missing', { message: 'You are not signed in.' })
    return {
      name: session.person.email,
      role: session.person.role,
      roles: new Map(session.accounts.map(({ id, role }) => [id, role])),
      session,
    }
  }

  function protect(request: WebRequest, fromOwnPages: boolean): void {
    request.response.setHeader('cache-control', 'no-store').setHeader('x-content-type-options', 'nosniff')
    if (fromOwnPages) checkOrigin(request, deps.publicUrl())
  }

  function enter(request: WebRequest, entry: Resource): Actor | Promise<Actor> {
    protect(request, request.method !== 'GET' && request.method !== 'HEAD')
    if (entry.access === 'visitor') return VISITOR
    return entry.beforeFactor ? recognise(request) : authenticate(request)
  }

  const own = beforeFactor([...sessionResources(deps), ...securityResources(deps)])
  const forms = formResources(resources)
  const visitors = [...visitorResources(deps), ...brandingResources(deps)]
  mountResources(app, CONSOLE_PREFIX, [...visitors, ...own, ...forms, ...resources, ...deps.personal], {
    authenticate: enter,
    delegation,
  })
  for (const method of ['GET', 'POST', 'DELETE'])
    app.add(method, `${CONSOLE_PREFIX}/accounts/{id}/play/*`, async (request) => {
      protect(request, true)
      const actor = await authenticate(request)
      const { id: account = '' } = request.params
      requireRight(actor, 'playground:write', account)
      if (actor.role !== null && !(await deps.statements.account(account))) throw accountUnknown()
      const raw = request.raw.url ?? ''
      const url = raw.slice(raw.indexOf('/play/') + '/play'.length)
      if (!PLAYABLE.test(url)) throw new Fault('not_found')
      await deps.play(request, { account, session: actor.session!, url })
      return undefined
    })
}
