// Responses that a vendor keeps: only the account that made them may read and delete them, at the vendor that has them.
import { mayUse } from '../../admission/api-key.ts'
import { readLabels } from '../../admission/labels.ts'
import { findVendorObject, hasRoute, removeVendorObject } from '../../admission/vendor-objects.ts'
import type { Handle, HandlersOf, RequestContext } from '../../api/api.ts'
import { jsonBody } from '../../api/server/body.ts'
import { rawQuery } from '../../api/server/server.ts'
import type { Model } from '../../catalog/document.ts'
import type { EndpointSpec } from '../../catalog/endpoint.ts'
import { type Catalog, type CatalogStore, catalogFor, findProduct } from '../../catalog/store.ts'
import { asFault, Fault, invalid } from '../../kernel/fault.ts'
import { edited, type JsonText, readJson } from '../../kernel/json.ts'
import { arrive } from '../../pipeline/arrive.ts'
import type { PathDeps } from '../../pipeline/call.ts'
import { type Read, type ReadDeps, ruleFinder } from '../../pipeline/read.ts'
import { permitAt } from '../../pipeline/readers.ts'
import { BufferedSink, type ResponseSink } from '../../pipeline/response-sink.ts'
import { serve } from '../../pipeline/serve.ts'
import { Fields, mustBe } from '../../protocols/check.ts'
import type { PaidRequest } from '../../protocols/protocol.ts'
import { conversationUnknown, referencesIn } from '../../protocols/text/references.ts'
import { allowedRoutes, readPreference } from '../../routing/preference.ts'
import { offers, routesFor } from '../../routing/route.ts'
import type { ByokKeys } from '../../upstream/credentials/byok-keys.ts'
import type { Responses } from './responses.ts'
import { STORED } from './stored-endpoints.ts'
import { storedRequest } from './stored-request.ts'

export function storedHandlers(deps: StoredDeps, background: Responses): HandlersOf<keyof typeof STORED> {
  const { database, log } = deps.path

  const handle = (name: keyof typeof STORED, method: 'GET' | 'DELETE', below: string): Handle => {
    const spec = STORED[name]
    return async (request, out) => {
      const after = below === '' && method === 'GET' ? followedFrom(request) : undefined
      const query = after === undefined ? knownQuery(request, spec) : ''
      const asked = request.param('id')
      const { principal } = request
      const own = await background.find(principal, asked)
      if (own && after !== undefined) return background.follow(own, after, out)
      if (own && below === '') {
        const body = method === 'GET' ? own.answer : await background.remove(own)
        if (method === 'DELETE' && own.vendor_id) await removeAtVendor(request, own.vendor_id, out.signal)
        return out.send(200, { 'content-type': JSON_TYPE }, body)
      }
      if (after !== undefined && (await findVendorObject(database, principal, asked)))
        throw invalid('"stream" must be false: only a response in the background can be followed.', 'stream')
      const id = own?.vendor_id ?? asked
      const isResponse = method === 'GET' && below === ''
      const question = { method, path: `/responses/${encodeURIComponent(id)}${below}`, query, isResponse }
      const ask = (product: string) => storedRequest(question, product)
      await askObjectOwner(request, { spec, out, id, unknown, removes: method === 'DELETE', ask }, deps)
    }
  }

  /**
   * Ours is gone by now, and whoever asked does not know this id: a vendor that does not do it forgets it by itself
   * after its time.
   */
  async function removeAtVendor(request: RequestContext, id: string, signal: AbortSignal): Promise<void> {
    const question = { method: 'DELETE', path: `/responses/${encodeURIComponent(id)}`, query: '' } as const
    const ask = (product: string) => storedRequest(question, product)
    const out = new BufferedSink(signal, DELETED_BYTES_MAX)
    const spec = STORED['responses/{id}/delete']
    try {
      await askObjectOwner(request, { spec, out, id, unknown, removes: true, ask }, deps)
    } catch (error) {
      log.warn({ requestId: request.id, fault: asFault(error).kind }, 'a deleted response stays at its vendor')
      await removeVendorObject(database, request.principal.accountId, id)
    }
  }

  return {
    ...conversationHandlers(deps),
    'responses/{id}': handle('responses/{id}', 'GET', ''),
    'responses/{id}/delete': handle('responses/{id}/delete', 'DELETE', ''),
    async 'responses/{id}/cancel'(request, out) {
      const id = request.param('id')
      const { principal } = request
      const own = await background.find(principal, id)
      if (own) return out.send(200, { 'content-type': JSON_TYPE }, await background.cancel(own))
      if (!(await findVendorObject(database, principal, id))) throw unknown()
      throw invalid('Only a response that was made with "background" can be cancelled.')
    },
    'responses/{id}/input_items': handle('responses/{id}/input_items', 'GET', '/input_items'),
  }
}

const DELETED_BYTES_MAX = 65_536
const JSON_TYPE = 'application/json; charset=utf-8'

