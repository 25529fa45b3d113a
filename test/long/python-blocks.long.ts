// The Python of README, guides and reference runs, with the SDKs that it imports.
import { join } from 'node:path'
import { pages, programsOf, ROOT } from '../code-blocks.ts'
import { assert, type TestContext, test, testGateway } from '../gateway.ts'
import { pythonWith, runProgram } from '../sdk/cache.ts'

let key: string
const g = testGateway({}, async () => {
  key = (await g.account({ credits: 1_000_000_000_000n })).key
})
const CLIENT = 'from tollgate_client import Tollgate\nclient = Tollgate()\n'

async function runs(t: TestContext, page: string, programs: readonly { at: string; code: string }[]): Promise<void> {
  const found = await pythonWith(join(ROOT, 'test/sdk/python/newest.txt'))
  if ('missing' in found) {
    console.log(`The Python of ${page} was not run: ${found.missing}`)
    return t.skip(found.missing)
  }
  const env = {
    PATH: process.env.PATH,
    HOME: g.config.TOLLGATE_DATA,
    PYTHONPATH: join(ROOT, 'clients/python/src'),
    TOLLGATE_URL: g.url,
    TOLLGATE_KEY: key,
  }
  for (const { at, code } of programs) {
    const { code: ended, err } = await runProgram(found.python, ['-c', code], {
      env,
      timeoutMs: 120_000,
      // Some save what they are given.
      cwd: g.config.TOLLGATE_DATA,
    })
    assert.equal(ended, 0, `${at}\n${err}`)
  }
}

for (const page of pages) {
  const programs = programsOf(page, ['py', 'python'], /^(from|import) /m)
  if (programs.length === 0) continue
  // The pages of the reference say that "client" is one of the clients.
  const known = page.startsWith('docs/reference/') ? CLIENT : ''
  test(`the Python of ${page} runs`, (t) =>
    runs(
      t,
      page,
      programs.map(({ at, code }) => ({ at, code: known + code.replaceAll('http://127.0.0.1:8080', g.url) })),
    ))
}

/** By whose pages most people begin; those of data are of one kind. */
const ENDPOINT_PAGES = ['chat', 'responses', 'messages', 'embeddings', 'images', 'social-users', 'models', 'account']

test('the Python of the pages of endpoints runs as it is copied', async (t) => {
  for (const name of ENDPOINT_PAGES) {
    const text = await (await fetch(`${g.url}/docs/api/${name}.md`)).text()
    const programs = [...text.matchAll(/^```py tab=\S+\n([\s\S]*?)^```$/gm)].map(([, code = '']) => ({
      at: name,
      code,
    }))
    assert.ok(programs.length > 0, name)
    await runs(t, name, programs)
  }
})
