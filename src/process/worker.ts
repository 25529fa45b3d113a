// One of several processes on one port, as it sees itself: what its parent gave it, when to leave, and how it answers for
// the whole group. workers.ts is the parent's side.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { Figures } from '../telemetry/group-metrics.ts'
import type { FromParent, FromWorker, Shared } from './workers.ts'

interface Parent {
  readonly shared: Promise<Shared>
  /** Resolves when the parent says so, or has gone. Signals to the group are the parent's business. */
  readonly stopping: Promise<void>
  readonly isStopping: boolean
  /** The figures of all processes, in Prometheus' format. */
  readGroup(): Promise<string>
  /** From now on the parent gets an answer when it asks for our figures. */
  answerWith(read: () => Promise<Figures>): void
  /** The last figures, when they are all counted; then the channel is closed. */
  leave(figures: Figures): Promise<void>
}

/** Longer than the parent waits for those that it asks. */
const PATIENCE_MS = 5_000

/** To be called before anything is awaited, or a message may come while nobody listens. */
export function joinParent(world: World): Parent {
  let read: (() => Promise<Figures>) | undefined
  let isStopping = false
  let asked = 0
  const waiting = new Map<number, (text: string) => void>()
  const shared = Promise.withResolvers<Shared>()
  const stopping = Promise.withResolvers<void>()
  const stop = () => {
    isStopping = true
    stopping.resolve()
  }
  const send = (message: FromWorker) =>
    new Promise<void>((resolve) => {
      if (process.connected) process.send!(message, () => resolve())
      else resolve()
    })

  for (const name of ['SIGINT', 'SIGHUP'] as const) process.on(name, () => undefined)
  process.once('SIGTERM', stop)
  process.once('disconnect', stop)
  process.on('message', (message: FromParent) => {
    if (message.type === 'shared') shared.resolve(message.shared)
    else if (message.type === 'stop') stop()
    else if (message.type === 'tell')
      void read?.().then(
        (figures) => send({ type: 'told', id: message.id, figures }),
        () => undefined,
      )
    else if (message.type === 'group') waiting.get(message.id)?.(message.text)
  })

  return {
    shared: shared.promise,
    stopping: stopping.promise,
    get isStopping() {
      return isStopping
    },
    readGroup() {
      const id = asked++
      return new Promise<string>((resolve, reject) => {
        const cancel = world.after(PATIENCE_MS, () => {
          waiting.delete(id)
          reject(new Fault('unavailable', { internal: { why: 'the parent process does not answer' } }))
        })
        waiting.set(id, (text) => {
          waiting.delete(id)
          cancel()
          resolve(text)
        })
        void send({ type: 'scrape', id })
      })
    },
    answerWith(source) {
      read = source
    },
    async leave(figures) {
      await send({ type: 'last-figures', figures })
      if (process.connected) process.disconnect?.()
    },
  }
}
