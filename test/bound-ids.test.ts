// Ids in requests by which a vendor would look up what it keeps: they are for the account that they were made for, although all
// accounts share the vendor's credential.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI from 'openai'
import { testGateway } from './gateway.ts'
import { openAllDoors } from './sdk/families.ts'

let key: string
let account: string
const g = testGateway(
  {
    catalog(document) {
      openAllDoors(document)
      const model = document.models['alpha-5.4']!
      model.traits = { ...model.traits, hostedTools: ['file_search', 'code_interpreter'], sharedIds: ['vs_operator'] }
    },
  },
  async () => {
    const made = await g.account()
    key = made.key
    account = made.id
  },
)
const client = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })
const said = (...content: object[]) => ({ input: [{ role: 'user', content }] })
const chat = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const RESPONSES = '/v1/responses'
const MESSAGES = '/v1/messages'
const CHAT = '/v1/chat/completions'

test('an id that was not made for the account is refused by its field, with nothing held, and no vendor hears of it', async () => {
  const cases: Array<[path: string, body: object, status: number, param: string]> = [
    [RESPONSES, { conversation: 'conv_1' }, 404, 'conversation'],
    [RESPONSES, { conversation: { id: 'conv_1' } }, 404, 'conversation'],
    [RESPONSES, { prompt: { id: 'pmpt_1' } }, 400, 'prompt.id'],
    [RESPONSES, { input: [{ type: 'item_reference', id: 'msg_1' }] }, 404, 'input[0]'],
    [RESPONSES, { input: [{ id: 'msg_1' }] }, 400, 'input[0].role'],
    [RESPONSES, { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, 404, 'input[0]'],
    [RESPONSES, { input: [{ type: 'image_generation_call', id: 'ig_1' }] }, 404, 'input[0]'],
    [RESPONSES, said({ type: 'input_file', file_id: 'file-1' }), 400, 'input[0].content[0].file_id'],
    [RESPONSES, said({ type: 'input_image', file_id: 'file-1' }), 400, 'input[0].content[0].file_id'],
    [RESPONSES, said({ type: 'input_file', File_ID: 'file-1' }), 400, 'input[0].content[0].File_ID'],
    [RESPONSES, { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }, 400, 'tools[0].vector_store_ids'],
    [RESPONSES, { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }, 400, 'tools[0].container'],
    [
      RESPONSES,
      { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['file-1'] } }] },
      400,
      'tools[0].container.file_ids',
    ],
    [CHAT, chat({ type: 'file', file: { file_id: 'file-1' } }), 400, 'messages[0].content[0].file.file_id'],
    [CHAT, { messages: [{ role: 'assistant', audio: { id: 'a' } }] }, 400, 'messages[0].audio'],
    [MESSAGES, { container: 'container_1' }, 400, 'container'],
    [
      MESSAGES,
      chat({ type: 'document', source: { type: 'file', file_id: 'file_1' } }),
      400,
      'messages[0].content[0].source.file_id',
    ],
  ]
  g.sandbox.seen.clear()
  for (const [path, over, status, param] of cases) {
    const model = path === MESSAGES ? 'beta-sonnet-4-6' : 'alpha-5.4'
    const plain =
      path === RESPONSES
        ? { input: 'Hello.' }
        : { max_tokens: 50, messages: chat({ type: 'text', text: 'Hello.' }).messages }
    const answer = await g.call(path, key, { model, ...plain, ...over }, { headers: { 'x-stainless-lang': 'js' } })
    const told = await answer.text()
    assert.equal(answer.status, status, `${param}: ${told}`)
    if (path !== MESSAGES) assert.equal((JSON.parse(told) as any).error.param, param)
    else assert.ok(told.includes(param), told)
  }
  // An escaped letter hides no name.
  const hidden = `{"model":"alpha-5.4","input":[{"role":"user","content":[{"type":"input_file","file\\u005fid":"file-1"}]}]}`
  const answer = await fetch(`${g.url}${RESPONSES}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: hidden,
  })
  assert.equal(answer.status, 400, await answer.text())
  assert.equal(g.sandbox.seen.requests, 0)
  assert.equal((await g.balance(account)).held, 0n)
})

test('what a tool, a schema or a quotation calls a file is nobody’s id', async () => {
  const answer = await g.call(RESPONSES, key, {
    model: 'alpha-5.4',
    tools: [
      { type: 'function', name: 'open', parameters: { type: 'object', properties: { file_id: { type: 'string' } } } },
    ],
    metadata: { file_id: 'mine' },
    input: [
      { role: 'user', content: 'Which "file_id" do you mean?' },
      {
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'This.', annotations: [{ type: 'file_citation', file_id: 'file-1', index: 0 }] },
        ],
      },
      { role: 'user', content: 'Thanks.' },
    ],
  })
  assert.equal(answer.status, 200, await answer.text())
})

test('items of a response are for its account, and the catalogue may share an id with all', async () => {
  const made = await client().responses.create({ model: 'alpha-5.4', input: 'A secret.' })
  const items = made.output.map(({ id }) => ({ type: 'item_reference', id: id! }) as const)
  assert.ok(items.length > 0)
  const next = [...items, { role: 'user', content: 'Go on.' }] as OpenAI.Responses.ResponseInput
  assert.equal((await client().responses.create({ model: 'alpha-5.4', input: next })).status, 'completed')
  const other = client((await g.account()).key)
  await assert.rejects(other.responses.create({ model: 'alpha-5.4', input: next }), { status: 404 })
  const tools = [{ type: 'file_search', vector_store_ids: ['vs_operator'] }] as const
  const found = await other.responses.create({ model: 'alpha-5.4', input: 'Look it up.', tools: [...tools] as any })
  assert.equal(found.status, 'completed')
})

test('a file of the gateway’s own is not taken for one of the vendor’s, and the refusal says so', async () => {
  const file = await client().files.create({
    file: new File(['{}'], 'a.jsonl'),
    purpose: 'batch',
  })
  const input = said({ type: 'input_file', file_id: file.id }).input as OpenAI.Responses.ResponseInput
  await assert.rejects(client().responses.create({ model: 'alpha-5.4', input }), (error: any) => {
    assert.equal(error.status, 400)
    assert.match(error.message, /Files of POST \/v1\/files are for batches/)
    return true
  })
})
