// Programs that speak Google's format and are not Google's SDKs: Gemini CLI in two versions, LangChain in two
// languages.

import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assert, test, testGateway } from '../gateway.ts'
import { installed, npmPackages, pythonWith, runProgram } from '../sdk/cache.ts'
import { everyKind } from '../sdk/families.ts'
import { passing } from './passing.ts'

const RUN_MS_MAX = 120_000
/** One whose vendor speaks the format, and one that is converted. */
const MODELS = ['delta-own', 'beta-sonnet-5']
const CLI = ['@google/gemini-cli@0.61.0', '@google/gemini-cli@0.58.0']
const LANGCHAIN = ['@langchain/google-genai@2.3.2', '@langchain/core@1.2.13']
const SDK = join(import.meta.dirname, '..', 'sdk')

let key: string
const g = testGateway({ catalog: everyKind }, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
})

/** What the command line asked, and how it was answered. */
const { seen, between } = passing(g)

/** Nothing of the machine's settings, such as a proxy or somebody's key. */
const environment = () => ({ PATH: process.env.PATH, HOME: g.config.TOLLGATE_DATA, GATEWAY: g.url, GATEWAY_KEY: key })

const SETTINGS = {
  security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
  privacy: { usageStatisticsEnabled: false },
  general: { disableAutoUpdate: true, enableAutoUpdate: false },
}
/**
 * Without a file, an address in GOOGLE_GEMINI_BASE_URL makes it choose a kind of sign-in that it then refuses; Vertex
 * mode needs no file.
 */
const WAYS: readonly { way: string; settings?: object; env(address: string): Record<string, string> }[] = [
  {
    way: 'a settings file',
    settings: SETTINGS,
    env: (address) => ({ GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: address }),
  },
  {
    way: 'the environment alone',
    env: (address) => ({ GOOGLE_GENAI_USE_VERTEXAI: 'true', GOOGLE_API_KEY: key, GOOGLE_VERTEX_BASE_URL: address }),
  },
]

for (const version of CLI)
  test(`${version} answers, streams and calls a tool`, async (t) => {
    const program = await installed(t, version, '@google/gemini-cli/bundle/gemini.js')
    if (program === undefined) return
    for (const [model, { way, settings, env }] of MODELS.flatMap((one) => WAYS.map((by) => [one, by] as const)))
      await t.test(`${model}, by ${way}`, async () => {
        const home = await mkdtemp(join(g.config.TOLLGATE_DATA, 'gemini-'))
        const work = join(home, 'work')
        await mkdir(work)
        await writeFile(join(work, 'notes.txt'), 'The gate opens at dawn.\n')
        if (settings) {
          await mkdir(join(home, '.gemini'))
          await writeFile(join(home, '.gemini', 'settings.json'), JSON.stringify(settings))
        }
        const ask = async (prompt: string) => {
          const before = seen.length
          const ran = await runProgram(
            process.execPath,
            [program, '--model', model, '--approval-mode', 'yolo', '--output-format', 'json', '--prompt', prompt],
            {
              cwd: work,
              timeoutMs: RUN_MS_MAX,
              env: {
                PATH: process.env.PATH,
                HOME: home,
                CI: '1',
                NO_COLOR: '1',
                GEMINI_CLI_TRUST_WORKSPACE: 'true',
                ...env(`${between.url}/gemini`),
              },
            },
          )
          const asked = seen.slice(before)
          const said = `${ran.out}\n${ran.err.slice(-3000)}\n${asked.map(({ path, status }) => `${status} ${path}`).join('\n')}`
          assert.equal(ran.code, 0, said)
          for (const { status } of asked) assert.equal(status, 200, said)
          const { response } = JSON.parse(ran.out.slice(ran.out.indexOf('{'))) as { response: string }
          return { response, asked: asked.filter(({ path }) => path.includes(`${model}:`)), said }
        }
        const hello = await ask('Hello')
        assert.match(hello.response, /simulated|sandbox/i, hello.said)
        assert.ok(
          hello.asked.some(({ path }) => path.includes(':streamGenerateContent')),
          hello.said,
        )
        const tool = await ask('List what is in this directory. Use list_directory.')
        assert.ok(tool.asked.length >= 2, tool.said)
        assert.ok(
          tool.asked.some(({ body }) => body.includes('functionResponse') && body.includes('notes.txt')),
          tool.said,
        )
      })
  })

