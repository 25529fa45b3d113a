// The transcription of what a caller says in a Realtime session, by the second of sound: how much the vendor may still
// transcribe, and what it has reported. The vendor transcribes what it commits by itself, so a hold covers the sound
// before the vendor gets it.
import { type Json, objectOf, text } from '../../../kernel/json.ts'
import { readCount } from '../../../meter/usage.ts'

/** Vendors that report tokens count these for a second of sound. */
const TOKENS_PER_SECOND = 10

export class Transcripts {
  /** From the moment that the vendor is asked for it. */
  isOn = false
  /** The vendor has said that it transcribes. */
  #isConfirmed = false
  /** The seconds of committed items whose transcripts have not come. */
  readonly #awaited = new Map<string, number>()
  #reportedSeconds = 0

  confirm(given: unknown): void {
    this.#isConfirmed = given !== null && given !== undefined
    if (this.#isConfirmed) this.isOn = true
  }

  committed(item: unknown, seconds: number): void {
    const id = text(item)
    if (this.#isConfirmed && id !== undefined) this.#awaited.set(id, seconds)
  }

  completed({ item_id, usage }: Json): void {
    const known = this.#awaited.get(text(item_id) ?? '')
    this.failed({ item_id })
    this.#reportedSeconds += secondsOf(objectOf(usage)) ?? known ?? 0
  }

  failed({ item_id }: Json): void {
    this.#awaited.delete(text(item_id) ?? '')
  }

  /** What may have to be paid. `waiting`: the seconds of sound that are not committed. */
  seconds(waiting: number): number {
    let sum = this.#reportedSeconds + (this.isOn ? waiting : 0)
    for (const seconds of this.#awaited.values()) sum += seconds
    return sum
  }

  /** What has been reported since it was last taken, to be charged. */
  take(): number {
    const seconds = Math.ceil(this.#reportedSeconds)
    this.#reportedSeconds = 0
    return seconds
  }
}

function secondsOf({ seconds, input_tokens, input_token_details: details }: Json): number | undefined {
  if (typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0) return seconds
  const tokens = readCount(objectOf(details).audio_tokens) ?? readCount(input_tokens)
  return tokens === undefined ? undefined : tokens / TOKENS_PER_SECOND
}
