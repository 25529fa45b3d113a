// The server of the simulated vendors, on loopback.
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { World } from '../src/kernel/world.ts'
import { CallLog, type SandboxLog } from './log.ts'
import type { openRealtimeVendor } from './realtime.ts'

// Not imported: a module that imports node:http by name loads all of Node's fetch and WebSocket with it.
const { createServer } = process.getBuiltinModule('node:http')

export interface SandboxOptions {
  /** A free port by default. */
  readonly port?: number
  readonly world: World
  /** How many times faster than a real vendor jobs run; 1 by default, Infinity does not wait. */
  readonly speed?: number
  /** Answers of text vendors are written in ways that differ, chosen by this number; without it all in one way. */
  readonly variation?: number | undefined
}

export interface Sandbox {
  readonly url: string
  readonly seen: SandboxLog
  close(): Promise<void>
}

/** Listens at once; the vendors themselves are loaded when somebody calls one. */
export async function startSandbox({ world, speed = 1, port = 0, variation }: SandboxOptions): Promise<Sandbox> {
  const log = new CallLog()
  let url = ''
  let vendors: Promise<RequestListener> | undefined
  const server = createServer({ keepAliveTimeout: 60_000, requestTimeout: 0 }, (request, response) => {
    vendors ??= import('./vendors.ts').then(({ openVendors }) => openVendors({ world, speed, url, log, variation }))
    void vendors.then((answer) => answer(request, response))
  })
  let realtime: Promise<ReturnType<typeof openRealtimeVendor>> | undefined
  const upgraded = new Set<Duplex>()
  server.on('upgrade', (request, link, head) => {
    upgraded.add(link.once('close', () => upgraded.delete(link)))
    realtime ??= Promise.all([import('./realtime.ts'), import('ws')]).then(([{ openRealtimeVendor: open }, ws]) =>
      open({ world, speed, log }, ws),
    )
    void realtime.then((take) => take(request, link, head))
  })
  server.on('connection', (socket) => {
    log.connectionOpened()
    socket.once('close', () => log.connectionClosed())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    seen: log,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      for (const link of upgraded) link.destroy()
      await closed
    },
  }
}
