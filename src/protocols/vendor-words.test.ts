import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixtureOf } from '../../test/fixture.ts'
import { asFault, type Fault } from '../kernel/fault.ts'
import { describe, refusal, vendorFault } from './vendor-fault.ts'
import { type RedactionScope, readErrorBody, scrub } from './vendor-words.ts'

const hearing: RedactionScope = {
  paidRequest: {
    product: 'beta-5',
    clientFormat: 'openai-chat',
    sent: JSON.stringify({
      model: 'beta-5',
      tools: [{ name: 'gemini-lookup' }, { name: 'google' }, { name: 'azure' }],
      file: 'user_file_12345678',
      page: 'https://pages.example.com/cat.png',
      say: 'anthropic and claude-7 and org-AbCdEf123456',
    }),
  },
  target: {
    protocol: 'anthropic-messages',
    baseUrl: 'https://inner.example/v1',
    secret: '9f8e7d6c5b4a39281706f5e4d3c2b1a098765432',
    headers: {},
    model: 'claude-5-x',
  },
}

test('a caller reads what a vendor said, without its name, keys, addresses and accounts', () => {
  const cases: [string, string][] = [
    [
      'Incorrect API key provided: sk-proj-abc123def456. See https://platform.openai.com/account/api-keys.',
      'Incorrect API key provided: [key] See [address]',
    ],
    [
      'Rate limit reached for gpt-5.4-turbo in organization org-AbCdEf123456 on tokens per min',
      'Rate limit reached for the vendor in organization [id] on tokens per min',
    ],
    ['OpenAI API error at api.anthropic.com/v1 (10.0.0.12:8080)', 'the vendor API error at [address] ([address])'],
    ['header "Authorization: Bearer abcdef123456" refused', 'header "Authorization: [key]" refused'],
    [
      'Gemini project my-project-12345 of account 123456789012 by ops@google.com',
      'the vendor project [id] of account [id] by [address]',
    ],
    ['key 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432 at inner.example', 'key [key] at [address]'],
    ['digest 00112233445566778899aabbccddeeff at fd12::17, 10:30:45', 'digest [id] at [address], 10:30:45'],
    ['node-7.svc.internal:8443 and db.corp.local', '[address] and [address]'],
    ['`top_p` is deprecated for this model.', '`top_p` is deprecated for this model.'],
    ["Invalid value: 'x'. Supported values are: 'auto'.", "Invalid value: 'x'. Supported values are: 'auto'."],
    ['Unknown parameter: user_location, api_version.', 'Unknown parameter: user_location, api_version.'],
    [
      'max_tokens: 200000 > 128000, which is the maximum for claude-opus-5-20260801',
      'max_tokens: 200000 > 128000, which is the maximum for the vendor',
    ],
    ['messages.1.content.0: tool_use_id toolu_1 is unknown', 'messages.1.content.0: tool_use_id toolu_1 is unknown'],
    [
      'Not authorized on arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.some-model-v1:0 today',
      'Not authorized on [id] today',
    ],
    ['`projects/123/locations/global/endpoints/x` is busy', '`projects/[id]/locations/global/endpoints/x` is busy'],
    ['the maximum of claude-5-x is 5', 'the maximum of beta-5 is 5'],
  ]
  for (const [said, clean] of cases) assert.equal(scrub(said, hearing), clean)
  assert.ok(scrub('x'.repeat(5000), hearing).length < 600)
})

test('the names, files and addresses that a caller sent are not taken for a vendor’s', () => {
  const cases: [string, string][] = [
    ["Tool 'gemini-lookup' has no schema.", "Tool 'gemini-lookup' has no schema."],
    ["Tool 'google' has no schema.", "Tool 'google' has no schema."],
    ['Azure said: no such file user_file_12345678.', 'the vendor said: no such file user_file_12345678.'],
    ['Could not load https://pages.example.com/cat.png.', 'Could not load https://pages.example.com/cat.png.'],
    ['Anthropic: claude-7 is busy for org-AbCdEf123456', 'the vendor: the vendor is busy for [id]'],
  ]
  for (const [said, clean] of cases) assert.equal(scrub(said, hearing), clean)
})

test('error bodies of every shape in use are read, and others say nothing', () => {
  const read = (body: unknown) =>
    readErrorBody(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))?.message || undefined
  assert.equal(read({ error: { message: 'bad field' } }), 'bad field')
  assert.equal(read({ type: 'error', error: { type: 'x', message: 'bad field' } }), 'bad field')
  assert.equal(read([{ error: { message: 'bad field' } }]), 'bad field')
  assert.equal(read({ error: 'bad field' }), 'bad field')
  assert.equal(read({ message: 'bad field' }), 'bad field')
  assert.equal(read({ base_resp: { status_code: 1, status_msg: 'bad field' } }), 'bad field')
  assert.equal(read('<html>nginx</html>'), undefined)
  assert.equal(read(''), undefined)
  assert.equal(read({ error: {} }), undefined)
})

const told = (fault: Fault) => asFault(describe(fault, hearing))

test('an error inside an answer becomes the fault that says who must do what', () => {
  const kind = (error: unknown) => vendorFault(error).kind
  assert.equal(kind({ type: 'overloaded_error' }), 'upstream_unavailable')
  assert.equal(kind({ type: 'rate_limit_error' }), 'upstream_rate_limited')
  assert.equal(kind({ code: 'rate_limit_exceeded' }), 'upstream_rate_limited')
  assert.equal(kind({ code: 'insufficient_quota' }), 'upstream_unavailable')
  assert.equal(kind({ type: 'authentication_error' }), 'upstream_failed')
  assert.equal(kind({ type: 'invalid_request_error' }), 'upstream_invalid')
  assert.equal(kind({ type: 'request_too_large' }), 'request_too_large')
  assert.equal(kind({ code: 'context_length_exceeded' }), 'upstream_invalid')
  assert.equal(kind({ code: 'model_not_found' }), 'upstream_failed')
  assert.equal(kind({ code: 429 }), 'upstream_rate_limited')
  assert.equal(kind({ code: 503 }), 'upstream_unavailable')
  assert.equal(kind({ type: 'timeout_error' }), 'upstream_timeout')
  assert.equal(kind({ type: 'server_error' }), 'upstream_failed')
  assert.equal(kind('something'), 'upstream_failed')
  const long = vendorFault({ type: 'invalid_request_error', message: 'prompt too long for claude-5' })
  assert.equal(told(long).message, 'prompt too long for the vendor')
  assert.ok(!long.message.includes('prompt'), 'nobody was told yet')
  assert.ok(!told(vendorFault({ type: 'server_error', message: 'secret trouble' })).message.includes('secret'))
})

test('what is wrong with our account or our catalog is never the caller’s doing', () => {
  const judged = (status: number, error: object) =>
    refusal(status, readErrorBody(Buffer.from(JSON.stringify({ error }))), 'claude-5-x', {})
  const cases = fixtureOf<[number, object, string, string?][]>('vendor-errors.yaml')
  for (const [status, error, kind, ours] of cases) {
    const got = judged(status, error)
    assert.equal(got.fault.kind, kind, JSON.stringify(error))
    if (ours) assert.match(got.ours ?? '', new RegExp(ours))
    else assert.equal(got.ours, undefined)
  }
  assert.equal(judged(404, { code: 'model_not_found' }).vendorsFault, false)
})
