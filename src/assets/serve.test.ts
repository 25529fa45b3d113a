import { assert, before, temporary, test } from '../../test/kit.ts'
import { type AssetRequest, serveAsset } from '../api/assets.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { openDiskStore } from './open.ts'
import {
  type AssetHost,
  type AssetSigner,
  type AssetStore,
  createAssetHost,
  createAssetSigner,
  type HostedAsset,
} from './store.ts'

const FILE = Buffer.from('0123456789')
let nowMs = 1_800_000_000_000
const world: World = { ...realWorld, nowMs: () => nowMs }
let store: AssetStore
let signer: AssetSigner
let host: AssetHost
let asset: HostedAsset

const directory = temporary('tollgate-serve-')
before(async () => {
  store = await openDiskStore({ world, directory })
  signer = createAssetSigner({ key: Buffer.alloc(32, 7), publicUrl: () => 'https://gw.example' })
  host = createAssetHost({ store, signer, world, lifetimeMs: 3_600_000 })
  asset = await host.store([FILE.subarray(0, 4), FILE.subarray(4)], 'jpeg')
})

function requestOf(url: string, over: Partial<AssetRequest> = {}): AssetRequest {
  const { pathname, searchParams } = new URL(url)
  return {
    method: 'GET',
    name: pathname.replace('/assets/', ''),
    exp: searchParams.get('exp') ?? undefined,
    sig: searchParams.get('sig') ?? undefined,
    ...over,
  }
}

async function get(url: string, over: Partial<AssetRequest> = {}) {
  const { status, headers, body: stream } = await serveAsset({ store, signer, world }, requestOf(url, over))
  let body: string | undefined
  if (stream) {
    body = ''
    for await (const chunk of stream) body += chunk
  }
  return { status, headers, body }
}

test('an address is absolute, signed, expires, and serves the file with a safe type', async () => {
  assert.match(asset.url, /^https:\/\/gw\.example\/assets\/[0-9a-z]{42}\.jpg\?exp=1800003600&sig=[\w-]{43}$/)
  const { status, headers, body } = await get(asset.url)
  assert.equal(status, 200)
  assert.equal(body, '0123456789')
  assert.equal(headers['content-type'], 'image/jpeg')
  assert.equal(headers['content-length'], '10')
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.equal(headers['content-disposition'], 'inline')
  assert.equal(headers['cache-control'], 'private, max-age=3600')
  assert.equal(headers['accept-ranges'], 'bytes')
})

test('HEAD tells the same and sends nothing', async () => {
  const { status, headers, body } = await get(asset.url, { method: 'HEAD' })
  assert.equal(status, 200)
  assert.equal(headers['content-length'], '10')
  assert.equal(body, undefined)
})

test('a range answers with its part, 416 beyond the end, and the whole file for what is no single range', async () => {
  const cases: ReadonlyArray<readonly [string, number, string | undefined, string | undefined]> = [
    ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
    ['bytes=4-', 206, '456789', 'bytes 4-9/10'],
    ['bytes=-2', 206, '89', 'bytes 8-9/10'],
    ['bytes=-99', 206, '0123456789', 'bytes 0-9/10'],
    ['bytes=9-99', 206, '9', 'bytes 9-9/10'],
    ['bytes=10-', 416, undefined, 'bytes */10'],
    ['bytes=-0', 416, undefined, 'bytes */10'],
    ['bytes=5-4', 200, '0123456789', undefined],
    ['bytes=0-1,3-4', 200, '0123456789', undefined],
    ['bytes=-', 200, '0123456789', undefined],
    ['items=0-1', 200, '0123456789', undefined],
    ['bytes=99999999999999999999-', 200, '0123456789', undefined],
  ]
  for (const [range, status, body, contentRange] of cases) {
    const answer = await get(asset.url, { range })
    assert.deepEqual([answer.status, answer.body, answer.headers['content-range']], [status, body, contentRange], range)
  }
  const { etag } = (await get(asset.url)).headers
  assert.equal((await get(asset.url, { range: 'bytes=0-3', ifRange: etag })).status, 206)
  assert.equal((await get(asset.url, { range: 'bytes=0-3', ifRange: '"other"' })).status, 200)
  assert.equal((await get(asset.url, { ifNoneMatch: `"x", W/${etag}` })).status, 304)
})

test('an address that was changed in any character, or has no signature, finds nothing', async () => {
  const { search, pathname } = new URL(asset.url)
  const missing = { kind: 'not_found', message: 'There is no file at this address.' }
  for (const part of [pathname, search]) {
    const from = part === pathname ? '/assets/'.length : 0
    for (let at = from; at < part.length; at++) {
      const changed = `${part.slice(0, at)}${part[at] === 'k' ? 'Q' : 'k'}${part.slice(at + 1)}`
      await assert.rejects(get(asset.url.replace(part, changed)), missing, changed)
    }
  }
  await assert.rejects(get(asset.url, { sig: undefined }), missing)
  await assert.rejects(get(asset.url, { exp: '9999999999' }), missing)
  await assert.rejects(get(asset.url, { sig: '' }), missing)
  const other = createAssetSigner({ key: Buffer.alloc(32, 8), publicUrl: () => 'https://gw.example' })
  await assert.rejects(get(other.urlOf(asset.name)), missing)
})

test('after its expiry an address says so, before and after the sweep', async () => {
  const old = await host.store([FILE], 'png')
  nowMs += 3_600_000
  await assert.rejects(get(old.url), { kind: 'not_found', message: /expired/ })
  nowMs += 3_600_000
  await store.sweep()
  await assert.rejects(get(old.url), { kind: 'not_found', message: /expired/ })
  nowMs -= 7_200_000
})

test('a removed file is gone at once, and an upload is there only when it is complete', async () => {
  const gone = await host.store([FILE], 'webp')
  await gone.remove()
  await assert.rejects(get(gone.url), { kind: 'not_found' })
  const upload = await host.upload('mp4')
  await upload.write(FILE)
  await upload.write(FILE)
  const video = await upload.commit()
  const { headers, body } = await get(video.url)
  assert.equal(headers['content-type'], 'video/mp4')
  assert.equal(body, '01234567890123456789')
})
