// DATABASE_URL with one host or several, in libpq's syntax. node-postgres supports one host only, so this file splits
// it into one address per host. Error messages never repeat the address, because it contains a password.

const SHAPE = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^@/?#]*)(.*)$/s
/** Accepted values of target_session_attrs: the gateway writes, so it looks for the primary with any of these. */
const SESSIONS = ['any', 'read-write', 'primary']

/** One address for each host, in the given order. */
export function splitAddress(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = SHAPE.exec(url) ?? []
  return hosts.split(',').map((host) => `${before}${host}${after}`)
}

/** Why the text is not a valid address; undefined if it is valid. */
export function addressProblem(url: string): string | undefined {
  const parts = splitAddress(url).map((one) => URL.parse(one))
  const isWrong = (part: URL | null) =>
    !part || !/^postgres(ql)?:$/.test(part.protocol) || (parts.length > 1 && part.host === '')
  if (parts.some(isWrong))
    return 'must be an address such as postgres://user:password@host:5432/database, with several hosts separated by commas'
  const session = parts[0]?.searchParams.get('target_session_attrs') ?? 'any'
  return SESSIONS.includes(session)
    ? undefined
    : `target_session_attrs must be ${SESSIONS.slice(1).join(' or ')}: Tollgate writes`
}

/** The address without its password, for display. */
export function withoutPassword(url: string): { readonly text: string; readonly password: boolean } {
  const text = url.replace(/^(\w+:\/\/[^:/?#@]*):[^/?#]*@/, '$1@').replace(/([?&]password=)[^&#]*/, '$1')
  return { text, password: text !== url }
}
