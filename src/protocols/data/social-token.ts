// Our own continuation tokens for timelines. The vendor gives at least five tweets a page; where a caller asks for fewer,
// the vendor's token would skip the rest, so ours says "older than the last tweet you got" instead. It holds nothing
// secret: whoever decodes it finds ids that the caller has seen.
import { createHash } from 'node:crypto'
import { invalid } from '../../kernel/fault.ts'

export interface Continuation {
  readonly userId: string
  /** Only tweets older than this one. */
  readonly untilId: string
  /** The vendor's own token inside those bounds. */
  readonly vendorToken?: string
}

/** No vendor token has a dot in it, so ours are told apart by their prefix. */
const PREFIX = 'tg1.'
const ID = /^[0-9]{1,19}$/
const VENDOR_TOKEN = /^[A-Za-z0-9_-]{1,512}$/

export function writeContinuation({ userId, untilId, vendorToken = '' }: Continuation): string {
  const payload = `${userId}.${untilId}.${vendorToken}`
  return PREFIX + Buffer.from(`${checksum(payload)}${payload}`).toString('base64url')
}

/** Undefined for a token of the vendor, which is the vendor's to judge. */
export function readContinuation(token: string, userId: string): Continuation | undefined {
  if (!/^tg\d+\./.test(token)) return undefined
  const text = token.startsWith(PREFIX) ? Buffer.from(token.slice(PREFIX.length), 'base64url').toString('latin1') : ''
  const payload = text.slice(CHECKSUM_CHARS)
  const [owner = '', untilId = '', vendorToken = ''] = payload.split('.')
  const sound =
    text.startsWith(checksum(payload)) &&
    ID.test(owner) &&
    ID.test(untilId) &&
    (vendorToken === '' || VENDOR_TOKEN.test(vendorToken))
  const read = { userId: owner, untilId, ...(vendorToken === '' ? {} : { vendorToken }) }
  if (!sound || writeContinuation(read) !== token || owner !== userId)
    throw invalid('pagination_token must be the meta.next_token of a page of this timeline.', 'pagination_token')
  return read
}

const CHECKSUM_CHARS = 6

/** Against tokens that were cut or mistyped, not against forgery: there is nothing to gain by one. */
function checksum(payload: string): string {
  return createHash('sha256').update(payload).digest('base64url').slice(0, CHECKSUM_CHARS)
}
