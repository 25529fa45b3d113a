// The files of `npm test` that try something many times, or with programs that have to be installed, as they do with
// TOLLGATE_TEST_FULL=1.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { assert, test } from '../kit.ts'

const ROOT = resolve(import.meta.dirname, '..', '..')
const FILES = globSync(['src/**/*.test.ts', 'console/src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: ROOT })
  .filter((file) => /\bruns\.ts'/.test(readFileSync(resolve(ROOT, file), 'utf8')))
  .sort()

for (const file of FILES)
  test(`${file} passes in full`, async () => {
    const env = { ...process.env, TOLLGATE_TEST_FULL: '1' }
    // Else it would report to the runner of this file.
    delete (env as NodeJS.ProcessEnv).NODE_TEST_CONTEXT
    const child = spawn(process.execPath, ['--test', file], { cwd: ROOT, env, stdio: 'inherit' })
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
