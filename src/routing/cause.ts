// Why a vendor could not be used, in words for an operator: what failed on the way there, or what the vendor said.
import { asFault } from '../kernel/fault.ts'
import type { Target } from '../protocols/protocol.ts'
import { withoutKeys, withoutSecrets } from '../protocols/vendor-words.ts'

const WORDS_MAX = 300

const BY_CODE: readonly (readonly [RegExp, (host: string) => string])[] = [
  [/^(ENOTFOUND|EAI_NODATA|EAI_NONAME)$/, (host) => `The name ${host} is not known (DNS). Is the address right?`],
  [/^EAI_AGAIN$/, (host) => `The name servers did not answer for ${host} (DNS).`],
  [/^ECONNREFUSED$/, (host) => `Nothing listens at ${host}: the connection was refused.`],
  [/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/, (host) => `There is no way to ${host} in the network.`],
  [/ALTNAME/, (host) => `TLS: the certificate there is not for ${host}.`],
  [/NOT_YET_VALID/, (host) => `TLS: the certificate of ${host} is not valid yet. Is the clock of this machine right?`],
  [/EXPIRED/, (host) => `TLS: the certificate of ${host} has expired.`],
  [/SELF_SIGNED|UNABLE_TO|CERT_/, (host) => `TLS: the certificate of ${host} is signed by nobody who is trusted here.`],
  [/^(EPROTO|ERR_SSL|ERR_TLS)/, (host) => `TLS: ${host} does not speak it. Should the address begin with http://?`],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, (host) => `${host} closed the connection without an answer.`],
  [/^HPE_/, (host) => `What answers at ${host} does not speak HTTP. Should the address begin with https://?`],
]

/** Of an exchange that came to no answer. */
export function causeOf(error: unknown, baseUrl: string): string {
  const host = URL.parse(baseUrl)?.host ?? baseUrl
  const fault = asFault(error)
  const { phase, code } = fault.details.internal ?? {}
  if (fault.kind === 'upstream_timeout')
    return phase === 'connect'
      ? `${host} did not take the connection in time.`
      : `${host} took the connection, but did not answer in time.`
  if (fault.kind === 'upstream_garbled')
    return 'It answers, but not in this format. Is the address that of an API, and the format right?'
  const codes = [code, codeOf(fault.cause)].filter((one) => typeof one === 'string')
  for (const [pattern, words] of BY_CODE) if (codes.some((one) => pattern.test(one))) return words(host)
  return `${host} cannot be reached${codes[0] === undefined ? '' : ` (${codes[0]})`}.`
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

/** What the vendor said, without anything that is secret, in quotation marks; empty when it said nothing. */
export function quoted(said: string | undefined, target: Target): string {
  const words = withoutKeys(withoutSecrets(said ?? '', target))
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (words === '') return ''
  return ` It says: “${words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX)}…` : words}”`
}
