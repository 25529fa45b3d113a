// Every route, and what it takes to be let in, found out by knocking. A route that is not in the list fails this test
// until somebody has looked at it: `TOLLGATE_TEST_UPDATE=1 npm test -- test/routes` writes the list anew.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildConsole } from '../console/build.ts'
import { each } from './faults/raw-client.ts'
import { assert, OPERATOR_TOKEN, startGateway, test } from './gateway.ts'

const LIST = join(import.meta.dirname, 'routes.txt')
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** A path in the notation of the list. */
function listed(path: string): string {
  return path.replaceAll(/\{(\w+)\}:/g, ':$1([^:]+)::').replaceAll(/\{(\w+)\}/g, ':$1')
}

test('every route is listed with what it takes to be let in', async () => {
  await buildConsole({ ifStale: true, say: () => {} })
  await using g = await startGateway()
  const { key } = await g.account()
  const knock = async (method: string, path: string, token?: string) => {
    const answer = await fetch(
      g.url +
        path
          .replaceAll(/(?<!:):\w+(?:\(.*?\))?/g, 'x')
          .replace('::', ':')
          .replace('*', 'x'),
      {
        method,
        redirect: 'manual',
        headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), 'content-type': 'application/json' },
        ...(method === 'GET' ? {} : { body: '{}' }),
      },
    )
    await answer.text()
    assert.ok(answer.status < 500, `${method} ${path}: ${answer.status}`)
    return answer.status
  }
  const closed = (status: number) => status === 401 || status === 403
  const lines: string[] = []
  await each(g.gateway.app.router.routes, 8, async ([method, pattern]) => {
    if (!METHODS.includes(method)) return
    const path = listed(pattern)
    const status = await knock(method, path)
    if (status === 405) return
    let takes = 'open'
    if (closed(status)) {
      if (!closed(await knock(method, path, key))) takes = 'key'
      else takes = closed(await knock(method, path, OPERATOR_TOKEN)) ? 'session' : 'operator'
    }
    lines.push(`${takes.padEnd(8)} ${method.padEnd(6)} ${path}`)
  })
  const found = `${lines.sort().join('\n')}\n`
  if (process.env.TOLLGATE_TEST_UPDATE === '1') await writeFile(LIST, found)
  assert.equal(found, await readFile(LIST, 'utf8'))
})
