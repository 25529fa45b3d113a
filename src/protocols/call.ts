// What every call to a text vendor has in common.
import type { Target } from './protocol.ts'

export function bearer(target: Target): Record<string, string> {
  return target.secret === undefined ? {} : { authorization: `Bearer ${target.secret}` }
}
