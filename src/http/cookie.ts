// The session's cookie, and how a request of our own pages is told from one that another site made.
import type { FastifyRequest } from 'fastify'
import { Fault } from '../kernel/fault.ts'

/** The prefix binds it to this host and to `Path=/`, and lets only a trustworthy origin set it. */
const NAME = '__Host-tg_s'
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'
const SECONDS = 86_400

export function sessionCookie(token: string): Record<string, string> {
  return { 'set-cookie': `${NAME}=${token}; ${ATTRIBUTES}; Max-Age=${SECONDS}` }
}

export const NO_SESSION: Readonly<Record<string, string>> = { 'set-cookie': `${NAME}=; ${ATTRIBUTES}; Max-Age=0` }

export function readCookie(request: FastifyRequest): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === NAME) return pair.slice(equals + 1).trim()
  }
  return undefined
}

/**
 * Whatever changes something must come from our own pages. Browsers say so in `Sec-Fetch-Site`; to a plain http address
 * that is not this machine they send only `Origin`, which must then be ours.
 */
export function checkOrigin(request: FastifyRequest, publicUrl: string): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  const site = request.headers['sec-fetch-site']
  if (site === 'same-origin') return
  const { origin, host } = request.headers
  const given = site === undefined && origin !== undefined ? URL.parse(origin) : null
  if (given && given.origin === origin && (origin === URL.parse(publicUrl)?.origin || given.host === host)) return
  throw new Fault('access_denied', { message: 'The console takes changes only from its own pages.' })
}
