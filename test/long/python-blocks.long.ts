// The Python of README, guides and reference runs, with the SDKs that it imports.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { pages, programsOf, ROOT } from '../code-blocks.ts'
import { testGateway } from '../gateway.ts'
import { pythonWith, runProgram } from '../sdk/cache.ts'

let key: string
const g = testGateway({}, async () => {
  key = (await g.account({ credits: 1_000_000_000_000n })).key
})
const CLIENT = 'from tollgate_client import Tollgate\nclient = Tollgate()\n'

for (const page of pages) {
  const programs = programsOf(page, ['py', 'python'], /^(from|import) /m)
  if (programs.length === 0) continue
  test(`the Python of ${page} runs`, async (t) => {
    const found = await pythonWith(join(ROOT, 'test/sdk/python/newest.txt'))
    if ('missing' in found) {
      console.log(`The Python of ${page} was not run: ${found.missing}`)
      return t.skip(found.missing)
    }
    // The pages of the reference say that "client" is one of the clients.
    const known = page.startsWith('docs/reference/') ? CLIENT : ''
    for (const { at, code } of programs) {
      const { code: ended, err } = await runProgram(
        found.python,
        ['-c', known + code.replaceAll('http://127.0.0.1:8080', g.url)],
        {
          env: {
            PATH: process.env.PATH,
            HOME: g.config.TOLLGATE_DATA,
            PYTHONPATH: join(ROOT, 'clients/python/src'),
            TOLLGATE_URL: g.url,
            TOLLGATE_KEY: key,
          },
          timeoutMs: 120_000,
        },
      )
      assert.equal(ended, 0, `${at}\n${err}`)
    }
  })
}
