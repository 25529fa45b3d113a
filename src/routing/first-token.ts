// Waits for the first token of a stream before its answer counts as begun, so that another vendor can still be called
// when none comes.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { StreamRelay } from '../protocols/protocol.ts'
import type { UpstreamReply } from '../upstream/call.ts'

type Consumer = Parameters<UpstreamReply['pipe']>[0]

/** Aborts by itself when no token came in time. */
export function tokenDeadline(
  firstTokenMs: number,
  world: Pick<World, 'after'>,
): { readonly signal: AbortSignal; cancel(): void } {
  const controller = new AbortController()
  const cancel = world.after(firstTokenMs, () =>
    controller.abort(new Fault('upstream_timeout', { internal: { phase: 'first-token' } })),
  )
  return { signal: controller.signal, cancel }
}

/**
 * Resolves at the first token, the end or a fault of the stream, with a reply that starts from the beginning. `scout`
 * parses the stream to find the token and is discarded. The vendor's data waits (backpressure) until the reply is read.
 */
export async function firstTokenOf(reply: UpstreamReply, scout: StreamRelay): Promise<UpstreamReply> {
  const chunks: Buffer[] = []
  let consumer: Consumer | undefined
  const begun = Promise.withResolvers<void>()
  const taken = Promise.withResolvers<void>()
  const piped = reply.pipe((chunk) => {
    if (consumer) return consumer(chunk)
    // The client may use its memory again.
    chunks.push(Buffer.from(chunk))
    if (!hasBegun(scout, chunk)) return undefined
    begun.resolve()
    return taken.promise
  })
  piped.catch(() => undefined)
  await Promise.race([begun.promise, piped])
  return {
    status: reply.status,
    headers: reply.headers,
    read: () => Promise.reject(new Fault('internal', { internal: { why: 'a stream is read as a whole' } })),
    letGo: () => reply.letGo(),
    abort: () => {
      taken.resolve()
      reply.abort()
    },
    async pipe(onData) {
      // More may come while these are delivered.
      for (const chunk of chunks) await onData(chunk)
      consumer = onData
      taken.resolve()
      await piped
    },
  }
}

/** The relay reports data that cannot be parsed. */
function hasBegun(scout: StreamRelay, chunk: Buffer): boolean {
  try {
    scout.push(chunk)
  } catch {
    return true
  }
  const { outputTokensSeen, terminal, fault } = scout.state
  return outputTokensSeen > 0 || terminal || fault !== undefined
}
