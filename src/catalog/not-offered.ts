// Addresses of vendors' APIs that are not offered here: whoever asks for one learns what to use instead.

/** By the parts of the path after the version; the longest that fits is taken. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  vector_stores:
    'Vector stores are not offered. POST /v1/embeddings makes vectors and POST /v1/rerank ranks documents.',
  assistants:
    'Assistants are not offered. Use POST /v1/responses, with POST /v1/conversations for what was said before.',
  threads: 'Threads are not offered. Use POST /v1/responses, with POST /v1/conversations for what was said before.',
  fine_tuning: 'Fine-tuning is not offered. Tune a model at its vendor; an operator can then offer it here.',
  'fine-tunes': 'Fine-tuning is not offered. Tune a model at its vendor; an operator can then offer it here.',
  uploads: 'Uploads in parts are not offered. POST /v1/files takes a whole file.',
  containers: 'Containers are not offered. A model with a price for runs of code has the tool code_interpreter.',
  evals: 'Evals are not offered. POST /v1/batches runs many requests.',
  graders: 'Graders are not offered. POST /v1/chat/completions can judge an answer.',
  skills: 'Skills are not offered. Send the instructions with each request.',
  agents: 'Agents at a vendor are not offered. Use POST /v1/responses or POST /v1/messages with tools.',
  chatkit: 'ChatKit is not offered. Use POST /v1/responses.',
  organization: 'The administration of vendors is not offered. The operator API has accounts, keys and usage.',
  organizations: 'The administration of vendors is not offered. The operator API has accounts, keys and usage.',
  engines: 'Engines are not offered any more. Use POST /v1/completions or POST /v1/chat/completions.',
  edits: 'Edits are not offered any more. Use POST /v1/chat/completions.',
  complete: 'Text completions of this vendor are not offered. Use POST /v1/messages.',
  'realtime/sessions': 'Use POST /v1/realtime/client_secrets, and a WebSocket at /v1/realtime.',
  'realtime/transcription_sessions': 'Use POST /v1/audio/transcriptions.',
  'realtime/calls': 'WebRTC and telephone calls are not offered. Use a WebSocket at /v1/realtime.',
  'audio/voices': 'Voices of your own are not offered.',
  cachedContents:
    'Cached content is not shared between accounts here. Send the content itself; vendors cache by themselves.',
  tunedModels: 'Tuned models are not offered. Tune a model at its vendor; an operator can then offer it here.',
  fileSearchStores:
    'File search stores are not offered. POST /v1/embeddings makes vectors and POST /v1/rerank ranks documents.',
  interactions: 'Interactions are not offered. Use models/{model}:generateContent.',
}

const VERSION = /^(?:alpha|beta|v\d\w*)$/

interface Surface {
  readonly below: string
  readonly insteadOf?: (parts: readonly string[]) => string | undefined
}

/** What to use instead of this address of a vendor; undefined if it is none that is known. */
export function insteadOf(url: string, surfaces: readonly Surface[]): string | undefined {
  const [path = ''] = url.split(/[?#]/)
  const parts = path.split('/').filter((part) => part !== '')
  const own = surfaces.find(({ below }) => below === parts[0])
  if (own) parts.shift()
  const instead = own?.insteadOf?.(parts)
  if (instead !== undefined) return instead
  while (VERSION.test(parts[0] ?? '')) parts.shift()
  const [first = '', second = ''] = parts
  const name = [`${first}/${second}`, first].find((one) => Object.hasOwn(NOT_OFFERED, one))
  return name === undefined ? undefined : NOT_OFFERED[name]
}
