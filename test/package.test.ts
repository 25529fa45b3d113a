// The npm package: packed as for a release, and run by npx where nothing else of the repository is.
import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { freshDatabase } from './database.ts'
import { assert, SECRET, temporary, test, until } from './gateway.ts'
import { runProgram } from './sdk/cache.ts'

const ROOT = resolve(import.meta.dirname, '..')
const folder = temporary('tollgate-package-')

async function done(program: string, args: readonly string[], cwd: string): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: folder }
  const { code, out, err } = await runProgram(program, args, { cwd, env, timeoutMs: 120_000 })
  assert.equal(code, 0, `${program} ${args.join(' ')}: ${out}\n${err}`)
  return out
}

/** What `npm install` would put beside it: what the lockfile has, without what is only for development. */
async function linkPackages(modules: string): Promise<void> {
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>
  }
  const there = new Set(await readdir(join(ROOT, 'node_modules'), { recursive: false }))
  for (const [path, { dev }] of Object.entries(packages)) {
    const name = path.replace(/^node_modules\//, '')
    if (dev || path === '' || name.includes('node_modules/') || !there.has(name.split('/')[0] ?? '')) continue
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  }
}

test('the packed package runs by npx in an empty folder, and serves the API, the console and the documentation', async () => {
  await done(process.execPath, [join(ROOT, 'bin/build.ts')], ROOT)
  await done('npm', ['pack', '--pack-destination', folder], ROOT)
  const [tarball = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'))
  const room = join(folder, 'room')
  const modules = join(room, 'node_modules')
  const home = join(modules, 'tollgate')
  await mkdir(join(modules, '.bin'), { recursive: true })
  await mkdir(home)
  await done('tar', ['-xzf', join(folder, tarball), '-C', home, '--strip-components=1'], folder)
  assert.deepEqual((await readdir(home)).sort(), ['LICENSE', 'README.md', 'bin', 'build', 'package.json'])
  await writeFile(join(room, 'package.json'), '{}')
  await symlink(join('..', 'tollgate', 'bin', 'tollgate.js'), join(modules, '.bin', 'tollgate'))
  await linkPackages(modules)

  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  assert.equal((await done('npx', ['--offline', 'tollgate', 'version'], room)).trim(), version)

  const fresh = await freshDatabase()
  const child = spawn('npx', ['--offline', 'tollgate', 'serve'], {
    cwd: room,
    // A group of its own, to be ended with all that npx has started.
    detached: true,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      PORT: '0',
      TOLLGATE_DATA: join(folder, 'data'),
      TOLLGATE_SECRET: SECRET,
      DATABASE_URL: fresh.url,
    },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => {
      said += piece
    })
  const ended = new Promise((end) => child.once('close', end))
  try {
    const ADDRESS = /http:\/\/(?:127\.0\.0\.1|localhost):\d+/
    const url = ADDRESS.exec(await until(() => said, ADDRESS))?.[0]
    for (const path of ['/readyz', '/console/', '/docs', '/docs/guides/quick-start', '/openapi.json']) {
      const answer = await fetch(url + path)
      assert.equal(answer.status, 200, `${path}: ${await answer.text()}`)
    }
  } finally {
    if (child.pid !== undefined) process.kill(-child.pid)
    await ended
    await fresh.drop()
  }
})
