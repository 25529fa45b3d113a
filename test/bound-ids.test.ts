// Ids in requests by which a vendor would look up what it keeps: they are for the account that they were made for,
// although all accounts share the vendor's credential.
import OpenAI from 'openai'
import { readJson } from '../src/kernel/json.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { idsOfResponse, referencesIn } from '../src/protocols/text/references.ts'
import { fixtureOf } from './fixture.ts'
import { assert, test, testGateway, words } from './gateway.ts'
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
    ;({ key, id: account } = await g.account())
  },
)
const client = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })
const said = (...content: object[]) => ({ input: [{ role: 'user', content }] })
const chat = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const reasoned = { type: 'reasoning_text', text: 'Hm.' }
const ran = (content: object[]) =>
  chat({
    type: 'bash_code_execution_tool_result',
    tool_use_id: 't',
    content: { type: 'bash_code_execution_result', stdout: '', stderr: '', return_code: 0, content },
  })
const message = (content: string) => ({ type: 'message', role: 'user', content }) as const
const RESPONSES = '/v1/responses'
const MESSAGES = '/v1/messages'
const CHAT = '/v1/chat/completions'

test('an id that was not made for the account is refused by its field, with nothing held, and no vendor hears of it', async () => {
  const cases = fixtureOf<[path: string, body: object, status: number, param: string][]>('foreign-ids.yaml')
  const wrong: string[] = []
  g.sandbox.seen.clear()
  for (const [path, over, status, param] of cases) {
    const model = path === MESSAGES ? 'beta-sonnet-4-6' : 'alpha-5.4'
    const plain =
      path === RESPONSES
        ? { input: 'Hello.' }
        : { max_tokens: 50, messages: chat({ type: 'text', text: 'Hello.' }).messages }
    const answer = await g.call(path, key, { model, ...plain, ...over }, { headers: { 'x-stainless-lang': 'js' } })
    const told = await answer.text()
    const isSaid = path === MESSAGES ? told.includes(param) : told.includes(`"param":"${param}"`)
    if (answer.status !== status || !isSaid) wrong.push(`${JSON.stringify(over)}: ${answer.status} ${told}`)
  }
  // An escaped letter hides no name.
  const hidden = `{"model":"alpha-5.4","input":[{"role":"user","content":[{"type":"input_file","file\\u005fid":"file-1"}]}]}`
  const answer = await g.call(RESPONSES, key, hidden)
  assert.equal(answer.status, 400, await answer.text())
  assert.deepEqual(wrong, [])
  assert.equal(g.sandbox.seen.requests, 0)
  assert.equal((await g.balance(account)).held, 0n)
})

test('an item that is only an id is looked up for the account at every door, whatever it says of itself', async () => {
  const { id } = await client().conversations.create()
  const cases: Array<[items: unknown[], status: number, param: string]> = [
    [[{ id: 'msg_1' }], 404, 'items[0]'],
    [[{ type: null, id: 'msg_1' }], 404, 'items[0]'],
    [[{ type: null, role: null, id: 'msg_1', content: 'a' }], 404, 'items[0]'],
    [[{ role: 'user', id: 'msg_1' }], 404, 'items[0]'],
    [[{ type: 'message', id: 'msg_1' }], 404, 'items[0]'],
    [[message('a'), { type: 'function_call', id: 'fc_1' }], 404, 'items[1]'],
    [[{ type: 'item_reference', id: 'msg_1', content: 'a' }], 404, 'items[0]'],
    [[{ type: 7, id: 'msg_1' }], 400, 'items[0].type'],
    [[{ type: 'message', id: { id: 'msg_1' }, role: 'user', content: 'a' }], 400, 'items[0].id'],
  ]
  const wrong: string[] = []
  g.sandbox.seen.clear()
  for (const path of ['/v1/conversations', `/v1/conversations/${id}/items`])
    for (const [items, status, param] of cases) {
      const answer = await g.call(path, key, { items })
      const told = await answer.text()
      const isRight = answer.status === status && told.includes(`"param":"${param}"`)
      if (!isRight) wrong.push(`${path} ${JSON.stringify(items)}: ${answer.status} ${told}`)
    }
  assert.deepEqual(wrong, [])
  assert.equal(g.sandbox.seen.requests, 0)
  // Without an id, or with its content, an item is itself.
  const whole = [message('a'), { ...message('b'), id: null }, { ...message('c'), id: 'msg_mine' }]
  assert.equal((await g.call(`/v1/conversations/${id}/items`, key, { items: whole })).status, 200)
})

