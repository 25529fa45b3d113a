// Every route, and what it takes to be let in, found out by knocking. A route that is not in the list fails this test until
// somebody has looked at it: `TOLLGATE_TEST_UPDATE=1 npm test -- test/routes` writes the list anew.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildConsole } from '../console/build.ts'
import { each } from './faults/raw-client.ts'
import { OPERATOR_TOKEN, startGateway } from './gateway.ts'

const LIST = join(import.meta.dirname, 'routes.txt')
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** The drawing leaves out what stands before a star. */
const STARS: Record<string, string> = {
  '/console*': '/console/*',
  '/console/api/accounts/:id*': '/console/api/accounts/:id/play/*',
}

/** The framework's drawing of its tree: four characters a level. */
function routesOf(tree: string): Array<[method: string, path: string]> {
  const routes: Array<[string, string]> = []
  const above: string[] = []
  for (const line of tree.split('\n')) {
    const at = line.search(/[├└]── /)
    if (at < 0) continue
    const [, name = '', methods] = /── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? []
    const depth = at / 4
    above.length = depth
    above[depth] = name
    const path = above.join('')
    for (const method of methods?.split(', ') ?? [])
      if (METHODS.includes(method)) routes.push([method, STARS[path] ?? path])
  }
  return routes
}

/** A route of the API, written as the framework writes its own. */
function asFramework([method, path]: readonly [string, string]): [method: string, path: string] {
  return [method, path.replaceAll(/\{(\w+)\}:/g, ':$1([^:]+)::').replaceAll(/\{(\w+)\}/g, ':$1')]
}

test('every route is listed with what it takes to be let in', async () => {
  await buildConsole({ ifStale: true, say: () => {} })
  const g = await startGateway()
  try {
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
    const { app } = g.gateway
    const routes = [...routesOf(app.printRoutes({ commonPrefix: false })), ...app.router.routes.map(asFramework)]
    await each(routes, 8, async ([method, path]) => {
      if (!METHODS.includes(method)) return
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
  } finally {
    await g.close()
  }
})
