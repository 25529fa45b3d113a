// What guardrails see of a request: every text but what the format itself means something by.
import { assert, test } from '../../../test/kit.ts'
import type { CatalogDocument } from '../../catalog/document.ts'
import { readJson } from '../../kernel/json.ts'
import { createSecrets } from '../../kernel/secret.ts'
import { createGuardrails } from './chain.ts'
import { reviewGuardrails } from './review.ts'
import { guardrailSection } from './rules.ts'

const MAIL = 'jo@mail.example.org'
const CARD = '4111111111111111'
const KEY = `sk-proj-${'1'.repeat(24)}`

const hooks = { ask: () => assert.fail('no rule here asks anybody') }

function guardOf(isModel = true, rule: object = {}, call: object = {}) {
  const redact = { patterns: ['email', 'card', 'phone', 'api_key'] }
  const document = {
    guardrails: guardrailSection.schema.parse({ all: { models: ['m'], redact, ...rule } }),
  } as CatalogDocument // No more is read.
  const whose = { account: 'acc_1', keys: ['key_2', 'key_1'], products: ['m'], isModel, labels: undefined, ...call }
  return createGuardrails({ secrets: createSecrets('of a test'), hooks }).find(document, whose)
}
const json = (value: unknown) => readJson(Buffer.from(JSON.stringify(value)))
const textsOf = (value: unknown, isModel?: boolean) => guardOf(isModel)!.textsOf(JSON.stringify(value))
const redacted = (value: unknown, isModel?: boolean) => guardOf(isModel)!.redact(json(value)).text

test('checks by others see every text of a request, and none of its settings', () => {
  const source = { type: 'text', media_type: 'text/plain', data: 'one' }
  const document = { type: 'document', source, title: 'two', context: 'three' }
  const tools = [{ type: 'function', function: { name: 'f', description: 'four', parameters: { type: 'object' } } }]
  const items = [
    { type: 'code_interpreter_call', id: 'ci_1', code: 'five', outputs: [{ type: 'logs', logs: 'six' }] },
    { type: 'file_search_call', queries: ['seven'] },
    { type: 'local_shell_call', action: { type: 'exec', command: ['eight'] } },
    { type: 'mcp_call', error: 'nine' },
  ]
  const all = {
    model: 'm',
    tool_choice: 'auto',
    service_tier: 'default',
    messages: [{ role: 'user', content: [document] }],
    tools,
    input: items,
    prompt: { id: 'pmpt_1', variables: { a: 'ten' } },
    suffix: 'eleven',
    contents: [{ role: 'user', parts: [{ executableCode: { language: 'PYTHON', code: 'twelve' } }] }],
  }
  const words = 'one two three four five six seven eight nine ten eleven twelve'.split(' ')
  assert.deepEqual(textsOf(all), words)
  const picture = { image_url: { url: `data:image/png;base64,${'QUJD'.repeat(50)}` }, b64_json: 'QUJD'.repeat(50) }
  assert.deepEqual(textsOf({ messages: [picture] }), [])
})

test('every leaf of a tool’s arguments is a text, whatever it is called, and long numbers are redacted', () => {
  assert.deepEqual(textsOf({ message: 'a', q: 'b', body: 'c', type: 'd', name: 'e' }, false), ['a', 'b', 'c', 'd', 'e'])
  const sent = redacted({ card: Number(CARD), name: MAIL, count: 12 }, false)
  assert.ok(!sent.includes(CARD) && !sent.includes(MAIL) && sent.includes('"count":12'), sent)
})

test('only encoded files are passed over, and keys and numbers are found in ids and names too', () => {
  const plain = [
    { url: `data:text/plain,${MAIL}` },
    { data: `data:${MAIL}` },
    { url: `data:text/plain;base64,${MAIL}` },
  ]
  for (const one of plain) assert.ok(!redacted({ messages: [one] }).includes(MAIL), JSON.stringify(one))
  const inTool = { messages: [{ input: { data: KEY.padEnd(200, '1') } }] }
  assert.ok(!redacted(inTool).includes(KEY))
  const labels = { messages: [{ name: KEY, tool_call_id: CARD, id: '415-555-0123' }] }
  const sent = redacted(labels)
  assert.ok(![KEY, CARD, '415-555-0123'].some((one) => sent.includes(one)), sent)
  const ids = { messages: [{ id: `call_${CARD}`, name: 'get_weather' }] }
  assert.equal(redacted(ids), JSON.stringify(ids), 'an id that was made by chance stays')
})

test('a key that was rotated is still the one that a rule names', () => {
  assert.ok(guardOf(true, { keys: ['key_1'] }))
  assert.ok(!guardOf(true, { keys: ['key_3'] }))
  assert.ok(!guardOf(true, { keys: ['key_3'] }, { keys: ['key_2', undefined] }))
})

test('changes in sentences: new guardrails', () => {
  const rules = {
    hide: { redact: { patterns: ['email'] } },
    policy: { hook: { url: 'https://checks.example.com/a?token=secret' } },
    nice: { moderate: { model: 'judge' } },
  }
  assert.deepEqual(reviewGuardrails(undefined, rules), [
    'Guardrail hide is added: it redacts what its patterns find.',
    'Guardrail policy is added: it asks checks.example.com.',
    'Guardrail nice is added: it asks the model judge.',
  ])
})
