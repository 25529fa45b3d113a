import { createHash, createHmac } from 'node:crypto'
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import type http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, assert, listen, test } from '../../test/kit.ts'
import { createS3Archive } from '../extensions/archive/store.ts'
import { createS3Client, createS3Store } from '../extensions/s3/s3.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { createUpstream } from '../upstream/exchange.ts'
import { openDiskStore } from './open.ts'
import { type AssetStore, newAssetName, putAsset, readAssetName } from './store.ts'

const MB = 1_048_576
const HOUR_MS = 3_600_000
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const closers: Array<() => unknown> = []
after(async () => {
  for (const close of closers) await close()
})

/** A clock that the test holds. */
function heldWorld(): World & { nowAt: number } {
  const world = { ...realWorld, nowAt: 1_800_000_000_000, nowMs: () => world.nowAt }
  return world
}

// ---- A small S3: it keeps objects in memory and lets in only what is signed, by its own reckoning of the signature.

function isSigned(request: http.IncomingMessage, body: Buffer): boolean {
  const [, credential = '', names = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
      request.headers.authorization ?? '',
    ) ?? []
  if (request.headers['x-amz-content-sha256'] !== createHash('sha256').update(body).digest('hex')) return false
  for (const needed of ['host', 'x-amz-content-sha256', 'x-amz-date'])
    if (!names.split(';').includes(needed)) return false
  const [path = '', query = ''] = request.url!.split('?')
  const canonicalQuery = query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
    .sort()
    .join('&')
  const lines = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
  const canonical = `${request.method}\n${path}\n${canonicalQuery}\n${lines.join('')}\n${names}\n${request.headers['x-amz-content-sha256']}`
  const toSign = `AWS4-HMAC-SHA256\n${request.headers['x-amz-date']}\n${credential}\n${createHash('sha256').update(canonical).digest('hex')}`
  let key: Buffer = Buffer.from(`AWS4${SECRET}`)
  for (const part of credential.split('/')) key = createHmac('sha256', key).update(part).digest()
  return createHmac('sha256', key).update(toSign).digest('hex') === signature
}

interface Bucket {
  url: string
  objects: Map<string, Buffer>
  uploads: Map<string, Map<number, Buffer>>
  types: Map<string, string>
  refused: number
  broken: boolean
}

async function startS3(): Promise<Bucket> {
  const bucket: Bucket = {
    url: '',
    objects: new Map(),
    uploads: new Map(),
    types: new Map(),
    refused: 0,
    broken: false,
  }
  const server = await listen(async (request, response) => {
    const body = await buffer(request)
    if (!isSigned(request, body)) {
      bucket.refused++
      return response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
    }
    if (bucket.broken) return response.writeHead(500).end('<Error><Code>InternalError</Code></Error>')
    const url = new URL(request.url!, 'http://s3')
    const key = decodeURIComponent(url.pathname.replace(/^\/pictures\//, ''))
    const query = url.searchParams
    const upload = bucket.uploads.get(query.get('uploadId') ?? '')
    const object = bucket.objects.get(key)
    if (request.method === 'POST' && query.has('uploads')) {
      bucket.types.set(key, request.headers['content-type'] ?? '')
      bucket.uploads.set(`up&${bucket.uploads.size}`, new Map())
      return response.end(
        `<InitiateMultipartUploadResult><UploadId>up&amp;${bucket.uploads.size - 1}</UploadId></InitiateMultipartUploadResult>`,
      )
    }
    if (request.method === 'PUT' && upload) {
      upload.set(Number(query.get('partNumber')), body)
      return response.writeHead(200, { etag: `"part-${query.get('partNumber')}"` }).end()
    }
    if (request.method === 'POST' && upload) {
      const numbers = [...String(body).matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>"part-\1"<\/ETag>/g)].map(
        ([, n]) => Number(n),
      )
      bucket.objects.set(key, Buffer.concat(numbers.map((n) => upload.get(n)!)))
      bucket.uploads.delete(query.get('uploadId')!)
      return response.end('<CompleteMultipartUploadResult/>')
    }
    if (request.method === 'DELETE' && query.has('uploadId')) {
      bucket.uploads.delete(query.get('uploadId')!)
      return response.writeHead(204).end()
    }
    if (request.method === 'PUT') {
      bucket.objects.set(key, body)
      bucket.types.set(key, request.headers['content-type'] ?? '')
      return response.end()
    }
    if (request.method === 'DELETE') {
      bucket.objects.delete(key)
      return response.writeHead(204).end()
    }
    if (query.get('list-type') === '2') {
      const prefix = query.get('prefix')!
      const keys = [...bucket.objects.keys()].filter((name) => name.startsWith(prefix)).sort()
      const groups = new Set(keys.map((name) => name.slice(0, name.indexOf('/', prefix.length) + 1)))
      const found = query.has('delimiter') ? [...groups] : keys
      // Pages of two, so that the reader has to turn them; the token is where to go on, and needs escaping.
      const from = query.get('continuation-token')?.slice(3) ?? ''
      const page = found.filter((name) => name > from).slice(0, 2)
      const more =
        page.at(-1) !== found.at(-1) ? `<NextContinuationToken>a+&amp;${page.at(-1)}</NextContinuationToken>` : ''
      const entry = (name: string) =>
        query.has('delimiter')
          ? `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`
          : `<Contents><Key>${name}</Key></Contents>`
      return response.end(
        `<ListBucketResult><Prefix>${prefix}</Prefix>${page.map(entry).join('')}${more}</ListBucketResult>`,
      )
    }
    if (!object)
      return response
        .writeHead(404)
        .end(request.method === 'HEAD' ? undefined : '<Error><Code>NoSuchKey</Code></Error>')
    if (request.method === 'HEAD') return response.writeHead(200, { 'content-length': object.length }).end()
    if (!request.headers.range) return response.end(object)
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range)!
    return response.writeHead(206).end(object.subarray(Number(start), Number(end) + 1))
  })
  closers.push(server.close)
  bucket.url = server.url
  return bucket
}

