// Hedging: calls a second vendor once if the first sends no token in time. The stream with the first token is used; the
// other call is aborted, and the operator pays for it.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { Attempted } from './attempt.ts'

interface Race {
  readonly hedgeMs: number
  readonly signal: AbortSignal
  /**
   * Tries candidates that nobody has tried yet. `lost` is aborted when the other call has won; `signal` then is, and
   * when the caller leaves.
   */
  run(signal: AbortSignal, lost: AbortSignal): Promise<Attempted>
  /** Whether there is another candidate. */
  hasNext(): boolean
  /** It already had its token when it was aborted. */
  lost(attempted: Attempted, reason: Fault): void
  /** What happened, in words. */
  decided(words: string): void
}

/** The reason with which the slower call is broken off. */
const hedgeLost = () => new Fault('upstream_timeout', { internal: { why: 'another vendor was faster' } })

export async function hedged(race: Race, world: Pick<World, 'after'>): Promise<Attempted> {
  const first = enter(race)
  const late = Promise.withResolvers<'late'>()
  const cancel = world.after(race.hedgeMs, () => late.resolve('late'))
  const outcome = await Promise.race([first.result, late.promise]).finally(cancel)
  if (outcome !== 'late') return outcome
  if (race.signal.aborted || !race.hasNext()) return first.result
  const second = enter(race)
  const named = ({ result }: Runner, loser: Runner) => result.then((attempted) => ({ attempted, loser }))
  // If both fail, the caller gets the fault of the first.
  const won = await Promise.any([named(first, second), named(second, first)]).catch(() => undefined)
  if (!won) return first.result
  breakOff(won.loser, race)
  const said = `No token came within ${race.hedgeMs} ms, so another vendor was called too.`
  race.decided(`${said} Route ${won.attempted.candidate.number} answered first, and only that is charged.`)
  return won.attempted
}

interface Runner {
  readonly controller: AbortController
  readonly result: Promise<Attempted>
}

function enter({ signal, run }: Race): Runner {
  const controller = new AbortController()
  const result = run(AbortSignal.any([signal, controller.signal]), controller.signal)
  result.catch(() => undefined)
  return { controller, result }
}

function breakOff({ controller, result }: Runner, { lost }: Race): void {
  const reason = hedgeLost()
  controller.abort(reason)
  // It may have got its token at the same moment.
  result.then(
    (attempted) => {
      attempted.reply.abort()
      attempted.leave()
      lost(attempted, reason)
    },
    () => undefined,
  )
}
