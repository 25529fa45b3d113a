// A request as it leaves. What cannot be sent is a mistake of ours, and never reaches a vendor as another request than
// was meant.
import { Fault } from '../kernel/fault.ts'
import type { HttpCall } from './call.ts'

const PATH = /^\/[\x21-\x7e\x80-\xff]*$/
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
/** Said here, or not at all. */
const OWN = /^(?:accept-encoding|connection|content-length|expect|keep-alive|transfer-encoding|upgrade)$/i

type Kind = 'sent' | 'own' | 'bad'
/** Names come from code and from operators: there are few. */
const names = new Map<string, Kind>()
const NAMES_MAX = 1_000

export interface OutgoingRequest {
  readonly method: HttpCall['method']
  /** In Latin-1, with the length of the body. */
  readonly head: string
  readonly body: HttpCall['body']
}

/** `host` is that of the address. */
export function requestOf(host: string, path: string, { method, headers, body }: HttpCall): OutgoingRequest | Fault {
  if (!PATH.test(path)) return unsendable('the path')
  let head = `${method} ${path} HTTP/1.1\r\n`
  if (headers.host === undefined) head += `host: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name] ?? ''
    const kind = names.get(name) ?? kindOf(name)
    if (kind === 'bad' || !VALUE.test(value)) return unsendable(name)
    if (kind === 'sent') head += `${name}: ${value}\r\n`
  }
  const bytes = bytesOf(body)
  if (bytes !== undefined || method === 'POST' || method === 'PUT' || method === 'PATCH')
    head += `content-length: ${bytes ?? 0}\r\n`
  return { method, head: `${head}accept-encoding: identity\r\nconnection: keep-alive\r\n\r\n`, body }
}

function kindOf(name: string): Kind {
  if (names.size >= NAMES_MAX) names.clear()
  const kind = OWN.test(name) ? 'own' : TOKEN.test(name) ? 'sent' : 'bad'
  names.set(name, kind)
  return kind
}

function bytesOf(body: HttpCall['body']): number | undefined {
  if (body === undefined) return undefined
  if (typeof body === 'string') return Buffer.byteLength(body)
  if (Buffer.isBuffer(body)) return body.length
  return body.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
}

const unsendable = (what: string) =>
  new Fault('internal', { internal: { phase: 'connect', sent: false, unsendable: what } })
