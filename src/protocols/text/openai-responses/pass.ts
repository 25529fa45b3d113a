// A Responses request and answer between a caller and a vendor that both use this format.
import type { Fault } from '../../../kernel/fault.ts'
import {
  isObject,
  type Json,
  type JsonText,
  memberSpan,
  objectOf,
  objects,
  splice,
  text,
} from '../../../kernel/json.ts'
import { inputTokensOf, outputTokensOf, readCount, type Usage } from '../../../meter/usage.ts'
import { bytesToText, encodeComment, encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { type Answer, garbled, type PriceAttributes } from '../../protocol.ts'
import { openaiError, vendorFault } from '../../vendor-fault.ts'
import { PACKED } from '../canonical.ts'
import type { CheckedRequest, PassOptions } from '../format.ts'
import { idsOfResponse } from '../references.ts'
import { charsIn, dataOf, nameOf, Observer, readData, readWhole, stringEnd } from '../relay.ts'
import { readResponsesUsage, type TokenCounts, toUsage, usesOf, writeResponsesUsage } from '../tokens.ts'

export function passResponses(
  json: JsonText,
  _paidRequest: CheckedRequest,
  { model, traits, outputTokensCap }: PassOptions,
): string {
  const replace: Record<string, string> = { model: JSON.stringify(model) }
  const add: Record<string, string> = {}
  if (outputTokensCap !== undefined)
    (json.member('max_output_tokens') ? replace : add).max_output_tokens = String(outputTokensCap)
  if (!traits.vendorState) (json.member('store') ? replace : add).store = 'false'
  // Removes thoughts of other vendors, because this vendor would reject them.
  const { input } = json.value
  if (Array.isArray(input) && json.text.includes(`"${PACKED}`))
    replace.input = JSON.stringify(objects(input).filter((item) => !text(item.encrypted_content)?.startsWith(PACKED)))
  return splice(json, { replace, add, remove: traits.dropParams })
}

/** What a response that failed used, if the vendor reports it: it is charged, as in a stream. */
export function usageOfFailed(body: Buffer): Pick<Answer, 'usage' | 'price'> | undefined {
  const value = readData(body.toString())
  const tokens = isObject(value) ? readResponsesUsage(value.usage, value.output, value) : undefined
  return tokens && { usage: toUsage(tokens), price: tokens.served }
}

export function passResponsesAnswer(body: Buffer, uid: string): Answer {
  const whole = readWhole(body)
  const out = mended(whole.bytes, 0, whole.value, uid)
  const tokens = readResponsesUsage(whole.value.usage, whole.value.output, whole.value)
  return {
    body: out === whole.bytes ? body : Buffer.from(out, 'latin1'),
    contentType: 'application/json',
    storedAs: idsOfResponse(whole.value),
    usage: toUsage(tokens),
    price: tokens?.served,
    outputChars: objects(whole.value.output).reduce((sum, item) => sum + outputChars(item), 0),
  }
}

function outputChars(item: Json): number {
  const own = (text(item.arguments) ?? text(item.input) ?? '').length
  const parts = [...objects(item.content), ...objects(item.summary)]
  return parts.reduce((sum, part) => sum + charsIn(part), own)
}

export const RESPONSES_KEEP_ALIVE = ': ping\n'

/** SDKs recognise the end by the terminal event; the open specification also requires this. */
const DONE = 'data: [DONE]\n\n'

export function responsesFinish(terminal: string, comment: string): string {
  return encodeComment(comment) + terminal + DONE
}

/**
 * The frames that end a broken stream: response.failed once the response exists, else an error. The code is a word and
 * never our number, because one SDK cannot parse anything else.
 */
export function responsesFailure(fault: Fault, response: Json | undefined, sequence: number): string {
  const { code, message, param } = openaiError(fault)
  if (!response) {
    const data = { type: 'error', code, message, param, sequence_number: sequence }
    return encodeJson(data, 'error') + DONE
  }
  const failed = { ...response, status: 'failed', error: { code, message } }
  const type = 'response.failed'
  return encodeJson({ type, sequence_number: sequence, response: failed }, type) + DONE
}

const PARTIAL = 'response.image_generation_call.partial_image'
const LIFECYCLE = new Set(['response.created', 'response.in_progress', 'response.queued'])
const TERMINAL = new Set(['response.completed', 'response.incomplete'])

export class ResponsesObserver extends Observer {
  readonly keepAlive = RESPONSES_KEEP_ALIVE
  storedAs: readonly string[] | undefined
  private readonly uid: string
  /** Of the event that ended it. */
  private response: Json | undefined
  private readonly done: Json[] = []
  /** Images of which a partial one was shown; the vendor finishes and bills them. */
  private readonly pictures = new Set<unknown>()
  private held = ''
  /** The last lifecycle event as bytes, for the failure frame. */
  private lifecycle = ''
  private lastBlock = ''

  constructor(uid: string) {
    super()
    this.uid = uid
  }

  get usage(): Usage | undefined {
    return toUsage(this.counts)
  }

  get price(): PriceAttributes | undefined {
    return this.counts?.served
  }

  private get counts(): TokenCounts | undefined {
    return readResponsesUsage(this.response?.usage, this.response?.output, this.response)
  }

  see(block: string): string {
    if (this.terminal || this.fault) return ''
    const name = nameOf(block)
    if (name === undefined) return this.seeUnnamed(block)
    this.lastBlock = block
    if (LIFECYCLE.has(name) || TERMINAL.has(name)) {
      const data = readData(dataOf(block))
      const response = isObject(data) && isObject(data.response) ? data.response : undefined
      if (TERMINAL.has(name) && response?.error) {
        this.reportFault(readData(bytesToText(dataOf(block))))
        return ''
      }
      const out = response ? this.mended(block, response) : block
      if (LIFECYCLE.has(name)) {
        this.lifecycle = out
        return out
      }
      this.response = response
      this.storedAs = response && idsOfResponse(response)
      this.held = out
      this.terminal = true
      return ''
    }
    if (name === 'error' || name === 'response.failed') {
      this.reportFault(readData(bytesToText(dataOf(block))))
      return ''
    }
    if (name === PARTIAL) this.pictures.add(/"item_id"\s*:\s*"([^"]{1,200})"/.exec(block)?.[1] ?? '')
    if (name.endsWith('.delta')) this.count(block)
    // Only items made by a tool at the vendor are counted.
    if (name === 'response.output_item.done' && block.includes('_call"')) this.note(readData(dataOf(block)))
    return block
  }

  finish(comment: string): string {
    return responsesFinish(bytesToText(this.held), comment)
  }

  fail(fault: Fault): string {
    const created = this.lifecycle === '' ? undefined : readData(bytesToText(dataOf(this.lifecycle)))
    const response = isObject(created) && isObject(created.response) ? created.response : undefined
    return responsesFailure(fault, response, this.nextSequence())
  }

  get uses(): Usage | undefined {
    const begun = [...this.pictures].filter((id) => !this.done.some((item) => item.id === id))
    return usesOf([...this.done, ...begun.map(() => ({ type: 'image_generation_call' }))])
  }

  private note(data: unknown): void {
    const item = isObject(data) && isObject(data.item) ? data.item : undefined
    if (item) this.done.push({ type: item.type, id: item.id })
  }

  private reportFault(data: unknown): void {
    const said = objectOf(data)
    const response = objectOf(said.response)
    this.response = response
    this.fault = vendorFault(said.error ?? response.error ?? said)
  }

  private count(block: string): void {
    const start = block.indexOf('"delta":"') + 9
    const end = start < 9 ? -1 : stringEnd(block, start)
    if (end >= 0) this.output.addBytes(end - start)
    else {
      const data = readData(dataOf(block))
      this.output.addDelta(isObject(data) ? data.delta : undefined)
    }
  }

  private mended(block: string, response: Json): string {
    const span = memberSpan(block, 'response', block.length - 2 - dataOf(block).length)
    return span ? mended(block, span[0], response, this.uid) : block
  }

  private nextSequence(): number {
    const found = /"sequence_number"\s*:\s*(\d+)/.exec(this.lastBlock)
    return found ? Number(found[1]) + 1 : 0
  }
}

