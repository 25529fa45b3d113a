// Several processes on one port: the parent's side. The parent holds the port, the database and the simulated vendors.
// It replaces a worker that crashes, and on SIGHUP all workers, one after the other, without dropping a request. The
// worker's side follows below.

import type { Worker } from 'node:cluster'
import cluster from 'node:cluster'
import type pg from 'pg'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import { createGroupMetrics, type Figures } from '../telemetry/metrics.ts'

/** What a worker gets from its parent, by message and never by the environment. */
export interface Shared {
  readonly connection: pg.PoolConfig
  readonly secret: string
  readonly operatorToken: string
  readonly sandboxUrl: string
}

type FromParent =
  | { readonly type: 'shared'; readonly shared: Shared }
  | { readonly type: 'stop' }
  | { readonly type: 'tell'; readonly id: number }
  | { readonly type: 'group'; readonly id: number; readonly text: string }

type FromWorker =
  | { readonly type: 'scrape'; readonly id: number }
  | { readonly type: 'told'; readonly id: number; readonly figures: Figures }
  | { readonly type: 'last-figures'; readonly figures: Figures }

interface WorkersOptions {
  readonly count: number
  readonly shared: Shared
  readonly log: Log
  readonly world: World
  /** The parent's own metrics: it runs jobs, so it is part of the group. */
  readonly figures: () => Promise<Figures>
  /** How long a worker may take to shut down before it is killed. */
  readonly leaveMs: number
}

const RESPAWN_MS = 500
const RESPAWN_MS_MAX = 30_000
/** A worker that ran this long did not crash because of its startup. */
const STEADY_MS = 30_000
/** A worker that does not answer a scrape in this time is left out. */
const TELL_MS = 2_000
/** Workers are numbered from 1. */
const PARENT = 0

