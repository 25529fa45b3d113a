// What callers send and get where nobody waits for it, or where it may be asked for again, is not readable in the
// database, and goes with the response.
import { pruneBackground } from '../src/extensions/background/responses.ts'
import { silentLog } from '../src/kernel/log.ts'
import { createContentSealer, createSecrets } from '../src/kernel/secret.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import { batchOf, completed, sendBatch } from './batches.ts'
import {
  chatBody,
  chunk,
  DONE,
  faultModel,
  MODEL,
  STREAM_HEADERS,
  startVendor,
  usage,
  usageChunk,
  wholeAnswer,
} from './faults/chat-vendor.ts'
import { leaveAfter, startGateway, testGateway, textOf } from './gateway.ts'
import { after, assert, before, listen, pluck, started, test, until } from './kit.ts'

const ASKED = 'heliotrope-question'
const ANSWERED = 'heliotrope-answer'

/** The vendor ends its answers when this resolves. */
let going = Promise.withResolvers<void>()
const vendor = started(startVendor)
const g = testGateway(() => ({
  catalog(document: any) {
    document.vendors.mock = { baseUrl: vendor.url }
    document.models[MODEL] = { ...faultModel(['mock']), clientFormats: ['openai-chat', 'openai-responses'] }
  },
}))
before(async () => {
  vendor.answer = async ({ response, body, prompt }) => {
    const { stream } = JSON.parse(body) as { stream?: boolean }
    if (!stream) {
      if (prompt.includes('slow')) await going.promise
      return response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer(ANSWERED, usage(10, 5)))
    }
    response.writeHead(200, STREAM_HEADERS)
    response.write(chunk(ANSWERED))
    if (prompt.includes('slow')) await going.promise
    response.end(chunk('', 'stop') + usageChunk(usage(10, 5)) + DONE)
  }
})
after(() => going.resolve())

