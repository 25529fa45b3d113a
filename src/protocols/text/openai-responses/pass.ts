// A Responses request and answer between a caller and a vendor who both speak the format.
import type { Fault } from '../../../kernel/fault.ts'
import { type JsonText, memberSpan, splice } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { bytesToText, encodeComment, encodeJson } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import type { Answer } from '../../protocol.ts'
import { openaiError, vendorFault } from '../../vendor-fault.ts'
import { PACKED } from '../carry.ts'
import type { CheckedAsk, PassOptions } from '../format.ts'
import { idsOfResponse } from '../references.ts'
import { dataOf, nameOf, Observer, readData, stringEnd } from '../relay.ts'
import { readResponsesUsage, toUsage, usesOf } from '../tokens.ts'
import { readWhole } from '../whole.ts'
import { mended } from './members.ts'

export function passResponses(
  json: JsonText,
  ask: CheckedAsk,
  { model, traits, outputTokensCap }: PassOptions,
): string {
  const replace: Record<string, string> = { model: JSON.stringify(model) }
  const add: Record<string, string> = {}
  if (ask.tokensMax === undefined && outputTokensCap !== undefined)
    (json.member('max_output_tokens') ? replace : add).max_output_tokens = String(outputTokensCap)
  if (!traits.vendorState) (json.member('store') ? replace : add).store = 'false'
  // A conversation may come from another family: thoughts that this vendor did not make would be refused.
  const { input } = json.value
  if (Array.isArray(input) && json.text.includes(`"${PACKED}`))
    replace.input = JSON.stringify(objects(input).filter((item) => !text(item.encrypted_content)?.startsWith(PACKED)))
  return splice(json, { replace, add, remove: traits.dropParams })
}

export function passResponsesAnswer(body: Buffer, uid: string): Answer {
  const whole = readWhole(body)
  const out = mended(whole.bytes, 0, whole.value, uid)
  return {
    body: out === whole.bytes ? body : Buffer.from(out, 'latin1'),
    contentType: 'application/json',
    keptAs: idsOfResponse(whole.value),
    usage: toUsage(readResponsesUsage(whole.value.usage, whole.value.output)),
    outputChars: objects(whole.value.output).reduce((sum, item) => sum + outputChars(item), 0),
  }
}

function outputChars(item: Json): number {
  const own = (text(item.arguments) ?? text(item.input) ?? '').length
  const parts = [...objects(item.content), ...objects(item.summary)]
  return parts.reduce((sum, part) => sum + (text(part.text) ?? text(part.refusal) ?? '').length, own)
}

export const RESPONSES_KEEP_ALIVE = ': ping\n'

/** SDKs know the end by the terminal event; the open specification also wants this. */
const DONE = 'data: [DONE]\n\n'

export function responsesFinish(terminal: string, comment: string): string {
  return encodeComment(comment) + terminal + DONE
}

/**
 * The frames that end a broken stream: response.failed once the response exists, else an error. The code is a word, never
 * our number: one SDK refuses to read anything else.
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
  keptAs: readonly string[] | undefined
  private readonly uid: string
  private reported: unknown
  private items: unknown
  private readonly done: Json[] = []
  /** Of which a part was shown: they are drawn to their end. */
  private readonly pictures = new Set<unknown>()
  private held = ''
  /** The last lifecycle event, as bytes, for the frame of a failure. */
  private lifecycle = ''
  private lastBlock = ''

  constructor(uid: string) {
    super()
    this.uid = uid
  }

  get usage(): Usage | undefined {
    return toUsage(readResponsesUsage(this.reported, this.items))
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
      this.reported = response?.usage
      this.items = response?.output
      this.keptAs = response && idsOfResponse(response)
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
    // Of all items only those count that a tool at the vendor has made.
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
    const said = isObject(data) ? data : {}
    const response = isObject(said.response) ? said.response : {}
    this.reported = response.usage
    this.items = response.output
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
