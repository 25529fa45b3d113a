import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readErrorText, scrub, vendorFault } from './vendor-words.ts'

test('a caller reads what a vendor said, without its name, keys, addresses and accounts', () => {
  const cases: [string, string][] = [
    [
      'Incorrect API key provided: sk-proj-abc123def456. See https://platform.openai.com/account/api-keys.',
      'Incorrect API key provided: [key] See [address]',
    ],
    [
      'Rate limit reached for gpt-5.4-turbo in organization org-AbCdEf123456 on tokens per min',
      'Rate limit reached for the provider in organization [id] on tokens per min',
    ],
    ['OpenAI API error at api.anthropic.com/v1 (10.0.0.12:8080)', 'the provider API error at [address] ([address])'],
    ['header "Authorization: Bearer abcdef123456" refused', 'header "Authorization: [key]" refused'],
    [
      'Gemini project my-project-12345 of account 123456789012 by ops@google.com',
      'the provider project [id] of account [id] by [address]',
    ],
    ['`top_p` is deprecated for this model.', '`top_p` is deprecated for this model.'],
    ["Invalid value: 'x'. Supported values are: 'auto'.", "Invalid value: 'x'. Supported values are: 'auto'."],
    ['Unknown parameter: user_location, api_version.', 'Unknown parameter: user_location, api_version.'],
    [
      'max_tokens: 200000 > 128000, which is the maximum for claude-opus-5-20260801',
      'max_tokens: 200000 > 128000, which is the maximum for the provider',
    ],
    ['messages.1.content.0: tool_use_id toolu_1 is unknown', 'messages.1.content.0: tool_use_id toolu_1 is unknown'],
  ]
  for (const [said, clean] of cases) assert.equal(scrub(said), clean)
  assert.ok(scrub('x'.repeat(5000)).length < 600)
})

test('error bodies of every shape in use are read, and others say nothing', () => {
  const read = (body: unknown) =>
    readErrorText(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), {
      vendorName: 'claude-5-x',
      uid: 'beta-5',
    })
  assert.equal(read({ error: { message: 'bad field' } }), 'bad field')
  assert.equal(read({ type: 'error', error: { type: 'x', message: 'bad field' } }), 'bad field')
  assert.equal(read([{ error: { message: 'bad field' } }]), 'bad field')
  assert.equal(read({ error: 'bad field' }), 'bad field')
  assert.equal(read({ error: 'the maximum of claude-5-x is 5' }), 'the maximum of beta-5 is 5')
  assert.equal(read({ message: 'bad field' }), 'bad field')
  assert.equal(read({ base_resp: { status_code: 1, status_msg: 'bad field' } }), 'bad field')
  assert.equal(read('<html>nginx</html>'), undefined)
  assert.equal(read(''), undefined)
  assert.equal(read({ error: {} }), undefined)
})

test('an error inside an answer becomes the fault that says who must do what', () => {
  const kind = (error: unknown) => vendorFault(error).kind
  assert.equal(kind({ type: 'overloaded_error' }), 'upstream_unavailable')
  assert.equal(kind({ type: 'rate_limit_error' }), 'upstream_rate_limited')
  assert.equal(kind({ code: 'rate_limit_exceeded' }), 'upstream_rate_limited')
  assert.equal(kind({ code: 'insufficient_quota' }), 'upstream_unavailable')
  assert.equal(kind({ type: 'authentication_error' }), 'upstream_failed')
  assert.equal(kind({ type: 'invalid_request_error' }), 'upstream_invalid')
  assert.equal(kind({ code: 429 }), 'upstream_rate_limited')
  assert.equal(kind({ code: 503 }), 'upstream_unavailable')
  assert.equal(kind({ type: 'timeout_error' }), 'upstream_timeout')
  assert.equal(kind({ type: 'server_error' }), 'upstream_failed')
  assert.equal(kind('something'), 'upstream_failed')
  assert.match(
    vendorFault({ type: 'invalid_request_error', message: 'prompt too long for claude-5' }).message,
    /^prompt too long for the provider$/,
  )
  assert.ok(!vendorFault({ type: 'server_error', message: 'secret trouble' }).message.includes('secret'))
})
