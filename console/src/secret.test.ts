import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutSecrets } from './secret.ts'

test('of a key only what the console shows of it is left, whatever stands around it', () => {
  const key = 'tg_live_abcdEFGHIJKLMNOPQRSTUVWXYZwxyz'
  for (const text of [key, `Bearer ${key}`, `TOLLGATE_KEY="${key}"`])
    assert.equal(withoutSecrets(text), 'tg_live_abcd…wxyz')
  assert.equal(withoutSecrets('sk-proj-0123456789abcdef'), 'sk-…cdef')
  assert.doesNotMatch(withoutSecrets('key AIzaSyD0123456789abcdef please'), /0123456789/)
  for (const text of ['req_01m7mz014t000ev1zyzfdrpkke', 'Harbour Ltd', 'ask-me', 'tg_live_'])
    assert.equal(withoutSecrets(text), text)
})
