// Builds the console into console/dist. `--if-stale` does nothing when the sources and the locked dependencies are
// those of the last build, so that every start and every test run may call it.
import { createHash } from 'node:crypto'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { FROM_TABLE } from './tables.ts'

const home = import.meta.dirname
const dist = join(home, 'dist')
const record = join(dist, '.sources')

export async function buildConsole(options: { ifStale: boolean; say: (line: string) => void }): Promise<void> {
  const sources = await digestOfSources()
  if (options.ifStale && (await readFile(record, 'utf8').catch(() => '')) === sources) return
  const started = performance.now()
  const { build } = await import('vite')
  // Built beside and put in place at once, so that nobody reads half a build, also when several processes build.
  const fresh = `${dist}-${process.pid}`
  try {
    await build({ configFile: join(home, 'vite.config.ts'), logLevel: 'error', build: { outDir: fresh } })
    await compressFiles(fresh)
    await writeFile(join(fresh, '.sources'), sources)
    // Another process was faster: whoever reads its files now would find none for a moment.
    if ((await readFile(record, 'utf8').catch(() => '')) === sources) return
    await rename(dist, `${fresh}-before`).catch(() => undefined)
    await rename(fresh, dist).catch(async (error: unknown) => {
      if ((await readFile(record, 'utf8').catch(() => '')) !== sources) throw error
    })
  } finally {
    await rm(fresh, { recursive: true, force: true })
    await rm(`${fresh}-before`, { recursive: true, force: true })
  }
  options.say(`console: built in ${((performance.now() - started) / 1000).toFixed(1)} s`)
}

const COMPRESSED = /\.(?:html|js|css|svg|json|webmanifest)$/
const SMALL_BYTES = 1024
// The highest quality takes seconds for the whole console; this one a tenth of that, for 5 % more bytes.
const QUALITY = 9

/** Here and not by the server, whose processor belongs to calls. */
async function compressFiles(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !COMPRESSED.test(entry.name)) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = await readFile(path)
    if (bytes.length < SMALL_BYTES) continue
    const params = { [constants.BROTLI_PARAM_QUALITY]: QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
    await writeFile(`${path}.br`, brotliCompressSync(bytes, { params }))
    await writeFile(`${path}.gz`, gzipSync(bytes, { level: 9 }))
  }
}

/** Tests do not end up in the page, so they do not make it stale. */
async function digestOfSources(): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(FROM_TABLE))
  const files = ['src', 'public'].map((folder) => readdir(join(home, folder), { recursive: true, withFileTypes: true }))
  const found = (await Promise.all(files))
    .flat()
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
  const others = ['build.ts', 'index.html', 'vite.config.ts', '../src/meter/kind.ts', '../package-lock.json'].map(
    (name) => join(home, name),
  )
  for (const path of [...found, ...others].sort()) {
    hash.update(`${relative(home, path)}\0`)
    hash.update(await readFile(path))
  }
  return hash.digest('hex')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildConsole({ ifStale: process.argv.includes('--if-stale'), say: (line) => process.stdout.write(`${line}\n`) })
}
