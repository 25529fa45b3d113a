// Two processes of this version serve while two of the next one start beside them and take over, on many calls that are
// stored: with a column, an index and a backfill of the largest table.
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type GatewayProcess, makeDataDirectory, startProcess } from './chaos/gateway-process.ts'
import { freshDatabase } from './database.ts'
import { assert, SECRET, until } from './gateway.ts'

const ROOT = resolve(import.meta.dirname, '..')
const NEXT = {
  '0002_region.sql': 'alter table usage add column region text;',
  '0003_region_index.sql':
    'create index concurrently usage_region on usage (account_id, region) where region is not null;',
  '0003_region.backfill.sql': `update usage set region = 'eu' where region is null and posting is null;`,
}

/** The sources of this version and what the next one adds, beside the same packages. */
async function makeNextVersion(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-next-'))
  for (const part of ['src', 'sandbox', 'docs']) await cp(join(ROOT, part), join(folder, part), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  await mkdir(join(folder, 'console'))
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as object // Ours.
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, version: '99.0.0' }))
  for (const [name, sql] of Object.entries(NEXT))
    await writeFile(join(folder, 'src', 'database', 'migrations', name), sql)
  return folder
}

interface Upgraded {
  readonly calls: number
  readonly lost: readonly string[]
  readonly longestMs: number
  /** What went on then. */
  readonly longestIn: string
}

export async function upgradeUnderLoad(rows: number): Promise<Upgraded> {
  const opened = new AsyncDisposableStack()
  try {
    return await upgrade(rows, opened)
  } finally {
    await opened.disposeAsync()
  }
}

async function upgrade(rows: number, opened: AsyncDisposableStack): Promise<Upgraded> {
  const fresh = opened.adopt(await freshDatabase(), (it) => it.drop())
  const next = opened.adopt(await makeNextVersion(), (path) => rm(path, { recursive: true }))
  const database = opened.adopt(fresh.open({ connectionsMax: 2 }), (it) => it.close())
  const run = (text: string) => database.query<Record<string, unknown>>({ text, withinMs: 600_000 })
  await run(`insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, posting)
    select 'acc' || n % 50, 'u' || n, 'k', 'm', 'chat', 'settled', 200, 0, 0, 1, '[]', null from generate_series(1, ${Number(rows)}) n`)
  await run('analyze usage')
  const start = async (main?: string) => {
    const data = opened.adopt(await makeDataDirectory(), (it) => it.remove())
    const env = { TOLLGATE_DATA: data.path, DATABASE_URL: fresh.url, TOLLGATE_SECRET: SECRET }
    return opened.adopt(await startProcess({ env, ...(main ? { main } : {}) }), async (it) => void (await it.stop()))
  }
  // The first call of a process loads what serves it, with or without an upgrade: a balancer sends calls to one that
  // has answered.
  const warm = async (one: GatewayProcess, key: string) => {
    assert.equal((await callOnce(one.url, key)).fault, undefined)
    return one
  }
  const first = await start()
  const keyOf = () => /An account .*shown once:\s+(\S+)/.exec(first.output)?.[1]
  await until(() => keyOf() !== undefined)
  const key = keyOf() ?? ''
  const serving: GatewayProcess[] = [await warm(first, key), await warm(await start(), key)]
  const phase = { name: 'the new version migrates' }
  const load = callUntil(serving, key, phase)
  try {
    const old = [...serving]
    for (let i = 0; i < 2; i++) {
      serving.push(await warm(await start(join(next, 'src', 'main.ts')), key))
      phase.name = `${i + 1} of the new version serve beside the old`
    }
    // As a balancer does: a process gets no new calls before it is stopped.
    for (const one of old) {
      serving.splice(serving.indexOf(one), 1)
      assert.equal(await one.stop(), 0, one.output.slice(-2_000))
    }
    phase.name = 'the backfill runs'
    await until(
      async () => (await run('select 1 from backfill where ended_at is not null')).length === 1,
      true,
      900_000,
    )
  } finally {
    load.stop()
  }
  const calls = await load.ended
  assert.deepEqual(await run(`select count(*)::int as rows from usage where posting is null and region is null`), [
    { rows: 0 },
  ])
  const [index] = await run(`select indisvalid as valid from pg_index where indexrelid = 'usage_region'::regclass`)
  assert.deepEqual(index, { valid: true })
  // By their ids: a call that was answered is stored, and one whose answer was lost may be stored too.
  await until(async () => {
    const stored = new Set((await run('select id from usage where posting is not null')).map(({ id }) => id))
    return calls.served.filter((id) => !stored.has(id))
  }, [])
  return calls
}

const CALLERS = 6

/** The id of the call, and what it is told if it is not served. */
async function callOnce(url: string, key: string): Promise<{ readonly id?: string; readonly fault?: string }> {
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'alpha-5.4', max_tokens: 16, messages: [{ role: 'user', content: 'x' }] }),
    })
    const text = await answer.text()
    const id = answer.headers.get('x-request-id')?.replace(/^req_/, '') ?? 'none'
    return answer.status === 200 ? { id } : { id, fault: `${answer.status} ${text}` }
  } catch (error) {
    return { fault: `${error} ${error instanceof Error && error.cause}` }
  }
}

function callUntil(serving: readonly GatewayProcess[], key: string, phase: { readonly name: string }) {
  const stop = new AbortController()
  const done = { calls: 0, served: [] as string[], lost: [] as string[], longestMs: 0, longestIn: '' }
  const caller = async () => {
    while (!stop.signal.aborted) {
      const { url } = serving[done.calls % serving.length] ?? { url: '' }
      const startedMs = performance.now()
      done.calls += 1
      const { id = '', fault } = await callOnce(url, key)
      if (fault === undefined) done.served.push(id)
      else done.lost.push(`${phase.name}: ${fault}`)
      const ms = performance.now() - startedMs
      if (ms > done.longestMs) done.longestIn = phase.name
      done.longestMs = Math.max(done.longestMs, ms)
    }
  }
  const ended = Promise.all(Array.from({ length: CALLERS }, caller)).then(() => done)
  return { stop: () => stop.abort(), ended }
}
