// Every public endpoint. The server's routes, OpenAPI and the reference loop over this list.
import { ANALYTICS } from './analytics.ts'
import { type EndpointSpec, TAGS } from './endpoint.ts'
import { FREE, PAID } from './generation.ts'
import { SOCIAL } from './social.ts'

const IN_ORDER = [...Object.values(PAID), ...Object.values(FREE), ...SOCIAL, ...ANALYTICS]

export const ENDPOINTS: readonly EndpointSpec[] = Object.keys(TAGS).flatMap((tag) =>
  IN_ORDER.filter((spec) => spec.tag === tag),
)
