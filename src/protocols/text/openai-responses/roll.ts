// A response and its stream are the same answer: the stream of a vendor that sent it whole, and the whole of one that can only
// stream.
import { Fault } from '../../../kernel/fault.ts'
import { encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import { readData } from '../relay.ts'

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
