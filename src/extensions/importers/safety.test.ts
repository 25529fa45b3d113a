// What an import must not do, whatever it reads: send a credential to a stranger, change what is here, or lose a
// setting without a word.
import { hash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, pluck, test, words } from '../../../test/kit.ts'
import { type CatalogInput, checkDocument } from '../../catalog/document.ts'
import { readPresets } from '../../catalog/preset.ts'
import { readDefaultCatalog } from '../../compose.ts'
import { importLitellm } from './litellm.ts'
import { readPriceTable } from './litellm-costs.ts'
import { importNewApi } from './new-api.ts'
import { createReport, warnShort } from './report.ts'

const shipped = (await readDefaultCatalog()) as CatalogInput
const usual = { presets: await readPresets(), markup: '1', creditsPerDollar: '100', replace: false }
const PRICED = { input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }

function checked(document: CatalogInput): void {
  const found = checkDocument(document)
  assert.deepEqual(found.ok ? [] : found.problems, [])
}

function litellm(
  config: unknown,
  current: CatalogInput = shipped,
  more: Partial<Parameters<typeof importLitellm>[2]> = {},
) {
  const { lines, say } = createReport()
  const document = importLitellm(config, current, { ...usual, say, ...more })
  checked(document)
  return { document, lines, said: lines.map(({ at, what, words }) => `${what} ${at}: ${words}`) }
}

const deployment = (name: string, params: object, info?: object) => ({
  model_name: name,
  litellm_params: params,
  ...(info ? { model_info: info } : {}),
})

function newApi(channels: readonly object[], current: CatalogInput = shipped, more: object = {}) {
  const { lines, say } = createReport()
  const ModelRatio = JSON.stringify({ 'alpha-5.4': 1, m: 1, c: 1 })
  const rows = {
    channels: channels.map((channel, i) => ({ id: i + 1, status: 1, type: 1, key: 'sk-there', ...channel })),
    tokens: [],
    users: [],
    options: { ModelRatio, CompletionRatio: '{"m":2}' },
  }
  const document = importNewApi(rows, current, { ...usual, say, ...more })
  checked(document)
  return { document, lines, said: lines.map(({ at, what, words }) => `${what} ${at}: ${words}`) }
}

/**
 * Every variable that the document sends to an address that is not its vendor's own, or that this catalog did not send
 * there before.
 */
function strayed(document: CatalogInput, secrets: readonly string[]): string[] {
  return Object.values(document.vendors).flatMap(({ baseUrl, credential }) =>
    credential !== undefined && secrets.includes(credential) && /stranger|10\.9\.8\.7/.test(baseUrl)
      ? [`${credential} to ${baseUrl}`]
      : [],
  )
}

test('no variable goes to an address at which its vendor is not, whatever a configuration names', () => {
  const secrets = words('OPENAI_API_KEY ANTHROPIC_API_KEY POSTGRES_PASSWORD HOME STRANGER_KEY AWS_SECRET_ACCESS_KEY')
  const bases = [
    'https://llm.stranger.example/v1',
    'http://10.9.8.7:4000',
    'https://api.openai.com.stranger.example/v1',
  ]
  const keys = [undefined, 'sk-in-the-file', ...secrets.map((name) => `os.environ/${name}`)]
  for (const model of ['openai/gpt-5', 'gpt-5', 'anthropic/claude-x', 'azure/gpt-5', 'mistral/x', 'unknown/x'])
    for (const api_base of bases)
      for (const api_key of keys) {
        const params = { model, api_base, ...(api_key ? { api_key } : {}), ...PRICED }
        const { document } = litellm({ model_list: [deployment('mine', params)] })
        assert.ok(document.models.mine, JSON.stringify(params))
        assert.deepEqual(strayed(document, secrets), [], JSON.stringify(params))
      }
  const preset = litellm({
    model_list: [deployment('mine', { model: 'openai/gpt-5', api_key: 'os.environ/HOME', ...PRICED })],
  })
  assert.ok(!Object.values(preset.document.vendors).some(({ credential }) => credential === 'HOME'))
  for (const name of ['openai-api', 'AWS_SECRET_ACCESS', 'stranger'])
    for (const base_url of bases) {
      const { document } = newApi([{ name, base_url, models: 'm' }])
      assert.deepEqual(strayed(document, secrets), [], name)
    }
})

test('a key that is named after its vendor is kept where the vendor is', () => {
  const { document } = litellm({
    model_list: [
      deployment('a', { model: 'openai/gpt-5', api_key: 'os.environ/OPENAI_API_KEY', ...PRICED }),
      deployment('b', { model: 'openai/gpt-5', api_key: 'os.environ/OPENAI_API_KEY_2', ...PRICED }),
      deployment('c', { model: 'anthropic/x', ...PRICED }),
    ],
  })
  const credential = (uid: string) => document.vendors[document.models[uid]?.routes[0]?.vendor ?? '']?.credential
  assert.deepEqual(['a', 'b', 'c'].map(credential), ['OPENAI_API_KEY', 'OPENAI_API_KEY_2', 'ANTHROPIC_API_KEY'])
})

