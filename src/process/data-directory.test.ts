import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, atOnce, test } from '../../test/kit.ts'
import { readConfig } from '../config.ts'
import { realWorld } from '../kernel/world.ts'
import { openDataDirectory } from './data-directory.ts'

test('processes that start together on an empty directory use the same secret and token, and leave nothing else behind', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-data-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  const config = readConfig({ TOLLGATE_DATA: directory })
  const opened = await atOnce(8, () => openDataDirectory(config, realWorld))
  const [secret, token] = ['secret', 'operator-token'].map((name) => readFile(join(directory, name), 'utf8'))
  assert.deepEqual(new Set(opened.map((one) => one.secret)), new Set([(await secret)!.trim()]))
  assert.deepEqual(new Set(opened.map((one) => one.operatorToken)), new Set([(await token)!.trim()]))
  assert.equal(opened.filter(({ tokenIsNew }) => tokenIsNew).length, 1)
  assert.deepEqual((await readdir(directory)).sort(), ['operator-token', 'secret'])
})
