/**
 * What people search for, and the word of the pages: for the documentation's search, and for the console's finder,
 * which bundles this file.
 */
const SYNONYMS: Readonly<Record<string, string>> = {
  p50: 'latency',
  p95: 'latency',
  p99: 'latency',
  '2fa': 'factor',
  mfa: 'factor',
  totp: 'authenticator',
  gpt: 'openai',
  claude: 'anthropic',
  rate: 'limit',
  quota: 'limit',
  throttle: 'limit',
  provider: 'vendor',
  ws: 'websocket',
  rbac: 'roles',
  pii: 'redaction',
}

export const meantBy = (word: string): string => (Object.hasOwn(SYNONYMS, word) ? (SYNONYMS[word] ?? word) : word)