// The members that the open specification requires in a response object, with their defaults.

const DEFAULTS: Json = {
  background: false,
  completed_at: null,
  error: null,
  frequency_penalty: 0,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: null,
  safety_identifier: null,
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  usage: null,
}

/** These members from the request, with defaults for the rest. */
export function echoed(request: Json): Json {
  const members: Json = {}
  for (const name in DEFAULTS) members[name] = request[name] ?? DEFAULTS[name]
  members.tools = objects(members.tools).map((tool) =>
    tool.type === 'function' ? { description: null, parameters: null, strict: false, ...tool } : tool,
  )
  return members
}

/**
 * Members without which the OpenAI packages for Python and Java cannot read a response; everything else is only what
 * the vendor sent.
 */
const NEEDED = ['parallel_tool_calls', 'tool_choice', 'tools'] as const

/**
 * The vendor's response object that starts at `at` of the text, with the model's public name and the members that SDKs
 * need. The text has one character per byte, and so do the values parsed from it.
 */
function mended(text: string, at: number, response: Json, uid: string): string {
  let missing = ''
  for (const name of NEEDED)
    if (!Object.hasOwn(response, name)) missing += `${JSON.stringify(name)}:${JSON.stringify(DEFAULTS[name])},`
  const open = text.indexOf('{', at) + 1
  const span = response.model === uid ? undefined : memberSpan(text, 'model', at)
  if (!span || typeof response.model !== 'string') return text.slice(0, open) + missing + text.slice(open)
  return `${text.slice(0, open)}${missing}${text.slice(open, span[0])}"${uid}"${text.slice(span[1])}`
}