function s3Store(world: World, bucket: Bucket, secretAccessKey = SECRET): AssetStore {
  const upstream = createUpstream({ world: realWorld })
  closers.unshift(() => upstream.close())
  return createS3Store({
    world,
    upstream,
    endpoint: bucket.url,
    bucket: 'pictures',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey, region: 'eu-central-1' },
    prefix: '/results/',
  })
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-assets-'))
  closers.push(() => rm(directory, { recursive: true, force: true }))
  return directory
}

async function bytesOf(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

// ---- What both stores promise.

const stores: Record<string, (world: World) => Promise<AssetStore>> = {
  disk: async (world) => openDiskStore({ world, directory: join(await temporaryDirectory(), 'assets') }),
  S3: async (world) => s3Store(world, await startS3()),
}

for (const [kind, make] of Object.entries(stores)) {
  test(`${kind}: what was put can be read, whole and in ranges, and is gone when removed`, async () => {
    const world = heldWorld()
    const store = await make(world)
    const file = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 131) & 255))
    const facts = { extension: 'png' as const, expiresMs: world.nowMs() + HOUR_MS }
    const ref = await putAsset(store, [file.subarray(0, 1000), file.subarray(1000)], facts)
    assert.deepEqual({ ...ref, name: '' }, { ...facts, name: '', bytes: file.length })
    assert.match(ref.name, /^[0-9a-z]{42}\.png$/)
    for (const [start, end] of [
      [0, file.length - 1],
      [0, 0],
      [1000, 99_999],
      [file.length - 1, file.length - 1],
    ] as const) {
      const asset = await store.open(ref.name)
      assert.equal(asset?.bytes, file.length)
      assert.ok((await bytesOf(asset!.read(start, end))).equals(file.subarray(start, end + 1)))
    }
    await (await store.open(ref.name))?.close()
    await store.remove(ref.name)
    await store.remove(ref.name)
    assert.equal(await store.open(ref.name), undefined)
  })

  test(`${kind}: a large file arrives whole, and one that is aborted leaves nothing`, async () => {
    const world = heldWorld()
    const store = await make(world)
    const facts = { extension: 'mp4' as const, expiresMs: world.nowMs() + HOUR_MS }
    const piece = Buffer.from(Array.from({ length: 700_001 }, (_, i) => (i * 17) & 255))
    const writer = await store.create(facts)
    for (let i = 0; i < 30; i++) await writer.write(piece)
    const ref = await writer.commit()
    const asset = await store.open(ref.name)
    const whole = await bytesOf(asset!.read(0, asset!.bytes - 1))
    assert.equal(whole.length, 30 * piece.length)
    assert.equal(
      createHash('sha256').update(whole).digest('hex'),
      createHash('sha256')
        .update(Buffer.concat(new Array(30).fill(piece)))
        .digest('hex'),
    )
    const other = await store.create(facts)
    for (let i = 0; i < 15; i++) await other.write(piece)
    await other.abort()
    await other.abort()
  })

  test(`${kind}: a name that is none of ours opens nothing`, async () => {
    const store = await make(heldWorld())
    const real = newAssetName(realWorld, { extension: 'png', expiresMs: 1 })
    for (const name of [
      '',
      '.',
      '..',
      '../../etc/passwd',
      'x.png',
      '/etc/passwd',
      real,
      real.replace('.png', '.exe'),
      `${real}/..`,
      real.replace('.png', '.png\0'),
    ])
      assert.equal(await store.open(name), undefined)
    await store.remove('../../x')
  })

  test(`${kind}: the sweep deletes what has expired and nothing else`, async () => {
    const world = heldWorld()
    const store = await make(world)
    const names: string[] = []
    for (const hours of [1, 1, 1, 2, 3, 4, 30])
      names.push(
        (await putAsset(store, [Buffer.from('x')], { extension: 'jpg', expiresMs: world.nowMs() + hours * HOUR_MS }))
          .name,
      )
    assert.equal(await store.sweep(), 0)
    world.nowAt += 4 * HOUR_MS
    assert.equal(await store.sweep(), 3)
    const left: boolean[] = []
    for (const name of names) {
      const asset = await store.open(name)
      left.push(asset !== undefined)
      await asset?.close()
    }
    assert.deepEqual(left, [false, false, false, false, false, true, true])
    assert.equal(await store.sweep(), 0)
  })
}

