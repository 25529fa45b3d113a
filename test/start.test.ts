// The start of a process: wrong settings end it with one sentence, and nothing that fails after it serves ends it.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { ConfigError, readConfig } from '../src/config.ts'
import { Fault } from '../src/kernel/fault.ts'
import { startProblem } from '../src/process/serve.ts'
import { makeDataDirectory } from './chaos/gateway-process.ts'
import { freshDatabase } from './database.ts'
import { assert, SECRET, test, until } from './gateway.ts'

const MAIN = join(import.meta.dirname, '..', 'src', 'main.ts')

function serve(env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORT: '0',
      TOLLGATE_SECRET: SECRET,
      ...env,
    },
  })
  const said = { out: '', err: '' }
  child.stdout.on('data', (piece: Buffer) => {
    said.out += piece
  })
  child.stderr.on('data', (piece: Buffer) => {
    said.err += piece
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { child, said, ended }
}

test('a port that is no number is said in one line', () => {
  assert.throws(
    () => readConfig({ PORT: 'abc' }),
    (error) => error instanceof ConfigError && error.problems.join() === 'PORT: must be a number, not "abc"',
  )
})

test('a wrong name of the database ends the start with one sentence', async () => {
  const fresh = await freshDatabase()
  const data = await makeDataDirectory()
  try {
    const { ended, said } = serve({ DATABASE_URL: `${fresh.url}_not`, TOLLGATE_DATA: data.path })
    assert.equal(await ended, 1)
    assert.match(
      said.err,
      /^tollgate: DATABASE_URL: the server says: database ".*_not" does not exist\. Correct the name.*\n$/,
    )
  } finally {
    await data.remove()
    await fresh.drop()
  }
})

test('a pooler that loses prepared statements is named, with the setting to change', async () => {
  await using fresh = await freshDatabase()
  await using database = fresh.open({ connectionsMax: 1 })
  // What the server says when a pooler has given a statement to a connection that does not know it.
  const lost = await database.query({ text: 'execute unknown_there' }).catch((error: unknown) => error)
  assert.ok(lost instanceof Fault)
  assert.match(startProblem(lost) ?? '', /does not keep prepared statements.*TOLLGATE_DATABASE_PREPARE=0/)
})

test('a start whose last writes fail serves all the same, and makes up for them', async () => {
  const fresh = await freshDatabase()
  const data = await makeDataDirectory()
  const database = fresh.open({ connectionsMax: 2 })
  const locked = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const holding = database
    .transaction(
      async (tx) => {
        await tx.query({ text: `insert into setting (name, value) values ('first_account', 'made')` })
        locked.resolve()
        await release.promise
        throw new Error('undone')
      },
      { locksMs: 0, idleMs: 0 },
    )
    .catch(() => undefined)
  await locked.promise
  const { child, ended, said } = serve({
    DATABASE_URL: fresh.url,
    TOLLGATE_DATA: data.path,
    TOLLGATE_LOG_FORMAT: 'json',
  })
  try {
    await until(() => said.err.includes('it is tried again') || child.exitCode !== null)
    assert.equal(child.exitCode, null, said.err)
    release.resolve()
    await holding
    await until(() => said.out.includes('Try it:'))
    const url = /API +(\S+)/.exec(said.out)?.[1] ?? ''
    assert.equal((await fetch(`${url}/readyz`)).status, 200)
  } finally {
    release.resolve()
    child.kill('SIGTERM')
    await ended
    await database.close()
    await data.remove()
    await fresh.drop()
  }
})
