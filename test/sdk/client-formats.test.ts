// What the README says of the SDKs: as shipped each model has the formats of the contract, and one command opens all of
// them for all.
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { assert, OPERATOR_TOKEN, test, testGateway } from '../gateway.ts'
import { runProgram } from './cache.ts'

let key: string
const g = testGateway({ env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN } }, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
})

/** The command itself, as an operator types it. */
async function tollgate(...args: string[]): Promise<string> {
  const { code, out, err } = await runProgram(process.execPath, ['bin/tollgate.js', ...args], {
    env: { PATH: process.env.PATH, TOLLGATE_URL: g.url, TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN },
    timeoutMs: 60_000,
  })
  assert.equal(code, 0, err)
  return out
}

const SAY = 'Hello!'
const clients: Record<string, (model: string) => Promise<string | null | undefined>> = {
  async openai(model) {
    const client = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
    const chat = await client.chat.completions.create({ model, messages: [{ role: 'user', content: SAY }] })
    return chat.choices[0]?.message.content
  },
  async 'openai responses'(model) {
    const client = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
    return (await client.responses.create({ model, input: SAY })).output_text
  },
  async anthropic(model) {
    const client = new Anthropic({ apiKey: key, baseURL: `${g.url}/beta`, maxRetries: 0 })
    const message = await client.messages.create({
      model,
      max_tokens: 2000,
      messages: [{ role: 'user', content: SAY }],
    })
    return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  },
  async genai(model) {
    const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: `${g.url}/gemini` } })
    return (await client.models.generateContent({ model, contents: SAY })).text
  },
}

/** For each SDK the models that answer it. */
async function answered(): Promise<Record<string, string[]>> {
  const models = Object.entries(g.gateway.catalog.current.input.models)
    .filter(([, { type, enabled }]) => type === 'text' && enabled !== false)
    .map(([uid]) => uid)
  const found: Record<string, string[]> = {}
  for (const [sdk, ask] of Object.entries(clients)) {
    const answers = await Promise.all(
      models.map((model) => ask(model).catch((error) => assert.equal(error.status, 400))),
    )
    found[sdk] = models.filter((_, at) => answers[at])
  }
  return found
}

test('one command makes every SDK work with every text model, and takes it back', async () => {
  const families = (uids: string[] = []) => [...new Set(uids.map((uid) => uid.split('-')[0]))]
  const shipped = await answered()
  const all = shipped.openai ?? []
  assert.ok(all.length > 20)
  assert.deepEqual(families(shipped['openai responses']), ['alpha'])
  assert.deepEqual(families(shipped.anthropic), ['beta'])
  assert.deepEqual(shipped.genai, [])
  assert.match(await tollgate('catalog', 'formats', 'all'), /Every text model is offered in every client format/)
  for (const [sdk, models] of Object.entries(await answered())) assert.deepEqual(models, all, sdk)
  await tollgate('catalog', 'formats', 'listed')
  assert.deepEqual(await answered(), shipped)
})
