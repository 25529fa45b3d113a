// The archive of the ledger in a real S3 server (MinIO, which is no part of the project): a closed month is written,
// read, proved and restored; the server refuses, dies in the middle, has no room and loses its bucket.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { before, test } from 'node:test'
import { putAsset } from '../../src/assets/store.ts'
import { openCatalog, storedCatalogs } from '../../src/catalog/store.ts'
import { createAudit } from '../../src/database/audit.ts'
import { createChanges } from '../../src/database/changes.ts'
import type { ArchiveStore } from '../../src/extensions/archive/archive.ts'
import { openLedgerArchive } from '../../src/extensions/archive/check.ts'
import { createS3Archive } from '../../src/extensions/archive/store.ts'
import { readBackup, writeBackup } from '../../src/extensions/backup/backup.ts'
import { createS3Client, createS3Store } from '../../src/extensions/s3/s3.ts'
import { verifyLedger } from '../../src/extensions/verify/verify.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart } from '../../src/kernel/calendar.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { realWorld, type World } from '../../src/kernel/world.ts'
import { createLedger } from '../../src/ledger/ledger.ts'
import { maintainUsage } from '../../src/ledger/retention.ts'
import { sumUsage } from '../../src/ledger/usage-sums.ts'
import { createUpstream } from '../../src/upstream/exchange.ts'
import { freshDatabase } from '../database.ts'
import { atOnce } from '../lists.ts'
import { callOnce, setBack } from '../past-calls.ts'
import { goTool } from '../sdk/cache.ts'
import { SMALL_CATALOG } from '../small-catalog.ts'
import { freePort, started, temporary } from '../started.ts'
import { until } from '../until.ts'

const SERVER = 'github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c'
const BUCKET = 'archive'
const USER = 'tollgate-test'
const SECRET = 'a-secret-of-this-test'
const KEY = Buffer.alloc(32, 7)
const STAY = 1
const CALLS = 40

const upstream = started(() => createUpstream({ world: realWorld }))
const fresh = started(freshDatabase)
const database = started(() => fresh.open({ connectionsMax: 3 }))
const directory = temporary('tollgate-s3-')
const first = monthStart(dayOfMs(realWorld.nowMs()), -STAY - 1)
const month = formatDay(first).slice(0, 7)
let nowMs = first * DAY_MS + 9 * DAY_MS
const world: World = { ...realWorld, nowMs: () => nowMs }
const server: { program?: string; missing?: string; child?: ChildProcess; port: number } = { port: 0 }

