import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readJson } from '../../kernel/json.ts'
import type { ClientFormatName } from '../../meter/kind.ts'
import { FORMATS } from './formats.ts'
import { admitMembers, withoutUnknown } from './request-members.ts'

const read = (value: object) => readJson(Buffer.from(JSON.stringify(value)))
const admitted = (value: object, format: ClientFormatName = 'openai-chat', allowed: string[] = []) => {
  const { json, unknown } = admitMembers(FORMATS[format].members, read(value), allowed)
  return { value: json.value, others: withoutUnknown(json, unknown).value }
}

test('what spends or acts for the operator is refused by its name, unless the catalog lets it through or it does nothing', () => {
  const spending = {
    data_sources: [{}],
    provider: { order: ['dear'] },
    preset: 'ours',
    compound_custom: { tools: {} },
    plugins: [{}],
    search_settings: { country: 'x' },
    extra_body: { a: 1 },
    models: ['m'],
    search_parameters: { mode: 'on' },
    best_of: 2,
  }
  for (const [name, value] of Object.entries(spending)) {
    assert.throws(() => admitted({ model: 'm', [name]: value }), new RegExp(`"${name}"`))
    assert.deepEqual(admitted({ model: 'm', [name]: value }, 'openai-chat', [name]).value, {
      model: 'm',
      [name]: value,
    })
  }
  const idle = {
    plugins: [],
    models: [],
    fallbacks: null,
    search_parameters: { mode: 'off' },
    enable_search: false,
    best_of: 1,
  }
  assert.deepEqual(admitted({ model: 'm', ...idle }).value, { model: 'm' })
})

test('settings of proxies and servers reach no vendor, and what nobody knows only the maker of the format', () => {
  assert.deepEqual(admitted({ model: 'm', api_base: 'x', route: 'fallback', transforms: [1], priority: 9 }).value, {
    model: 'm',
  })
  const { value, others } = admitted({ model: 'm', brand_new: 1, top_k: 3 })
  assert.deepEqual(
    [value, others],
    [
      { model: 'm', brand_new: 1, top_k: 3 },
      { model: 'm', top_k: 3 },
    ],
  )
})

test('one limit is sent under one name, and two that differ are refused', () => {
  assert.deepEqual(admitted({ max_completion_tokens: 7 }).value, { max_completion_tokens: 7 })
  assert.deepEqual(admitted({ max_completion_tokens: 1, max_tokens: 4096 }).value, { max_tokens: 1 })
  assert.deepEqual(admitted({ n_predict: 50 }).value, { max_tokens: 50 })
  assert.deepEqual(admitted({ n_predict: 50, max_tokens: 50 }).value, { max_tokens: 50 })
  assert.deepEqual(admitted({ n_predict: -1 }).value, {})
  assert.deepEqual(admitted({ max_tokens: 9 }, 'openai-responses').value, { max_output_tokens: 9 })
  assert.throws(() => admitted({ n_predict: 9999, max_tokens: 1 }), /"n_predict" and "max_tokens"/)
  assert.throws(() => admitted({ max_output_tokens: 9999, max_completion_tokens: 1 }), /"max_output_tokens"/)
  assert.throws(() => admitted({ n_predict: 'many' }), /"n_predict" must be a whole number/)
})

test('every member that the SDKs of a format can send has a rule', () => {
  const params: [ClientFormatName, file: string, name: string][] = [
    ['openai-chat', 'openai/resources/chat/completions/completions.d.ts', 'ChatCompletionCreateParamsBase'],
    ['openai-responses', 'openai/resources/responses/responses.d.ts', 'ResponseCreateParamsBase'],
    ['anthropic-messages', '@anthropic-ai/sdk/resources/messages/messages.d.ts', 'MessageCreateParamsBase'],
    ['anthropic-messages', '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts', 'MessageCreateParamsBase'],
  ]
  for (const [format, file, name] of params) {
    const types = readFileSync(`node_modules/${file}`, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
    const body = new RegExp(`export interface ${name} \\{([\\s\\S]*?)\\n\\}`).exec(types)?.[1] ?? ''
    const members = [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, member]) => member ?? '')
    assert.ok(members.length > 1, name)
    const { unknown } = admitMembers(
      FORMATS[format].members,
      read(Object.fromEntries(members.map((member) => [member, null]))),
    )
    assert.deepEqual(unknown, [], `${format}: no rule`)
  }
})