// Converts between a whole response and its stream: for a vendor that answers whole to a streaming caller, and for a
// vendor that can only stream.

/** How the parts of an item are streamed: its list, the part's events, the text's events, and the text's member. */
const PARTS: Readonly<Record<string, { list: string; part: string; said: string; member: string }>> = {
  output_text: { list: 'content', part: 'content_part', said: 'output_text', member: 'text' },
  refusal: { list: 'content', part: 'content_part', said: 'refusal', member: 'refusal' },
  reasoning_text: { list: 'content', part: 'content_part', said: 'reasoning_text', member: 'text' },
  summary_text: { list: 'summary', part: 'reasoning_summary_part', said: 'reasoning_summary_text', member: 'text' },
}
/** For items that are calls: the streamed member and the name of its events. */
const INPUTS: Readonly<Record<string, readonly [member: string, event: string]>> = {
  function_call: ['arguments', 'function_call_arguments'],
  custom_tool_call: ['input', 'custom_tool_call_input'],
}

export function unrollResponse(value: Json): string {
  if (!Array.isArray(value.output)) throw garbled('no output')
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

/** The end of a stream that the gateway cut off, with the usage that is charged. */
export function cutEvent(usage: Usage): string {
  return encodeJson({ type: CUT, usage }, CUT)
}

/** Collects the items of a stream as far as they have arrived. */
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
    const parts: Json[] = Array.isArray(item[list]) ? [...item[list]] : []
    const part = way ? { type: way[0], ...parts[at] } : objectOf(data.part)
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
    return { ...this.#response, output, usage: writeUsage(isObject(usage) ? (usage as Usage) : {}) } // Written by `cutEvent`.
  }
}

const ITEMS_MAX = 10_000

/** Rebuilds a recorded stream: whole, or up to where it was cut off. */
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
    prompt: inputTokensOf(usage),
    cached: usage.cachedInput ?? 0,
    cacheWrite,
    output: outputTokensOf(usage),
    reasoning: undefined,
  })
}

/** The last event contains the whole answer. Some vendors leave its output empty; the completed items are used then. */
export function rollUpResponse(events: readonly SseEvent[]): Json {
  const items: unknown[] = []
  for (const event of events) {
    const data = event.data.trim() === '[DONE]' ? undefined : readData(event.data)
    if (!isObject(data)) continue
    const type = text(data.type) ?? event.event
    const response = objectOf(data.response)
    if (type === 'response.output_item.done') items.push(data.item)
    if (type === 'error' || type === 'response.failed') throw vendorFault(data.error ?? response.error ?? data)
    if (type === 'response.completed' || type === 'response.incomplete') {
      if (response.error) throw vendorFault(response.error)
      return objects(response.output).length > 0 ? response : { ...response, output: items }
    }
  }
  throw garbled('the stream has no end')
}
