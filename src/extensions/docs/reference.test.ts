import { assert, test } from '../../../test/kit.ts'
import { ANALYTICS } from '../../catalog/analytics.ts'
import { SOCIAL } from '../../catalog/social.ts'
import { analyticsReference, socialReference } from './reference.ts'

test('the reference has every endpoint, every parameter and every allowed value', () => {
  for (const [page, specs] of [
    [analyticsReference(ANALYTICS), ANALYTICS],
    [socialReference(SOCIAL), SOCIAL],
  ] as const) {
    for (const spec of specs) {
      const start = page.indexOf(`\`GET ${spec.path}\``)
      assert.ok(start > 0, spec.path)
      const section = page.slice(start, page.indexOf('\n## ', start) + 1 || undefined)
      for (const [name, field] of Object.entries(spec.params)) {
        assert.ok(section.includes(`| \`${name}\``), `${spec.id} ${name}`)
        if ('allowed' in field)
          for (const value of field.allowed) assert.ok(section.includes(value), `${spec.id} ${value}`)
      }
    }
    // A pipe inside a cell would break the table.
    const cells = page.split('\n').filter((line) => line.startsWith('| `'))
    for (const line of cells) assert.equal(line.replaceAll('\\|', '').split('|').length, 7, line)
  }
})
