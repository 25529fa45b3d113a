// What an e-mail address says about whose it is. Brakes, refused domains and starting credits look at these and not at the letters typed.
import { domainToASCII } from 'node:url'

export interface Mailbox {
  /** As typed, in lower case. */
  readonly email: string
  /** In ASCII: `bücher.example` and `xn--bcher-kva.example` are one. */
  readonly domain: string
  /** The domain that somebody registered, as far as its form tells; names below it are free. */
  readonly registered: string
  /** The same for all spellings that reach one mailbox: without dots, and without what follows a plus. */
  readonly key: string
}

/** Nothing that a mail program could take for a list, a comment, a quoted part or another header. */
const LOCAL = /^[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_`{|}~-]{1,64}$/u
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/
const SAME_HOST: Readonly<Record<string, string>> = { 'googlemail.com': 'gmail.com' }

/** Undefined if it is not the address of one mailbox. */
export function readMailbox(email: string): Mailbox | undefined {
  const at = email.lastIndexOf('@')
  const local = email.slice(0, at)
  const domain = readDomain(domainOf(email))
  if (at < 1 || domain === undefined || !LOCAL.test(local)) return undefined
  const [name = ''] = local.normalize('NFKC').split('+')
  const plain = name.replaceAll('.', '')
  return { email, domain, registered: registeredOf(domain), key: `${plain || name}@${SAME_HOST[domain] ?? domain}` }
}

/** As it is written in the address, as the database compares it. */
export const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1)

/** In ASCII and lower case; undefined if it is no domain of mail. */
export function readDomain(domain: string): string | undefined {
  const ascii = domainToASCII(domain.trim()).toLowerCase().replace(/\.$/, '')
  return ascii.length <= 253 && DOMAIN.test(ascii) ? ascii : undefined
}

/** Also for names below a listed one. */
export function isListed(domain: string, list: readonly string[]): boolean {
  return list.some((one) => domain === one || domain.endsWith(`.${one}`))
}

/** `a.b.example.com` and `example.com` have one owner; so have `a.b.co.uk` and `b.co.uk`. */
function registeredOf(domain: string): string {
  const labels = domain.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  const isPublic = top.length === 2 && second.length <= 3
  return labels.slice(isPublic ? -3 : -2).join('.')
}
