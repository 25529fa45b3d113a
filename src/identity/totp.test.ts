// The codes of authenticator apps, against the vectors of RFC 6238 (appendix B) and of RFC 4648.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base32, totpAt, totpStep, totpUri } from './totp.ts'

const SECRET = Buffer.from('12345678901234567890')

test('codes are those of RFC 6238', () => {
  const vectors: ReadonlyArray<[seconds: number, code: string]> = [
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ]
  for (const [seconds, code] of vectors)
    assert.equal(totpAt(SECRET, Math.floor(seconds / 30), 8), code, String(seconds))
})

test('a code counts in its own step and in those beside it', () => {
  const nowMs = 1_234_567_890_000
  const step = Math.floor(nowMs / 30_000)
  for (const drift of [-1, 0, 1]) assert.equal(totpStep(SECRET, totpAt(SECRET, step + drift), nowMs), step + drift)
  for (const drift of [-2, 2]) assert.equal(totpStep(SECRET, totpAt(SECRET, step + drift), nowMs), undefined)
})

test('secrets are written as RFC 4648 says, and apps find issuer and account', () => {
  const vectors: ReadonlyArray<[text: string, encoded: string]> = [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ]
  for (const [text, encoded] of vectors) assert.equal(base32(Buffer.from(text)), encoded, text)
  assert.equal(
    totpUri(SECRET, { issuer: 'gate.example', account: 'a@b.example' }),
    'otpauth://totp/gate.example:a%40b.example?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=gate.example',
  )
})
