// Counts the tokens of a text with its model's own tokenizer. It takes much processor time and memory, so it runs in a
// thread of its own, which starts at the first use; the path asks only where a bound does not fit.
import { Worker } from 'node:worker_threads'
import type { TextTraits } from '../../catalog/traits.ts'

type Tokenizer = NonNullable<TextTraits['tokenizer']>

const ENCODINGS: Readonly<Record<Tokenizer, string>> = {
  o200k: 'gpt-tokenizer/encoding/o200k_base',
  cl100k: 'gpt-tokenizer/encoding/cl100k_base',
}
/** More than this is not counted: neither one prompt, nor all that wait. */
const CHARS_MAX = 1_000_000
/**
 * The time for a run of letters, of signs or of spaces grows with its square, and only an attacker sends long ones.
 * They count as bytes.
 */
const LONG_RUN = /[\p{L}\p{M}]{400}|[^\s\p{L}\p{N}]{400}|\s{400}/u

let thread: Worker | undefined
const waiting = new Map<number, { readonly chars: number; done(counts: readonly number[] | undefined): void }>()
let last = 0
let charsWaiting = 0

/** How many tokens each of these texts has; undefined if they are not counted. */
export async function countedTokens(
  tokenizer: Tokenizer,
  texts: readonly string[],
): Promise<((text: string) => number) | undefined> {
  const counted = [...new Set(texts)].filter((text) => !LONG_RUN.test(text))
  const chars = counted.reduce((sum, text) => sum + text.length, 0)
  if (charsWaiting + chars > CHARS_MAX) return undefined
  const counts = await new Promise<readonly number[] | undefined>((done) => {
    last += 1
    charsWaiting += chars
    waiting.set(last, { chars, done })
    opened().postMessage({ id: last, encoding: ENCODINGS[tokenizer], texts: counted })
  })
  if (!counts) return undefined
  const known = new Map(counted.map((text, at) => [text, counts[at]]))
  return (text) => known.get(text) ?? Buffer.byteLength(text)
}

function opened(): Worker {
  if (thread) return thread
  const made = new Worker(new URL('./tokenizer-thread.ts', import.meta.url))
  made.unref()
  made.on('message', ({ id, counts }: { id: number; counts: readonly number[] }) => answer(id, counts))
  // The bound stands where nothing can be counted; the next use starts another thread.
  const end = () => {
    if (thread === made) thread = undefined
    for (const id of [...waiting.keys()]) answer(id, undefined)
  }
  made.on('error', end)
  made.on('exit', end)
  thread = made
  return made
}

function answer(id: number, counts: readonly number[] | undefined): void {
  const asked = waiting.get(id)
  if (!asked) return
  waiting.delete(id)
  charsWaiting -= asked.chars
  asked.done(counts)
}
