// The whole path of a paid call, on one screen: admit → route → attempt → relay → settle.
import { admit } from '../admission/admit.ts'
import { replay } from '../admission/idempotency.ts'
import { asFault } from '../kernel/fault.ts'
import { attempt } from '../routing/attempt.ts'
import { routeAsk } from '../routing/route.ts'
import { type Answered, type Arrived, GONE, type Held, type PathDeps } from './call.ts'
import type { Seen } from './monitor.ts'
import { LEFT_STATUS, relayAnswer, relayStream } from './relay.ts'
import { release } from './settle.ts'

export async function serve(arrived: Arrived, deps: PathDeps): Promise<void> {
  const seen = deps.monitor.begin(arrived)
  try {
    const admitted = await admit(arrived, deps.ledger)
    if (admitted === 'replay') {
      await replay(arrived, deps.database)
      seen.end({ status: 200, outcome: 'replayed', charged: 0n })
      return
    }
    const held: Held = { ...arrived, admitted }
    seen.held(admitted.held)
    seen.stage('admit')
    try {
      const answered = await answer(held, seen, deps)
      seen.stage('vendor')
      try {
        const settled =
          held.ask.stream && answered.attempted.exchange.stream
            ? await relayStream(answered, deps)
            : await relayAnswer(answered, deps)
        seen.stage('relay')
        seen.end(settled)
      } catch (error) {
        answered.attempted.reply.abort()
        throw error
      } finally {
        answered.attempted.leave()
      }
    } catch (error) {
      // A no-op when the relay has already resolved the hold.
      await release(held, statusOf(error), deps)
      throw error
    }
  } catch (error) {
    seen.end({ status: statusOf(error), outcome: 'refused', charged: 0n })
    throw error
  }
}

function statusOf(error: unknown): number {
  return error === GONE ? LEFT_STATUS : asFault(error).status
}

async function answer(held: Held, seen: Seen, deps: PathDeps): Promise<Answered> {
  const { ask, product, catalog, admitted } = held
  if (held.out.signal.aborted) throw GONE
  const nowSeconds = () => Math.floor(deps.world.nowMs() / 1000)
  const routed = routeAsk(ask, product.routes, catalog.document, deps.routes)
  const candidates =
    held.keeper === undefined
      ? routed
      : routed.filter(({ vendorName, target }) => vendorName === held.keeper && target.protocol === ask.door)
  const attempted = await attempt(
    ask,
    candidates,
    {
      requestId: held.requestId,
      account: held.principal.accountId,
      tried: seen.tried,
      createdSeconds: nowSeconds(),
      nowSeconds,
      signal: held.out.signal,
      callerHeaders: held.callerHeaders,
      ...(admitted.outputTokensCap === undefined ? {} : { outputTokensCap: admitted.outputTokensCap }),
    },
    deps,
  )
  return { ...held, attempted }
}
