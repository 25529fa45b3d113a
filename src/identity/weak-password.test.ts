import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixtureText } from '../../test/fixture.ts'
import { passwordProblem } from './password.ts'

const EMAIL = 'grace.hopper@navy.example'

test('passwords that are guessed first are refused, with a reason', () => {
  const weak = fixtureText('weak-passwords.txt').split('\n').slice(0, -1)
  for (const password of weak) assert.match(passwordProblem(password, EMAIL) ?? '', /guess/, password)
})

test('passwords of some thought are taken, in any script', () => {
  const good = [
    'seven tired otters juggle',
    'xK9#mQ2$vL7p',
    'moss-grows-on-violins',
    'Jalapeño Wüste Brücke',
    'ぬるぽがっとはんばーぐていしょく',
    'vortex lantern 88 piano',
    'my dog chews tuesdays gladly',
    '9f86d081884c7d65',
    'tr0ub4dor&3 kiwis',
  ]
  for (const password of good) assert.equal(passwordProblem(password, EMAIL), undefined, password)
})

test('length counts characters, and neither nulls nor half characters get through', () => {
  assert.match(passwordProblem('kiwi otter!', EMAIL)!, /at least 12/)
  assert.match(passwordProblem('🦦🦝🦡🦔🦇🐿️', EMAIL)!, /at least 12/)
  assert.match(passwordProblem(`${'otter kiwi '.repeat(11)}!!!!!!!!`, EMAIL)!, /at most 128/)
  assert.match(passwordProblem('violin\u0000otter kiwi', EMAIL)!, /cannot be typed/)
  assert.match(passwordProblem('violin \ud800 otter kiwi', EMAIL)!, /cannot be typed/)
})
