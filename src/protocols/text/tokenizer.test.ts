import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countedTokens } from './tokenizer.ts'

test('a text is counted by its model’s tokenizer, and one that would take too long counts as its bytes', async () => {
  const english = 'The quick brown fox jumps over the lazy dog.'
  const digits = '1 2 3 4 5 6 7 8 9 0 '
  const run = 'a'.repeat(100_000)
  for (const tokenizer of ['o200k', 'cl100k'] as const) {
    const sizeOf = await countedTokens(tokenizer, [english, digits, run, '<|endoftext|>'])
    assert.ok(sizeOf)
    assert.equal(sizeOf(english), 10)
    assert.ok(sizeOf(digits) <= digits.length && sizeOf(digits) >= digits.length - 1)
    assert.equal(sizeOf(run), run.length)
    assert.ok(sizeOf('<|endoftext|>') > 1, 'a caller writes no special tokens')
  }
  assert.equal(await countedTokens('o200k', ['word '.repeat(400_000)]), undefined, 'the bound stands')
})
