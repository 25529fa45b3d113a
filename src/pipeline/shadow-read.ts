// The request of a copy, as the rule of the catalog wants it.
import type { EndpointSpec } from '../catalog/endpoint.ts'
import type { RoutingRule } from '../catalog/routing-rules.ts'
import { type JsonText, withMembers } from '../kernel/json.ts'
import type { Guard } from './hooks.ts'
import type { Incoming, Read, ReadDeps } from './read.ts'

/** A request of which a copy may be sent. */
export interface ShadowRead {
  readonly rule: string
  readonly model: string
  readonly vendor: string | undefined
  readonly share: number
  /**
   * Undefined: the copy would bypass guardrails of the other model. Throws if the other model cannot take the request.
   */
  copy(guard: Guard | undefined): Read | undefined
}

interface Copied {
  readonly asked: Read
  /** With its texts as vendors may see them. */
  readonly incoming: Incoming
  readFor(model: string, json: JsonText): Read
}

export function shadowOf(
  { name, shadow }: RoutingRule,
  { asked, incoming, readFor }: Copied,
  { guardrails }: Pick<ReadDeps, 'guardrails'>,
): ShadowRead | undefined {
  if (!shadow) return undefined
  const { share, vendor, model = asked.paidRequest.product } = shadow
  const { catalog, principal, body, spec } = incoming
  const { accountId: account, keyId, firstKeyId } = principal
  return {
    rule: name,
    model,
    vendor,
    share,
    copy(guard) {
      const about = { account, keys: [keyId, firstKeyId], products: [model], isModel: true, labels: asked.labels }
      const own = guardrails?.find(catalog.document, about)
      return own && !(guard && own.rules.isSubsetOf(guard.rules))
        ? undefined
        : readFor(model, unstored(body.json, spec))
    },
  }
}

/** Vendors must not store copies. */
function unstored(json: JsonText, { format }: EndpointSpec): JsonText {
  const mayStore = format === 'openai-responses' || json.member('store')
  return mayStore ? withMembers(json, { store: 'false' }) : json
}
