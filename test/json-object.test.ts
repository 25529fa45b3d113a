// JSON without a schema, asked of a model whose vendor has no field for it: said in words, never left out.
import OpenAI from 'openai'
import { assert, test, testGateway } from './gateway.ts'
import { openAllDoors } from './sdk/families.ts'

let key: string
const g = testGateway({ catalog: openAllDoors, isShared: true }, async () => {
  key = (await g.account()).key
})
const system = () => JSON.stringify(JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}').system)
const MODEL = 'beta-haiku-4-5'
const PROMPT = 'List two colours as JSON.'

test('json_object reaches a Messages vendor as an instruction, beside those of the caller, and the answer is JSON', async () => {
  const client = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
  const chat = await client.chat.completions.create({
    model: MODEL,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: PROMPT },
    ],
    response_format: { type: 'json_object' },
  })
  assert.match(system(), /Be brief\..*one JSON object and nothing else/)
  assert.equal(typeof JSON.parse(chat.choices[0]?.message.content ?? ''), 'object')
  const response = await client.responses.create({
    model: MODEL,
    input: PROMPT,
    text: { format: { type: 'json_object' } },
  })
  assert.match(system(), /one JSON object and nothing else/)
  assert.equal(typeof JSON.parse(response.output_text), 'object')
  const body = { contents: [{ parts: [{ text: PROMPT }] }], generationConfig: { responseMimeType: 'application/json' } }
  assert.equal((await g.call(`/gemini/v1beta/models/${MODEL}:generateContent`, key, body)).status, 200)
  assert.match(system(), /one JSON object and nothing else/)
  await client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content: PROMPT }] })
  assert.equal(system(), undefined)
})

test('the instruction is held for: a hold covers what the vendor counts', async () => {
  const body = { model: MODEL, max_tokens: 1, messages: [{ role: 'user', content: 'a' }] }
  const quote = async (more: object) => {
    const response = await g.call('/v1/quote?endpoint=chat', key, { ...body, ...more })
    return ((await response.json()) as { data: { worstCase: { input: number } } }).data.worstCase.input
  }
  const more = { response_format: { type: 'json_object' } }
  assert.ok((await quote(more)) - (await quote({})) > 30)
  const response = await g.call('/v1/chat-completions', key, { ...body, ...more })
  const { usage } = (await response.json()) as { usage: { prompt_tokens: number } }
  assert.ok(usage.prompt_tokens > 10 && usage.prompt_tokens <= (await quote(more)), String(usage.prompt_tokens))
})
