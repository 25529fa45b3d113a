// Repairs of chat answers, for the families whose traits name a quirk. Works on parsed objects and keeps what it does not
// know.

import type { Quirk } from '../../../catalog/traits.ts'
import { bytesToText, encodeJson, textToBytes } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import { dataOf } from '../relay.ts'

const SPACE_BEFORE = /^[ \t\r\n]+/
const SPACE_AFTER = /(?<![ \t\r\n])[ \t\r\n]+$/
const MAYBE_CLOSING = /(?<![ \t\r\n])[ \t\r\n]*(?:<(?:\/(?:t(?:h(?:i(?:nk?)?)?)?)?)?)?$/

const OPEN = '<think>'
const CLOSE = '</think>'

/** Moves <think>…</think> at the beginning of an answer out of its text, however the text is cut into pieces. */
class ThinkSplitter {
  private place: 'before' | 'inside' | 'after' | 'answer' = 'before'
  private held = ''
  private begun = false

  push(piece: string, last: boolean): { thought: string; text: string } {
    let rest = this.held + piece
    this.held = ''
    let thought = ''
    if (this.place === 'before') {
      const start = rest.replace(SPACE_BEFORE, '')
      if (start.startsWith(OPEN)) {
        this.place = 'inside'
        rest = start.slice(OPEN.length)
      } else if (!last && OPEN.startsWith(start)) {
        this.held = rest
        return { thought: '', text: '' }
      } else this.place = 'answer'
    }
    if (this.place === 'inside') {
      const close = rest.indexOf(CLOSE)
      if (close >= 0) {
        thought = rest.slice(0, close).replace(SPACE_AFTER, '')
        rest = rest.slice(close + CLOSE.length)
        this.place = 'after'
      } else {
        // The end of the piece may be the beginning of the closing tag, or the space before it.
        const keep = last ? 0 : (MAYBE_CLOSING.exec(rest)?.[0].length ?? 0)
        this.held = rest.slice(rest.length - keep)
        return { thought: this.trimmed(rest.slice(0, rest.length - keep)), text: '' }
      }
      thought = this.trimmed(thought)
    }
    if (this.place === 'after') {
      rest = rest.replace(SPACE_BEFORE, '')
      if (rest !== '') this.place = 'answer'
    }
    return { thought, text: rest }
  }

  /** The line break after the opening tag is no part of the thought. */
  private trimmed(thought: string): string {
    const clean = this.begun ? thought : thought.replace(SPACE_BEFORE, '')
    if (clean !== '') this.begun = true
    return clean
  }
}

/** The new part of a text that a vendor sends either in pieces or as growing snapshots. */
class Growing {
  private soFar = ''
  private pieces = false

  next(text: string): string {
    if (!this.pieces && this.soFar !== '' && text.startsWith(this.soFar)) {
      const added = text.slice(this.soFar.length)
      this.soFar = text
      return added
    }
    if (this.soFar !== '') this.pieces = true
    this.soFar += text
    return text
  }
}

class ChoiceMender {
  private readonly quirks: readonly Quirk[]
  private readonly splitter = new ThinkSplitter()
  private readonly growing = new Growing()
  private readonly callIds: string[] = []
  private begun = false

  constructor(quirks: readonly Quirk[]) {
    this.quirks = quirks
  }

  mend(delta: Json, last: boolean): void {
    if (this.quirks.includes('role') && !this.begun) delta.role ??= 'assistant'
    this.begun = true
    if (this.quirks.includes('reasoning-details')) this.mendDetails(delta)
    if (this.quirks.includes('think-tags')) this.mendTags(delta, last)
    if (this.quirks.includes('tool-index')) for (const call of objects(delta.tool_calls)) this.mendIndex(call)
  }

  private mendDetails(delta: Json): void {
    if (!Array.isArray(delta.reasoning_details)) return
    const said = objects(delta.reasoning_details).map((detail) => text(detail.text) ?? '')
    delete delta.reasoning_details
    delta.reasoning_content = this.growing.next(said.join(''))
  }

  private mendTags(delta: Json, last: boolean): void {
    const content = text(delta.content)
    if (content === undefined && !last) return
    const { thought, text: answer } = this.splitter.push(content ?? '', last)
    if (thought !== '') delta.reasoning_content = `${text(delta.reasoning_content) ?? ''}${thought}`
    if (content !== undefined || answer !== '') delta.content = answer
    // A piece that only belongs to the thought has no content at all.
    if (answer === '' && thought !== '') delete delta.content
  }

  private mendIndex(call: Json): void {
    const id = text(call.id) ?? ''
    if (typeof call.index === 'number') {
      this.callIds[call.index] ??= id
      return
    }
    const known = id === '' ? this.callIds.length - 1 : this.callIds.indexOf(id)
    if (known < 0) this.callIds.push(id)
    call.index = known < 0 ? this.callIds.length - 1 : known
  }
}

/** Mends the chunks of one stream. */
export class ChunkMender {
  private readonly quirks: readonly Quirk[]
  private readonly choices = new Map<unknown, ChoiceMender>()

  constructor(quirks: readonly Quirk[]) {
    this.quirks = quirks
  }

  mend(chunk: Json): void {
    for (const choice of objects(chunk.choices)) {
      const index = choice.index ?? 0
      let mender = this.choices.get(index)
      if (!mender) {
        mender = new ChoiceMender(this.quirks)
        this.choices.set(index, mender)
      }
      choice.delta ??= {}
      if (isObject(choice.delta))
        mender.mend(choice.delta, choice.finish_reason !== undefined && choice.finish_reason !== null)
    }
  }
}

/** Mends a whole answer. */
export function mendAnswer(value: Json, quirks: readonly Quirk[]): void {
  for (const choice of objects(value.choices)) {
    const { message } = choice
    if (!isObject(message)) continue
    if (
      quirks.includes('reasoning-details') &&
      message.reasoning_content === undefined &&
      Array.isArray(message.reasoning_details)
    )
      message.reasoning_content = objects(message.reasoning_details)
        .map((detail) => text(detail.text) ?? '')
        .join('')
    if (quirks.includes('think-tags') && typeof message.content === 'string') {
      const { thought, text: answer } = new ThinkSplitter().push(message.content, true)
      message.content = answer === '' && objects(message.tool_calls).length > 0 ? null : answer
      if (thought !== '') message.reasoning_content = `${text(message.reasoning_content) ?? ''}${thought}`
    }
  }
}

/** An event as it should have been. */
export function mended(block: string, mender: ChunkMender): string {
  const data = bytesToText(dataOf(block))
  if (!data.includes('"choices"')) return block
  let chunk: unknown
  try {
    chunk = JSON.parse(data)
  } catch {
    return block // Let the one who judges garbled events judge this one.
  }
  if (!isObject(chunk)) return block
  mender.mend(chunk)
  return textToBytes(encodeJson(chunk))
}
