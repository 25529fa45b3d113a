// The console's API: the operator's resources for people with a session, and resources only for people. It never reads a
// bearer key, as the API never reads a cookie.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { accountUnknown } from '../admission/accounts.ts'
import { requireFactor, type Session } from '../identity/sessions.ts'
import { Fault } from '../kernel/fault.ts'
import type { ResourceDeps } from './admin.ts'
import {
  type Actor,
  checkOrigin,
  mountResources,
  type Resource,
  readSession,
  requireRight,
  sessionOf,
} from './resource.ts'
import { loginResources, securityResources } from './resources/login.ts'
import {
  type Connections,
  consentResources,
  type SessionDeps,
  sessionResources,
  visitorResources,
} from './resources/session.ts'
import { ownDeletionResources, type SignUpPageDeps, signUpVisitorResources } from './resources/sign-up.ts'

export interface ConsoleDeps extends ResourceDeps, SessionDeps, SignUpPageDeps {
  readonly connections: Connections
  /**
   * Calls the public API on behalf of an account. The request's body is not read yet. It takes the reply out
   * of the framework's hands.
   */
  readonly play: (
    request: FastifyRequest,
    reply: FastifyReply,
    call: { account: string; session: Session; url: string },
  ) => void | Promise<void>
}

const CONSOLE_PREFIX = '/console/api'
const VISITOR: Actor = { name: 'visitor', role: null, roles: new Map(), session: null }
/** Only paths of the public API. */
const PLAYABLE = /^\/(v1|alpha|beta)\//

export function mountConsole(app: FastifyInstance, resources: readonly Resource[], deps: ConsoleDeps): void {
  async function authenticate(request: FastifyRequest): Promise<Actor> {
    const actor = await recognise(request)
    requireFactor(sessionOf(actor))
    return actor
  }
  async function recognise(request: FastifyRequest): Promise<Actor> {
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

  app.register(
    async (scope) => {
      scope.addHook('onRequest', async (request, reply) => {
        // Set on the raw response, so that answers of the public API to the playground have them too.
        reply.raw.setHeader('cache-control', 'no-store').setHeader('x-content-type-options', 'nosniff')
        if (request.method !== 'GET' && request.method !== 'HEAD') checkOrigin(request, deps.publicUrl())
      })
      const forVisitors = [...visitorResources(deps), ...loginResources(deps), ...signUpVisitorResources(deps)]
      mountResources(scope, forVisitors, () => VISITOR)
      // Also for a person who still has to set up the second factor that their role requires.
      mountResources(scope, [...sessionResources(deps), ...securityResources(deps)], recognise)
      mountResources(scope, [...resources, ...ownDeletionResources(deps), ...consentResources(deps)], authenticate)
      scope.route({
        method: ['GET', 'POST', 'DELETE'],
        url: '/accounts/:id/play/*',
        // Before the body is read, because the public API reads it.
        onRequest: async (request, reply) => {
          checkOrigin(request, deps.publicUrl())
          const actor = await authenticate(request)
          const { id: account } = request.params as { id: string }
          requireRight(actor, 'playground:write', account)
          if (actor.role !== null && !(await deps.statements.account(account))) throw accountUnknown()
          const raw = request.raw.url ?? ''
          const url = raw.slice(raw.indexOf('/play/') + '/play'.length)
          if (!PLAYABLE.test(url)) throw new Fault('not_found')
          await deps.play(request, reply, { account, session: actor.session!, url })
        },
        handler: () => undefined,
      })
    },
    { prefix: CONSOLE_PREFIX },
  )
}
