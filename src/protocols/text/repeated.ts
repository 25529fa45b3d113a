// Vendors repeat themselves: most events of a stream differ from the one before only in their text, between the same bytes.
// Such an event is known by comparing, which is ten times as fast as parsing it. Blocks are bytes in a string.
import { bytesToText, textToBytes } from '../../upstream/sse.ts'
import type { ReplyEvent } from './dialogue.ts'

/** What stands around the text of an event, its quotes included. */
export class Surroundings {
  private lead = ''
  private tail = ''

  /** Blocks are compared with this one from now on, whose text stands there. */
  learn(block: string, start: number, end: number): void {
    this.lead = block.slice(0, start)
    this.tail = block.slice(end)
  }

  /** Where the text of a block begins that `endOf` knows. */
  get start(): number {
    return this.lead.length
  }

  /** Where the text ends of a block that is like the one that was learnt; -1 when it is another. */
  endOf(block: string): number {
    const start = this.lead.length
    if (start === 0) return -1
    const end = block.indexOf('"', start)
    if (block.length - end !== this.tail.length || block.charCodeAt(end - 1) === 0x5c) return -1
    // Comparing slices is three times as fast as startsWith.
    return block.slice(0, start) === this.lead && block.slice(end) === this.tail ? end : -1
  }
}

type Piece = ReplyEvent & { readonly text: string }

/** What the last event of a stream said, to know by it what its like says. */
export class Repeated {
  private readonly around = new Surroundings()
  private said: Piece | undefined

  learn(block: string, events: readonly ReplyEvent[]): void {
    const said = events.length === 1 ? events[0] : undefined
    this.said = undefined
    if (!said || !('text' in said) || block.includes('\\')) return
    // In a block without escapes all strings stand as they are read. One that is found once is the one that was read.
    const quoted = `"${textToBytes(said.text)}"`
    const start = block.indexOf(quoted)
    if (start < 0 || block.includes(quoted, start + 1)) return
    this.around.learn(block, start + 1, start + quoted.length - 1)
    this.said = said
  }

  /** What a block says that is like the last one; undefined when it has to be read. */
  read(block: string): Piece | undefined {
    const end = this.said ? this.around.endOf(block) : -1
    const text = end < 0 ? undefined : readQuoted(block.slice(this.around.start - 1, end + 1))
    return this.said && text ? { ...this.said, text } : undefined
  }
}

function readQuoted(quoted: string): string | undefined {
  try {
    return JSON.parse(bytesToText(quoted)) as string // Quotes are all that JSON needs to be a string, or an error.
  } catch {
    return undefined
  }
}
