import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redact } from './redact.ts'

const SECRETS = ['9f8e7d6c5b4a39281706f5e4d3c2b1a098765432', 'Zq/7"Lm+2%vX=8.kT~5\\wR9', 'clé-sécrète-0815']

test('a secret is taken out however it is spelt, and what stands around it stays', () => {
  for (const secret of SECRETS) {
    const bytes = Buffer.from(secret)
    for (const spelt of [
      secret,
      secret.toUpperCase(),
      JSON.stringify(secret).slice(1, -1),
      JSON.stringify(JSON.stringify(secret)).slice(3, -3).replaceAll('/', '\\/'),
      encodeURIComponent(secret),
      encodeURIComponent(encodeURIComponent(secret)),
      bytes.toString('hex'),
      bytes.toString('hex').toUpperCase(),
    ])
      assert.equal(redact(`before ${spelt}, after`, SECRETS), 'before [key], after')
    for (const before of ['', 'u', 'us', 'user:'])
      for (const after of ['', ':', 'xy'])
        for (const encoding of ['base64', 'base64url'] as const) {
          const clean = redact(Buffer.from(before + secret + after).toString(encoding), SECRETS)
          // The few characters that its neighbours share say less than a byte of it.
          assert.match(clean, /^.{0,8}\[key\].{0,6}$/, `${before} ${after}`)
        }
  }
})

test('other text is left alone, and nothing is slow', () => {
  assert.equal(redact('a sandbox is no secret', ['sandbox', '']), 'a sandbox is no secret')
  const startedMs = performance.now()
  for (const secret of [...SECRETS, `\\${'a'.repeat(40)}`, '%'.repeat(40), '\\'.repeat(40)])
    for (const unit of ['\\', '%', '%25', secret.slice(0, -1), 'Zq\\\\/', 'a'])
      redact(unit.repeat(100_000 / unit.length), [secret])
  assert.ok(performance.now() - startedMs < 5_000)
})
