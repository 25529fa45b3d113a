// A request whose JSON is forwarded as the caller wrote it, less the members that vendors do not get.
import type { JsonText } from '../../kernel/json.ts'
import type { ProtocolName } from '../../meter/kind.ts'
import { type Exchange, jsonCall, type PaidRequest } from '../protocol.ts'
import { readErrorBody } from '../vendor-words.ts'
import { admitMembers, type MemberFormat, withoutUnknown } from './request-members.ts'

/** `path` is below the vendor's address. */
export function forwarded(
  clientFormat: ProtocolName & MemberFormat,
  path: string,
  sent: JsonText,
  { product, ...reading }: { readonly product: string } & Pick<Exchange, 'answer' | 'drains'>,
): Omit<PaidRequest, 'worst'> {
  const { json, unknown } = admitMembers(clientFormat, sent)
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
