// Several processes on one port. The parent holds the port, the store and the simulated vendors; a worker that dies is
// replaced; SIGHUP replaces all of them, one after the other, without dropping a request.
import cluster, { type Worker } from 'node:cluster'
import type pg from 'pg'
import type { Log } from './kernel/log.ts'

/** What a worker needs of its parent; it travels by message, never by environment. */
export interface Shared {
  readonly connection: pg.PoolConfig
  readonly secret: string
  readonly operatorToken: string
  readonly sandboxUrl: string
}

const DISMISS = 'tollgate:dismiss'
const RESPAWN_MS = 500

export interface Workers {
  /** Resolves with the address when all listen. */
  start(): Promise<string>
  stop(): Promise<void>
}

export function createWorkers(count: number, shared: Shared, log: Log): Workers {
  const working = new Set<Worker>()
  let stopping = false
  let rolling = false

  function hire(): Promise<string> {
    const worker = cluster.fork()
    working.add(worker)
    worker.on('error', (error) => log.warn({ error }, 'worker channel failed'))
    worker.send(shared)
    worker.once('exit', (code, signal) => {
      if (!working.delete(worker) || stopping) return
      log.error({ pid: worker.process.pid, code, signal }, 'a worker died; it is replaced')
      setTimeout(() => stopping || void hire().catch(() => undefined), RESPAWN_MS)
    })
    return new Promise((resolve, reject) => {
      worker.once('listening', ({ address, port }) => resolve(`http://${address ?? '127.0.0.1'}:${port}`))
      worker.once('exit', (code) => reject(new Error(`A worker ended with code ${code} before it listened.`)))
    })
  }

  function dismiss(worker: Worker): Promise<void> {
    working.delete(worker)
    return new Promise((resolve) => {
      worker.once('exit', () => resolve())
      if (worker.isConnected()) worker.send(DISMISS)
      else worker.kill('SIGTERM')
    })
  }

  async function roll(): Promise<void> {
    for (const worker of [...working]) {
      await hire()
      await dismiss(worker)
    }
    log.info({ workers: working.size }, 'all workers were replaced')
  }

  const onHangup = () => {
    if (rolling) return
    rolling = true
    roll()
      .catch((error: unknown) => log.error({ error }, 'replacing the workers failed'))
      .finally(() => {
        rolling = false
      })
  }

  return {
    async start() {
      const addresses = await Promise.all(Array.from({ length: count }, hire))
      process.on('SIGHUP', onHangup)
      return addresses[0]!
    },
    async stop() {
      stopping = true
      process.off('SIGHUP', onHangup)
      await Promise.all([...working].map(dismiss))
    },
  }
}

export function sharedByParent(): Promise<Shared> {
  return new Promise((resolve) => process.once('message', (message) => resolve(message as Shared)))
}

/** A worker leaves when its parent says so, or has gone. Signals to the group are the parent's business. */
export function untilDismissed(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGHUP'] as const) process.on(name, () => undefined)
    process.once('SIGTERM', () => resolve())
    process.once('disconnect', () => resolve())
    process.on('message', (message) => {
      if (message === DISMISS) resolve()
    })
  })
}
