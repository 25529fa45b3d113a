// The body of a request as it arrives: what is large is counted piece by piece as its account's, and whoever sends too slowly is cut off.
import type { IncomingMessage } from 'node:http'
import { Fault, GONE } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { type ByteLease, SMALL_BODY_BYTES } from '../upstream/budget.ts'
import { linkOf } from './link.ts'

export interface BodyRules {
  readonly world: World
  readonly bytesPerSecondMin: number
}

/** How long a body may take beside what its bytes may. */
const GRACE_MS = 15_000

/** It takes no more from the socket while there is no room for what came; only the time that the sender takes counts against it. */
export async function* arriving(
  request: IncomingMessage,
  { world, bytesPerSecondMin }: BodyRules,
  lease: ByteLease | null,
): AsyncGenerator<Buffer, void> {
  const pieces: AsyncIterator<Buffer, void> = request[Symbol.asyncIterator]()
  let bytes = 0
  let counted = 0
  let waitedMs = 0
  for (;;) {
    const sinceMs = world.elapsedMs()
    const piece = pieces.next().catch((error: unknown) => {
      // Whoever hangs up before a body was read makes reading it fail, also when all of it has come. That is nobody's mistake.
      throw request.destroyed ? GONE : error
    })
    const next = await inTime(world, GRACE_MS + (bytes * 1_000) / bytesPerSecondMin - waitedMs, piece)
    if (next.done) return
    waitedMs += world.elapsedMs() - sinceMs
    bytes += next.value.length
    const large = bytes > SMALL_BODY_BYTES ? bytes - counted : 0
    if (lease && large > 0) {
      await lease.grow(large, linkOf(request.socket).signal)
      counted = bytes
    }
    yield next.value
  }
}

function inTime<T>(world: World, forMs: number, next: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = world.after(Math.max(0, forMs), () => reject(new Fault('body_too_slow')))
    next.then(resolve, reject).finally(cancel)
  })
}

/** A body of at most so many bytes, whole. */
export async function wholeBody(
  request: IncomingMessage,
  rules: BodyRules & { readonly bytesMax: number },
  lease: ByteLease | null,
): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > rules.bytesMax) throw tooLarge()
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of arriving(request, rules, lease)) {
    bytes += piece.length
    if (bytes > rules.bytesMax) throw tooLarge()
    pieces.push(piece)
  }
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces, bytes)
}

function tooLarge(): Fault {
  return new Fault('request_too_large', { message: 'The request body is larger than this endpoint takes.' })
}
