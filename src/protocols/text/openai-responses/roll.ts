// A response and its stream are the same answer: the stream of a vendor that sent it whole, and the whole of one that can only
// stream.
import { Fault } from '../../../kernel/fault.ts'
import { inputTokensOf, outputTokensOf, readCount, type Usage } from '../../../meter/usage.ts'
import { encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import { readData } from '../relay.ts'
import { writeResponsesUsage } from '../tokens.ts'

/** How the parts of an item are streamed: its list, the events of the part, the events of its text, and the text's member. */
const PARTS: Readonly<Record<string, { list: string; part: string; said: string; member: string }>> = {
  output_text: { list: 'content', part: 'content_part', said: 'output_text', member: 'text' },
  refusal: { list: 'content', part: 'content_part', said: 'refusal', member: 'refusal' },
  reasoning_text: { list: 'content', part: 'content_part', said: 'reasoning_text', member: 'text' },
  summary_text: { list: 'summary', part: 'reasoning_summary_part', said: 'reasoning_summary_text', member: 'text' },
}
/** Of an item that is a call: the member that is streamed, and the name of its events. */
const INPUTS: Readonly<Record<string, readonly [member: string, event: string]>> = {
  function_call: ['arguments', 'function_call_arguments'],
  custom_tool_call: ['input', 'custom_tool_call_input'],
}

export function unrollResponse(value: Json): string {
  if (!Array.isArray(value.output)) throw new Fault('upstream_garbled', { internal: { why: 'no output' } })
  let sequence = 0
  const event = (name: string, members: Json) => {
    const type = `response.${name}`
    return encodeJson({ type, sequence_number: sequence++, ...members }, type)
  }
  const begun = {
    ...value,
    status: 'in_progress',
    output: [],
    usage: null,
    completed_at: null,
    error: null,
    incomplete_details: null,
  }
  let out = event('created', { response: begun }) + event('in_progress', { response: begun })
  objects(value.output).forEach((item, index) => {
    const at = { item_id: item.id, output_index: index }
    out += event('output_item.added', { output_index: index, item: emptied(item) })
    for (const list of ['summary', 'content'])
      objects(item[list]).forEach((part, i) => {
        const way = PARTS[String(part.type)]
        if (way?.list !== list) return
        const place = { ...at, [list === 'content' ? 'content_index' : 'summary_index']: i }
        const said = text(part[way.member]) ?? ''
        out += event(`${way.part}.added`, { ...place, part: { ...part, [way.member]: '' } })
        out += event(`${way.said}.delta`, { ...place, delta: said })
        out += event(`${way.said}.done`, { ...place, [way.member]: said })
        out += event(`${way.part}.done`, { ...place, part })
      })
    const [member, name] = INPUTS[String(item.type)] ?? []
    if (member !== undefined) {
      out += event(`${name}.delta`, { ...at, delta: item[member] ?? '' })
      out += event(`${name}.done`, { ...at, [member]: item[member] ?? '' })
    }
    out += event('output_item.done', { output_index: index, item })
  })
  const end = value.status === 'incomplete' || value.status === 'failed' ? value.status : 'completed'
  return out + event(end, { response: value })
}

function emptied(item: Json): Json {
  const [input] = INPUTS[String(item.type)] ?? []
  return {
    ...item,
    ...(typeof item.status === 'string' ? { status: 'in_progress' } : {}),
    ...(Array.isArray(item.content) ? { content: [] } : {}),
    ...(Array.isArray(item.summary) ? { summary: [] } : {}),
    ...(input === undefined ? {} : { [input]: '' }),
  }
}

const CUT = 'tollgate.cut'

/** The end of a stream that was cut off by us: what it came to is charged so. */
export function cutEvent(usage: Usage): string {
  return encodeJson({ type: CUT, usage }, CUT)
}

/** The items of a stream as far as they have come. */
class PartialOutput {
  #response: Json = {}
  readonly #items: Json[] = []
  readonly #done = new Set<number>()

  see(type: string | undefined, data: Json): void {
    if (isObject(data.response)) this.#response = data.response
    const index = readCount(data.output_index)
    if (type === undefined || index === undefined || index >= ITEMS_MAX) return
    if (isObject(data.item)) this.#items[index] = { ...data.item }
    if (type === 'response.output_item.done') this.#done.add(index)
    const item = this.#items[index] ?? { type: 'message', id: data.item_id, role: 'assistant', content: [] }
    this.#items[index] = item
    const [, name = '', what] = /^response\.(\w+)\.(delta|added|partial_image)$/.exec(type) ?? []
    if (what === 'partial_image') item.result = data.partial_image_b64
    const input = Object.values(INPUTS).find(([, event]) => event === name)?.[0]
    if (what === 'delta' && input !== undefined) item[input] = `${text(item[input]) ?? ''}${text(data.delta) ?? ''}`
    const way = Object.entries(PARTS).find(([, { part, said }]) => (what === 'delta' ? said : part) === name)
    if (way) this.#say(item, what === 'delta' ? way : undefined, data)
  }

  #say(item: Json, way: [type: string, (typeof PARTS)[string]] | undefined, data: Json): void {
    const list = way?.[1].list ?? (data.summary_index === undefined ? 'content' : 'summary')
    const at = readCount(list === 'summary' ? data.summary_index : data.content_index) ?? 0
    if (at >= ITEMS_MAX) return
    const parts = Array.isArray(item[list]) ? [...(item[list] as Json[])] : [] // As the format has them.
    const part = way ? { type: way[0], ...parts[at] } : isObject(data.part) ? data.part : {}
    const member = way?.[1].member
    parts[at] =
      member === undefined ? part : { ...part, [member]: `${text(part[member]) ?? ''}${text(data.delta) ?? ''}` }
    item[list] = parts
  }

  cut(usage: unknown): Json {
    const output = this.#items.flatMap((item, index) =>
      item === undefined
        ? []
        : this.#done.has(index) || item.type === 'reasoning'
          ? [item]
          : [{ ...item, status: 'incomplete' }],
    )
    return { ...this.#response, output, usage: writeUsage(isObject(usage) ? (usage as Usage) : {}) } // As `cutEvent` wrote it.
  }
}