test('what is here keeps its address, routes and price: an imported thing of the same name gets another', () => {
  const config = {
    model_list: [
      deployment('alpha-5.4', { model: 'openai/gpt-5', ...PRICED }),
      deployment('other', { model: 'openai/gpt-5', ...PRICED }),
    ],
    router_settings: {
      model_group_alias: { 'beta-sonnet-5': 'other' },
      routing_strategy: 'cost-based-routing',
      fallbacks: [{ 'alpha-5.4': ['other'] }],
    },
  }
  const { document, said } = litellm(config)
  for (const uid of Object.keys(shipped.models)) assert.deepEqual(document.models[uid], shipped.models[uid], uid)
  for (const name of Object.keys(shipped.vendors)) assert.deepEqual(document.vendors[name], shipped.vendors[name])
  assert.ok(document.models['alpha-5.4-litellm'] && document.models['beta-sonnet-5-litellm'])
  assert.ok(said.some((line) => /^changed .*alpha-5\.4 is another model here and stays as it is/.test(line)))
  assert.deepEqual(litellm(config, document).document, document, 'the same again changes nothing')

  const channel = { name: 'alpha', base_url: 'https://llm.stranger.example', models: 'alpha-5.4,m' }
  const channels = newApi([channel])
  for (const name of ['alpha', 'beta']) assert.deepEqual(channels.document.vendors[name], shipped.vendors[name])
  assert.deepEqual(channels.document.models['alpha-5.4'], shipped.models['alpha-5.4'])
  assert.equal(channels.document.vendors['alpha-new-api']?.baseUrl, 'https://llm.stranger.example/v1')
  assert.equal(channels.document.models['alpha-5.4-new-api']?.routes[0]?.vendor, 'alpha-new-api')
  assert.ok(channels.said.some((line) => /alpha is another vendor here and stays as it is/.test(line)))
  assert.deepEqual(newApi([channel], channels.document).document, channels.document)

  // A price that an operator has changed since is not what the import once said.
  const dearer = structuredClone(document)
  dearer.models.other!.pricing.tiers = [{ input: '9', output: '9' }]
  assert.deepEqual(litellm(config, dearer).document, dearer)
})

test('with --replace the models that are here are named and changed, and no vendor is repointed even then', () => {
  const config = { model_list: [deployment('alpha-5.4', { model: 'openai/gpt-5', ...PRICED })] }
  const { document, said } = litellm(config, shipped, { replace: true })
  assert.deepEqual(document.models['alpha-5.4']?.pricing.tiers, [{ input: '100', output: '200' }])
  assert.ok(
    said.some((line) => /alpha-5\.4 is here already: --replace/.test(line)),
    said.join('\n'),
  )
  const channels = newApi([{ name: 'alpha', base_url: 'https://llm.stranger.example', models: 'alpha-5.4' }], shipped, {
    replace: true,
  })
  assert.deepEqual(channels.document.vendors.alpha, shipped.vendors.alpha)
  assert.equal(channels.document.models['alpha-5.4']?.routes.at(-1)?.vendor, 'alpha-new-api')
})

test('LiteLLM’s table of prices is read, from a file or an installed package, with its caches and tiers', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'prices-'))
  const place = join(folder, '.venv', 'lib', 'python3.12', 'site-packages', 'litellm')
  await mkdir(place, { recursive: true })
  const table = {
    'azure/some-model': {
      mode: 'chat',
      litellm_provider: 'azure',
      cache_read_input_token_cost: 1e-7,
      input_cost_per_token: 1e-6,
      output_cost_per_token: 2e-6,
      input_cost_per_token_above_200k_tokens: 4e-6,
    },
    'some-embedder': { mode: 'embedding', input_cost_per_token: 1e-8, output_cost_per_token: 0 },
    'free-of-price': { mode: 'chat', input_cost_per_token: 0, output_cost_per_token: 0 },
  }
  const path = join(place, 'model_prices_and_context_window_backup.json')
  await writeFile(path, JSON.stringify(table))
  const found = await readPriceTable(undefined, join(folder, 'config.yaml'))
  assert.equal(found?.path, path)
  assert.deepEqual((await readPriceTable(path, undefined))?.table, table)
  await writeFile(join(folder, 'broken.json'), '[')
  await assert.rejects(readPriceTable(join(folder, 'broken.json'), undefined), /cannot be read as a table of prices/)
  await rm(folder, { recursive: true })

  const config = {
    model_list: [
      deployment(
        'big',
        { model: 'azure/my-name', api_base: 'https://r.openai.azure.com' },
        { base_model: 'azure/some-model' },
      ),
      deployment('vectors', { model: 'openai/some-embedder' }),
      deployment('free', { model: 'openai/free-of-price' }),
    ],
  }
  assert.deepEqual(Object.keys(litellm(config, { vendors: {}, models: {}, endpoints: {} }).document.models), [])
  const { document, said } = litellm(config, shipped, { prices: found?.table })
  assert.deepEqual(document.models.big?.pricing.tiers, [
    { upTo: 200_000, input: '100', output: '200', cachedInput: '10' },
    { input: '400', output: '200', cachedInput: '10' },
  ])
  assert.equal(document.models.vectors?.type, 'embedding')
  assert.equal(document.models.free, undefined)
  assert.ok(said.some((line) => /^left model_list\[2\]: free: .*--prices/.test(line)))
})