export function createWorkers({ count, shared, log, world, figures, leaveMs }: WorkersOptions) {
  /** All workers that have not exited. */
  const present = new Set<Worker>()
  /** Of these, the workers that were not told to stop. */
  const working = new Set<Worker>()
  const listening = new Set<Worker>()
  /** Functions that cancel a scheduled replacement. */
  const replacements = new Set<() => void>()
  const group = createGroupMetrics()
  /** Scrapes in progress; each is called when a worker has answered or exited. */
  const scrapes = new Map<number, (worker: Worker, hasTold: boolean) => void>()
  let stopping = false
  let rolling = false
  let asked = 0
  let earlyDeaths = 0

  function send(worker: Worker, message: FromParent): void {
    if (worker.isConnected()) worker.send(message)
  }

  function startWorker(): Promise<string> {
    const worker = cluster.fork()
    const startedMs = world.elapsedMs()
    present.add(worker)
    working.add(worker)
    worker.on('error', (error) => log.warn({ error }, 'worker channel failed'))
    worker.on('message', (message: FromWorker) => hear(worker, message))
    // The worker's last message may arrive after its `exit` event, but never after `disconnect`.
    worker.once('disconnect', () => group.leave(worker.id))
    worker.once('exit', (code, signal) => {
      present.delete(worker)
      listening.delete(worker)
      for (const scrape of scrapes.values()) scrape(worker, false)
      const { pid } = worker.process
      if (!working.delete(worker) || stopping) return log.info({ pid, code, signal }, 'a worker stopped')
      earlyDeaths = world.elapsedMs() - startedMs > STEADY_MS ? 0 : earlyDeaths + 1
      const inMs = Math.min(RESPAWN_MS * 2 ** Math.max(0, earlyDeaths - 1), RESPAWN_MS_MAX)
      log.error({ pid, code, signal, inMs }, 'a worker died; it is replaced')
      const cancel = world.after(inMs, () => {
        replacements.delete(cancel)
        if (working.size < count) startWorker().catch(() => undefined)
      })
      replacements.add(cancel)
    })
    send(worker, { type: 'shared', shared })
    return new Promise((resolve, reject) => {
      worker.once('listening', ({ address, port }) => {
        listening.add(worker)
        log.info({ pid: worker.process.pid }, 'a worker listens')
        resolve(`http://${address ?? '127.0.0.1'}:${port}`)
      })
      worker.once('exit', (code, signal) =>
        reject(new Error(`A worker ended (${signal ?? `code ${code}`}) before it listened; its output is above.`)),
      )
    })
  }

  function stopWorker(worker: Worker): Promise<void> {
    working.delete(worker)
    if (worker.isDead()) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = world.after(leaveMs, () => {
        log.error({ pid: worker.process.pid, leaveMs }, 'a worker did not stop in time; it is killed')
        worker.process.kill('SIGKILL')
      })
      worker.once('exit', () => {
        cancel()
        resolve()
      })
      if (worker.isConnected()) send(worker, { type: 'stop' })
      else worker.process.kill('SIGTERM')
    })
  }

  /** Each new worker listens before an old one stops. If the new one fails to listen, the old ones stay. */
  async function roll(): Promise<void> {
    for (const worker of [...working]) {
      if (stopping) return
      // A worker that crashed meanwhile has been replaced already.
      if (!working.has(worker)) continue
      await startWorker()
      if (stopping) return
      await stopWorker(worker)
    }
    while (working.size < count && !stopping) await startWorker()
    log.info({ workers: working.size }, 'all workers were replaced')
  }

  const onHangup = () => {
    if (rolling || stopping) return log.info({}, 'the workers are being replaced already')
    rolling = true
    roll()
      .catch((error: unknown) => stopping || log.error({ error }, 'replacing the workers failed; the rest stay'))
      .finally(() => {
        rolling = false
      })
  }

  function hear(worker: Worker, message: FromWorker): void {
    if (message.type === 'scrape')
      void gather().then(
        (text) => send(worker, { type: 'group', id: message.id, text }),
        (error: unknown) => log.error({ error }, 'the metrics of the workers could not be collected'),
      )
    else {
      group.hear(worker.id, message.figures)
      if (message.type === 'told') scrapes.get(message.id)?.(worker, true)
    }
  }

  /** Asks all listening workers for their metrics, waits for the answers up to the timeout, and merges them. */
  async function gather(): Promise<string> {
    const id = asked++
    const awaited = new Set(listening)
    const answered = new Set([PARENT])
    for (const worker of awaited) send(worker, { type: 'tell', id })
    await new Promise<void>((resolve) => {
      const cancel = world.after(TELL_MS, resolve)
      scrapes.set(id, (worker, hasTold) => {
        if (hasTold) answered.add(worker.id)
        awaited.delete(worker)
        if (awaited.size > 0) return
        cancel()
        resolve()
      })
    })
    scrapes.delete(id)
    group.hear(PARENT, await figures())
    return group.text(answered, awaited.size)
  }

  return {
    /** Resolves with the address when all workers listen. */
    async start(): Promise<string> {
      // Metrics have values that JSON cannot express.
      cluster.setupPrimary({ serialization: 'advanced' })
      try {
        const addresses = await Promise.all(Array.from({ length: count }, startWorker))
        process.on('SIGHUP', onHangup)
        return addresses[0]!
      } catch (error) {
        await this.stop()
        throw error
      }
    },
    async stop(): Promise<void> {
      stopping = true
      process.off('SIGHUP', onHangup)
      for (const cancel of replacements) cancel()
      await Promise.all([...present].map(stopWorker))
    },
  }
}

// The worker's side: what it gets from its parent, when it must stop, and how it answers a scrape for the whole group.

/** Longer than the parent waits for its workers. */
const PATIENCE_MS = 5_000

/** Call it before the first await, or a message may arrive before there is a listener. */
export function joinParent(world: World) {
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
    /** Resolves when the parent says so or has exited. The parent handles signals to the process group. */
    stopping: stopping.promise,
    get isStopping() {
      return isStopping
    },
    /** The metrics of all processes in Prometheus' format. */
    readGroup(): Promise<string> {
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
    /** From now on the parent gets an answer when it asks for our metrics. */
    answerWith(source: () => Promise<Figures>): void {
      read = source
    },
    /** Sends the final metrics and closes the channel. */
    async leave(figures: Figures): Promise<void> {
      await send({ type: 'last-figures', figures })
      if (process.connected) process.disconnect?.()
    },
  }
}
