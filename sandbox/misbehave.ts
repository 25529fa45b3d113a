// The faults that a vendor shows instead of an answer, the same in every room.
import type { ServerResponse } from 'node:http'
import type { RoomContext } from './room.ts'
import type { Triggers } from './trigger.ts'

/** How a room writes an error body in its vendor's words. */
export type ErrorBody = (status: number, message: string) => unknown

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'The request is not valid.',
  401: 'Incorrect API key provided. This is a simulated refusal from the Tollgate sandbox.',
  402: 'Insufficient balance on the vendor account (simulated).',
  403: 'This account may not use the model (simulated).',
  404: 'The model does not exist (simulated).',
  408: 'The request timed out (simulated).',
  409: 'The request conflicts with another one (simulated).',
  413: 'The request is too large (simulated).',
  422: 'The request could not be processed (simulated).',
  429: 'Rate limit reached for requests (simulated).',
  500: 'The server had an error while processing the request (simulated).',
  502: 'Bad gateway (simulated).',
  503: 'The engine is currently overloaded (simulated).',
  504: 'The engine did not answer in time (simulated).',
  529: 'Overloaded (simulated).',
}

export function faultMessage(status: number): string {
  return MESSAGES[status] ?? `Simulated error ${status} from the Tollgate sandbox.`
}

/** A whole JSON answer; `[[cut]]` breaks the connection half way, `[[truncate=N]]` ends it after N bytes. */
export async function sendWhole(
  res: ServerResponse,
  ctx: RoomContext,
  triggers: Triggers,
  value: unknown,
): Promise<void> {
  const bytes = triggers.number('truncate')
  if (!triggers.has('cut') && bytes === undefined) return ctx.json(200, value, {}, ctx.variation?.json(value))
  const body = Buffer.from(JSON.stringify(value))
  res.writeHead(200, { 'content-type': 'application/json' })
  if (bytes !== undefined) {
    res.end(body.subarray(0, bytes))
    return
  }
  await new Promise((resolve) => res.write(body.subarray(0, body.length / 2), resolve))
  await ctx.pause(5)
  ctx.cut()
}

/** Credentials that a sandbox vendor refuses, so that an operator's mistakes can be rehearsed too. */
function keyStatus(headers: Readonly<Record<string, unknown>>): number | undefined {
  const key = String(headers.authorization ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? '').replace(
    /^Bearer\s+/i,
    '',
  )
  if (key.startsWith('sk-bad')) return 401
  if (key.startsWith('sk-empty')) return 402
  if (key.startsWith('sk-limited')) return 429
  return undefined
}

/** Answers badly when a trigger or the credential asks for it. True: the exchange is over, or held open for good. */
export async function misbehave(
  res: ServerResponse,
  ctx: RoomContext,
  triggers: Triggers,
  errorBody: ErrorBody,
): Promise<boolean> {
  if (triggers.has('set-cookie')) {
    res.setHeader('set-cookie', 'sandbox-session=must-not-reach-the-caller; Path=/')
    res.setHeader('connection', 'keep-alive, x-hop')
    res.setHeader('x-hop', 'must-not-reach-the-caller')
    res.setHeader('server', 'sandbox-vendor')
  }
  const wait = triggers.number('wait')
  if (wait !== undefined && !(await ctx.pause(wait))) return true

  const refused = keyStatus(ctx.call.headers)
  if (refused !== undefined) {
    ctx.json(refused, errorBody(refused, faultMessage(refused)))
    return true
  }
  const redirect = triggers.find('redirect')
  if (redirect) {
    const status = Number(redirect.rest.match(/\b30[12378]\b/)?.[0] ?? 302)
    res.writeHead(status, { location: redirect.value, 'content-length': '0' }).end()
    return true
  }
  const status = triggers.status
  if (status) {
    const code = Number(status.name)
    const retryAfter = status.rest.match(/retry-after(?:-ms)?=(\S+)/)
    const message = status.rest.replace(/retry-after(?:-ms)?=\S+/g, '').trim()
    const headers: Record<string, string> = {}
    if (retryAfter?.[1]) headers[retryAfter[0].split('=')[0] ?? 'retry-after'] = retryAfter[1]
    ctx.json(code, errorBody(code, message || faultMessage(code)), headers)
    return true
  }
  if (triggers.has('stall')) {
    await ctx.gone()
    return true
  }
  if (triggers.has('hang-up')) {
    ctx.cut()
    return true
  }
  if (triggers.has('html')) {
    const page = '<html><head><title>502 Bad Gateway</title></head><body>simulated proxy page</body></html>'
    res.writeHead(502, { 'content-type': 'text/html' }).end(page)
    return true
  }
  if (triggers.has('garbage')) {
    res.writeHead(200, { 'content-type': ctx.call.stream ? 'text/event-stream' : 'application/json' })
    res.end(Buffer.concat([Buffer.from('data: {"id":'), NEITHER_JSON_NOR_UTF8, Buffer.from('\n\ndata: }}\n\n')]))
    return true
  }
  return false
}

const NEITHER_JSON_NOR_UTF8 = Buffer.from([0x22, 0xff, 0xfe, 0x80, 0x3c, 0x7d, 0x7d])
