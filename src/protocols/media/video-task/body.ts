// How large a request for a video may be. Pictures make it large; everything else is short, and a body of junk is refused
// before it is parsed.
import { Fault } from '../../../kernel/fault.ts'

/** Everything but the pictures: prompts, addresses, names. */
const TEXT_BYTES_MAX = 1_000_000
/** The most that a model takes, and two frames. */
const PICTURES_MAX = 32
const QUOTE = 0x22

export function checkVideoBody(body: Buffer): Buffer {
  let textBytes = body.length
  let at = 0
  for (let pictures = 0; textBytes > TEXT_BYTES_MAX; pictures++) {
    const start = body.indexOf('"data:', at)
    const end = start < 0 ? -1 : body.indexOf(QUOTE, start + 1)
    if (end < 0 || pictures === PICTURES_MAX)
      throw new Fault('request_too_large', {
        message: `The request is too large: at most ${TEXT_BYTES_MAX / 1_000_000} MB besides the pictures.`,
      })
    textBytes -= end - start
    at = end + 1
  }
  return body
}
