// What every bench stands on: a directory, the tools in C, cores of its own, upstreams and a store.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Embedded } from '../src/extensions/postgres/embedded.ts'
import { type Cores, chooseCores, moveTo } from './cores.ts'
import { compileTools, type LoadTools } from './load.ts'
import { freePort, type Started, start } from './process.ts'
import { startTls, type TargetOptions } from './target.ts'
import { startStore } from './tollgate.ts'

export interface Bed {
  readonly tools: LoadTools
  readonly cores: Cores
  readonly store: Embedded
  /** For the gateways that are started on it. */
  readonly options: TargetOptions
  close(): Promise<void>
}

/**
 * `slow`: a second upstream, whose streams take their time, and TLS in front of the first. Without it the one upstream
 * is both.
 */
export async function openBed(name: string, slow?: { chunks: number; micros: number }): Promise<Bed> {
  const directory = await mkdtemp(join(tmpdir(), `tollgate-${name}-`))
  // It can be entered, but not listed, by the user who runs Postgres for root.
  await chmod(directory, 0o711)
  const tools = compileTools(directory)
  if (!tools)
    throw new Error('The bench needs a C compiler (cc, gcc or clang) for its load generator and its upstream.')
  const cores = chooseCores()
  moveTo(cores.rest)
  const running: Started[] = []
  const upstream = async (...more: number[]) => {
    const port = await freePort()
    const onRest = { cores: cores.rest, port, logFile: join(directory, 'mock.log') }
    running.push(await start(tools.mock, [port, ...more].map(String), onRest))
    return port
  }
  const upstreamPort = await upstream()
  const slowPort = slow ? await upstream(slow.chunks, slow.micros) : upstreamPort
  const store = await startStore(directory)
  const tls = slow && (await startTls(directory, cores.rest, upstreamPort))
  if (tls) running.push(tls)
  return {
    tools,
    cores,
    store,
    options: { directory, cores: cores.gateway, upstreamPort, slowPort, tls },
    async close() {
      for (const one of running) await one.stop()
      await store.stop()
      await rm(directory, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
