// The format of the sound in one direction of a Realtime session. A caller may change it at any time, and the vendor
// says later whether it did: until then sound counts by the densest format that may apply.
import { isObject } from '../../../kernel/json.ts'
import { readCount } from '../../../meter/usage.ts'

const PCM_HERTZ = 24_000
const TELEPHONE_BYTES = 8_000
/** What vendors leave unanswered is not remembered for ever. */
const TOLD_MAX = 32

/** The bytes of a second. */
export function soundBytes(format: unknown): number {
  const { type, rate } = isObject(format) ? format : { type: format, rate: undefined }
  if (/pcmu|pcma|g711/.test(String(type))) return TELEPHONE_BYTES
  return 2 * Math.min(readCount(rate) || PCM_HERTZ, PCM_HERTZ)
}

export class SoundFormat {
  #known = soundBytes(undefined)
  /** The format in each unanswered update; undefined: the update has no format. */
  #told: (number | undefined)[] = []
  #least = Number.POSITIVE_INFINITY

  /** The fewest bytes that a second may have now. */
  get bytes(): number {
    return this.#told.reduce<number>((least, one) => Math.min(least, one ?? least), Math.min(this.#known, this.#least))
  }

  tell(format: unknown): void {
    this.#told.push(format === undefined ? undefined : soundBytes(format))
    if (this.#told.length > TOLD_MAX) this.#least = Math.min(this.#least, this.#told.shift() ?? this.#least)
  }

  /**
   * Updates are answered in their order; those that the vendor did not accept are not answered. An answer without a
   * format says nothing of it.
   */
  confirm(format: unknown): void {
    if (format !== undefined) this.#known = soundBytes(format)
    const at = this.#told.findIndex((one) => one === undefined || one === this.#known)
    this.#told = this.#told.slice(at + 1)
  }
}
