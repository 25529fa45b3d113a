// The OpenAPI document against the gateway that serves it: its examples are answered, its schemas fit what comes back,
// and whatever it forbids is refused.
import { METHODS, request as send } from 'node:http'
import fc from 'fast-check'
import type { JsonSchema } from '../src/catalog/endpoint.ts'
import { PATH_PART_CHARS_MAX } from '../src/catalog/field.ts'
import { type Asked, addressOf, document, OPERATIONS, type Operation } from './contract-document.ts'
import { odd } from './fuzz/bodies.ts'
import { assert, pause, runs, test, testGateway } from './gateway.ts'
import { PICTURE } from './picture.ts'
import { openGoogleDoor } from './sdk/families.ts'
import { wav } from './sound.ts'

const REQUESTS = runs(400, 3_000)
const AT_ONCE = 24

let key: string
const g = testGateway({ catalog: openGoogleDoor }, async () => {
  key = (await g.account({ credits: 1_000_000_000_000_000n })).key
})

/** Whoever is told to come again comes again. */
async function ask(operation: Operation, asked: Asked) {
  for (let tries = 1; ; tries++) {
    const answer = await askOnce(operation, asked)
    if (answer.status !== 503 || tries === 60) return answer
    await pause(1_000, 'the gateway said to come again')
  }
}

async function askOnce(operation: Operation, { values, body }: Asked) {
  const { method } = operation
  const isForm = operation.requestBody?.content['multipart/form-data'] !== undefined
  const address = addressOf(operation, values)
  const answer =
    isForm && body !== undefined
      ? await fetch(`${g.url}${address}`, { method, headers: { authorization: `Bearer ${key}` }, body: formOf(body) })
      : await g.call(address, key, body === undefined ? undefined : JSON.stringify(body), { method })
  const type = answer.headers.get('content-type') ?? ''
  return { status: answer.status, type, text: await answer.text() }
}

/** As curl reads an example: what begins with @ is a file. */
const FILES: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
  wav: Uint8Array.from(wav(1)),
  png: Uint8Array.from(PICTURE),
}

function formOf(body: unknown): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(body as object)) {
    const file = /^@.*\.(\w+)$/.exec(String(value))?.[1]
    if (file) form.set(name, new Blob([FILES[file] ?? '{}']), `a.${file}`)
    else if (value !== undefined) form.set(name, String(value))
  }
  return form
}

/** Ids that only the gateway can give, for the examples that need one. */
async function realIds(): Promise<Record<string, string>> {
  const post = async (path: string, body: object): Promise<any> => (await g.call(path, key, body)).json()
  const stored = await post('/v1/responses', { model: 'alpha-5.4', input: 'hello', store: true })
  const later = await post('/v1/responses', { model: 'alpha-5.4', input: 'hello', background: true })
  const { data } = await post('/v1/video/seedance', { model: 'videogen-2.0', prompt: 'a boat', resolution: '480p' })
  const user: any = await (await g.call('/v1/social/users?username=walker137', key)).json()
  const upload = { method: 'POST', headers: { authorization: `Bearer ${key}` } }
  const form = () => formOf({ file: '@lines.jsonl', purpose: 'batch' })
  const [file, free]: any[] = await Promise.all(
    [0, 1].map(async () => (await fetch(`${g.url}/v1/files`, { ...upload, body: form() })).json()),
  )
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  const batch = await post('/v1/batches', order)
  const message = { model: 'beta-haiku-4-5', max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }
  const messages = await post('/v1/messages/batches', { requests: [{ custom_id: 'a', params: message }] })
  const conversation = await post('/v1/conversations', {})
  const said = { type: 'message', role: 'user', content: 'hello' }
  const added = await post(`/v1/conversations/${conversation.id}/items`, { items: [said] })
  return {
    conversations: conversation.id,
    item: added.data[0].id,
    responses: stored.id,
    jobs: data.jobId,
    videos: `video_${data.jobId}`,
    user: user.data.id,
    files: free.id,
    batches: batch.id,
    messages: messages.id,
    background: later.id,
  }
}

