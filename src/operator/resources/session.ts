// Login, sessions and logout of people in the console.
import * as z from 'zod'
import { type DataEndpointSpec, isDataEndpoint } from '../../catalog/endpoint.ts'
import { endpointAccess } from '../../catalog/endpoint-access.ts'
import { endpointsOf } from '../../catalog/index.ts'
import { isSimulated } from '../../catalog/simulated.ts'
import type { Catalog, CatalogStore } from '../../catalog/store.ts'
import type { Audit } from '../../database/audit.ts'
import type { Database } from '../../database/database.ts'
import type { Members } from '../../identity/members.ts'
import type { People } from '../../identity/people.ts'
import { deleteView, listViews, saveView } from '../../identity/saved-views.ts'
import type { Browsers, Sessions } from '../../identity/sessions.ts'
import { loginStep, type Offered, savedView, sessionView, type WhoView, whoView } from '../../identity/views.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { Billing } from '../../reports/billing.ts'
import { NO_SESSION, password, type Resource, resource, sessionOf, text, WithHeaders } from '../resource.ts'
import { type PublicCatalog, publicCatalog } from '../views.ts'
import { signing } from './login.ts'

export interface SessionDeps {
  readonly database: Database
  readonly audit: Audit
  readonly catalog: CatalogStore
  readonly people: People
  readonly members: Members
  readonly sessions: Sessions
  readonly browsers: Browsers
  readonly billing: Billing
  /** What extensions offer. */
  readonly offered: () => Promise<Partial<Offered>>
}

/** A long prompt; filters are far shorter. */
const SAVED_CHARS_MAX = 20_000

/** The page of the console, and the account, to which it belongs. */
const viewPage = z.string().regex(/^[\w/-]{1,120}$/)

/** For people who are signed in, about themselves. */
export function sessionResources(deps: SessionDeps): Resource[] {
  const { database, audit, catalog, people, sessions } = deps
  const signedIn = signing(deps)
  const readPublicCatalog = createPublicCatalog(() => catalog.current)
  return [
    resource('POST /invites/{token}/join', 'self', {
      answer: z.object({ joined: z.boolean() }),
      async run({ actor, params, by }) {
        await deps.members.acceptAs(sessionOf(actor).person, params.token, by)
        return { joined: true }
      },
    }),
    resource('GET /session', 'self', {
      answer: whoView,
      async run({ actor }): Promise<WhoView> {
        const { person, accounts } = sessionOf(actor)
        const [{ worth }, offered] = await Promise.all([deps.billing.get(), deps.offered()])
        const user = { id: person.id, email: person.email, role: person.role ?? 'user' } as const
        return { user, accounts, worth, salesEnabled: false, codesEnabled: false, extensions: [], ...offered }
      },
    }),
    resource('POST /logout', 'self', {
      answer: loginStep,
      async run({ actor, by }) {
        const { id, person } = sessionOf(actor)
        await sessions.end(person.id, id)
        await database.transaction((tx) => audit.write(tx, by, { action: 'session.end', object: id }))
        return new WithHeaders({ signedIn: false, needs: [] }, NO_SESSION)
      },
    }),
    resource('POST /password', 'self', {
      body: z.strictObject({ current: password, next: password }),
      answer: loginStep,
      async run({ actor, body, visit, by }) {
        const session = sessionOf(actor)
        return signedIn({ session: await people.changePassword(session, body, visit, by), email: session.person.email })
      },
    }),
    resource('GET /sessions', 'self', {
      answer: page(sessionView),
      async run({ actor }) {
        const { id, person } = sessionOf(actor)
        return { items: await sessions.list(person.id, id), next: null }
      },
    }),
    resource('DELETE /sessions/{id}', 'self', {
      answer: z.object({ ended: z.string() }),
      async run({ actor, params, by }) {
        const ended = await sessions.end(sessionOf(actor).person.id, params.id)
        if (!ended) throw new Fault('not_found', { message: 'You have no such session.' })
        await database.transaction((tx) => audit.write(tx, by, { action: 'session.end', object: params.id }))
        return { ended: params.id }
      },
    }),
    resource('GET /views', 'self', {
      query: z.strictObject({ page: viewPage }),
      answer: page(savedView),
      run: async ({ actor, query }) => ({
        items: await listViews(database, sessionOf(actor).person.id, query.page),
        next: null,
      }),
    }),
    resource('PUT /views', 'self', {
      body: z.strictObject({ page: viewPage, name: text(60), query: text(SAVED_CHARS_MAX, 0) }),
      answer: savedView,
      async run({ actor, body: { page: on, ...view } }) {
        await saveView(database, sessionOf(actor).person.id, on, view)
        return view
      },
    }),
    resource('DELETE /views', 'self', {
      query: z.strictObject({ page: viewPage, name: text(60) }),
      answer: z.object({ deleted: z.string() }),
      async run({ actor, query }) {
        if (!(await deleteView(database, sessionOf(actor).person.id, query.page, query.name)))
          throw new Fault('not_found', { message: 'You have no saved view of this name.' })
        return { deleted: query.name }
      },
    }),
    resource('GET /catalog/public', 'self', { answer: publicCatalog, run: () => readPublicCatalog() }),
  ]
}

// The public part of the catalog for the console: enabled models and data endpoints with their prices, and
// their parameters for forms.

function createPublicCatalog(current: () => Catalog): () => PublicCatalog {
  let built: { version: number; catalog: PublicCatalog } | undefined
  return () => {
    const now = current()
    if (built?.version !== now.version) built = { version: now.version, catalog: build(now) }
    return built.catalog
  }
}

function build(catalog: Catalog): PublicCatalog {
  const { document, input } = catalog
  const all = endpointsOf(catalog)
  const models = Object.entries(document.models)
    .filter(([, model]) => model.enabled)
    .map(([uid, model]) => ({
      uid,
      name: model.name,
      version: model.version,
      type: model.type,
      family: model.family,
      pricing: input.models[uid]?.pricing ?? null,
      batchFactor: model.batchFactor === undefined ? null : formatCredits(model.batchFactor),
      clientFormats: model.clientFormats,
      capabilities: model.capabilities,
      limits: model.limits,
      simulated: isSimulated(model, document.vendors),
    }))
  const endpoints = all.filter(isDataEndpoint).flatMap((spec) => {
    const product = document.endpoints[spec.product] ?? document.models[spec.product]
    if (!product?.enabled) return []
    const pricing = (input.endpoints[spec.product] ?? input.models[spec.product])?.pricing ?? null
    return [{ ...endpointView(spec), pricing, simulated: isSimulated(product, document.vendors) }]
  })
  return { access: endpointAccess(all).map((one) => ({ ...one, paths: [...one.paths] })), models, endpoints }
}

function endpointView(spec: DataEndpointSpec): Omit<PublicCatalog['endpoints'][number], 'pricing' | 'simulated'> {
  return {
    id: spec.id,
    product: spec.product,
    method: spec.method,
    path: spec.path,
    title: spec.title,
    description: spec.description,
    params: Object.entries(spec.params).map(([name, field]) => ({ name, ...field })),
  }
}
