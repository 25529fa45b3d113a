// Normalized forms of an email address. Rate limits, blocked domains and starting credits use these, not the address as
// typed.
import { domainToASCII } from 'node:url'

export interface Mailbox {
  /** As typed, in lower case. */
  readonly email: string
  /** In ASCII: `bücher.example` and `xn--bcher-kva.example` are one. */
  readonly domain: string
  /** The registrable domain, guessed from its form: subdomains cost nothing. */
  readonly registered: string
  /** The same for all spellings of one mailbox: without dots and without a plus suffix. */
  readonly key: string
}

/** Excludes everything that a mail program could read as a list, a comment, a quoted part or another header. */
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

/** The domain as written in the address, because the database compares it so. */
export const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1)

/** In ASCII and lower case; undefined if it is not a mail domain. */
export function readDomain(domain: string): string | undefined {
  const ascii = domainToASCII(domain.trim()).toLowerCase().replace(/\.$/, '')
  return ascii.length <= 253 && DOMAIN.test(ascii) ? ascii : undefined
}

/** True also for subdomains of a listed domain. */
export function isListed(domain: string, list: readonly string[]): boolean {
  return list.some((one) => domain === one || domain.endsWith(`.${one}`))
}

/** Below a country's own name: `co.uk`, `com.br`, `ac.jp`. */
const SECOND_LEVELS = new Set('ac co com ed edu go gob gov gv id ltd mil ne net nom or org plc sch'.split(' '))
/** Domains whose subdomains belong to different owners. */
const MULTI_TENANT = words(
  'onmicrosoft.com github.io gitlab.io herokuapp.com vercel.app netlify.app pages.dev workers.dev web.app firebaseapp.com appspot.com run.app azurewebsites.net cloudfront.net amazonaws.com myshopify.com duckdns.org no-ip.org dyndns.org uk.com us.com eu.com de.com',
)
/** Large public mail services, where a mailbox belongs to one person. */
const MAIL_HOSTS = words(
  'gmail.com googlemail.com outlook.com hotmail.com hotmail.co.uk hotmail.de hotmail.fr outlook.de outlook.fr live.com msn.com yahoo.com yahoo.co.uk yahoo.co.jp yahoo.co.in yahoo.de yahoo.fr ymail.com aol.com icloud.com me.com mac.com proton.me protonmail.com pm.me gmx.com gmx.de gmx.net gmx.at web.de mail.com email.com t-online.de freenet.de zoho.com yandex.com yandex.ru mail.ru qq.com 163.com 126.com sina.com naver.com orange.fr free.fr laposte.net wanadoo.fr libero.it comcast.net verizon.net att.net btinternet.com hey.com fastmail.com tutanota.com tuta.io',
)
/** Whoever knows a mailbox here can read it. */
const DISPOSABLE = words('mailinator.com')

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(' '))
}

const isSecondLevel = ([second = '', top = '', ...below]: readonly string[]) =>
  below.length === 0 && top.length === 2 && SECOND_LEVELS.has(second)

export const isMailHost = (domain: string): boolean => MAIL_HOSTS.has(domain)

/** Whether people of this domain do not belong together, according to a short list. */
export function isShared(domain: string): boolean {
  return isMailHost(domain) || DISPOSABLE.has(domain) || MULTI_TENANT.has(domain) || isSecondLevel(domain.split('.'))
}

/**
 * `a.b.example.com` and `example.com` have the same owner, and so have `a.b.co.uk` and `b.co.uk`. This does not use the
 * list of all public suffixes: all names below an unknown suffix count as one owner's, so that limits are too strict
 * rather than too loose.
 */
function registeredOf(domain: string): string {
  const labels = domain.split('.')
  return labels.slice(isSecondLevel(labels.slice(-2)) ? -3 : -2).join('.')
}