const PROGRAM = `import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatGoogleGenerativeAI, GoogleGenerativeAIEmbeddings } from '@langchain/google-genai'

const { GATEWAY, GATEWAY_KEY: apiKey, MODELS } = process.env
const baseUrl = GATEWAY + '/gemini'
const weather = tool(async () => '12 degrees', {
  name: 'get_weather',
  description: 'The current weather in a city.',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
})
const said = {}
for (const model of MODELS.split(',')) {
  const chat = new ChatGoogleGenerativeAI({ model, apiKey, baseUrl, maxRetries: 0 })
  const answer = await chat.invoke('Say hello.')
  let streamed = ''
  for await (const piece of await chat.stream('Hello [[chunks=20]]')) streamed += piece.text
  const bound = chat.bindTools([weather])
  const turns = [new HumanMessage('What is the weather in Oslo? Use get_weather.')]
  const asked = await bound.invoke(turns)
  const [call] = asked.tool_calls
  const result = new ToolMessage({ content: '12 degrees', tool_call_id: call.id, name: call.name })
  const last = await bound.invoke([...turns, asked, result])
  said[model] = { answer: answer.text, streamed, call: call.name, last: last.text, tokens: answer.usage_metadata.output_tokens }
}
const embeddings = new GoogleGenerativeAIEmbeddings({ model: 'alpha-embed-3-small', apiKey, baseUrl })
const vectors = (await embeddings.embedDocuments(['The gate is open.', 'Soup.'])).map(({ length }) => length)
const query = (await embeddings.embedQuery('The gate is open.')).length
const nobody = new ChatGoogleGenerativeAI({ model: 'nobody', apiKey, baseUrl, maxRetries: 0 })
const refusal = await nobody.invoke('Hello').catch((error) => error.message)
console.log(JSON.stringify({ said, vectors, query, refusal }))
`

test('LangChain for JavaScript answers, streams, calls a tool and embeds', async (t) => {
  const made = await npmPackages(LANGCHAIN)
  if ('missing' in made) {
    console.log(`LangChain for JavaScript was not tested: ${made.missing}`)
    return t.skip(made.missing)
  }
  const file = join(made.directory, 'google.mjs')
  await writeFile(file, PROGRAM)
  const env = { ...environment(), MODELS: MODELS.join(',') }
  const { out, err, code } = await runProgram(process.execPath, [file], { env, timeoutMs: RUN_MS_MAX })
  assert.equal(code, 0, err)
  const { said, vectors, query, refusal } = JSON.parse(out.trim().split('\n').at(-1)!)
  for (const model of MODELS) {
    const { answer, streamed, call, last, tokens } = said[model]
    assert.ok(answer.length > 0 && streamed.length > 0 && tokens > 0, out)
    assert.equal(call, 'get_weather')
    assert.match(last, /12 degrees/)
  }
  assert.deepEqual([vectors, query], [[1536, 1536], 1536])
  assert.match(refusal, /does not exist/)
})

test('LangChain for Python answers, streams, calls a tool and embeds', async (t) => {
  const found = await pythonWith(join(SDK, 'python', 'langchain-google.txt'))
  if ('missing' in found) {
    console.log(`LangChain for Python was not tested: ${found.missing}`)
    return t.skip(found.missing)
  }
  const script = join(SDK, 'python', 'langchain_google_sdk.py')
  const { out, err, code } = await runProgram(found.python, [script], { env: environment(), timeoutMs: RUN_MS_MAX })
  assert.equal(code, 0, err)
  const checks = out.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
  assert.equal(checks.length, 4)
  for (const { name, trace } of checks) await t.test(name, () => assert.equal(trace, null, trace ?? ''))
})
