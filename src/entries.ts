// Every endpoint in code as it is described, the core's and those of all extensions: for commands, examples and what
// lists endpoints where no gateway runs.
import type { EndpointSpec } from './catalog/endpoint.ts'
import { withAdded } from './catalog/index.ts'
import { AUDIO } from './extensions/audio/endpoints.ts'
import { BATCHES } from './extensions/background/batch-endpoints.ts'
import { MESSAGE_BATCHES } from './extensions/background/message-batch-endpoints.ts'
import { STORED } from './extensions/background/stored-endpoints.ts'
import { COMPLETIONS } from './extensions/completions/endpoint.ts'
import { EMBEDDINGS } from './extensions/embeddings/endpoints.ts'
import { FREE_GEMINI, LISTS, PAID_GEMINI } from './extensions/gemini/endpoints.ts'
import { OCR } from './extensions/ocr/endpoint.ts'
import { CLIENT_SECRETS } from './extensions/sockets/endpoints.ts'

const ADDED = [
  STORED,
  BATCHES,
  MESSAGE_BATCHES,
  COMPLETIONS,
  PAID_GEMINI,
  FREE_GEMINI,
  EMBEDDINGS,
  LISTS,
  OCR,
  AUDIO,
  CLIENT_SECRETS,
]

export const ALL_ENDPOINTS = withAdded(ADDED.flatMap((entries) => Object.values<EndpointSpec>(entries)))
