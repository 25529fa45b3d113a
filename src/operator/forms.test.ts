// Every action has a form by which all that the server reads can be sent.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { fieldsOf, inputOf } from '../../console/src/schema-fields.ts'
import { asBrowser, joined, startOperatorServer } from '../../test/operator-server.ts'
import { started } from '../../test/started.ts'
import { sampleOf } from '../catalog/json-schema.ts'
import type { Page } from '../kernel/view.ts'
import type { ActionView } from './views.ts'

let items: ActionView[] = []
const server = started(() => startOperatorServer())
before(async () => {
  const ask = await joined(server, '/operator-invites', { email: 'olive@example.com', role: 'operator' })
  items = (await ask<Page<ActionView>>('GET', '/actions')).data.items
})

test('every action that changes something and has a title is offered, to the signed-in alone', async () => {
  const expected = server.resources.operator.filter(({ method, title }) => method !== 'GET' && title !== undefined)
  assert.deepEqual(
    items.map(({ method, path }) => `${method} ${path}`),
    expected.map(({ method, path }) => `${method} ${path}`),
  )
  assert.ok(items.length > 100, `${items.length}`)
  assert.equal((await asBrowser(server)('GET', '/actions')).status, 401)
})

/** As a person types it. */
function typed(value: unknown, kind: string): string {
  if (kind === 'json') return JSON.stringify(value)
  return Array.isArray(value) ? value.join('\n') : String(value ?? 'none')
}

/** By the steps of its name. */
const at = (value: unknown, name: string): unknown =>
  name === '' ? value : name.split('.').reduce<unknown>((part, step) => Object(part)[step], value)

test('a sample of what each action reads comes out of its form as it went in', () => {
  for (const { method, path, query, body } of items)
    for (const schema of [query, body].filter((one) => one !== null)) {
      const sample = JSON.parse(JSON.stringify(sampleOf(schema)))
      const fields = fieldsOf(schema)
      assert.equal(new Set(fields.map(({ name }) => name)).size, fields.length, `${method} ${path}`)
      const texts = Object.fromEntries(fields.map(({ name, kind }) => [name, typed(at(sample, name), kind)]))
      const left = fields.filter(({ name }) => at(sample, name) !== undefined && texts[name] !== '')
      const input = inputOf(left, texts)
      for (const { name } of left) assert.deepEqual(at(input, name), at(sample, name), `${method} ${path} ${name}`)
    }
})
