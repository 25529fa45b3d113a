// A configuration that LiteLLM itself has loaded, and what its router made of it, against what we make of it.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { type CatalogInput, checkDocument } from '../catalog/document.ts'
import { readPresets } from '../catalog/preset.ts'
import { readDefaultCatalog } from '../compose.ts'
import { importLitellm } from './litellm.ts'
import { createReport } from './report.ts'

const FIXTURES = resolve(import.meta.dirname, '..', '..', 'test', 'fixtures', 'litellm')
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
    assert.equal(left.length, 2)
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
  assert.deepEqual(
    behind?.map(({ vendor, model }) => [vendor, model]),
    [['anthropic', 'claude-sonnet-5']],
  )
  assert.equal(models['gpt-5.4']?.routing?.policy, 'least-latency')
  assert.deepEqual(models['gpt-latest']?.pricing, models['gpt-5.4']?.pricing)
  const said = lines.map(({ at, what }) => `${what} ${at}`)
  for (const line of [
    'taken model_list[0]',
    'left model_list[0].litellm_params.rpm',
    'left model_list[1].litellm_params.api_version',
    'changed model_list[2]',
    'changed model_list[4].litellm_params.api_key',
    'left model_list[5]',
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
