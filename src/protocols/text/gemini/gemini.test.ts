import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readJson } from '../../../kernel/json.ts'
import { admitMembers } from '../request-members.ts'
import { gemini } from './format.ts'
import { searchesOf } from './usage.ts'

test('metadata without a search is no search', () => {
  const searches = (groundingMetadata: unknown) => searchesOf([{ groundingMetadata }])
  assert.deepEqual([{}, { webSearchQueries: [] }, { groundingChunks: [] }, undefined].map(searches), [0, 0, 0, 0])
  assert.deepEqual([{ webSearchQueries: ['a', 'b'] }, { groundingChunks: [{ web: {} }] }].map(searches), [2, 1])
})

test('a choice of models by the vendor is refused, where it chooses one', () => {
  const admitted = (generationConfig: object) =>
    admitMembers(gemini.members, readJson(Buffer.from(JSON.stringify({ generationConfig })))).unknown
  assert.throws(() => admitted({ routingConfig: { autoMode: {} } }), /"generationConfig\.routingConfig"/)
  assert.throws(() => admitted({ model_config: { x: 1 } }), /"generationConfig\.model_config"/)
  assert.deepEqual(admitted({ routingConfig: {}, modelConfig: null }), [])
})
