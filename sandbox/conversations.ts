// Conversations of the Responses API, as their vendor keeps them: the oldest are forgotten.
import type { IncomingMessage } from 'node:http'
import { isRecord, type Json, list, parseJson, record, string } from './json.ts'
import { openaiError, Refusal } from './refusal.ts'
import type { RoomContext } from './room.ts'
import { dice, hash } from './seed.ts'

export const CONVERSATION = /^\/openai(?:\/v1)?\/conversations(?:\/([\w-]+))?(\/items)?(?:\/([\w-]+))?$/

const KEPT_MAX = 500
const ITEMS_MAX = 200
const PAGE = 20

interface Conversation {
  readonly object: Json
  readonly items: Json[]
}

export class Conversations {
  readonly #kept = new Map<string, Conversation>()
  #made = 0

  find(id: string): Conversation {
    const found = this.#kept.get(id)
    if (!found) throw new Refusal(404, `Conversation with id '${id}' not found.`, null, 'conversation_not_found')
    return found
  }

  itemsOf(id: string): readonly Json[] | undefined {
    return this.#kept.get(id)?.items
  }

  append(id: string, items: readonly Json[]): void {
    const found = this.#kept.get(id)
    if (found) found.items.push(...items.slice(0, ITEMS_MAX - found.items.length))
  }

  async serve({ method }: IncomingMessage, ctx: RoomContext): Promise<void> {
    const sent = method === 'POST' ? parseJson((await ctx.body()).toString('utf8')) : {}
    try {
      if (!isRecord(sent)) throw new Refusal(400, 'We could not parse the JSON body of your request.', null, null)
      const [, id, items, item] = CONVERSATION.exec(ctx.path) ?? []
      if (id === undefined) return ctx.json(200, this.#create(sent, ctx))
      const found = this.find(id)
      ctx.json(
        200,
        items === undefined ? this.#one(found, method, sent) : this.#items(found, method, sent, { item, ctx }),
      )
    } catch (error) {
      ctx.refuse(error, openaiError)
    }
  }

  #create(body: Json, ctx: RoomContext): Json {
    const id = `conv_${this.#id(ctx)}`
    const object = {
      id,
      object: 'conversation',
      created_at: Math.floor(ctx.world.nowMs() / 1000),
      metadata: body.metadata ?? {},
    }
    this.#kept.set(id, { object, items: list(body.items).map((item) => this.#named(record(item), ctx)) })
    const oldest = this.#kept.keys().next().value
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest)
    return object
  }

  #one({ object, items }: Conversation, method: string | undefined, { metadata }: Json): Json {
    const id = string(object.id)
    if (method === 'DELETE') {
      this.#kept.delete(id)
      return { id, object: 'conversation.deleted', deleted: true }
    }
    if (method !== 'POST') return object
    const changed = { ...object, metadata }
    this.#kept.set(id, { object: changed, items })
    return changed
  }

  #items(
    { object, items }: Conversation,
    method: string | undefined,
    body: Json,
    { item, ctx }: { item: string | undefined; ctx: RoomContext },
  ): Json {
    if (item === undefined && method === 'POST') {
      const made = list(body.items).map((one) => this.#named(record(one), ctx))
      this.append(string(object.id), made)
      return pageOf(made, new URLSearchParams({ order: 'asc' }))
    }
    if (item === undefined) return pageOf(items, ctx.query)
    const at = items.findIndex(({ id }) => id === item)
    const found = items[at]
    if (!found) throw new Refusal(404, `Item with id '${item}' not found.`, null, null)
    if (method !== 'DELETE') return found
    items.splice(at, 1)
    return object
  }

  #named(item: Json, ctx: RoomContext): Json {
    return { id: `msg_${this.#id(ctx)}`, type: 'message', status: 'completed', ...item }
  }

  #id(ctx: RoomContext): string {
    this.#made++
    return dice(hash(`conversation ${this.#made} ${ctx.call.number} ${ctx.world.nowMs()}`)).hex(24)
  }
}

export function pageOf(items: readonly Json[], query: URLSearchParams): Json {
  const ordered = query.get('order') === 'asc' ? items : items.toReversed()
  const from = ordered.findIndex((item) => item.id === query.get('after')) + 1
  const data = ordered.slice(from, from + (Number(query.get('limit')) || PAGE))
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + data.length < ordered.length,
  }
}
