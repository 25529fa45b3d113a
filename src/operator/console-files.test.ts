import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { assert, test } from '../../test/kit.ts'
import { rawGet } from '../../test/raw-get.ts'
import { createServer } from '../api/server/server.ts'
import { silentLog } from '../kernel/log.ts'
import { realWorld } from '../kernel/world.ts'
import { mountConsoleFiles } from './console-files.ts'

const SCRIPT = 'export const words = "the same words again and again"\n'.repeat(100)

async function served(t: { after(run: () => unknown): void }, built = true) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-console-'))
  const app = createServer({ world: realWorld, log: silentLog, strictErrors: false })
  t.after(async () => {
    await app.close()
    await rm(folder, { recursive: true, force: true })
  })
  mountConsoleFiles(app, { folder, https: false })
  const build = async () => {
    await mkdir(join(folder, 'assets'))
    await writeFile(join(folder, 'index.html'), '<!doctype html><title>Tollgate</title>')
    await writeFile(join(folder, 'assets', 'app-1.js'), SCRIPT)
    await writeFile(join(folder, 'assets', 'app-1.js.br'), brotliCompressSync(SCRIPT))
    await writeFile(join(folder, 'assets', 'app-1.js.gz'), gzipSync(SCRIPT))
    await writeFile(join(folder, '.sources'), 'a digest')
  }
  if (built) await build()
  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  const get = (path: string, encoding?: string) =>
    rawGet(address + path, encoding === undefined ? {} : { 'accept-encoding': encoding })
  return { get, build }
}

test('scripts come in the smallest coding that the browser takes', async (t) => {
  const { get } = await served(t)
  const cases = [
    ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
    ['gzip, deflate', 'gzip', gunzipSync],
    ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
    ['identity', undefined, (bytes: Buffer) => bytes],
    [undefined, undefined, (bytes: Buffer) => bytes],
  ] as const
  for (const [accepted, coding, open] of cases) {
    const answer = await get('/console/assets/app-1.js', accepted)
    assert.equal(answer.headers['content-encoding'], coding, `for ${accepted}`)
    assert.equal(answer.headers.vary, 'accept-encoding')
    assert.equal(open(answer.bytes).toString(), SCRIPT)
    assert.match(String(answer.headers['cache-control']), /immutable/)
  }
})

test('every address below /console is a page, also with a dot in it, but a missing file is missing', async (t) => {
  const { get } = await served(t)
  for (const url of ['/console', '/console/', '/console/login', '/console/a/acc_1/models/alpha-5.4']) {
    const page = await get(url, 'br')
    assert.equal(page.status, 200, url)
    assert.match(page.text, /<title>Tollgate/)
    assert.equal(page.headers['cache-control'], 'no-store')
    assert.match(String(page.headers['content-security-policy']), /default-src 'none'; script-src 'self';/)
  }
  for (const url of ['/console/assets/gone-2.js', '/console/assets/..%2f.sources', '/console/api/nothing'])
    assert.equal((await get(url)).status, 404, url)
  assert.match((await get('/console/.sources')).text, /<title>/, 'what the build notes for itself is not served')
})

test('a console that is still being built says so, and is there when it is', async (t) => {
  const { get, build } = await served(t, false)
  const early = await get('/console')
  assert.deepEqual([early.status, early.headers['retry-after']], [503, '3'])
  await build()
  assert.equal((await get('/console')).status, 200)
})
