import { assert, test } from '../../test/kit.ts'
import { redact, withoutContent } from './redact.ts'

const SECRETS = ['9f8e7d6c5b4a39281706f5e4d3c2b1a098765432', 'Zq/7"Lm+2%vX=8.kT~5\\wR9', 'clé-sécrète-0815']

const percentOf = (bytes: Buffer) => [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

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
      percentOf(bytes),
      percentOf(bytes).toUpperCase(),
      encodeURIComponent(percentOf(bytes)),
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
  const before = process.threadCpuUsage()
  for (const secret of [...SECRETS, `\\${'a'.repeat(40)}`, '%'.repeat(40), '\\'.repeat(40)])
    for (const unit of ['\\', '%', '%25', secret.slice(0, -1), 'Zq\\\\/', 'a'])
      redact(unit.repeat(100_000 / unit.length), [secret])
  // Of a processor, which a busy machine gives late.
  assert.ok(process.threadCpuUsage(before).user < 5_000_000)
})

test('a message about a request is kept without what it repeats of the request', () => {
  const sent = '{"model":"m","messages":[{"content":"my aunt lives in the green house"}]}'
  const cases = [
    ['"temperature" must be at most 2', '"temperature" must be at most 2'],
    ['cannot read "my aunt lives in the green house".', 'cannot read …'],
    ['cannot read "my poor aunt".', 'cannot read "…".'],
    ['flagged: aunt lives in the green today', 'flagged: … today'],
    [`unexpected token \`${'x'.repeat(50)}\` here`, 'unexpected token `…` here'],
    ['line one\n\tline two', 'line one line two'],
    ['', ''],
  ]
  for (const [message = '', kept] of cases) assert.equal(withoutContent(message, sent), kept)
  assert.equal(withoutContent('Refused "a": "my aunt" is not it.'), 'Refused … is not it.')
  assert.ok(withoutContent('word '.repeat(10_000), sent).length < 1_000, 'bounded')
})
