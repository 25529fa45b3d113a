// Watches a chat stream pass by: renames the model, takes the usage out, holds the end back. Events are searched for a
// few byte patterns and parsed only where one is found.
import type { TextTraits } from '../../../catalog/traits.ts'
import type { Fault } from '../../../kernel/fault.ts'
import { memberSpan } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { bytesToText, encodeComment, encodeJson, textToBytes } from '../../../upstream/sse.ts'
import { isObject, type Json, objects } from '../../check.ts'
import { openaiError, vendorFault } from '../../vendor-fault.ts'
import { dataOf, nameOf, Observer, readData } from '../relay.ts'
import { Surroundings } from '../repeated.ts'
import { isCounted, laterReport, readChatUsage, toUsage } from '../tokens.ts'
import { type ChunkMender, mended } from './mend.ts'

interface ChatStreamFacts {
  /** The public id that replaces the vendor's name of the model. */
  readonly uid: string
  readonly includeUsage: boolean
  readonly n: number
  readonly traits?: TextTraits
  /** For the families whose answers need it. */
  readonly mender?: ChunkMender | undefined
}

export const CHAT_KEEP_ALIVE = ': ping\n'
const DONE = 'data: [DONE]\n\n'

/** The frames that end a broken chat stream. SDKs raise an error for an object with `error`; no choices beside it. */
export function chatFailure(fault: Fault, requestId: string): string {
  const { code, message } = fault
  return encodeJson({ error: openaiError(fault), code, message, type: 'api_error', requestId }) + DONE
}

export function chatFinish(usageFrame: string, comment: string): string {
  return usageFrame + encodeComment(comment) + DONE
}

export class ChatObserver extends Observer {
  readonly keepAlive = CHAT_KEEP_ALIVE
  private readonly facts: ChatStreamFacts
  private reported: unknown
  private usageFrame = ''
  private finishes = 0
  /** The last ordinary event without its text, and what to write in place of what comes before it; empty for the same. */
  private readonly last = new Surroundings()
  private leadOut = ''

  constructor(facts: ChatStreamFacts) {
    super()
    this.facts = facts
  }

  get usage(): Usage | undefined {
    // Zeros before the end are no report: the vendor has not counted yet.
    const isReport = isCounted(this.reported) || this.terminal || this.finishes >= this.facts.n
    return isReport ? toUsage(readChatUsage(this.reported, this.facts.traits)) : undefined
  }

  see(block: string): string {
    if (this.terminal || this.fault) return ''
    if (this.facts.mender) return this.examine(mended(block, this.facts.mender))
    return this.again(block) ?? this.examine(block)
  }

  /** The quick way: an event that differs from the last ordinary one only in its text needs no other look. */
  private again(block: string): string | undefined {
    const end = this.last.endOf(block)
    if (end < 0) return undefined
    const { start } = this.last
    this.output.addBytes(end - start)
    return this.leadOut === '' ? block : this.leadOut + block.slice(start)
  }

  private examine(block: string): string {
    if (block.length < 24 && dataOf(block).trim() === '[DONE]') {
      this.terminal = true
      return ''
    }
    if (nameOf(block) !== undefined) return this.examine(`data: ${dataOf(block)}\n\n`)
    const out = this.renamed(block)
    if (!block.includes('"choices"') || hasObject(block, '"usage"') || block.includes('"error"')) {
      // Whatever is written anew must be decoded first: an escaped character is not one byte.
      const data = readData(bytesToText(dataOf(out)))
      return isObject(data) ? this.read(data, out) : ''
    }
    const finished = this.finishes
    this.countFinishes(block)
    const text = textOf(block)
    if (text) this.output.addBytes(text[1] - text[0])
    else this.countDeltas(readData(dataOf(block)))
    if (text && finished === this.finishes) {
      this.last.learn(block, text[0], text[1])
      this.leadOut = out === block ? '' : out.slice(0, text[0] + out.length - block.length)
    }
    return out
  }

