// What the tests of a file need: started before them, in the order in which the file names it, and closed after them,
// the last first.
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'

interface Closing {
  close(): unknown
}

/** For `await using`. */
export function closing<T extends Closing>(it: T): T & AsyncDisposable {
  return Object.assign(it, { [Symbol.asyncDispose]: async () => void (await it.close()) })
}

/** Only what runs after the hooks may look into it. */
export function started<T extends Closing | AsyncDisposable>(start: () => T | Promise<T>): T
export function started<T extends object>(start: () => T | Promise<T>, close: (it: T) => unknown): T
export function started<T extends object>(start: () => T | Promise<T>, close?: (it: T) => unknown): T {
  let it: T | undefined
  before(async () => {
    it = await start()
  })
  after(async () => {
    if (!it) return
    if (close) await close(it)
    else await ((it as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.() ?? (it as T & Closing).close()) // As the first form has it.
  })
  return new Proxy({} as T, {
    get(_, name) {
      const value: unknown = Reflect.get(it!, name) // It has been started.
      return typeof value === 'function' ? value.bind(it) : value
    },
    set: (_, name, value) => Reflect.set(it!, name, value),
    ownKeys: () => Reflect.ownKeys(it!),
    getOwnPropertyDescriptor: (_, name) => ({ ...Reflect.getOwnPropertyDescriptor(it!, name), configurable: true }),
  })
}

/** A folder that goes with the tests. */
export function temporary(prefix: string): string {
  const path = mkdtempSync(join(tmpdir(), prefix))
  after(() => rm(path, { recursive: true, force: true }))
  return path
}

export interface Listening extends AsyncDisposable {
  readonly url: string
  /** With its port. */
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

/** A server, or a new one that answers so, at a port of its own, or at this one. */
export async function listen(answering: RequestListener | Server, at = 0, name = '127.0.0.1'): Promise<Listening> {
  // Whoever leaves in the middle of a request ends its handler.
  const handle: RequestListener = async (request, response) => {
    try {
      await (answering as RequestListener)(request, response)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
    }
  }
  const server = typeof answering === 'function' ? createServer(handle) : answering
  await new Promise<void>((resolve) => server.listen(at, name, resolve))
  const { port } = server.address() as AddressInfo // It listens on a port.
  const host = `${name}:${port}`
  return closing({
    url: `http://${host}`,
    host,
    port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      if ('closeAllConnections' in server) (server as ReturnType<typeof createServer>).closeAllConnections()
      await closed
    },
  })
}

/** One that nobody listens at now. */
export async function freePort(): Promise<number> {
  const { port, close } = await listen(() => {})
  await close()
  return port
}
