import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { generatedFiles, ROOT } from './generate.ts'
import { assert, test } from './kit.ts'

test('what is generated is current; otherwise: npm run generate', async () => {
  const stale: string[] = []
  for (const [path, text] of await generatedFiles())
    if ((await readFile(join(ROOT, path), 'utf8').catch(() => '')) !== text) stale.push(path)
  assert.deepEqual(stale, [])
})
