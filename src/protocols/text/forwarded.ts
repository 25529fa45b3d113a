// A request whose JSON is forwarded as the caller wrote it, less the members that vendors do not get.
import type { JsonText } from '../../kernel/json.ts'
import type { ProtocolName } from '../../meter/kind.ts'
import { type Exchange, jsonCall, type PaidRequest } from '../protocol.ts'
import { readErrorBody } from '../vendor-words.ts'
import { admitMembers, type Members, withoutUnknown } from './request-members.ts'

interface Reading extends Pick<Exchange, 'answer' | 'drains'> {
  readonly product: string
  /** Those that vendors get. */
  readonly members: Members
}

/** `path` is below the vendor's address. */
export function forwarded(
  clientFormat: ProtocolName,
  path: string,
  sent: JsonText,
  { product, members, ...reading }: Reading,
): Omit<PaidRequest, 'worst'> {
  const { json, unknown } = admitMembers(members, sent)
  return {
    product,
    clientFormat,
    sent: json.text,
    stream: false,
    price: {},
    open: (target) => ({
      call: jsonCall(path, target.passesUnknown ? json : withoutUnknown(json, unknown), target),
      ...reading,
      vendorError: readErrorBody,
    }),
  }
}
