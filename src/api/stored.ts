// Responses that a vendor keeps: only the account that made them may read and delete them, at the vendor that has them.
import { findVendorObject, removeVendorObject } from '../admission/vendor-objects.ts'
import type { CONVERSATIONS } from '../catalog/conversations.ts'
import { FREE, type FreeId } from '../catalog/generation.ts'
import type { Background } from '../deferred/background.ts'
import { asFault, Fault, invalid } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { BufferedSink } from '../pipeline/buffered-sink.ts'
import { storedRequest } from '../protocols/text/openai-responses/stored.ts'
import { rawQuery } from '../server/server.ts'
import type { Handle, HandlersOf, RequestContext } from './api.ts'
import { conversationHandlers } from './conversations.ts'
import { askObjectOwner, knownQuery, type VendorObjectDeps } from './vendor-objects.ts'

interface StoredDeps extends VendorObjectDeps {
  readonly background: Background
  readonly log: Log
}

type Id = 'responses/{id}' | 'responses/{id}/delete' | 'responses/{id}/input_items' | 'responses/{id}/cancel'

export function storedHandlers(deps: StoredDeps): HandlersOf<Id | keyof typeof CONVERSATIONS> {
  const { path, background } = deps
  const { database } = path

  const handle = (name: FreeId, method: 'GET' | 'DELETE', below: string): Handle => {
    const spec = FREE[name]
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

  /** Ours is gone by now, and whoever asked does not know this id: a vendor that does not do it forgets it by itself after its time. */
  async function removeAtVendor(request: RequestContext, id: string, signal: AbortSignal): Promise<void> {
    const question = {
      method: 'DELETE',
      path: `/responses/${encodeURIComponent(id)}`,
      query: '',
      isResponse: false,
    } as const
    const out = new BufferedSink(signal, DELETED_BYTES_MAX)
    const spec = FREE['responses/{id}/delete']
    try {
      await askObjectOwner(
        request,
        { spec, out, id, unknown, removes: true, ask: (product) => storedRequest(question, product) },
        deps,
      )
    } catch (error) {
      deps.log.warn({ requestId: request.id, fault: asFault(error).kind }, 'a deleted response stays at its vendor')
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