const ITEMS_MAX = 10_000

/** Of a stream that was kept: whole, or as far as it came until it was cut off. */
export function rollUpKept(events: readonly SseEvent[]): Json {
  if (events.at(-1)?.event !== CUT) return rollUpResponse(events)
  const partial = new PartialOutput()
  let usage: unknown
  for (const event of events) {
    const data = readData(event.data)
    if (!isObject(data)) continue
    if (event.event === CUT) usage = data.usage
    else partial.see(text(data.type) ?? event.event, data)
  }
  return partial.cut(usage)
}

function writeUsage(usage: Usage): Json {
  const cacheWrite = (usage.cacheWrite ?? 0) + (usage.cacheWriteHour ?? 0)
  return writeResponsesUsage({
    ...{ prompt: inputTokensOf(usage), cached: usage.cachedInput ?? 0, cacheWrite },
    ...{ output: outputTokensOf(usage), reasoning: undefined },
  })
}

/** The last event holds the whole answer; some vendors leave its output empty, which then are the items that were done. */
export function rollUpResponse(events: readonly SseEvent[]): Json {
  const items: unknown[] = []
  for (const event of events) {
    const data = event.data.trim() === '[DONE]' ? undefined : readData(event.data)
    if (!isObject(data)) continue
    const type = text(data.type) ?? event.event
    const response = isObject(data.response) ? data.response : {}
    if (type === 'response.output_item.done') items.push(data.item)
    if (type === 'error' || type === 'response.failed') throw vendorFault(data.error ?? response.error ?? data)
    if (type === 'response.completed' || type === 'response.incomplete') {
      if (response.error) throw vendorFault(response.error)
      return objects(response.output).length > 0 ? response : { ...response, output: items }
    }
  }
  throw new Fault('upstream_garbled', { internal: { why: 'the stream has no end' } })
}
