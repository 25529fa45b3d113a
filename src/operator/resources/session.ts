// What only people in the console need: to come in, to look at their sessions, to leave.
import * as z from 'zod'
import type { CatalogStore } from '../../catalog/store.ts'
import type { Audit } from '../../database/audit.ts'
import type { Database } from '../../database/database.ts'
import type { Browsers } from '../../identity/browser.ts'
import type { Members } from '../../identity/members.ts'
import type { People } from '../../identity/people.ts'
import type { Session, Sessions } from '../../identity/sessions.ts'
import { inviteView, sessionView, setupView, type WhoView, whoView } from '../../identity/views.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { agentSetup, agentSetups, limitsFor, modelFor } from '../agent-setup.ts'
import { loginCookies, NO_SESSION } from '../cookie.ts'
import { email, linkToken, password } from '../fields.ts'
import { createPublicCatalog } from '../public-catalog.ts'
import { type Actor, type Resource, resource, WithHeaders } from '../resource.ts'
import { publicCatalog } from '../views.ts'

export interface SessionDeps {
  readonly database: Database
  readonly audit: Audit
  readonly catalog: CatalogStore
  readonly people: People
  readonly members: Members
  readonly sessions: Sessions
  readonly browsers: Browsers
}

const signingView = z.object({ signedIn: z.boolean() })

/** Whichever way somebody comes in, their browser is known from then on: others' guesses do not keep it out. */
const signing =
  (browsers: Browsers) =>
  ({ session, email }: { session: string; email: string }) =>
    new WithHeaders({ signedIn: true }, loginCookies(session, browsers.mark(email)))

/** For whoever comes, without a session. */
export function visitorResources({ people, members, browsers }: SessionDeps): Resource[] {
  const signedIn = signing(browsers)
  return [
    resource('GET /setup', 'member', {
      answer: setupView,
      run: async () => ({ open: await people.setupOpen() }),
    }),
    resource('POST /setup', 'member', {
      body: z.strictObject({ token: linkToken, email, password }),
      answer: signingView,
      run: async ({ body, visit, by }) => signedIn({ session: await people.setUp(body, visit, by), email: body.email }),
    }),
    resource('POST /login', 'member', {
      body: z.strictObject({ email, password }),
      answer: signingView,
      run: async ({ body, visit, by }) => signedIn({ session: await people.logIn(body, visit, by), email: body.email }),
    }),
    resource('GET /invites/{token}', 'member', {
      answer: inviteView,
      run: ({ params }) => members.look(params.token),
    }),
    resource('POST /invites/{token}', 'member', {
      body: z.strictObject({ password }),
      answer: signingView,
      run: async ({ params, body, visit, by }) =>
        signedIn(await members.accept(params.token, body.password, visit, by)),
    }),
  ]
}

/** For whoever has a session, about themselves. */
export function sessionResources(deps: SessionDeps): Resource[] {
  const { database, audit, catalog, people, sessions } = deps
  const signedIn = signing(deps.browsers)
  const readPublicCatalog = createPublicCatalog(() => catalog.current)
  return [
    resource('GET /session', 'member', {
      answer: whoView,
      run({ actor }): WhoView {
        const { person, accounts } = sessionOf(actor)
        return { user: { id: person.id, email: person.email, role: person.operator ? 'operator' : 'user' }, accounts }
      },
    }),
    resource('POST /logout', 'member', {
      answer: signingView,
      async run({ actor, by }) {
        const { id, person } = sessionOf(actor)
        await sessions.end(person.id, id)
        await database.transaction((tx) => audit.write(tx, by, { action: 'session.end', object: id }))
        return new WithHeaders({ signedIn: false }, NO_SESSION)
      },
    }),
    resource('POST /password', 'member', {
      body: z.strictObject({ current: password, next: password }),
      answer: signingView,
      async run({ actor, body, visit, by }) {
        const { person } = sessionOf(actor)
        return signedIn({ session: await people.changePassword(person, body, visit, by), email: person.email })
      },
    }),
    resource('GET /sessions', 'member', {
      answer: page(sessionView),
      async run({ actor }) {
        const { id, person } = sessionOf(actor)
        return { items: await sessions.list(person.id, id), next: null }
      },
    }),
    resource('DELETE /sessions/{id}', 'member', {
      answer: z.object({ ended: z.string() }),
      async run({ actor, params, by }) {
        const ended = await sessions.end(sessionOf(actor).person.id, params.id)
        if (!ended) throw new Fault('not_found', { message: 'You have no such session.' })
        await database.transaction((tx) => audit.write(tx, by, { action: 'session.end', object: params.id }))
        return { ended: params.id }
      },
    }),
    resource('GET /catalog/public', 'member', {
      answer: publicCatalog,
      run: () => readPublicCatalog(),
    }),
    resource('GET /agent-setup', 'member', {
      query: z.strictObject({ url: z.url({ protocol: /^https?$/ }).max(200) }),
      answer: page(agentSetup),
      run({ query }) {
        const { models } = catalog.current.document
        const about = { url: new URL(query.url).origin, model: modelFor(models), limits: limitsFor(models) }
        return { items: agentSetups(about), next: null }
      },
    }),
  ]
}

export function sessionOf(actor: Actor): Session {
  if (!actor.session) throw new Fault('key_unknown', { message: 'You are not signed in.' })
  return actor.session
}
