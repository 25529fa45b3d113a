// What a refusal says: never that something must be what it is, and always a sentence.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { makeDataDirectory } from './chaos/gateway-process.ts'
import { testGateway } from './gateway.ts'
import { runProgram } from './sdk/cache.ts'

const ROOT = resolve(import.meta.dirname, '..')
const FUNCTION = { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } }
const BODIES: Readonly<Record<string, object>> = {
  '/v1/chat-completions': {
    model: 'alpha-5.4',
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c', content: 'x' },
    ],
    tools: [{ type: 'function', function: FUNCTION }],
    tool_choice: 'auto',
    stop: 'x',
    user: 'u',
    n: 1,
    max_tokens: 5,
    temperature: 1,
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {} } },
  },
  '/v1/messages': {
    model: 'beta-opus-5',
    max_tokens: 5,
    system: [{ type: 'text', text: 's' }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] },
    ],
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    tool_choice: { type: 'auto' },
    stop_sequences: ['x'],
    metadata: { user_id: 'u' },
  },
  '/v1/responses': {
    model: 'alpha-5.4',
    instructions: 'i',
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'x' },
    ],
    tools: [{ type: 'function', ...FUNCTION }],
    max_output_tokens: 20,
    text: { format: { type: 'json_schema', name: 'n', schema: {} } },
    reasoning: { effort: 'low' },
  },
  '/v1/embeddings': {
    model: 'alpha-embed-3-small',
    input: ['a', 'b'],
    dimensions: 8,
    encoding_format: 'float',
    user: 'u',
  },
  '/v1/rerank': { model: 'alpha-rerank-1', query: 'q', documents: ['a', 'b'], top_n: 1, return_documents: true },
  '/v2/rerank': { model: 'alpha-rerank-1', query: 'q', documents: ['a', 'b'], top_n: 1, max_tokens_per_doc: 9 },
  '/v1/audio/speech': { model: 'alpha-speech-1', input: 'a', voice: 'v', response_format: 'mp3', speed: 1 },
  '/v1/ocr': {
    model: 'alpha-ocr-1',
    document: { type: 'document_url', document_url: 'https://example.com/a.pdf' },
    pages: [0],
    image_limit: 1,
    include_image_base64: false,
    table_format: 'html',
  },
  '/v1/moderations': { model: 'alpha-moderation-1', input: ['a', 'b'] },
  '/v1/images/generations': { model: 'alpha-image-2', prompt: 'p', n: 1, size: '1024x1024', quality: 'low', user: 'u' },
  '/v1/video/seedance': {
    model: 'videogen-2.0',
    content: [{ type: 'text', text: 'p' }],
    duration: 5,
    resolution: '720p',
    callback_url: 'https://example.com/hook',
  },
}
const ODD: readonly unknown[] = ['', 0, true, [], {}]

let key: string
const gateway = testGateway({ isShared: true }, async () => {
  key = (await gateway.account()).key
})

/** The body with each of its members, at any depth, replaced by something odd. */
function* spoiled(body: unknown): Generator<unknown> {
  if (typeof body !== 'object' || body === null) return
  for (const name of Object.keys(body)) {
    const put = (value: unknown) => (Array.isArray(body) ? body.with(Number(name), value) : { ...body, [name]: value })
    for (const odd of ODD) yield put(odd)
    for (const inner of spoiled((body as Record<string, unknown>)[name])) yield put(inner)
  }
}

/** "must be a string, not the string …", "must be an array of objects, not an array". */
const CONTRADICTION =
  /must be (?:a |an |one )?(?:string(?! or)[^,]*, not (?:the|an empty) string|text[^,]*, not (?:the|an empty) string|array[^,]*, not an array|object[^,]*, not an object|true or false, not (?:true|false))/

test('no refusal says that something must be what it is', async () => {
  const wrong = new Set<string>()
  let refused = 0
  for (const [path, body] of Object.entries(BODIES))
    for (const sent of spoiled(body)) {
      const answer = await gateway.call(path, key, sent)
      const text = await answer.text()
      if (answer.status < 400) continue
      refused++
      assert.ok(answer.status < 500, text)
      const { message, error } = JSON.parse(text) as { message?: string; error?: { message: string } }
      const said = error?.message ?? message ?? ''
      if (CONTRADICTION.test(said)) wrong.add(`${path}: ${said}`)
    }
  assert.ok(refused > 200, String(refused))
  assert.deepEqual([...wrong], [])
})

test('a model whose name is empty or blank is asked for, with where to find the names', async () => {
  for (const [path, body] of Object.entries(BODIES))
    for (const model of ['', ' ']) {
      const answer = await gateway.call(path, key, { ...body, model })
      const text = await answer.text()
      assert.ok([400, 404].includes(answer.status), text)
      assert.doesNotMatch(text, /must be a string/, path)
    }
})

test('a catalog file that cannot be applied is refused in a sentence that names it', async () => {
  const data = await makeDataDirectory()
  const file = join(data.path, 'catalog.json')
  const cases: ReadonlyArray<[content: string | undefined, said: RegExp]> = [
    ['{"vendors":{},"models":{}}', /is not valid\. endpoints: is missing/],
    ['[]', /is not valid\. document: expected object, received array/],
    ['{"vendors":', /is not JSON/],
    [undefined, /there is no such file/],
  ]
  for (const [content, said] of cases) {
    if (content !== undefined) await writeFile(file, content)
    const given = content === undefined ? `${file}.missing` : file
    const { code, err } = await runProgram(process.execPath, [join(ROOT, 'src', 'main.ts'), 'serve'], {
      env: { PATH: process.env.PATH, PORT: '0', TOLLGATE_DATA: data.path, TOLLGATE_CATALOG: given },
    })
    assert.equal(code, 1)
    assert.match(err, said)
    assert.ok(err.includes(`TOLLGATE_CATALOG: ${given}`), err)
    assert.doesNotMatch(err, /^ +at /m)
  }
  await data.remove()
})