function unknown(): Fault {
  return new Fault('not_found', {
    message: 'There is no stored response with this id. Responses made with "store": false are not kept.',
  })
}

/** The number of the event after which the stream is to go on; undefined: the response is asked for whole. */
function followedFrom(request: RequestContext): number | undefined {
  const query = new URLSearchParams(rawQuery(request))
  const stream = query.get('stream') ?? 'false'
  if (stream !== 'true' && stream !== 'false') throw invalid('"stream" must be true or false.', 'stream')
  const after = query.get('starting_after') ?? '-1'
  if (!/^(?:-1|\d{1,9})$/.test(after))
    throw invalid('"starting_after" must be the number of an event.', 'starting_after')
  return stream === 'true' ? Number(after) : undefined
}

// Conversations that a vendor keeps: made at the first vendor that has them, and from then on only the account that
// made one may read, change and continue it, there.

type ConversationId = Extract<keyof typeof STORED, `conversations/${string}`>

const ITEMS_MAX = 20
const CREATE = 'conversations/create'
const PROTOCOL = 'openai-responses'

function conversationHandlers(deps: StoredDeps): HandlersOf<ConversationId> {
  const handle =
    (name: Exclude<ConversationId, typeof CREATE>): Handle =>
    (request, out) => {
      const spec = STORED[name]
      const { method } = spec
      const { id = '', item } = request.params
      const json = method === 'POST' ? readBody(request, name) : undefined
      const query = knownQuery(request, spec)
      const path = `/conversations/${encodeURIComponent(id)}${spec.path.includes('/items') ? '/items' : ''}`
      return askObjectOwner(
        request,
        {
          spec,
          out,
          id,
          json,
          unknown: conversationUnknown,
          removes: name === 'conversations/{id}/delete',
          ask: (product, body) =>
            storedRequest(
              {
                method,
                query,
                path: item === undefined ? path : `${path}/${encodeURIComponent(item)}`,
                ...(body ? { body, continues: referencesIn(PROTOCOL, body, sharedIds(product)) } : {}),
              },
              product,
            ),
        },
        deps,
      )
    }
  const sharedIds = (product: string) => {
    const model = deps.catalog.current.document.models[product]
    return model?.type === 'text' ? model.traits.sharedIds : []
  }

  return {
    [CREATE](request, out) {
      const sent = readBody(request, CREATE)
      const wanted = new Fields(sent).string('model')
      const json = sent.member('model') ? edited(sent, { remove: ['model'] }) : sent
      const { principal } = request
      const catalog = catalogFor(principal.accountId, deps.catalog.current)
      if (wanted !== undefined) permitAt(STORED[CREATE], wanted, { catalog, principal })
      const [uid, model] = modelFor(catalog, (name) => mayUse(principal, name), wanted)
      const ask = (body: JsonText = json) => {
        const continues = referencesIn(PROTOCOL, body, sharedIds(uid))
        const question = { method: 'POST', path: '/conversations', query: '', body, continues } as const
        return { ...storedRequest(question, uid), offer: 'conversations' } as const
      }
      return serveFree(request, { spec: STORED[CREATE], out, catalog, model, uid, json, ask }, deps)
    },
    'conversations/{id}': handle('conversations/{id}'),
    'conversations/{id}/update': handle('conversations/{id}/update'),
    'conversations/{id}/delete': handle('conversations/{id}/delete'),
    'conversations/{id}/items': handle('conversations/{id}/items'),
    'conversations/{id}/items/create': handle('conversations/{id}/items/create'),
    'conversations/{id}/items/{item}': handle('conversations/{id}/items/{item}'),
    'conversations/{id}/items/{item}/delete': handle('conversations/{id}/items/{item}/delete'),
  }
}

function readBody(request: RequestContext, name: ConversationId): JsonText {
  const json = readJson(jsonBody(request))
  const fields = new Fields(json)
  const other = Object.entries(fields.object('metadata') ?? {}).find(([, value]) => typeof value !== 'string')
  if (other) throw mustBe(`metadata.${other[0].slice(0, 100)}`, 'a string', other[1])
  if (name === 'conversations/{id}/update') fields.required('metadata')
  if (name === 'conversations/{id}/items/create') fields.required('items')
  const items = fields.list('items')
  if (items && items.length > ITEMS_MAX) throw invalid(`"items" may hold ${ITEMS_MAX} items at once.`, 'items')
  return json
}

/** The model that is named, or the first of this key in the catalog, whose vendor keeps conversations. */
function modelFor(catalog: Catalog, may: (uid: string) => boolean, wanted: string | undefined): [string, Model] {
  const { document } = catalog
  const keeps = ([uid, model]: [string, Model]) =>
    model.enabled &&
    model.type === 'text' &&
    model.clientFormats.includes(PROTOCOL) &&
    may(uid) &&
    model.traits.vendorState &&
    model.routes.some(
      (route) => route.enabled && route.protocol === PROTOCOL && offers(route, { offer: 'conversations' }, document),
    )
  const all = Object.entries(document.models).filter(keeps)
  const found = wanted === undefined ? all[0] : all.find(([uid]) => uid === wanted)
  if (found) return found
  if (wanted !== undefined)
    throw invalid(`"${wanted.slice(0, 100)}" is not a model whose vendor offers conversations.`, 'model')
  throw new Fault('not_found', { message: 'No model of this key has a vendor that stores conversations.' })
}