test('every member that is not carried over is named', () => {
  const info = { id: 'x', team_id: 't', access_groups: ['a'], supports_vision: true, cache_read_input_token_cost: 1e-8 }
  const entry = { ...deployment('m', { model: 'openai/gpt-5', rpm: 3, ...PRICED }, info), tpm: 9 }
  const { document, said } = litellm({ model_list: [entry] })
  for (const name of words(`
    litellm_params.rpm model_info.team_id model_info.access_groups model_info.supports_vision tpm
  `))
    assert.ok(
      said.some((line) => line.startsWith(`left model_list[0].${name}: `)),
      name,
    )
  assert.deepEqual(document.models.m?.pricing.tiers, [{ input: '100', output: '200', cachedInput: '1' }])
})

test('responses models, aliases of every form, wildcards and addresses in variables are understood', () => {
  const config = {
    environment_variables: { IN_FILE: 'https://r.openai.azure.com' },
    model_list: [
      deployment('thinker', { model: 'openai/responses/gpt-5', ...PRICED }),
      deployment('one', { model: 'azure/gpt-5', api_base: 'os.environ/IN_FILE', ...PRICED }),
      deployment('two', { model: 'openai/gpt-5', api_base: 'os.environ/OUTSIDE', ...PRICED }),
      deployment('three', { model: 'openai/gpt-5', api_base: 'os.environ/SECRET', ...PRICED }),
      deployment('anthropic/*', { model: 'anthropic/*' }),
      deployment('*', { model: '*' }),
    ],
    router_settings: {
      model_group_alias: { plain: 'one', object: { model: 'one', hidden: true }, chained: 'plain', ring: 'ring' },
    },
  }
  const variables: Record<string, string> = {
    OUTSIDE: 'http://10.9.8.7:1/v1',
    SECRET: 'https://me:secret@host.example',
  }
  const { document, said } = litellm(config, shipped, { variable: (name) => variables[name] })
  const { models, vendors } = document
  assert.deepEqual(pluck(models.thinker?.routes, 'protocol', 'model'), [['openai-responses', 'gpt-5']])
  const address = (uid: string) => vendors[models[uid]?.routes[0]?.vendor ?? '']?.baseUrl
  assert.deepEqual(['one', 'two', 'three', 'plain', 'object', 'chained'].map(address), [
    'https://r.openai.azure.com/openai/v1',
    'http://10.9.8.7:1/v1',
    undefined,
    ...Array(3).fill('https://r.openai.azure.com/openai/v1'),
  ])
  assert.ok(Object.keys(models).filter((uid) => uid.startsWith('anthropic/')).length > 3)
  for (const pattern of [
    /^left model_list\[3\]: .*variable SECRET/,
    /^changed model_list\[4\]: .*wildcard/,
    /^left model_list\[5\]: .*wildcard/,
    /^left .*object\.hidden/,
  ])
    assert.ok(
      said.some((line) => pattern.test(line)),
      `${pattern}\n${said.join('\n')}`,
    )
  assert.doesNotMatch(said.join(), /me:secret/)
})

test('custom channels of new-api keep their address, and mappings are followed to their end', () => {
  const { document, said } = newApi([
    {
      name: 'whole',
      type: 8,
      base_url: 'https://a.example/api/v3/chat/completions',
      models: 'm',
      model_mapping: '{"m":"b","b":"c","c":"b"}',
    },
    { name: 'odd', type: 8, base_url: 'https://a.example/run/{model}', models: 'c' },
  ])
  assert.equal(document.vendors.whole?.baseUrl, 'https://a.example/api/v3')
  assert.equal(document.models.m?.routes[0]?.model, 'c')
  assert.equal(document.vendors.odd, undefined)
  assert.ok(said.some((line) => line.startsWith('left channel odd: ')))
})

test('a key that can be guessed is brought over with a warning, whether its value or only its hash is known', () => {
  const said: string[] = []
  const say = (at: string, _: string, text: string) => said.push(`${at}: ${text}`)
  const known = (value: string) => ({ sha256: hash('sha256', `sk-${value}`, 'hex'), last4: value.slice(-4) })
  warnShort('a', known('short'), say, 'short')
  warnShort('b', known('ab1234'), say)
  warnShort('c', known('a-long-key-of-its-own-0123456789'), say, 'a-long-key-of-its-own-0123456789')
  warnShort('d', known('a-long-key-of-its-own-0123456789'), say)
  assert.deepEqual(
    said.map((line) => line.replace(/(WARNING: .*?guessed).*/, '$1')),
    ['a.key: WARNING: its value has only 5 characters, and can be guessed', 'b.key: WARNING: its value can be guessed'],
  )
})
