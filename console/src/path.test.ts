import assert from 'node:assert/strict'
import { test } from 'node:test'
import { match, safeNext } from './path.ts'

test('an address names its page and its parameters', () => {
  assert.deepEqual(match('/a/:account/keys', '/a/acc_1/keys'), { account: 'acc_1' })
  assert.deepEqual(match('/a/:account/models/:uid', '/a/x/models/siteanalytics%2Fwebsites%2Fvisits'), {
    account: 'x',
    uid: 'siteanalytics/websites/visits',
  })
  assert.equal(match('/a/:account/keys', '/a/acc_1'), undefined)
  assert.equal(match('/a/:account', '/a/%E0%A4%A'), undefined)
})

test('after signing in nobody is led out of the console', () => {
  assert.equal(safeNext('/a/acc_1/usage?from=2026-11-01'), '/a/acc_1/usage?from=2026-11-01')
  for (const address of [
    '//evil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '/\\evil.example',
    '/login',
    null,
  ])
    assert.equal(safeNext(address), '/')
})
