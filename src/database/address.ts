// DATABASE_URL with one host or several, as libpq reads it. node-postgres knows one host, so that each gets an address of
// its own here. What is wrong is said without repeating the address: it holds a password.

const SHAPE = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^@/?#]*)(.*)$/s
/** The gateway writes: any of these leads it to the server that takes writes. */
const SESSIONS = ['any', 'read-write', 'primary']

/** The same address for each of its hosts, in their order. */
export function splitAddress(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = SHAPE.exec(url) ?? []
  return hosts.split(',').map((host) => `${before}${host}${after}`)
}

/** What keeps it from being an address, if anything does. */
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

/** The address without its password, which does not belong on a screen. */
export function withoutPassword(url: string): { readonly text: string; readonly password: boolean } {
  const text = url.replace(/^(\w+:\/\/[^:/?#@]*):[^/?#]*@/, '$1@')
  return { text, password: text !== url }
}