/** Tables in which one of the words stands, as it is or as Postgres and JSON write bytes. */
async function readable(...words: string[]): Promise<string[]> {
  const { database } = g.gateway
  const tables = await database.query<{ name: string }>({
    text: `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
  })
  assert.ok(tables.length > 30)
  const forms = words.flatMap((word) => [word, Buffer.from(word).toString('hex'), ...inBase64(word)])
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await database.query<{ row: string }>({ text: `select t::text as row from ${name} t` })
    if (rows.some(({ row }) => forms.some((form) => row.includes(form)))) found.push(name)
  }
  return found
}

/** What of a word is the same in base64 wherever it begins. */
const inBase64 = (word: string) =>
  [0, 1, 2].map((shift) =>
    Buffer.from('x'.repeat(shift) + word)
      .toString('base64')
      .slice(4, -4),
  )

const background = async (key: string, over: object = {}) => {
  const asked = { model: MODEL, input: ASKED, background: true, ...over }
  const answer = await g.call('/v1/responses', key, asked)
  assert.equal(answer.status, 200)
  if (!('stream' in over)) return ((await answer.json()) as { id: string }).id
  const named = /"id":"(resp_bg\w+)"/
  return named.exec(await leaveAfter(answer, named))![1]!
}
const retrieve = async (key: string, id: string) => (await (await g.call(`/v1/responses/${id}`, key)).json()) as any
const ended = (key: string, id: string) => until(async () => (await retrieve(key, id)).status, 'completed')
const rowsOf = async (id: string) => {
  const { database } = g.gateway
  const tables = [
    ['background', 'id = $1'],
    ['background_event', 'id = $1'],
    ['idempotency', `key = ' ' || $1`],
  ]
  const counts: Record<string, number> = {}
  for (const [table, of] of tables)
    counts[table!] = (await database.query({ text: `select 1 from ${table} where ${of}` }, [id])).length
  return counts
}
const NOTHING = { background: 0, background_event: 0, idempotency: 0 }

test('requests and answers in the background are not readable in the database, and deleting leaves nothing', async () => {
  const { key } = await g.account()
  const made = [await background(key), await background(key, { stream: true })]
  for (const id of made) await ended(key, id)
  going = Promise.withResolvers()
  const runs = await background(key, { input: `${ASKED} slow`, stream: true })
  await until(async () => (await rowsOf(runs)).background_event! > 0)
  assert.deepEqual(await readable(ASKED, ANSWERED), [])
  for (const id of made) {
    assert.match(JSON.stringify(await retrieve(key, id)), new RegExp(ANSWERED), 'its account reads it')
    assert.equal((await g.call(`/v1/responses/${id}`, key, undefined, { method: 'DELETE' })).status, 200)
    assert.deepEqual(await rowsOf(id), NOTHING)
    assert.equal((await g.call(`/v1/responses/${id}`, key)).status, 404)
  }
  // One that runs: what comes after the deletion goes as well.
  assert.equal((await g.call(`/v1/responses/${runs}`, key, undefined, { method: 'DELETE' })).status, 200)
  going.resolve()
  await g.settled()
  await until(async () => JSON.stringify(await rowsOf(runs)) === JSON.stringify(NOTHING))
})

test('answers to Idempotency-Keys and lines of batches are not readable in the database', async () => {
  const { key } = await g.account()
  const headers = { 'idempotency-key': 'one' }
  const send = (more: object = {}) => g.call('/v1/chat/completions', key, chatBody(ASKED, more), { headers })
  const first = await (await send()).text()
  const again = await send()
  assert.deepEqual([again.headers.get('idempotent-replayed'), await again.text()], ['true', first])
  assert.equal((await send({ temperature: 1 })).status, 409)

  going = Promise.withResolvers()
  const bodies = [ASKED, `${ASKED} slow`].map((text) => JSON.parse(chatBody(text)) as object)
  const batch = await sendBatch(g, key, bodies)
  await until(async () => (await batchOf(g, key, batch)).request_counts.completed, 1)
  assert.deepEqual(await readable(ASKED, ANSWERED), [])
  const [row] = await g.sql<{ account_id: string }>('select account_id from batch where id = $1', [batch])
  const lines = `/accounts/${row?.account_id}/batches/${batch}/lines?outcome=completed`
  const shown = await g.ask<{ items: { customId: string; status: number }[] }>('GET', lines)
  assert.deepEqual(pluck(shown.items, 'customId', 'status'), [['line-0', 200]])
  going.resolve()
  const { output_file_id } = await completed(g, key, batch)
  const results = (await textOf(g.call(`/v1/files/${output_file_id}/content`, key))).trim().split('\n')
  assert.equal(results.length, 2)
  for (const line of results) assert.equal(JSON.parse(line).response.body.choices[0].message.content, ANSWERED)
  assert.deepEqual(await readable(ASKED, ANSWERED), [])
})

test('what a killed process left of a deleted response is swept, and what still runs is not', async () => {
  const { key } = await g.account()
  const { database } = g.gateway
  const gone = await background(key)
  await ended(key, gone)
  going = Promise.withResolvers()
  const runs = await background(key, { input: `${ASKED} slow` })
  const stays = await background(key)
  await ended(key, stays)
  await until(async () => (await rowsOf(runs)).idempotency, 1)
  // Killed after the first of the statements that delete a response.
  await database.query({ text: 'delete from background where id = any($1)' }, [[gone, runs]])
  assert.equal((await rowsOf(gone)).idempotency, 1)
  await pruneBackground(database)
  assert.deepEqual(await rowsOf(gone), NOTHING)
  assert.deepEqual(await rowsOf(stays), { background: 1, background_event: 0, idempotency: 1 })
  assert.equal((await rowsOf(runs)).idempotency, 1, 'its call is not over')
  going.resolve()
  await g.settled()
  await pruneBackground(database)
  assert.deepEqual(await rowsOf(runs), NOTHING)
})

test('what was encrypted under another secret is said to be unreadable, is not begun, and can be deleted', async () => {
  const { id: account, key, keyId } = await g.account()
  const { database } = g.gateway
  const other = createContentSealer(createSecrets('another secret, of more than thirty-two bytes'), realWorld)
  const place = (id: string, column: string) => ({ table: 'background', row: `${account} ${id}`, column })
  const answered = await background(key)
  await ended(key, answered)
  await database.query({ text: 'update background set sealed_answer = $2 where id = $1' }, [
    answered,
    other.seal(place(answered, 'answer'), JSON.stringify({ id: answered, status: 'completed', output: ANSWERED })),
  ])
  const asked = `resp_bg${newId(realWorld)}`
  const calls = vendor.calls.length
  const before = await g.balance(account)
  await database.query(
    {
      text: `insert into background (account_id, id, key_id, product, sealed_request, step_at) values ($1, $2, $3, $4, $5, '-infinity')`,
    },
    [account, asked, keyId, MODEL, other.seal(place(asked, 'request'), JSON.stringify({ model: MODEL, input: ASKED }))],
  )
  await until(async () => (await rowOf(asked)).status, 'failed')
  for (const id of [answered, asked]) {
    const shown = await retrieve(key, id)
    assert.deepEqual([shown.id, shown.status, shown.error.code], [id, 'failed', 'server_error'])
    assert.match(shown.error.message, /encrypted under another TOLLGATE_SECRET/)
    assert.equal((await g.call(`/v1/responses/${id}`, key, undefined, { method: 'DELETE' })).status, 200)
    assert.deepEqual(await rowsOf(id), NOTHING)
  }
  assert.equal(vendor.calls.length, calls)
  assert.deepEqual(await g.balance(account), before)
})

const rowOf = async (id: string) =>
  (await g.sql<{ status: string }>('select status from background where id = $1', [id]))[0]!

test('a response in the background that its vendor keeps is deleted there too; where the vendor refuses, it is logged and gone here', async () => {
  const deleted: string[] = []
  const lines: object[] = []
  await using keeper = await listen((request, answer) => {
    if (request.method === 'DELETE') {
      deleted.push(request.url ?? '')
      const status = deleted.length === 1 ? 200 : 500
      return void answer.writeHead(status, { 'content-type': 'application/json' }).end('{"deleted":true}')
    }
    request.resume().on('end', () => {
      const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 }
      const response = { id: 'resp_vendor1', object: 'response', status: 'completed', store: true, output: [], usage }
      const data = JSON.stringify({ type: 'response.completed', response, sequence_number: 0 })
      answer.writeHead(200, STREAM_HEADERS).end(`event: response.completed\ndata: ${data}\n\n`)
    })
  })
  await using own = await startGateway({
    log: { ...silentLog, warn: (fields, message) => lines.push({ ...fields, message }) },
    catalog(document) {
      document.vendors.alpha = { baseUrl: keeper.url }
    },
  })
  const { id: account, key } = await own.account()
  for (const tries of [1, 2]) {
    const made = await own.call('/v1/responses', key, { model: 'alpha-5.4', input: 'Hello', background: true })
    const { id } = (await made.json()) as { id: string }
    const read = async () => (await (await own.call(`/v1/responses/${id}`, key)).json()) as { status: string }
    await until(async () => (await read()).status, 'completed')
    const before = deleted.length
    const answer = await own.call(`/v1/responses/${id}`, key, undefined, { method: 'DELETE' })
    assert.equal(answer.status, 200)
    assert.deepEqual(await answer.json(), { id, object: 'response', deleted: true })
    assert.ok(deleted.length > before)
    assert.match(deleted.at(-1) ?? '', /\/responses\/resp_vendor1$/)
    const kept = await own.sql('select 1 from vendor_object where account_id = $1', [account])
    assert.equal(kept.length, 0)
    const told = lines.filter((line) => JSON.stringify(line).includes('a deleted response stays at its vendor'))
    assert.equal(told.length, tries - 1)
  }
})