test('names are unguessable, and say when they expire', () => {
  const names = new Set(
    Array.from({ length: 1000 }, () => newAssetName(realWorld, { extension: 'png', expiresMs: 1_800_000_000_123 })),
  )
  assert.equal(names.size, 1000)
  for (const name of names) assert.deepEqual(readAssetName(name), { extension: 'png', expiresMs: 1_800_000_000_123 })
})

test('disk: directories are private, files are hashed, unfinished ones are invisible and swept after a crash', async () => {
  const world = heldWorld()
  const root = join(await temporaryDirectory(), 'assets')
  const store = await openDiskStore({ world, directory: root })
  const facts = { extension: 'png' as const, expiresMs: world.nowMs() + HOUR_MS }
  const writer = await store.create(facts)
  await writer.write(Buffer.from('half'))
  const hours = (await readdir(root)).filter((name) => name !== 'unfinished')
  assert.deepEqual(hours, [])
  await writer.abort()
  assert.deepEqual(await readdir(join(root, 'unfinished')), [])
  const { name } = await putAsset(store, [Buffer.from('x')], facts)
  const paths = await readdir(root, { recursive: true })
  assert.ok(!paths.some((path) => path.includes(name.slice(10, 42))), 'no path tells a name')
  for (const path of paths) {
    assert.equal((await stat(join(root, path))).mode & 0o077, 0, `${path} is open to others`)
  }
  const left = join(root, 'unfinished', 'left-by-a-crash')
  await writeFile(left, 'x')
  await utimes(left, world.nowMs() / 1000 - 7200, world.nowMs() / 1000 - 7200)
  assert.equal(await store.sweep(), 1)
})

test('disk: a place that cannot be written is a 503, not a crash', async () => {
  const root = join(await temporaryDirectory(), 'assets')
  const store = await openDiskStore({ world: realWorld, directory: root })
  await rm(root, { recursive: true })
  await assert.rejects(putAsset(store, [Buffer.from('x')], { extension: 'png', expiresMs: Date.now() }), {
    kind: 'unavailable',
  })
})

test('S3: objects carry their type, a wrong secret gets nowhere, and an error of the store is a 503', async () => {
  const world = heldWorld()
  const bucket = await startS3()
  const store = s3Store(world, bucket)
  const facts = { extension: 'webp' as const, expiresMs: world.nowMs() + HOUR_MS }
  await putAsset(store, [Buffer.from('x')], facts)
  assert.deepEqual([...bucket.types.values()], ['image/webp'])
  assert.match([...bucket.objects.keys()][0]!, /^results\/\d+\/[0-9a-f]{64}$/)
  assert.equal(bucket.refused, 0)
  await assert.rejects(putAsset(s3Store(world, bucket, 'wrong'), [Buffer.from('x')], facts), { kind: 'unavailable' })
  assert.equal(bucket.refused, 1)
  const large = await store.create(facts)
  await large.write(Buffer.alloc(9 * MB))
  assert.equal(bucket.uploads.size, 1)
  bucket.broken = true
  await assert.rejects(large.commit(), { kind: 'unavailable' })
  bucket.broken = false
  await large.abort()
  assert.deepEqual([bucket.uploads.size, bucket.objects.size], [0, 1])
})

test('S3: the archive of the ledger is read as it was written, and says what the store answers', async () => {
  const bucket = await startS3()
  const upstream = createUpstream({ world: realWorld })
  closers.unshift(() => upstream.close())
  const archiveIn = (secretAccessKey: string, endpoint = bucket.url) => {
    const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey, region: 'eu-central-1' }
    const send = createS3Client({ world: realWorld, upstream, endpoint, bucket: 'pictures', credentials })
    return createS3Archive({ send, bucket: 'pictures' })
  }
  const archive = archiveIn(SECRET)
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7) & 255))
  await archive.put('ledger/2026-01-0a1b/00001.parquet', bytes)
  assert.ok((await archive.get('ledger/2026-01-0a1b/00001.parquet'))?.equals(bytes))
  assert.equal(await archive.get('ledger/2026-01-0a1b/00002.parquet'), undefined)
  const refused = { message: 'The store of the bucket pictures answered 403 SignatureDoesNotMatch.' }
  await assert.rejects(archiveIn('wrong').put('x', bytes), refused)
  await assert.rejects(archiveIn('wrong').get('x'), refused)
  await assert.rejects(archiveIn(SECRET, 'http://127.0.0.1:9').put('x', bytes), {
    message: /^The store of the bucket pictures could not be reached \(.*\)\.$/,
  })
  bucket.broken = true
  await assert.rejects(archive.get('x'), { message: 'The store of the bucket pictures answered 500 InternalError.' })
})
