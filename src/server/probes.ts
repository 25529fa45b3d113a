// What machines ask of the gateway: whether it is alive, whether it is ready, how it is doing. Strangers may ask as well, so
// the database hears of it once a second, however many ask.
import type { FastifyInstance } from 'fastify'
import { Fault } from '../kernel/fault.ts'
import { bearerCheck } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'

interface ProbeDeps {
  readonly world: World
  /** Leaving processes are not ready, whatever the database says. */
  readonly leaving: () => boolean
  readonly databaseAnswers: () => Promise<boolean>
  readonly figures: { readonly contentType: string; read(): Promise<string> }
  /** Without one, whoever reaches /metrics may read it. */
  readonly metricsToken: string | undefined
}

const FRESH_MS = 1_000
/** What clients are given as their base address. */
const CLIENT_BASES = ['/v1', '/alpha', '/alpha/v1', '/beta', '/beta/v1']

export function mountProbes(app: FastifyInstance, deps: ProbeDeps): void {
  const databaseAnswers = oncePerSecond(deps.world, deps.databaseAnswers)
  const figures = oncePerSecond(deps.world, deps.figures.read)
  const isScraper = deps.metricsToken === undefined ? () => true : bearerCheck(deps.metricsToken)

  app.get('/healthz', () => ({ ok: true }))
  // Coding agents ask the address that they were given whether anybody is there, before they have anything to say.
  for (const base of CLIENT_BASES) app.get(base, () => ({ ok: true, docs: '/docs' }))
  app.get('/readyz', async (_request, reply) => {
    const ready = !deps.leaving() && (await databaseAnswers())
    return reply.code(ready ? 200 : 503).send({ ready })
  })
  app.get('/metrics', async (request, reply) => {
    const { authorization } = request.headers
    if (!isScraper(authorization))
      throw new Fault(authorization === undefined ? 'key_missing' : 'key_unknown', {
        message: 'Send the value of TOLLGATE_METRICS_TOKEN as "Authorization: Bearer <token>".',
      })
    return reply.type(deps.figures.contentType).send(await figures())
  })
}

/** Requests within a second of the last check, or while it runs, get its result. A failure is not reused. */
function oncePerSecond<T>(world: World, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly answer: Promise<T>; readonly fromMs: number; done: boolean } | undefined
  return () => {
    if (last && (!last.done || world.elapsedMs() - last.fromMs < FRESH_MS)) return last.answer
    const asked = { answer: read(), fromMs: world.elapsedMs(), done: false }
    last = asked
    asked.answer.then(
      () => {
        asked.done = true
      },
      () => {
        last = undefined
      },
    )
    return asked.answer
  }
}