test('an id that a caller wrote into an item is not kept for the account, however the vendor shows it again', async () => {
  const victim = await client().responses.create({ model: 'alpha-5.4', input: 'A secret.' })
  const stolen = victim.output.find(({ type }) => type === 'message')!.id!
  const other = client((await g.account()).key)
  const named = { id: stolen, type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'a' }] }
  const { id } = await other.conversations.create({ items: [named as any] })
  const added = await other.conversations.items.create(id, { items: [named as any, message('b')] })
  const input = [named, message('Go on.')] as OpenAI.Responses.ResponseInput
  const made = await other.responses.create({ model: 'alpha-5.4', input })
  const shown = [
    ...(await other.conversations.items.list(id)).data,
    await other.conversations.items.retrieve(stolen, { conversation_id: id }),
    ...(await other.responses.inputItems.list(made.id)).data,
  ]
  assert.ok(shown.filter((item) => item.id === stolen).length >= 3, 'the vendor shows it')
  const refer = (to: string) =>
    other.responses.create({ model: 'alpha-5.4', input: [{ type: 'item_reference', id: to }, message('Go on.')] })
  g.sandbox.seen.clear()
  await assert.rejects(refer(stolen), { status: 404 })
  assert.equal(g.sandbox.seen.requests, 0)
  const own = added.data.find((item) => item.id !== stolen)!
  assert.equal((await refer(own.id!)).status, 'completed', 'what the vendor named is the account’s own')
})

test('a thought without its proof goes to no vendor of another format under its id', async () => {
  const details = [{ type: 'reasoning.encrypted', id: 'rs_victim', data: '' }]
  const turns = (content: unknown, extra = {}) => [
    { role: 'user', content: 'Hello.' },
    { role: 'assistant', content, ...extra },
    { role: 'user', content: 'And?' },
  ]
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }]
  const thought = { type: 'thinking', thinking: 'Hm.', signature: 'tollgate.encrypted:rs_victim:' }
  const cases: Array<[path: string, body: object]> = [
    [CHAT, { messages: turns('Hi.', { reasoning_details: details }), tools }],
    [
      MESSAGES,
      {
        messages: turns([thought, { type: 'text', text: 'Hi.' }]),
        max_tokens: 50,
        tools: [{ name: 'f', input_schema: { type: 'object', properties: {} } }],
      },
    ],
  ]
  for (const [path, body] of cases) {
    g.sandbox.seen.clear()
    const answer = await g.call(path, key, { model: 'alpha-5.4', ...body })
    assert.equal(answer.status, 200, await answer.text())
    const [call] = g.sandbox.seen.calls
    assert.match(call!.url, /responses$/, 'it was converted')
    assert.ok(!String(call!.body).includes('rs_victim'), String(call!.body))
  }
})

test('words of the gateway’s own in a plain input are words', async () => {
  g.sandbox.seen.clear()
  const answer = await g.call(RESPONSES, key, { model: 'alpha-5.4', input: 'tollgate.example is an address.' })
  assert.equal(answer.status, 200, await answer.text())
  assert.match(String(g.sandbox.seen.calls.at(-1)!.body), /"input":\s*"tollgate\.example is an address\."/)
})

const idsIn = (door: ClientFormatName, body: string) =>
  referencesIn(door, readJson(Buffer.from(body)), []).map(({ id }) => id)

test('a file behind the vendor’s credential is found however its address is written', () => {
  const uris = [
    'files/a',
    'files\\/a',
    ' files/a',
    '\\tfiles/a',
    '\\u0020files/a',
    'gs:\\/\\/b',
    '\\ngs://b',
    ' s3://b',
  ]
  for (const uri of [...uris, 'https:\\/\\/generativelanguage.googleapis.com/v1beta/files/a'])
    for (const name of words('fileUri file_uri uri URL image_url imageUrl file_url video_url audioUrl'))
      assert.deepEqual(
        idsIn('gemini', `{"contents":[{"parts":[{"fileData":{"${name}":"${uri}"}}]}]}`),
        [JSON.parse(`"${uri}"`)],
        uri,
      )
})

test('of an answer that nobody keeps, the account may send back by its id what its vendor alone has', () => {
  const thought = { type: 'reasoning', summary: [] }
  const output = [
    { ...thought, id: 'rs_lost' },
    { ...thought, id: 'rs_packed', content: [reasoned], encrypted_content: 'enc' },
    { ...thought, id: 'rs_plain', content: [reasoned] },
    { type: 'web_search_call', id: 'ws_1' },
    { type: 'something_new', id: 'sn_1' },
    { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '' },
    { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi.' }] },
  ]
  assert.deepEqual(idsOfResponse({ id: 'resp_1', store: false, output }), ['rs_plain', 'ws_1', 'sn_1'])
  assert.equal(idsOfResponse({ id: 'resp_1', store: true, output }).length, 8)
})

test('what code has made in a container, as an answer listed it, may come back', () => {
  const body = JSON.stringify(ran([{ type: 'bash_code_execution_output', file_id: 'file_1' }]))
  assert.deepEqual(idsIn('anthropic-messages', body), [])
  assert.deepEqual(idsIn('openai-chat', body), ['file_1'])
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

test('items of a response are for its account, and the catalog may share an id with all', async () => {
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
  const file = await client().files.create({ file: new File(['{}'], 'a.jsonl'), purpose: 'batch' })
  const input = said({ type: 'input_file', file_id: file.id }).input as OpenAI.Responses.ResponseInput
  await assert.rejects(client().responses.create({ model: 'alpha-5.4', input }), (error: any) => {
    assert.equal(error.status, 400)
    assert.match(error.message, /Files of POST \/v1\/files are for batches/)
    return true
  })
})
