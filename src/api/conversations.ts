// Conversations that a vendor keeps: made at the first vendor that has them, and from then on only the account that made one may
// read, change and continue it, there.
import { mayUse } from '../admission/restriction.ts'
import type { CONVERSATIONS } from '../catalog/conversations.ts'
import type { Model } from '../catalog/document.ts'
import { FREE } from '../catalog/generation.ts'
import { catalogFor } from '../catalog/simulated.ts'
import type { Catalog } from '../catalog/store.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { type JsonText, readJson, splice } from '../kernel/json.ts'
import { permitAt } from '../pipeline/read.ts'
import { Fields, mustBe } from '../protocols/check.ts'
import { storedRequest } from '../protocols/text/openai-responses/stored.ts'
import { conversationUnknown, referencesIn } from '../protocols/text/references.ts'
import { offers } from '../routing/route.ts'
import { jsonBody } from '../server/body.ts'
import type { Handle, HandlersOf, RequestContext } from './api.ts'
import { askObjectOwner, knownQuery, serveFree, type VendorObjectDeps } from './vendor-objects.ts'

type Id = keyof typeof CONVERSATIONS

const ITEMS_MAX = 20
const CREATE = 'conversations/create'
const PROTOCOL = 'openai-responses'

export function conversationHandlers(deps: VendorObjectDeps): HandlersOf<Id> {
  const handle =
    (name: Exclude<Id, typeof CREATE>): Handle =>
    (request, out) => {
      const spec = FREE[name]
      const { method } = spec
      const { id = '', item } = request.params
      const json = method === 'POST' ? readBody(request, name) : undefined
      const query = knownQuery(request, spec)
      const path = `/conversations/${encodeURIComponent(id)}${spec.path.includes('/items') ? '/items' : ''}`
      return askObjectOwner(
        request,
        {
          ...{ spec, out, id, unknown: conversationUnknown, removes: name === 'conversations/{id}/delete' },
          ask: (product) =>
            storedRequest(
              {
                ...{ method, query },
                path: item === undefined ? path : `${path}/${encodeURIComponent(item)}`,
                ...(json ? { body: json, continues: referencesIn(PROTOCOL, json, sharedIds(product)) } : {}),
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
      const json = sent.member('model') ? readJson(Buffer.from(splice(sent, { remove: ['model'] }))) : sent
      const { principal } = request
      const catalog = catalogFor(principal.accountId, deps.catalog.current)
      if (wanted !== undefined) permitAt(FREE[CREATE], wanted, { catalog, principal })
      const [uid, model] = modelFor(catalog, (name) => mayUse(principal, name), wanted)
      const continues = referencesIn(PROTOCOL, json, sharedIds(uid))
      const question = { method: 'POST', path: '/conversations', query: '', body: json, continues } as const
      const ask = { ...storedRequest(question, uid), offer: 'conversations' } as const
      return serveFree(request, { spec: FREE[CREATE], out, catalog, model, ask }, deps)
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

function readBody(request: RequestContext, name: Id): JsonText {
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
  throw new Fault('not_found', { message: 'No model of this key has a vendor that keeps conversations.' })
}
