// The OpenAPI document against what is served and against what the console calls.

import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { EXTENSIONS } from '../src/compose.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { openapiDocument } from '../src/extensions/docs/openapi.ts'
import { ADMIN_PREFIX } from '../src/operator/admin.ts'
import type { ConsoleDeps } from '../src/operator/console.ts'
import { formResources } from '../src/operator/forms.ts'
import { brandingResources } from '../src/operator/resources/branding.ts'
import { securityResources, visitorResources } from '../src/operator/resources/login.ts'
import { sessionResources } from '../src/operator/resources/session.ts'
import { assert, none, test } from './kit.ts'
import { listResources, nothing } from './pages/operator-api.ts'

const SOURCES = resolve(import.meta.dirname, '..', 'console', 'src')

interface Operation {
  operationId: string
  parameters: { name: string; in: string }[]
  responses: Record<
    string,
    { content: { 'application/json': { schema: { properties: { data?: { type?: string; anyOf?: object[] } } } } } }
  >
}

const document = openapiDocument({
  version: '0',
  serverUrl: '/',
  endpoints: ALL_ENDPOINTS,
  sockets: EXTENSIONS.flatMap((one) => one.sockets),
  operator: { prefix: ADMIN_PREFIX, resources: listResources() },
}) as { paths: Record<string, Record<string, Operation>>; components: { schemas: object } }

const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(SOURCES, name), 'utf8'))

/** Parameters by place and not by name: `/v1/jobs/{}`. */
const shapeOf = (path: string) => path.replaceAll(/\$?\{[^}]*\}+/g, '{}').replace(/\?.*$/, '')

test('every operation has an id of its own, and names each parameter of its path', () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation) => ({ path, operation })),
  )
  assert.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length)
  for (const { path, operation } of operations)
    assert.deepEqual(
      operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name),
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      path,
    )
})

test('every operation of the operator API has a title of its own, in words of a person', () => {
  const titles = listResources().map(({ method, path, title }) => title ?? `${method} ${path} has none`)
  none(titles, (title, at) => titles.indexOf(title) !== at || !/^[A-Z][^/{}.]+$/.test(title))
})

const text = JSON.stringify(document)

test('every reference inside the document leads somewhere', () => {
  for (const [, target = ''] of text.matchAll(/"\$ref":"([^"]*)"/g)) {
    const name = /^#\/components\/schemas\/(\w+)$/.exec(target)?.[1]
    assert.ok(name && Object.hasOwn(document.components.schemas, name), target)
  }
})

test('lists of values and types of content are those that generators of clients read', () => {
  for (const [, values = ''] of text.matchAll(/"enum":(\[[^\]]*\])/g))
    assert.doesNotMatch(values, /[[,](?:true|false)[\],]/)
  const open = Object.entries(document.paths).filter(([path]) => !path.startsWith(ADMIN_PREFIX))
  const types = open.flatMap(([, methods]) =>
    Object.values(methods).flatMap(({ responses }) =>
      Object.values(responses).flatMap(({ content = {} }) => Object.keys(content)),
    ),
  )
  none(new Set(types), (type) => !/^(?:text|audio|video)\/|\/(?:\w+\+)?json$|\/octet-stream$/.test(type))
})

test('every pattern of the document means the same to readers that compile it without flags', () => {
  for (const [, pattern = ''] of text.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)) {
    const source: string = JSON.parse(pattern)
    assert.doesNotThrow(() => new RegExp(source), source)
    // Without flags, or in Python, these are no classes of characters.
    assert.doesNotMatch(source, /\\[pP]\{|\\u\{|\(\?<\w/, source)
  }
})

test('the operator API is in the document as it is mounted', () => {
  for (const { method, path } of listResources())
    assert.ok(document.paths[ADMIN_PREFIX + path]?.[method.toLowerCase()], `${method} ${path}`)
})

test('the document says what every answer of the operator API holds', () => {
  for (const { method, path } of listResources()) {
    const operation = document.paths[ADMIN_PREFIX + path]?.[method.toLowerCase()]
    const data = operation?.responses['200']?.content['application/json'].schema.properties.data
    assert.ok(data?.type === 'object' || data?.anyOf, `${method} ${path}: ${JSON.stringify(data)}`)
  }
})

test('whatever public path the console names is in the document, or an alias of one that is', () => {
  const known = new Set(
    [...Object.keys(document.paths), ...ALL_ENDPOINTS.flatMap(({ aliases }) => aliases)].map((path) => shapeOf(path)),
  )
  const named = sources.flatMap((text) =>
    [...text.matchAll(/(?<=['"`}])\/(?:v1|alpha|beta)\/[\w/{}$().-]+/g)].map(([path]) =>
      shapeOf(path).replace(/\/$/, '/{}'),
    ),
  )
  assert.ok(named.length > 5)
  none(new Set(named), (path) => !known.has(path) && !path.startsWith('/v1/assets'))
})

test('whatever the console asks of its own API is a resource, by the same method', () => {
  const visitors = [visitorResources, brandingResources]
  const people = [sessionResources, securityResources]
  const added = EXTENSIONS.flatMap((one) => one.describe(nothing).personal)
  const ofDeps = [...visitors, ...people].flatMap((list) => list(nothing as ConsoleDeps))
  const own = [...ofDeps, ...formResources([]), ...added]
  const known = new Set([...listResources(), ...own].map(({ method, path }) => `${method} ${shapeOf(path)}`))
  const METHODS: Record<string, string> = { get: 'GET', post: 'POST', patch: 'PATCH', put: 'PUT', remove: 'DELETE' }
  const client = readFileSync(join(SOURCES, 'api.ts'), 'utf8')
  const asked = [
    ...client.matchAll(/\b(get|post|patch|put|remove)<[^(]*?>\(\s*(account\(id(?:, ([`'])(.*?)\3)?\)|([`'])(.*?)\5)/gs),
  ].map(([, verb, whole, , rest, , path]) => {
    const at = whole!.startsWith('account(') ? `/accounts/{}${rest ?? ''}` : path!
    return `${METHODS[verb!]} ${shapeOf(at.replaceAll(/\$\{at\((\w+)\)\}/g, '{$1}'))}`
  })
  assert.ok(asked.length > 30, `${asked.length} calls were found`)
  none(asked, (call) => !known.has(call) && !call.includes('/play/'))
})
