// Every action has a form by which all that the server reads can be sent.

import { fieldsOf, inputOf } from '../../console/src/schema-fields.ts'
import { assert, before, started, test } from '../../test/kit.ts'
import { asBrowser, joined, startOperatorServer } from '../../test/operator-server.ts'
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

const at = (value: unknown, steps: readonly string[]): unknown =>
  steps.reduce<unknown>((part, step) => Object(part)[step], value)

test('a sample of what each action reads comes out of its form as it went in', () => {
  for (const { method, path, query, body } of items)
    for (const schema of [query, body].filter((one) => one !== null)) {
      const sample = JSON.parse(JSON.stringify(sampleOf(schema)))
      const fields = fieldsOf(schema)
      const texts = Object.fromEntries(fields.map(({ name, steps, kind }) => [name, typed(at(sample, steps), kind)]))
      const left = fields.filter(({ name, steps }) => at(sample, steps) !== undefined && texts[name] !== '')
      const input = inputOf(left, texts)
      for (const { name, steps } of left)
        assert.deepEqual(at(input, steps), at(sample, steps), `${method} ${path} ${name}`)
    }
})

test('the fields of a form are told apart by their names, without which browsers would not send them', () => {
  for (const { method, path, query, body } of items) {
    const fields = [query, body].flatMap((schema) => (schema ? fieldsOf(schema) : []))
    const names = [...(path.match(/\{\w+\}/g) ?? []), ...fields.map(({ name }) => name)]
    assert.ok(!names.includes(''), `${method} ${path}`)
    assert.deepEqual(names, [...new Set(names)], `${method} ${path}`)
  }
})
