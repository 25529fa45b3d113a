// Makes `build/`, the inside of the npm package: the program as JavaScript, because Node reads no TypeScript below
// node_modules, with the console built and everything that is read at run time. `npm run build && npm pack` makes the
// package.
import { execFileSync } from 'node:child_process'
import { cp, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const BUILD = join(ROOT, 'build')

execFileSync(process.execPath, [join(ROOT, 'console/build.ts'), '--if-stale'], { stdio: 'inherit' })
await rm(BUILD, { recursive: true, force: true })
for await (const path of glob('{src,sandbox}/**/*.*', { cwd: ROOT })) {
  if (/\.(?:test|long|d)\.ts$/.test(path)) continue
  const target = join(BUILD, path.replace(/\.ts$/, '.js'))
  await mkdir(dirname(target), { recursive: true })
  if (!path.endsWith('.ts')) await cp(join(ROOT, path), target)
  else {
    const plain = stripTypeScriptTypes(await readFile(join(ROOT, path), 'utf8'))
    await writeFile(target, plain.replaceAll(/(['"`])(\.{1,2}\/[^'"`\n]*)\.ts\1/g, '$1$2.js$1'))
  }
}
const READ_AT_RUN_TIME = [
  'package.json',
  'docs/guides',
  'docs/reference',
  'console/dist',
  'console/public',
  'console/src/styles',
]
for (const path of READ_AT_RUN_TIME) await cp(join(ROOT, path), join(BUILD, path), { recursive: true })
