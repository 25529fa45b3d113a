// A configuration that LiteLLM itself has loaded, and what its router made of it, against what we make of it.
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import { assert, pluck, test } from '../../../test/kit.ts'
import { type CatalogInput, checkDocument } from '../../catalog/document.ts'
import { readPresets } from '../../catalog/preset.ts'
import { readDefaultCatalog } from '../../compose.ts'
import { importLitellm } from './litellm.ts'
import { createReport } from './report.ts'

const FIXTURES = resolve(import.meta.dirname, '..', '..', '..', 'test', 'fixtures', 'litellm')
const config: unknown = parse(await readFile(join(FIXTURES, 'config.yaml'), 'utf8'))
const seen = JSON.parse(await readFile(join(FIXTURES, 'deployments.json'), 'utf8')) as {
  deployments: { group: string; provider: string; model: string; weight: number | null; mode: string | null }[]
}
const options = { presets: await readPresets(), markup: '1.5', creditsPerDollar: '100', replace: false }
function imported(from: unknown, current: CatalogInput) {
  const { lines, say } = createReport()
  return { document: importLitellm(from, current, { ...options, say }), lines }
}
const shipped = (await readDefaultCatalog()) as CatalogInput

for (const [name, current] of [
  ['an empty catalog', { vendors: {}, models: {}, endpoints: {} }],
  ['the shipped catalog', shipped],
] as const)
  test(`every deployment that LiteLLM’s router has is a route over ${name}, but for those that are said to be left`, () => {
    const { document, lines } = imported(config, current)
    assert.deepEqual(imported(config, document).document, document, 'the same again changes nothing')
    const checked = checkDocument(document)
    assert.deepEqual(checked.ok ? [] : checked.problems, [])
    const uids: Record<string, string> = { 'Claude Sonnet': 'claude-sonnet' }
    const left = lines
      .filter(({ what, at }) => what === 'left' && /^model_list\[\d\]$/.test(at))
      .map(({ words }) => words)
    assert.equal(left.length, 1)
    for (const { group, model, weight } of seen.deployments) {
      if (left.some((words) => words.startsWith(group))) continue
      const uid = uids[group] ?? group
      const route = document.models[uid]?.routes.find(
        (one) => (one.model ?? uid) === model && (one.weight ?? null) === weight,
      )
      assert.ok(route, `${group} ${model}`)
      assert.ok(document.vendors[route.vendor], route.vendor)
    }
  })

test('addresses, credentials, costs, fallbacks and the strategy are taken over; secrets in the file are not', () => {
  const { document, lines } = imported(config, { vendors: {}, models: {}, endpoints: {} })
  const { vendors, models } = document
  assert.equal(vendors.openai?.baseUrl, 'https://api.openai.com/v1')
  const azure = vendors['azure-my-resource.openai.azure.com']
  assert.deepEqual(
    [azure?.baseUrl, azure?.credential, azure?.auth],
    ['https://my-resource.openai.azure.com/openai/v1', 'AZURE_API_KEY', { header: 'api-key' }],
  )
  assert.equal(vendors['ollama-10.1.2.3-11434']?.baseUrl, 'http://10.1.2.3:11434/v1')
  assert.deepEqual(models['house-llama']?.pricing.tiers, [{ input: '15', output: '60' }])
  assert.deepEqual(models['house-llama']?.routes[0]?.cost?.tiers, [{ input: '10', output: '40' }])
  const behind = models['gpt-5.4']?.routes.filter(({ order }) => order === 1)
  assert.deepEqual(pluck(behind, 'vendor', 'model'), [['anthropic', 'claude-sonnet-5']])
  assert.equal(models['gpt-5.4']?.routing?.policy, 'least-latency')
  assert.deepEqual(models['gpt-latest']?.pricing, models['gpt-5.4']?.pricing)
  const said = lines.map(({ at, what }) => `${what} ${at}`)
  for (const line of [
    'taken model_list[0]',
    'left model_list[0].litellm_params.rpm',
    'left model_list[1].litellm_params.api_version',
    'changed model_list[2]',
    'changed model_list[4].litellm_params.api_key',
    'taken model_list[5]',
    'left model_list[6]',
    'changed router_settings.fallbacks',
    'changed router_settings.model_group_alias',
    'taken router_settings.routing_strategy',
    'left litellm_settings.max_budget',
    'left general_settings.master_key',
  ])
    assert.ok(said.includes(line), line)
  assert.doesNotMatch(JSON.stringify({ document, lines }), /sk-in-the-file|sk-1234/)
})

test('nonsense is left with a word, and never throws', () => {
  for (const config of [
    null,
    7,
    [],
    {},
    { model_list: 3 },
    { model_list: [null, {}, { model_name: 'a', litellm_params: {} }] },
  ]) {
    const { lines, document } = imported(config, shipped)
    assert.deepEqual(document.models, shipped.models)
    assert.ok(lines.every(({ what }) => what === 'left'))
  }
})

