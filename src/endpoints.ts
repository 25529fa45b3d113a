// The endpoints of extensions that `tollgate call` finds.
import type { EndpointSpec } from './catalog/endpoint.ts'
import { BATCHES } from './extensions/background/batch-endpoints.ts'
import { MESSAGE_BATCHES } from './extensions/background/message-batch-endpoints.ts'
import { STORED } from './extensions/background/stored-endpoints.ts'
import { CLIENT_SECRETS } from './extensions/sockets/endpoints.ts'

export const ADDED_ENDPOINTS: readonly EndpointSpec[] = [STORED, BATCHES, MESSAGE_BATCHES, CLIENT_SECRETS].flatMap(
  (entries) => Object.values(entries),
)