function withRealId({ path, example }: Operation, ids: Record<string, string>): Asked {
  const [, room = ''] = /^\/(?:alpha|v1)\/(\w+)\//.exec(path) ?? []
  const id = (path.endsWith('/responses/{id}/cancel') ? ids.background : ids[room]) ?? ids.user
  const item = 'item' in example.values ? { item: ids.item } : {}
  const values =
    'id' in example.values && !path.includes('/models/') ? { ...example.values, id, ...item } : example.values
  const { body } = example
  if (typeof body === 'object' && body && 'input_file_id' in body)
    return { values, body: { ...body, input_file_id: ids.files } }
  // Tokens of pages and ids of items are the vendor's own.
  const { pagination_token: _, after: __, after_id: ___, before: ____, ...rest } = values as Record<string, unknown>
  return { ...example, values: rest }
}

test('the examples of each operation, taken together, are a request that is answered as the document says', async () => {
  const ids = await realIds()
  // Deletions come last, and that of a part before that of the whole.
  const last = ({ method, path }: Operation) => (method === 'DELETE' ? 1_000 - path.length : 0)
  for (const operation of OPERATIONS.toSorted((a, b) => last(a) - last(b))) {
    const asked = withRealId(operation, ids)
    assert.equal(operation.forbids(asked), undefined, operation.operationId)
    const { status, type, text } = await ask(operation, asked)
    // What has ended cannot be cancelled any more, and what has not has no file yet.
    const right = /_(?:cancel|content|results)$/.test(operation.operationId) ? [200, 409] : [200]
    assert.ok(right.includes(status), `${operation.operationId}: ${status} ${text.slice(0, 300)}`)
    assert.equal(operation.misfits(status, type, text), undefined, `${operation.operationId}: ${text.slice(0, 600)}`)
  }
})

/** Every schema in the document, with where it stands. */
function* walk(value: unknown, at: string): Generator<[string, JsonSchema]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value) && 'type' in value) yield [at, value as JsonSchema]
  for (const [name, inner] of Object.entries(value))
    if (!['example', 'examples', 'default', 'enum'].includes(name)) yield* walk(inner, `${at}/${name}`)
}

test('no object in the document is one that generators would take for empty', () => {
  const empty = [...walk(document, '')].filter(
    ([, schema]) =>
      [schema.type].flat().includes('object') && !('properties' in schema) && schema.additionalProperties === undefined,
  )
  assert.deepEqual(
    empty.map(([at]) => at),
    [],
  )
})

test('every answer of every operation is described', () => {
  for (const { operationId, responses } of OPERATIONS) {
    const types = Object.keys(responses[200]?.content ?? {})
    assert.ok(types.length > 0, operationId)
  }
})

// ---- Fuzzing from the document.

/** Values at and beyond what a schema allows. */
function around(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { minimum, maximum, maxLength, enum: allowed } = schema as Record<string, number> & { enum?: unknown[] }
  const bounds = [minimum, maximum].flatMap((bound) => (bound === undefined ? [] : [bound - 1, bound, bound + 1]))
  const lengths = maxLength === undefined || maxLength > 40_000 ? [] : [maxLength, maxLength + 1]
  const others = (allowed ?? []).flatMap((value) => [value, `${value}x`, String(value).toUpperCase()])
  const values = [...bounds, ...bounds.map(String), ...lengths.map((length) => 'a'.repeat(length)), ...others]
  return values.length === 0 ? odd : fc.oneof(odd, fc.constantFrom<unknown>(...values))
}

function bodyMembers({ requestBody }: Operation): Record<string, JsonSchema> {
  const name = String(requestBody?.content['application/json']?.schema.$ref ?? '')
    .split('/')
    .at(-1)
  return (document.components.schemas[name ?? '']?.properties ?? {}) as Record<string, JsonSchema>
}