async function startServer(home: string): Promise<void> {
  const args = ['server', home, '--address', `127.0.0.1:${server.port}`, '--quiet', '--anonymous']
  const env = { PATH: process.env.PATH, HOME: directory, MINIO_ROOT_USER: USER, MINIO_ROOT_PASSWORD: SECRET }
  // The program is there: no test runs without it.
  server.child = spawn(server.program!, args, { env: { ...env, MINIO_BROWSER: 'off' }, stdio: 'ignore' })
  const isReady = () =>
    fetch(`http://127.0.0.1:${server.port}/minio/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(isReady, true, 60_000)
}

async function killServer(): Promise<void> {
  const { child } = server
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

function sendBy(secretAccessKey = SECRET, accessKeyId = USER) {
  const credentials = { accessKeyId, secretAccessKey, region: 'us-east-1' }
  const endpoint = `http://127.0.0.1:${server.port}`
  return createS3Client({ world: realWorld, upstream, endpoint, bucket: BUCKET, credentials })
}
async function makeBucket(): Promise<void> {
  const reply = await sendBy()('PUT', '')
  assert.equal(reply.status, 200, String(await reply.read(10_000)))
}
const storeBy = (...login: Parameters<typeof sendBy>) => createS3Archive({ send: sendBy(...login), bucket: BUCKET })

const archiveIn = (store: ArchiveStore, on = database) =>
  openLedgerArchive(
    {
      world,
      log: silentLog,
      config: { TOLLGATE_RETENTION_LEDGER_MONTHS: STAY, TOLLGATE_RETENTION_USAGE_MONTHS: STAY },
    },
    { database: on, store, key: KEY },
  )
const transfers = async () => {
  const [row] = await database.query<{ count: bigint }>({ text: 'select count(*) as count from transfer' })
  return Number(row?.count)
}
const problemsOf = async (on = database) => {
  const usageSinceMs = monthStart(dayOfMs(nowMs), 1 - STAY) * DAY_MS
  return (await verifyLedger(on, storedCatalogs(on), { key: KEY, usageSinceMs })).problems
}

/** Tries to archive what is due, and answers what the operator is told of the month. */
async function tried(store: ArchiveStore): Promise<string> {
  const archive = archiveIn(store)
  await archive.run()
  const { months, due, waitsFor } = await archive.state()
  const [row] = months
  return row?.archivedAt ? 'archived' : (row?.failure ?? `${due} ${waitsFor}`)
}

async function checked(store: ArchiveStore, on = database): Promise<string> {
  const archive = archiveIn(store, on)
  await archive.check(month)
  await archive.stop()
  return (await archive.state()).months[0]?.problems.join(' ') ?? 'nothing'
}

before(async () => {
  const made = await goTool(SERVER)
  if ('missing' in made) {
    console.log(`The archive in S3 was not tried: ${made.missing}`)
    server.missing = made.missing
    return
  }
  server.program = made.program
  server.port = await freePort()
  await startServer(join(directory, 'data'))
  await makeBucket()
  const audit = createAudit({ database, world: realWorld })
  const changes = createChanges(database, world)
  const catalog = await openCatalog({ database, changes, audit, initial: SMALL_CATALOG })
  const ledger = createLedger({ database, world, processId: 'p1', graceMs: 0, leases: false })
  await ledger.sweep()
  await maintainUsage(database, world, { usageMonths: 12, tries: 5 })
  await database.query({ text: `insert into account (id, name) values ('acc_s3', 'acc_s3')` })
  await ledger.grant({ account: 'acc_s3', amount: 5_000_000n, note: 'for the month', actor: 'olive' })
  await atOnce(CALLS, () => callOnce({ ledger, catalog, world }, 'acc_s3'))
  await ledger.idle()
  await setBack(database, Math.floor((realWorld.nowMs() - nowMs) / 3_600_000))
  await sumUsage(database)
  nowMs = monthStart(first, STAY + 1) * DAY_MS + 4 * DAY_MS
  await maintainUsage(database, world, { usageMonths: STAY, tries: 5 })
  await database.query({ text: `insert into verification (id, whole, ended_at) values ('1', true, now())` })
})

const story: ReadonlyArray<readonly [string, () => Promise<void>]> = [
  [
    'what the server refuses is said by its code, and the month stays',
    async () => {
      assert.equal(await tried(storeBy('wrong')), answered('403 SignatureDoesNotMatch'))
      assert.equal(await tried(storeBy(SECRET, 'nobody')), answered('403 InvalidAccessKeyId'))
      const away = createS3Archive({ send: sendBy(), bucket: 'elsewhere' })
      assert.equal(await away.get('ledger/none'), undefined)
      assert.equal(await transfers(), CALLS + 1)
    },
  ],
  [
    'a server that is killed between two files is waited for, and nothing is lost',
    async () => {
      const store = storeBy()
      const dying: ArchiveStore = {
        ...store,
        async put(name, bytes) {
          if (name.endsWith('manifest.json')) await killServer()
          await store.put(name, bytes)
        },
      }
      assert.match(await tried(dying), /^The store of the bucket archive could not be reached \(.+\)\.$/)
      assert.equal(await transfers(), CALLS + 1)
      await startServer(join(directory, 'data'))
    },
  ],
  [
    'a disk of the server that is full is said, and the month stays',
    async () => {
      const disk = temporary('tollgate-s3-full-')
      try {
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m,mode=0755', 'tmpfs', disk], { stdio: 'pipe' })
      } catch {
        console.log('The full disk was not tried: this user may not mount a file system.')
        return
      }
      try {
        await killServer()
        await startServer(disk)
        await makeBucket()
        const full = async () =>
          execFileSync('sh', ['-c', `head -c 64m /dev/zero > ${join(disk, 'filler')} 2> /dev/null || true`])
        await full()
        assert.match(await tried(storeBy()), /^The store of the bucket archive answered 507 \w+\.$/)
        assert.equal(await transfers(), CALLS + 1)
      } finally {
        await killServer()
        execFileSync('umount', ['-l', disk])
        await startServer(join(directory, 'data'))
      }
    },
  ],
  [
    'a closed month is written, proved and found in a restored database',
    async () => {
      assert.equal(await tried(storeBy()), 'archived')
      // The grant stays.
      assert.equal(await transfers(), 1)
      assert.deepEqual([await problemsOf(), await checked(storeBy())], [[], ''])
      const other = await freshDatabase()
      const restored = other.open({ connectionsMax: 2 })
      const bytes = new PassThrough()
      await Promise.all([
        writeBackup([{ name: 'control', database: database }], bytes),
        readBackup([{ name: 'control', database: restored }], bytes),
      ])
      assert.deepEqual([await problemsOf(restored), await checked(storeBy(), restored)], [[], ''])
      await restored.close()
      await other.drop()
    },
  ],
  [
    'a changed, a removed file and a bucket that is gone are found',
    async () => {
      const rows = await database.query<{ folder: string }>({
        text: 'select folder from ledger_archive where archived_at is not null',
      })
      const name = `${rows[0]?.folder}/00001.parquet`
      const store = storeBy()
      const bytes = (await store.get(name)) ?? assert.fail(name)
      const changed = Buffer.from(bytes)
      changed.writeUInt8(changed.readUInt8(100) ^ 1, 100)
      await store.put(name, changed)
      assert.match(await checked(store), /its digest differs/)
      const gone = await sendBy()('DELETE', name)
      await gone.read(10_000)
      assert.equal(await checked(store), expectMissing(name))
      await store.put(name, bytes)
      assert.equal(await checked(store), '')
      await killServer()
      await startServer(join(directory, 'empty'))
      assert.equal(await checked(storeBy()), `It could not be read: ${answered('404 NoSuchBucket')}`)
      await killServer()
      await startServer(join(directory, 'data'))
      assert.equal(await checked(storeBy()), '')
    },
  ],
  [
    'results are kept there too: a large one in parts, read in ranges, removed when it is over',
    async () => {
      const send = sendBy()
      const assets = createS3Store({ world, upstream, endpoint: '', bucket: BUCKET, credentials: NONE }, send)
      const facts = { extension: 'mp4' as const, expiresMs: world.nowMs() + 3_600_000 }
      const pieces = Array.from({ length: 20 }, (_, at) => Buffer.alloc(1_048_577, at))
      const { name, bytes } = await putAsset(assets, pieces, facts)
      const whole = Buffer.concat(pieces)
      const asset = (await assets.open(name)) ?? assert.fail(name)
      assert.equal(asset.bytes, bytes)
      const read: Buffer[] = []
      for await (const chunk of asset.read(1_000_000, 12_000_000)) read.push(chunk)
      assert.ok(Buffer.concat(read).equals(whole.subarray(1_000_000, 12_000_001)))
      const aborted = await assets.create(facts)
      for (const piece of pieces) await aborted.write(piece)
      await aborted.abort()
      nowMs += 5 * 3_600_000
      assert.equal(await assets.sweep(), 1)
      assert.equal(await assets.open(name), undefined)
    },
  ],
]
const NONE = { accessKeyId: '', secretAccessKey: '', region: '' }
const answered = (what: string) => `The store of the bucket ${BUCKET} answered ${what}.`
const expectMissing = (name: string) =>
  `${name} is missing in the bucket ${BUCKET}. The files have 0 accounts, but 1 have checkpoints.`

for (const [promise, run] of story)
  test(promise, async (t) => {
    if (server.missing) return t.skip(server.missing)
    await run()
  })
test('the server ends', killServer)
