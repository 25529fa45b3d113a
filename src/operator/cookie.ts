// The cookies of the console, and how a request of our own pages is told from one that another site made.
import type { FastifyRequest } from 'fastify'
import { Fault } from '../kernel/fault.ts'

/** The prefix binds them to this host and to `Path=/`, and lets only a trustworthy origin set them. */
const SESSION = '__Host-tg_s'
const BROWSER = '__Host-tg_b'
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'
const SESSION_SECONDS = 86_400
const BROWSER_SECONDS = 31_536_000

type Cookies = Readonly<Record<'set-cookie', string[]>>

/** The session, and the mark of the browser. */
export function loginCookies(session: string, browser: string): Cookies {
  return {
    'set-cookie': [
      `${SESSION}=${session}; ${ATTRIBUTES}; Max-Age=${SESSION_SECONDS}`,
      `${BROWSER}=${browser}; ${ATTRIBUTES}; Max-Age=${BROWSER_SECONDS}`,
    ],
  }
}

export const NO_SESSION: Cookies = { 'set-cookie': [`${SESSION}=; ${ATTRIBUTES}; Max-Age=0`] }

export const readSession = (request: FastifyRequest) => readCookie(request, SESSION)
export const readBrowser = (request: FastifyRequest) => readCookie(request, BROWSER)

function readCookie(request: FastifyRequest, name: string): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return undefined
}

/**
 * Whatever changes something, or costs something, must come from our own pages. Browsers say so in `Sec-Fetch-Site`; to a
 * plain http address that is not this machine they send only `Origin`, which must then be ours.
 */
export function checkOrigin(request: FastifyRequest, publicUrl: string): void {
  const site = request.headers['sec-fetch-site']
  if (site === 'same-origin') return
  const { origin, host } = request.headers
  const given = site === undefined && origin !== undefined ? URL.parse(origin) : null
  if (given && given.origin === origin && (origin === URL.parse(publicUrl)?.origin || given.host === host)) return
  throw new Fault('access_denied', { message: 'The console takes changes and calls only from its own pages.' })
}
