// Every public endpoint. The server's routes, OpenAPI and the reference loop over this list.
import { ANALYTICS } from './analytics.ts'
import type { EndpointSpec } from './endpoint.ts'
import { GENERATION } from './generation.ts'
import { SOCIAL } from './social.ts'

export const ENDPOINTS: readonly EndpointSpec[] = [...GENERATION, ...SOCIAL, ...ANALYTICS]
