import assert from 'node:assert/strict'
import { test } from 'node:test'
import shipped from '../catalog/default.json' with { type: 'json' }
import { checkDocument } from '../catalog/document.ts'
import { readTraits, traitProblems } from './traits.ts'

test('every trait of the shipped catalogue is known and well formed', () => {
  const checked = checkDocument(shipped)
  assert.ok(checked.ok)
  for (const [uid, model] of Object.entries(checked.document.models))
    if (model.type === 'text') assert.deepEqual(traitProblems(model.traits), [], uid)
})

test('unknown and malformed traits are told by name', () => {
  assert.deepEqual(traitProblems({ tokenField: 'x' }), ['"tokenField" is not a trait'])
  assert.match(traitProblems({ tokensField: 'x' })[0]!, /one of either/)
  assert.match(traitProblems({ nMax: 0 })[0]!, /positive integer/)
  assert.match(traitProblems({ developerRole: 'no' })[0]!, /true or false/)
  assert.match(traitProblems({ quirks: ['odd'] })[0]!, /not a quirk/)
  assert.match(traitProblems({ dropParams: 'thinking' })[0]!, /list of words/)
  assert.match(traitProblems({ toolsNeed: true })[0]!, /a word/)
})

test('absent traits have their defaults', () => {
  const traits = readTraits({ nMax: 1 })
  assert.equal(traits.nMax, 1)
  assert.equal(traits.tokensField, 'either')
  assert.equal(traits.developerRole, true)
})