/** The examples with one or two places changed. */
function changed(operation: Operation): fc.Arbitrary<{ operation: Operation; asked: Asked }> {
  const inAddress = operation.parameters
    .filter((one) => one.in !== 'header')
    .map((one) => around(one.schema).map((value) => ({ body: false, name: one.name, value })))
  const inBody = Object.entries(bodyMembers(operation)).map(([name, schema]) =>
    around(schema).map((value) => ({ body: true, name, value })),
  )
  const gone = Object.keys({ ...operation.example.values, ...(operation.example.body as object) }).map((name) =>
    fc.constant({ body: name in ((operation.example.body as object) ?? {}), name, value: undefined }),
  )
  const places = [...inAddress, ...inBody, ...gone]
  const edits = places.length === 0 ? fc.constant([]) : fc.array(fc.oneof(...places), { minLength: 1, maxLength: 2 })
  return edits.map((list) => {
    const values: Record<string, unknown> = { ...operation.example.values }
    const body: Record<string, unknown> = { ...(operation.example.body as object) }
    for (const { body: inside, name, value } of list) (inside ? body : values)[name] = value
    return { operation, asked: operation.example.body === undefined ? { values } : { values, body } }
  })
}

/** A picture, a video or an open stream of events costs much more than what is looked for here. */
const COSTLY = /^(images|video|jobs_id_events)$/

const anything = fc.oneof(
  ...OPERATIONS.map((operation) => ({
    weight: COSTLY.test(operation.operationId) ? 1 : operation.requestBody ? 12 : 3,
    arbitrary: changed(operation),
  })),
)

/** A text in the address is a text, and an empty part of a path is another path. */
function isSendable({ operation, asked }: { operation: Operation; asked: Asked }): boolean {
  return operation.parameters.every(({ name, in: place }) => {
    const value = asked.values[name]
    if (place === 'header') return true
    if (
      place === 'path' &&
      (typeof value !== 'string' || value.trim() === '' || /[\0/]/.test(value) || value.length > PATH_PART_CHARS_MAX)
    )
      return false
    return value === undefined || (typeof value !== 'object' && String(value).isWellFormed())
  })
}

test('whatever the document forbids is refused, nothing that it describes breaks the gateway, and answers are as it says', async (t) => {
  const sample = fc.sample(anything.filter(isSendable), { numRuns: REQUESTS, seed: 20_261_115 })
  const findings = new Map<string, string>()
  const counted: Record<string, number> = {}
  const queue = sample.values()
  const worker = async () => {
    for (const { operation, asked } of queue) {
      const { status, type, text } = await ask(operation, asked)
      const forbidden = operation.forbids(asked)
      const kind = `${forbidden ? 'forbidden' : 'described'} ${status}`
      counted[kind] = (counted[kind] ?? 0) + 1
      const wrong =
        status >= 500
          ? 'breaks'
          : status < 300 && forbidden
            ? `is taken although ${forbidden}`
            : operation.misfits(status, type, text)
      if (wrong) findings.set(`${operation.operationId}: ${wrong}`, JSON.stringify(asked).slice(0, 500))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  t.diagnostic(JSON.stringify(counted))
  assert.deepEqual([...findings], [])
  assert.ok((counted['forbidden 400'] ?? 0) > REQUESTS / 10)
  assert.ok((counted['described 200'] ?? 0) > REQUESTS / 10)
})

test('every method that there is, at every path, is answered, and never with a fault of ours', async () => {
  const wrong: string[] = []
  const methods = METHODS.filter((name) => name !== 'CONNECT')
  for (const path of Object.keys(document.paths))
    await Promise.all(
      methods.map(async (method) => {
        const { hostname, port } = new URL(g.url)
        const status = await new Promise<number>((resolve, reject) => {
          const going = send(
            { hostname, port, method, path, headers: { authorization: `Bearer ${key}` } },
            (answer) => {
              answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
            },
          )
          going.on('error', reject).end()
        })
        if (status >= 500 || status === 0) wrong.push(`${method} ${path} ${status}`)
      }),
    )
  assert.deepEqual(wrong, [])
})
