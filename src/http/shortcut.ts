// The way past the framework, for the calls that are nearly all calls: a POST with a small JSON body to a paid endpoint, by a
// key that is known here. It spares them a router, a list of hooks and a general reader of bodies, a third of what the door costs.
// It refuses nothing at the door: whatever it would have to judge (a stranger, a long body, another type, a query) it leaves
// to the framework's routes, and what it takes is answered by the same functions as there.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import type { ApiKeys, Principal } from '../admission/api-key.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { newId } from '../kernel/world.ts'
import type { PaidSpec } from '../pipeline/read.ts'
import { Caller } from './caller.ts'
import { linkOf } from './link.ts'
import { paidConfig, type RoutesOptions, refuse, type Visit } from './routes.ts'

interface Way {
  readonly spec: PaidSpec
  readonly config: FastifyContextConfig
}

const BODY_BYTES_MAX = 65_536
const JSON_TYPES = new Set(['application/json', 'application/json; charset=utf-8', 'application/json;charset=utf-8'])
const NO_PARAMS = {}

export function createShortcut(options: RoutesOptions): NonNullable<FastifyInstance['shortcut']> {
  const ways = listWays()
  const { keys, paid, world } = options
  return (request, response) => {
    const way = request.method === 'POST' ? ways.get(request.url ?? '') : undefined
    if (!way) return false
    const { headers } = request
    const bytes = plainBytes(headers)
    const principal = bytes > 0 ? knownBy(request, keys) : undefined
    if (!principal) return false
    const visit = new PlainVisit(request, way, principal, `req_${newId(world)}`)
    const enter = () => visit.readBody(bytes, () => paid(visit, response, way.spec))
    try {
      const line = options.admit()
      if (line)
        line.then(enter).catch((error: unknown) => refuse(visit, new Caller(response, visit.id), error, options))
      else enter()
    } catch (error) {
      refuse(visit, new Caller(response, visit.id), error, options)
    }
    return true
  }
}

/** The paid endpoints that take a JSON body, by their paths as callers write them. */
function listWays(): ReadonlyMap<string, Way> {
  const ways = new Map<string, Way>()
  for (const spec of ENDPOINTS) {
    const { sells, method, largeBody, surface, path, aliases } = spec
    if (sells === undefined || method !== 'POST' || largeBody || path.includes('{')) continue
    for (const [index, one] of [path, ...aliases].entries())
      ways.set(one, { spec: { ...spec, sells }, config: { surface, alias: index > 0, ...paidConfig(spec) } })
  }
  return ways
}

/** The length of a body that needs no judgement; else 0. */
function plainBytes(headers: IncomingHttpHeaders): number {
  if (headers['transfer-encoding'] !== undefined || !JSON_TYPES.has(headers['content-type'] ?? '')) return 0
  const bytes = Number(headers['content-length'] ?? 0)
  return bytes <= BODY_BYTES_MAX ? bytes : 0
}

function knownBy({ headers, socket }: IncomingMessage, keys: ApiKeys): Principal | undefined {
  const { authorization, 'x-api-key': given } = headers
  return keys.known({ authorization, xApiKey: Array.isArray(given) ? given[0] : given }, linkOf(socket).key)
}

class PlainVisit implements Visit {
  readonly id: string
  readonly raw: IncomingMessage
  readonly headers: IncomingHttpHeaders
  readonly method = 'POST'
  readonly params = NO_PARAMS
  readonly principal: Principal
  /** Its body is small. */
  readonly lease = null
  readonly routeOptions: Way
  body: Buffer | undefined

  constructor(request: IncomingMessage, way: Way, principal: Principal, id: string) {
    this.id = id
    this.raw = request
    this.headers = request.headers
    this.principal = principal
    this.routeOptions = way
  }

  /** `whole` is not called when the caller hangs up before the end: there is nobody to answer. */
  readBody(bytes: number, whole: () => void): void {
    const pieces: Buffer[] = []
    let left = bytes
    this.raw.on('data', (piece: Buffer) => {
      pieces.push(piece)
      left -= piece.length
      if (left > 0) return
      // All that was announced is here: there is no need to wait until the end is told.
      this.body = pieces.length === 1 ? piece : Buffer.concat(pieces, bytes)
      whole()
    })
    this.raw.on('error', ignore)
  }
}

function ignore(): void {}
