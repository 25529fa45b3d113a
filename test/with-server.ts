// A Postgres for a program that is not a test file, in the way in which test/run.ts gives one to test files.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { SERVER_VARIABLE } from './database.ts'

export async function withTestServer<T>(run: () => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-run-'))
  const server = await startEmbedded({ dataDirectory: join(directory, 'data'), log: () => {} })
  process.env[SERVER_VARIABLE] = JSON.stringify(server.connection)
  try {
    return await run()
  } finally {
    await server.stop()
    await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  }
}
