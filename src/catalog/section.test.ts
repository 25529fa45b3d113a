// What extensions add to the catalog.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { checkDocument } from './document.ts'
import { addSections, type CatalogSection } from './section.ts'

test('a section that is added after a document was read is a part of the next', () => {
  const read = () => {
    const checked = checkDocument({ vendors: {}, models: {}, endpoints: {} })
    return checked.ok ? (checked.document as unknown as Record<string, unknown>).laterOn : checked.problems
  }
  const before = read()
  addSections([{ name: 'laterOn', schema: z.array(z.string()).default([]) } as unknown as CatalogSection])
  assert.deepEqual([before, read()], [undefined, []])
})