  override end(): void {
    if (this.finishes >= this.facts.n && !this.fault) this.terminal = true
  }

  finish(comment: string): string {
    return chatFinish(this.facts.includeUsage ? bytesToText(this.usageFrame) : '', comment)
  }

  fail(fault: Fault, requestId: string): string {
    return chatFailure(fault, requestId)
  }

  /** An event that is more than a piece of text: an error, or one that carries the usage. */
  private read(data: Json, out: string): string {
    if (data.error !== undefined && data.error !== null) {
      this.fault = vendorFault(data.error)
      return ''
    }
    const { usage, ...chunk } = data
    if (isObject(usage)) {
      const reported = laterReport(this.reported, usage)
      // Vendors differ in which chunk brings the usage: callers always get it in one of its own, after the others.
      if (reported === usage) {
        this.usageFrame = Array.isArray(data.choices) && data.choices.length === 0 ? out : ''
        this.usageFrame ||= textToBytes(encodeJson({ ...chunk, choices: [], usage }))
      }
      this.reported = reported
    }
    if (!Array.isArray(data.choices) || (data.choices.length === 0 && isObject(usage))) return ''
    const kept = isObject(usage) ? textToBytes(encodeJson(chunk)) : out
    this.countFinishes(kept)
    this.countDeltas(data)
    return kept
  }

  private countDeltas(data: unknown): void {
    for (const choice of objects(isObject(data) ? data.choices : undefined)) this.output.addDelta(choice.delta)
  }

  private countFinishes(block: string): void {
    const name = '"finish_reason"'
    for (let at = block.indexOf(name); at >= 0; at = block.indexOf(name, at + 1)) {
      if (block.charCodeAt(valueAt(block, at + name.length)) === 0x22) this.finishes++
    }
  }

  private renamed(block: string): string {
    const found = block.indexOf('"model"')
    if (found < 0) return block
    const choices = block.indexOf('"choices"')
    let start = valueAt(block, found + 7)
    let end = block.indexOf('"', start + 1) + 1
    if (choices >= 0 && choices < found) {
      // Unusual order: a member called "model" deeper inside must not be taken for the chunk's own.
      const data = dataOf(block)
      const span = memberSpan(data, 'model')
      if (!span) return block
      start = block.indexOf(data) + span[0]
      end = start + span[1] - span[0]
    }
    if (block.charCodeAt(start) !== 0x22) return block
    const name = `"${this.facts.uid}"`
    return block.slice(start, end) === name ? block : block.slice(0, start) + name + block.slice(end)
  }
}

/** Where the value stands whose key ends at `at`. */
function valueAt(block: string, at: number): number {
  let code = block.charCodeAt(at)
  while (code === 0x3a || code === 0x20) code = block.charCodeAt(++at)
  return at
}

/** Where the text of an event with a single delta stands, without its quotes. */
function textOf(block: string): readonly [start: number, end: number] | undefined {
  const delta = block.indexOf('"delta":{"')
  const start = delta < 0 ? -1 : block.indexOf('":"', delta + 10) + 3
  const end = block.indexOf('"', start)
  // Only a key without anything before it may stand between the brace and the text.
  if (delta < 0 || start < 3 || end < 0 || block.indexOf('"', delta + 10) !== start - 3) return undefined
  if (block.charCodeAt(end - 1) === 0x5c) return undefined
  // Another string beside it may be the text: a role comes first.
  return block.slice(end + 1, block.indexOf('}', end)).includes('":"') ? undefined : [start, end]
}

/** Whether the block holds this key with an object as its value. */
function hasObject(block: string, key: string): boolean {
  for (let at = block.indexOf(key); at >= 0; at = block.indexOf(key, at + 1)) {
    if (block.charCodeAt(valueAt(block, at + key.length)) === 0x7b) return true
  }
  return false
}