// Free questions about what a vendor keeps for an account, put to the vendor that has it, on the path that every call
// takes.

export interface StoredDeps {
  readonly catalog: CatalogStore
  readonly path: PathDeps
  readonly byokKeys: Pick<ByokKeys, 'of'>
  readonly read: Pick<ReadDeps, 'guardrails'>
}

interface Question {
  readonly spec: EndpointSpec
  readonly out: ResponseSink
  /** The vendor's. */
  readonly id: string
  /** What is said to those for whom it is not kept. */
  readonly unknown: () => Fault
  /** Undefined: it stays when the question was answered. */
  readonly removes?: boolean
  /** The body, if it has one; guardrails may have changed it when it is asked with. */
  readonly json?: JsonText | undefined
  ask(product: string, json: JsonText | undefined): PaidRequest
}

/** Sends the question to the vendor that stores the object for this account. For other accounts it does not exist. */
async function askObjectOwner(request: RequestContext, question: Question, deps: StoredDeps): Promise<void> {
  const { database } = deps.path
  const { id, unknown } = question
  const principal = request.principal
  const { accountId } = principal
  const now = catalogFor(accountId, deps.catalog.current)
  const kept = await findVendorObject(database, principal, id)
  const model = kept && findProduct(now, kept.product)
  const isThere = kept && model && hasRoute(model.routes, kept, 'openai-responses')
  if (!isThere) throw unknown()
  const { product: uid } = kept
  const ask = (json: JsonText | undefined) => {
    const asked = question.ask(uid, json)
    return { ...asked, continues: [{ id, unknown: unknown() }, ...(asked.continues ?? [])] }
  }
  try {
    await serveFree(request, { ...question, catalog: now, model: model as Model, uid, ask }, deps)
  } catch (error) {
    if (!(error instanceof Fault) || error.details.internal?.status !== 404) throw error
    // What is gone at the vendor is gone. Of something inside it, or that was sent along, that says nothing.
    if (question.spec.path.lastIndexOf('/') < question.spec.path.indexOf('{'))
      await removeVendorObject(database, accountId, id)
    throw unknown()
  }
  if (question.removes) await removeVendorObject(database, accountId, id)
}

interface FreeCall extends Pick<Question, 'spec' | 'out' | 'json'> {
  readonly catalog: Catalog
  readonly model: Model
  readonly uid: string
  ask(json: JsonText | undefined): PaidRequest
}

const NO_BODY = readJson(Buffer.from('{}'))

async function serveFree(
  request: RequestContext,
  { spec, out, catalog, model, uid, json: sent, ask }: FreeCall,
  { path, byokKeys, read }: StoredDeps,
): Promise<void> {
  const { id: requestId, principal, headers } = request
  const { accountId: account, keyId, firstKeyId } = principal
  const { document } = catalog
  const own = (await byokKeys.of(account))?.use(model, catalog, model.routes)
  const preference = readPreference({ json: NO_BODY, spec, principal, headers }, document)
  const labels = { ...readLabels({ headers, body: {}, format: undefined }), ...principal.place }
  const whose = { account, keys: [keyId, firstKeyId], products: [uid], isModel: true, labels }
  const guard = catalog.isGuarded && ruleFinder(read).find(document, whose)
  const reread = (json: JsonText): Read => {
    const paidRequest = ask(sent && json)
    const able = routesFor(paidRequest, model, document)
    const about = { product: model, paidRequest, json: NO_BODY, name: uid }
    const routes = preference ? allowedRoutes(able, preference, about, document).routes : able
    const guarded = guard ? { guard, json, reread } : undefined
    return { paidRequest, product: model, routes, preference, ...(own ? { own } : {}), guard: guarded }
  }
  const asked = reread(guard && sent ? guard.redact(sent) : (sent ?? NO_BODY))
  await serve(arrive({ requestId, principal, endpoint: spec.id, out, headers }, asked, catalog, path), path)
}

/** What is asked of the gateway, and of no vendor. */
const OURS = new Set(['stream', 'starting_after'])

/** The parameters that the endpoint knows, as they came; others are left behind. */
function knownQuery(request: RequestContext, { params = {} }: EndpointSpec): string {
  const known = [...new URLSearchParams(rawQuery(request))].filter(
    ([name]) => Object.hasOwn(params, name.replace(/\[\]$/, '')) && !OURS.has(name),
  )
  return known.length === 0 ? '' : `?${new URLSearchParams(known)}`
}
