// SCIM as a tester sees it that we did not write: every check of scim2-tester, for an account and for the gateway.
import { join } from 'node:path'
import type { NewToken } from '../../src/identity/views.ts'
import { assert, test, testGateway } from '../gateway.ts'
import { pythonWith, runProgram } from '../sdk/cache.ts'

const SCRIPTS = join(import.meta.dirname, 'python')
const RUN_MS_MAX = 300_000
const g = testGateway()
const found = await pythonWith(join(SCRIPTS, 'scim-requirements.txt'), 10)

for (const place of ['account', 'gateway'] as const)
  test(`scim2-tester finds nothing wrong with the people of the ${place}`, async (t) => {
    if (!('python' in found)) {
      t.skip(found.missing)
      return
    }
    const path = place === 'account' ? `/accounts/${(await g.account()).id}/tokens` : '/tokens'
    const { data } = await g.operator<NewToken>('POST', path, { name: 'tester', scopes: ['scim'] })
    const args = [join(SCRIPTS, 'scim_check.py'), `${g.url}/scim/v2`, data.token]
    const { code, out, err } = await runProgram(found.python, args, {
      cwd: SCRIPTS,
      env: { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: '1' },
      timeoutMs: RUN_MS_MAX,
    })
    assert.equal(code, 0, err.slice(-2000))
    const lines = out.split('\n').filter((line) => line.startsWith('{'))
    const checks = (JSON.parse(lines.pop() ?? '{}') as { checks?: number }).checks ?? 0
    assert.deepEqual(lines, [])
    assert.ok(checks > 20, `only ${checks} checks were made`)
  })
