// The OpenAPI document in the hands of others: three validators find nothing, and what two generators make of it
// compiles and works in front of the real gateway.
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assert, type TestContext, test, testGateway, words } from '../gateway.ts'
import { npmPackages, pythonWith, runProgram } from './cache.ts'
import { openGoogleDoor } from './families.ts'

const NPM_TOOLS = words(`
  @redocly/cli@2.73.0 @stoplight/spectral-cli@6.16.3 openapi-typescript@7.13.0 openapi-fetch@0.17.0 typescript@5.9.3
`)
// A WebSocket opens with 101.
const RULES = 'extends: ["spectral:oas"]\nrules:\n  operation-success-response: off\n'
const NO_2XX = ['--skip-rule', 'operation-2xx-response']
const SCRIPTS = join(import.meta.dirname, 'python')

let key: string
let room: string
let document: string
const g = testGateway({ catalog: openGoogleDoor }, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
  room = join(g.config.TOLLGATE_DATA, 'tools')
  await mkdir(room)
  document = join(room, 'openapi.json')
  await writeFile(document, await (await fetch(`${g.url}/openapi.json`)).text())
  await writeFile(join(room, 'rules.yaml'), RULES)
})

/** Nothing of the machine's settings, such as a proxy or somebody's key. */
const env = () => ({ PATH: process.env.PATH, HOME: room, GATEWAY: g.url, GATEWAY_KEY: key, REDOCLY_TELEMETRY: 'off' })

async function npmTools(t: TestContext): Promise<string | undefined> {
  const made = await npmPackages(NPM_TOOLS)
  if ('directory' in made) return join(made.directory, 'node_modules')
  console.log(`Validators and openapi-typescript were not tested: ${made.missing}`)
  t.skip(made.missing)
  return undefined
}

async function pythonTools(t: TestContext): Promise<string | undefined> {
  const made = await pythonWith(join(SCRIPTS, 'tools.txt'))
  if ('python' in made) return made.python
  console.log(`openapi-spec-validator and openapi-python-client were not tested: ${made.missing}`)
  t.skip(made.missing)
  return undefined
}

async function run(program: string, args: readonly string[]): Promise<string> {
  const ran = await runProgram(program, args, { env: env(), cwd: room })
  assert.equal(ran.code, 0, `${ran.out}\n${ran.err}`.slice(0, 4_000))
  return ran.out
}

test('redocly and spectral find nothing in the document', async (t) => {
  const tools = await npmTools(t)
  if (tools === undefined) return
  const [spectral, redocly] = await Promise.all([
    run(process.execPath, [
      join(tools, '@stoplight/spectral-cli/dist/index.js'),
      'lint',
      document,
      '-r',
      join(room, 'rules.yaml'),
      '-f',
      'json',
      '--fail-severity',
      'hint',
    ]),
    run(process.execPath, [join(tools, '@redocly/cli/bin/cli.js'), 'lint', document, ...NO_2XX, '--format', 'json']),
  ])
  assert.match(spectral, /^\[\s*\]/)
  assert.deepEqual(JSON.parse(redocly).totals, { errors: 0, warnings: 0, ignored: 0 })
})

/** What somebody would write with the generated types; the lines that are marked must not compile. */
const SAMPLE = `import createClient from 'openapi-fetch'
import type { paths } from './types'

const client = createClient<paths>({
  baseUrl: process.env.GATEWAY!,
  headers: { authorization: 'Bearer ' + process.env.GATEWAY_KEY },
})
function must<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error))
  return answer.data
}
const chat = must(await client.POST('/v1/chat-completions', {
  body: {
    model: 'alpha-5.4',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
  },
}))
const visits = must(await client.GET('/v1/siteanalytics/websites/visits', {
  params: { query: { keys: 'example.com', webSource: 'Desktop', country: 840 } },
}))
const user = must(await client.GET('/v1/social/users', {
  params: { query: { username: 'walker137', 'user.fields': 'created_at,public_metrics' } },
}))
const quote = must(await client.POST('/v1/quote', { body: { model: 'alpha-5.4', messages: [{ role: 'user', content: 'x' }] } }))
const account = must(await client.GET('/v1/account'))
// @ts-expect-error not a source
void client.GET('/v1/siteanalytics/websites/visits', { params: { query: { keys: 'example.com', webSource: 'Phone' } } }).catch(() => {})
// @ts-expect-error a number is wanted
void client.GET('/v1/siteanalytics/websites/visits', { params: { query: { keys: 'example.com', country: 'us' } } }).catch(() => {})
if (typeof chat === 'string') throw new Error('no stream was asked for')
const texts: (string | null)[] = chat.choices.map((choice) => choice.message.content)
const visited: number | null | undefined = visits.Data?.['example.com']?.TotalVisits
const followers: number | undefined = user.data.public_metrics?.followers_count
console.log(JSON.stringify({ texts, visited, followers, most: quote.data.costAtMost, available: account.data.available }))
`

test('what openapi-typescript makes of the document compiles, refuses wrong values, and works', async (t) => {
  const tools = await npmTools(t)
  if (tools === undefined) return
  await run(process.execPath, [join(tools, 'openapi-typescript/bin/cli.js'), document, '-o', join(room, 'types.ts')])
  await writeFile(join(room, 'sample.mts'), SAMPLE)
  await writeFile(join(room, 'package.json'), '{"type":"module"}')
  await symlink(tools, join(room, 'node_modules'))
  await run(process.execPath, [
    join(tools, 'typescript/bin/tsc'),
    ...'--strict --noEmit --skipLibCheck --target es2022 --module esnext --moduleResolution bundler'.split(' '),
    '--types',
    'node',
    '--typeRoots',
    join(import.meta.dirname, '../../node_modules/@types'),
    'sample.mts',
  ])
  const said = JSON.parse(await run(process.execPath, ['sample.mts']))
  assert.ok(said.texts[0].length > 0)
  assert.ok(said.visited > 0 && said.followers >= 0)
  assert.match(said.most, /^\d+(\.\d+)?$/)
})

test('openapi-spec-validator finds nothing, and what openapi-python-client makes of the document works', async (t) => {
  const python = await pythonTools(t)
  if (python === undefined) return
  const client = join(room, 'generated')
  const config = join(room, 'config.yaml')
  await writeFile(config, 'post_hooks: []\ncontent_type_overrides: { video/mp4: application/octet-stream }\n')
  const [, made] = await Promise.all([
    run(python, ['-m', 'openapi_spec_validator', document]),
    run(python, [
      '-m',
      'openapi_python_client',
      'generate',
      '--path',
      document,
      '--output-path',
      client,
      '--meta',
      'none',
      '--config',
      config,
      '--fail-on-warning',
    ]),
  ])
  assert.doesNotMatch(made, /warning|error/i)
  const said = JSON.parse(await run(python, [join(SCRIPTS, 'generated_client.py'), room]))
  assert.ok(said.text.length > 0 && said.visited > 0 && said.tweets > 0)
  assert.match(said.most, /^\d+(\.\d+)?$/)
  assert.equal(said.refused, 400)
})