test('an entry without a usable price is left out with a line, and the others of the file are taken', () => {
  const empty = { vendors: {}, models: {}, endpoints: {} }
  const entry = (name: string, model: string, more: object = {}) => ({
    model_name: name,
    litellm_params: { model, api_key: 'os.environ/OPENAI_API_KEY', ...more },
  })
  const { document, lines } = imported(
    {
      model_list: [
        entry('openai/*', 'openai/*'),
        entry('half', 'openai/gpt-5.4', { input_cost_per_token: 0.000009 }),
        entry('unknown-half', 'openai/no-such-model', { input_cost_per_token: 0.000009 }),
        { ...entry('pictures', 'dall-e-3', { input_cost_per_token: 0.1 }), model_info: { mode: 'image_generation' } },
        entry('whole', 'openai/mine', { input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }),
      ],
    },
    empty,
  )
  const checked = checkDocument(document)
  assert.deepEqual(checked.ok ? [] : checked.problems, [])
  const { models } = document
  assert.equal(models['openai/text-embedding-3-small']?.type, 'embedding', 'the kind is the preset’s')
  const [first] = models.half?.pricing.tiers ?? []
  assert.equal(first?.input, '1350')
  assert.equal(first?.output, '2250', 'what is missing is the preset’s')
  assert.ok(models.whole)
  const left = lines.filter(({ what, at }) => what === 'left' && /^model_list\[\d\]$/.test(at))
  assert.deepEqual(pluck(left, 'at'), ['model_list[2]', 'model_list[3]'])
  for (const { words } of left) assert.match(words, /price/)
  assert.equal(models['unknown-half'] ?? models.pictures, undefined)
})

test('clouds are found by project and region, credentials by their names, and sound by its own price', () => {
  const azure = { api_base: 'https://mine.openai.azure.com', api_key: 'os.environ/AZURE_API_KEY' }
  const vertex = { vertex_project: 'p-1', vertex_location: 'us-central1' }
  const costs = { input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }
  const entries: [name: string, params: object, mode?: string][] = [
    ['google', { model: 'vertex_ai/gemini-1', ...vertex, ...costs }],
    ['claude', { model: 'vertex_ai/claude-1', ...vertex, ...costs }],
    ['rock', { model: 'bedrock/us.anthropic.claude-1-v1:0', aws_region_name: 'us-east-1', ...costs }],
    ['named', { model: 'azure/mine', litellm_credential_name: 'shared', ...costs }],
    ['heard', { model: 'openai/mine', input_cost_per_second: 0.0001 }, 'audio_transcription'],
    ['spoken', { model: 'openai/mine', input_cost_per_character: 0.000015 }, 'audio_speech'],
    ['nowhere', { model: 'vertex_ai/gemini-1', ...costs }],
    ['evil', { model: 'bedrock/x', aws_region_name: 'evil.example/', ...costs }],
  ]
  const { document, lines } = imported(
    {
      credential_list: [{ credential_name: 'shared', credential_values: azure }],
      model_list: entries.map(([name, params, mode]) => ({
        model_name: name,
        litellm_params: params,
        model_info: { mode },
      })),
    },
    { vendors: {}, models: {}, endpoints: {} },
  )
  const checked = checkDocument(document)
  assert.deepEqual(checked.ok ? [] : checked.problems, [])
  const { models, vendors } = document
  const served = (name: string) => {
    const [route] = models[name]?.routes ?? []
    return [route?.protocol, vendors[route?.vendor ?? '']?.baseUrl]
  }
  const at = 'https://us-central1-aiplatform.googleapis.com/v1/projects/p-1/locations/us-central1/publishers'
  assert.deepEqual(served('google'), ['gemini', `${at}/google`])
  assert.deepEqual(served('claude'), ['anthropic-messages', `${at}/anthropic`])
  assert.deepEqual(served('rock'), ['anthropic-messages', 'https://bedrock-runtime.us-east-1.amazonaws.com'])
  const rock = vendors[models.rock?.routes[0]?.vendor ?? '']
  assert.deepEqual(rock?.auth, { sigv4: { region: 'us-east-1', service: 'bedrock' } })
  assert.deepEqual(served('named')[1], 'https://mine.openai.azure.com/openai/v1')
  assert.deepEqual(models.heard?.routes[0]?.cost?.tiers, [{ second: '0.01' }])
  assert.deepEqual(models.spoken?.routes[0]?.cost?.tiers, [{ character: '1500' }])
  assert.deepEqual(models.nowhere ?? models.evil, undefined)
  const why = lines.find(({ words }) => words.startsWith('nowhere'))
  assert.match(why?.words ?? '', /needs vertex_project and vertex_location/)
})
