// Files and batches with the official openai package, unchanged, against the running gateway.
import OpenAI, { toFile } from 'openai'
import { assert, atLeast, BY, needs, pause, pluck, test, testGateway, until, words } from '../../../test/gateway.ts'
import { openAllDoors } from '../../../test/sdk/families.ts'
import { parseCredits } from '../../kernel/credits.ts'

let key: string
let account: string
const g = testGateway(
  {
    catalog(document) {
      openAllDoors(document)
      document.models['alpha-5.4'].batchFactor = '0.5'
    },
  },
  async () => {
    ;({ key, id: account } = await g.account())
  },
)

const client = (apiKey = key) => new OpenAI({ apiKey, baseURL: `${g.url}/v1`, maxRetries: 0 })

type Line = { custom_id?: unknown; method?: unknown; url?: unknown; body?: unknown }
const line = (custom_id: string, body: object, url = '/v1/chat/completions'): Line => ({
  custom_id,
  method: 'POST',
  url,
  body,
})
const chat = (content: string, over: object = {}) => ({
  model: 'alpha-5.4',
  max_tokens: 50,
  messages: [{ role: 'user', content }],
  ...over,
})

const upload = async (content: string | Buffer, apiKey = key) =>
  client(apiKey).files.create({ file: await toFile(Buffer.from(content), 'lines.jsonl'), purpose: 'batch' })

async function start(lines: readonly Line[] | string | Buffer, apiKey = key, endpoint: any = '/v1/chat/completions') {
  const content =
    typeof lines === 'string' || Buffer.isBuffer(lines) ? lines : lines.map((one) => JSON.stringify(one)).join('\n')
  const file = await upload(content, apiKey)
  return client(apiKey).batches.create({ input_file_id: file.id, endpoint, completion_window: '24h' })
}

async function ended(id: string, apiKey = key): Promise<OpenAI.Batch> {
  const isEnd = ({ status }: OpenAI.Batch) => ['completed', 'failed', 'expired', 'cancelled'].includes(status)
  return until(() => client(apiKey).batches.retrieve(id), isEnd)
}

const completed = (batch: OpenAI.Batch, count: number, apiKey: string) =>
  until(async () => (await client(apiKey).batches.retrieve(batch.id)).request_counts!.completed, atLeast(count))

const contentOf = async (id: string | undefined | null, apiKey = key): Promise<any[]> => {
  if (!id) return []
  const text = await (await client(apiKey).files.content(id)).text()
  return text
    .split('\n')
    .filter(Boolean)
    .map((one) => JSON.parse(one))
}

const usageOf = (batch: string) =>
  g.sql<{ endpoint: string; outcome: string; charged: bigint; lines: any[] }>(
    'select endpoint, outcome, charged, lines from usage where client = $1 order by id',
    [batch],
  )

test('a file is uploaded, listed, read and deleted, and is not there for anybody else', async () => {
  const text = '{"custom_id":"ä"}\n'.repeat(20_000)
  const made = await upload(text)
  assert.match(made.id, /^file-/)
  assert.equal(made.object, 'file')
  assert.equal(made.bytes, Buffer.byteLength(text))
  assert.equal(made.filename, 'lines.jsonl')
  assert.equal(made.purpose, 'batch')
  assert.ok(made.expires_at! - made.created_at === 30 * 86_400)
  assert.equal(await (await client().files.content(made.id)).text(), text)
  assert.deepEqual((await client().files.retrieve(made.id)).id, made.id)
  const second = await upload('x')
  const page = await client().files.list({ limit: 1 })
  assert.deepEqual(pluck(page.data, 'id'), [second.id])
  assert.deepEqual(pluck((await page.getNextPage()).data, 'id'), [made.id])
  const other = client((await g.account()).key)
  for (const act of [
    () => other.files.retrieve(made.id),
    () => other.files.content(made.id),
    () => other.files.delete(made.id),
    () => other.batches.create({ input_file_id: made.id, endpoint: '/v1/chat/completions', completion_window: '24h' }),
  ])
    await assert.rejects(act(), (error: any) => error.status === 404 || error.param === 'input_file_id')
  assert.equal((await other.files.list()).data.length, 0)
  assert.equal((await client().files.delete(made.id)).deleted, true)
  await assert.rejects(client().files.retrieve(made.id), { status: 404 })
  await client().files.delete(second.id)
})

test('each line of a batch is a call of its own: answered, charged at the price of batches, in a row of usage', async () => {
  const before = await g.balance(account)
  const single: any = await (await g.call('/v1/chat/completions', key, chat('One of 3.'))).json()
  const after = await g.balance(account)
  const price = before.posted - after.posted
  const batch = await start([
    line('a', chat('One of 3.')),
    line('b', { ...chat('Two.'), model: 'no-such-model' }),
    line('c', chat('One of 3.')),
    line('d', { ...chat('Four.'), max_tokens: -1 }),
    line('e', chat('Five.', { stream: true })),
  ])
  assert.equal(batch.object, 'batch')
  assert.ok(['validating', 'in_progress'].includes(batch.status))
  const done = await ended(batch.id)
  assert.equal(done.status, 'completed')
  assert.deepEqual(done.request_counts, { total: 5, completed: 2, failed: 3 })
  assert.ok(done.completed_at! >= done.created_at && done.expires_at === done.created_at + 86_400)
  const output = await contentOf(done.output_file_id)
  assert.deepEqual(
    output.map(({ custom_id, response }) => [custom_id, response.status_code, response.body.object]),
    [
      ['a', 200, 'chat.completion'],
      ['c', 200, 'chat.completion'],
    ],
  )
  assert.equal(output[0].response.body.model, 'alpha-5.4')
  assert.deepEqual(output[0].response.body.usage, single.usage)
  assert.equal(output[0].error, null)
  const errors = await contentOf(done.error_file_id)
  assert.deepEqual(
    errors.map(({ custom_id, response }) => [custom_id, response.status_code]),
    [
      ['b', 404],
      ['d', 400],
      ['e', 400],
    ],
  )
  assert.match(errors[2].response.body.error.message, /stream/)
  const rows = await usageOf(batch.id)
  assert.equal(rows.length, 2)
  for (const row of rows) {
    assert.equal(row.endpoint, 'batch:chat')
    // Each rate is half of the price, and the sum is rounded up once.
    assert.ok(row.charged === price / 2n || row.charged === price / 2n + 1n, `${row.charged} of ${price}`)
  }
  const end = await g.balance(account)
  assert.equal(
    after.posted - end.posted,
    rows.reduce((sum, { charged }) => sum + charged, 0n),
  )
  const ids = (await client().batches.list({ limit: 5 })).data.map(({ id }) => id)
  assert.ok(ids.includes(batch.id))
  const calls = await g.sql<{ completed: number; known: boolean }>(
    `select completed, calls_hash is not null as known from batch where id = '${batch.id}'`,
  )
  assert.deepEqual(calls, [{ completed: done.request_counts?.completed, known: true }])
  assert.deepEqual(await g.problems(), [])
})

/** The batch as a process that died after its settlements left it. */
async function leaveUnfinished(of: string, batch: string, CHANGE: string, places: object[]): Promise<void> {
  const { database } = g.gateway
  await database.query(
    {
      text: `insert into batch_line (account_id, batch_id, number, custom_id, first_byte, bytes)
             select $1, $2, x.number, x.custom_id, x.first_byte, x.bytes from jsonb_to_recordset($3::jsonb)
               as x(number int, custom_id text, first_byte bigint, bytes int)`,
    },
    [of, batch, JSON.stringify(places)],
  )
  await database.query(
    {
      text: `update batch set ${CHANGE}, open = true, completed = 0, step_at = now() - interval '1 hour' where id = $1`,
    },
    [batch],
  )
}

test('a line whose process died between its settlement and its result is given again, and not paid again', async () => {
  const batch = await start([line('a', chat('Once.')), line('b', chat('Twice.'))])
  const done = await ended(batch.id)
  const output = await contentOf(done.output_file_id)
  const before = await g.balance(account)
  const bodies = (lines: any[]) => lines.map(({ response }) => response.body)
  // As the process that died left it. What ended it meanwhile took nothing back of what was paid.
  const meanwhile: Array<[change: string, status: string]> = [
    [`status = 'in_progress'`, 'completed'],
    [`status = 'cancelling'`, 'cancelled'],
    [`status = 'in_progress', input_file_id = 'file-gone'`, 'completed'],
    [`status = 'in_progress', key_id = 'key_gone', input_file_id = '${done.input_file_id}'`, 'completed'],
    [`status = 'in_progress', expires_at = now()`, 'expired'],
  ]
  for (const [CHANGE, status] of meanwhile) {
    await leaveUnfinished(account, batch.id, CHANGE, placesOf(['a', 'Once.'], ['b', 'Twice.']))
    const again = await ended(batch.id)
    assert.deepEqual([again.status, again.request_counts], [status, { total: 2, completed: 2, failed: 0 }], CHANGE)
    assert.deepEqual(bodies(await contentOf(again.output_file_id)), bodies(output))
    assert.deepEqual(await g.balance(account), before)
    assert.equal((await usageOf(batch.id)).length, 2)
  }
})

/** Where the lines of such a file stand in it. */
function placesOf(...lines: Array<[string, string]>): object[] {
  let first_byte = 0
  return lines.map(([custom_id, content], at) => {
    const bytes = Buffer.byteLength(JSON.stringify(line(custom_id, chat(content))))
    const place = { number: at + 1, custom_id, first_byte, bytes }
    first_byte += bytes + 1
    return place
  })
}

test('an answer of any size is paid for once, also when its process died between its settlement and its result', async () => {
  const made = await g.account()
  const content = 'Large. [[big=9000000]]'
  const batch = await start([line('a', chat(content))], made.key)
  const done = await ended(batch.id, made.key)
  const [first] = await contentOf(done.output_file_id, made.key)
  assert.equal(first.response.body.choices[0].message.content.length, 9_000_000)
  const before = await g.balance(made.id)
  await leaveUnfinished(made.id, batch.id, `status = 'in_progress'`, placesOf(['a', content]))
  const again = await ended(batch.id, made.key)
  const [second] = await contentOf(again.output_file_id, made.key)
  assert.deepEqual(second.response.body, first.response.body)
  assert.deepEqual(await g.balance(made.id), before)
  assert.equal((await usageOf(batch.id)).length, 1)
  assert.deepEqual(await g.problems(), [])
})

test('a quote knows the price in batches, and refuses what is not offered there', async () => {
  const quote = async (query: string, body: object = chat('One of 3.')) => {
    const answer = await g.call(`/v1/quote?${query}`, key, body)
    return { status: answer.status, data: ((await answer.json()) as any).data }
  }
  const usual = parseCredits((await quote('')).data.costAtMost)!
  const inBatch = parseCredits((await quote('batch=true')).data.costAtMost)!
  assert.ok(inBatch === usual / 2n || inBatch === usual / 2n + 1n, `${inBatch} of ${usual}`)
  assert.equal((await quote('batch=yes')).status, 400)
  assert.equal((await quote('batch=true', { model: 'alpha-image-2', prompt: 'A gate' })).status, 400)
})

test(
  'responses, embeddings and messages go in batches too, at their full price where no factor is set',
  needs('embeddings'),
  async () => {
    const cases = [
      ['/v1/responses', { model: 'alpha-5.5', input: 'Hello.' }, 'response'],
      ['/v1/embeddings', { model: 'alpha-embed-3-small', input: ['a', 'b'] }, 'list'],
      [
        '/v1/messages',
        { model: 'beta-sonnet-4-6', max_tokens: 20, messages: [{ role: 'user', content: 'Hi.' }] },
        undefined,
      ],
    ] as const
    for (const [url, body, object] of cases) {
      const batch = await start([line('x', body, url)], key, url)
      const done = await ended(batch.id)
      const [answer] = [...(await contentOf(done.output_file_id)), ...(await contentOf(done.error_file_id))]
      assert.equal(answer.response.status_code, 200, JSON.stringify(answer))
      assert.equal(answer.response.body.object, object)
    }
  },
)

test('a file that is wrong fails as a whole, with a list of what is wrong and where, and costs nothing', async () => {
  const before = await g.balance(account)
  const cases: Array<[string | Buffer, string[], Array<number | null>]> = [
    ['', ['empty_file'], [null]],
    ['\n \n', ['empty_file'], [null]],
    [`${'\n'.repeat(100_001)}${JSON.stringify(line('a', chat('A.')))}`, ['too_many_lines'], [null]],
    ['{"custom_id":"a"', ['invalid_json_line'], [1]],
    [Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), ['invalid_json_line'], [1]],
    ['[]', ['invalid_json_line'], [1]],
    [
      [
        JSON.stringify(line('a', chat('A.'))),
        '',
        JSON.stringify(line('a', chat('B.'))),
        JSON.stringify({ ...line('b', chat('B.')), method: 'GET' }),
        JSON.stringify(line('c', chat('B.'), '/v1/embeddings')),
        JSON.stringify({ ...line('d', {}), body: 'text' }),
        JSON.stringify({ method: 'POST', url: '/v1/chat/completions', body: {} }),
        JSON.stringify(line('\u0000', chat('B.'))),
        JSON.stringify(line('x'.repeat(600), chat('B.'))),
      ].join('\n'),
      words(`
        duplicate_custom_id invalid_method invalid_url missing_required_parameter missing_required_parameter
        invalid_custom_id invalid_custom_id
      `),
      [3, 4, 5, 6, 7, 8, 9],
    ],
    [JSON.stringify(line('long', chat('x'.repeat(5_000_000)))), ['line_too_long'], [1]],
    ['{}\n'.repeat(300), Array(100).fill('missing_required_parameter'), Array.from({ length: 100 }, (_, i) => i + 1)],
  ]
  for (const [content, codes, lines] of cases) {
    const batch = await ended((await start(content)).id)
    assert.equal(batch.status, 'failed', String(content).slice(0, 80))
    assert.deepEqual(pluck(batch.errors?.data, 'code'), codes)
    assert.deepEqual(
      batch.errors?.data?.map(({ line: at }) => at),
      lines,
    )
    assert.ok(batch.failed_at)
    assert.equal(batch.output_file_id, null)
  }
  const [rows] = await g.sql<{ count: number }>('select count(*)::int as count from batch_line')
  assert.equal(rows?.count, 0)
  assert.deepEqual(await g.balance(account), before)
})

test('bad orders and bad forms are refused with a sentence, and leave nothing behind', async () => {
  const file = await upload('{}')
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
  for (const [over, param] of [
    [{ endpoint: '/v1/images/generations' }, 'endpoint'],
    [{ endpoint: 7 }, 'endpoint'],
    [{ completion_window: '1h' }, 'completion_window'],
    [{ input_file_id: 'file-unknown' }, 'input_file_id'],
    [{ input_file_id: "x'; drop" }, 'input_file_id'],
    [{ metadata: { a: 1 } }, 'metadata'],
    [{ metadata: { a: '\u0000' } }, 'metadata'],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`${i}`, ''])) }, 'metadata'],
    [{ output_expires_after: { anchor: 'created_at', seconds: 5 } }, 'output_expires_after.seconds'],
  ] as const) {
    const answer = await g.call('/v1/batches', key, { ...order, ...over })
    assert.equal(answer.status, 400, JSON.stringify(over))
    assert.equal(((await answer.json()) as any).error.param, param)
  }
  const forms: Array<[string, string | undefined, number]> = [
    ['{}', 'application/json', 400],
    ['--x--', 'multipart/form-data; boundary=x', 400],
    ['--x\r\nno name\r\n\r\n\r\n--x--', 'multipart/form-data; boundary=x', 400],
    ['--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nabc', 'multipart/form-data; boundary=x', 400],
    [
      '--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nabc\r\n--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nvision\r\n--x--',
      'multipart/form-data; boundary=x',
      400,
    ],
    [`--x\r\n${'h'.repeat(20_000)}`, 'multipart/form-data; boundary=x', 400],
    [
      '--x\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'.repeat(3),
      'multipart/form-data; boundary=x',
      400,
    ],
  ]
  for (const [body, type, status] of forms) {
    const answer = await fetch(`${g.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...(type ? { 'content-type': type } : {}) },
      body,
    })
    assert.equal(answer.status, status, `${body}`.slice(0, 60))
    assert.ok(((await answer.json()) as any).error.message)
  }
  const empty = await upload('')
  assert.equal(empty.bytes, 0)
  assert.equal(await (await client().files.content(empty.id)).text(), '')
  const made = await client().batches.create({ ...order, completion_window: '24h', metadata: { a: 'b' } } as any)
  assert.deepEqual(made.metadata, { a: 'b' })
  await assert.rejects(client((await g.account()).key).batches.retrieve(made.id), { status: 404 })
  await assert.rejects(client((await g.account()).key).batches.cancel(made.id), { status: 404 })
  await ended(made.id)
  await assert.rejects(client().batches.cancel(made.id), { status: 409 })
})

test('a batch waits where a limit of its key says so, and fails nothing for it', async () => {
  const made = await g.account()
  await g.gateway.accounts.change(made.id, { limits: { requestsPerMinute: 3 } }, BY)
  const batch = await start(
    Array.from({ length: 6 }, (_, i) => line(`l${i}`, chat('Hi.'))),
    made.key,
  )
  await completed(batch, 3, made.key)
  await pause(300, 'nothing more may run')
  const seen = await client(made.key).batches.retrieve(batch.id)
  assert.equal(seen.status, 'in_progress')
  assert.deepEqual(seen.request_counts, { total: 6, completed: 3, failed: 0 })
  assert.equal((await g.sql('select 1 from refusal where account_id = $1', [made.id])).length, 0)
  await assert.rejects(client(made.key).files.delete(seen.input_file_id), { status: 409 })
  assert.equal((await client(made.key).batches.cancel(batch.id)).status, 'cancelling')
  const done = await ended(batch.id, made.key)
  // Without waiting for the limit, which would let the rest go on.
  assert.equal(done.status, 'cancelled')
  assert.ok(done.cancelled_at && done.cancelling_at)
  assert.equal((await contentOf(done.output_file_id, made.key)).length, 3)
  const unfinished = await contentOf(done.error_file_id, made.key)
  assert.deepEqual(
    unfinished.map(({ response, error }) => [response, error.code]),
    Array(3).fill([null, 'batch_cancelled']),
  )
  assert.equal((await usageOf(batch.id)).filter(({ charged }) => charged > 0n).length, 3)
})

test('a batch whose time is over ends with what it has, and one whose key is revoked goes no further', async () => {
  const slow = await g.account()
  await g.gateway.accounts.change(slow.id, { limits: { requestsPerMinute: 1 } }, BY)
  const late = await start([line('a', chat('A.')), line('b', chat('B.'))], slow.key)
  await completed(late, 1, slow.key)
  await g.sql(`update batch set expires_at = now() - interval '1 second', step_at = now() where id = $1`, [late.id])
  const over = await ended(late.id, slow.key)
  assert.equal(over.status, 'expired')
  assert.ok(over.expired_at)
  const [answered, ...others] = await contentOf(over.output_file_id, slow.key)
  assert.deepEqual(others, [])
  // Lines are sent side by side: either may be the one that the limit lets through.
  assert.deepEqual(
    (await contentOf(over.error_file_id, slow.key)).map(({ custom_id, error }) => [custom_id, error.code]),
    [[answered.custom_id === 'a' ? 'b' : 'a', 'batch_expired']],
  )
  const made = await g.account()
  await g.sql(`update api_key set revoked_at = now() where id = $1`, [made.keyId])
  const file = await upload(JSON.stringify(line('a', chat('A.'))))
  await g.sql('update stored_file set account_id = $2 where id = $1', [file.id, made.id])
  await g.sql(
    `insert into batch (account_id, id, key_id, endpoint, input_file_id, completion_window, output_seconds, expires_at, step_at)
             values ($1, 'batch_revoked', $2, '/v1/chat/completions', $3, '24h', 3600, now() + interval '1 day', now() - interval '1 hour')`,
    [made.id, made.keyId, file.id],
  )
  const { key: second } = await g.key(made.id)
  const done = await ended('batch_revoked', second)
  const [error] = await contentOf(done.error_file_id, second)
  assert.equal(error.response.status_code, 401)
})

test('whoever looks after an account sees what a batch cost, each line with its call, and whether a file would do', async () => {
  const made = await g.account()
  const lines = [
    line('good', chat('One.')),
    line('bad', { ...chat('Two.'), model: 'no-such-model' }),
    line('long', chat('Three. [[big=200000]]')),
    line('broken', chat('Four. [[400 this is my own message]]')),
  ]
  const text = lines.map((one) => JSON.stringify(one)).join('\n')
  const file = await upload(`${text}\n{"custom_id":`, made.key)
  const base = `/accounts/${made.id}`
  const operate = (path: string, method = 'GET') => g.operator<any>(method, `${base}${path}`)
  const check = (id: string, endpoint = '/v1/chat/completions') =>
    operate(`/files/${id}/check?endpoint=${encodeURIComponent(endpoint)}`)
  const { data: wrong } = await check(file.id)
  const found = wrong.errors.map((one: any) => [one.line, one.code])
  assert.deepEqual(
    [wrong.total, found],
    [
      5,
      [
        [2, 'model_unknown'],
        [5, 'invalid_json_line'],
      ],
    ],
  )
  assert.equal((await check('file-unknown')).status, 404)
  assert.equal((await check(file.id, '/v1/images/generations')).status, 400)
  const batch = await start(lines, made.key)
  const done = await ended(batch.id, made.key)
  const { data: page } = await operate('/batches')
  assert.deepEqual(
    page.items.map((one: any) => [one.id, one.status, one.input.name, one.counts]),
    [[batch.id, 'completed', 'lines.jsonl', { total: 4, completed: 2, failed: 2 }]],
  )
  assert.deepEqual((await operate('/batches?status=failed')).data.items, [])
  const { data: detail } = await operate(`/batches/${batch.id}`)
  assert.deepEqual([detail.outputFile, detail.errorFile, detail.errors], [done.output_file_id, done.error_file_id, []])
  const rows = await usageOf(batch.id)
  assert.equal(
    parseCredits(detail.charged),
    rows.reduce((sum, { charged }) => sum + charged, 0n),
  )
  const linesOf = async (query: string) => (await operate(`/batches/${batch.id}/lines?${query}`)).data
  const failed = await linesOf('')
  assert.deepEqual(
    failed.items.map((one: any) => [one.line, one.customId, one.ok, one.status, one.call === null]),
    [
      [2, 'bad', false, 404, true],
      [4, 'broken', false, 400, false],
    ],
  )
  assert.match(failed.items[0].message, /does not exist/)
  const first = await linesOf('outcome=completed&limit=1')
  assert.deepEqual([first.items[0].customId, first.items[0].status], ['good', 200])
  const second = await linesOf(`outcome=completed&limit=1&cursor=${first.next}`)
  assert.deepEqual([second.items[0].customId, second.items[0].line, second.next], ['long', 3, null])
  // A page that was read while it ran goes on in the file.
  assert.deepEqual((await linesOf('outcome=completed&cursor=1')).items, second.items)
  for (const cursor of ['99999999999999999999', '1-7', 'x', '1-99999999', '-1-5'])
    assert.equal((await operate(`/batches/${batch.id}/lines?cursor=${cursor}`)).status, 200, cursor)
  for (const { call } of [failed.items[1], ...first.items, ...second.items])
    assert.equal((await g.operator('GET', `/usage/${call}`)).status, 200)
  assert.equal((await operate('/batches/batch_unknown')).status, 404)
  assert.equal((await operate('/batches/batch_unknown/lines')).status, 404)
  assert.equal((await operate(`/batches/${batch.id}/cancel`, 'POST')).status, 409)
  await client(made.key).files.delete(done.output_file_id!)
  assert.equal((await operate(`/batches/${batch.id}`)).data.outputFile, null)
  assert.deepEqual(await linesOf('outcome=completed'), { items: [], next: null })
})

test('a batch that runs shows its lines, and is cancelled by its operator with a note in the audit', async () => {
  const made = await g.account()
  await g.gateway.accounts.change(made.id, { limits: { requestsPerMinute: 2 } }, BY)
  const batch = await start(
    ['a', 'b', 'c', 'd'].map((name) => line(name, chat('Hi.'))),
    made.key,
  )
  await completed(batch, 2, made.key)
  const at = `/accounts/${made.id}/batches/${batch.id}`
  const read = async (path: string, method = 'GET') => (await g.operator<any>(method, path)).data
  const one = await read(`${at}/lines?outcome=completed&limit=1`)
  const two = await read(`${at}/lines?outcome=completed&limit=1&cursor=${one.next}`)
  // Which two of the four the limit lets in is nobody's promise.
  const done = new Set([...one.items, ...two.items].map(({ line: at }: any) => at))
  assert.ok(done.size === 2 && [...done].every((at) => at >= 1 && at <= 4), [...done].join())
  assert.equal(two.next, null)
  assert.ok(one.items[0].call)
  assert.equal((await read(`${at}/cancel`, 'POST')).status, 'cancelling')
  assert.equal((await ended(batch.id, made.key)).status, 'cancelled')
  const failed = await read(`${at}/lines`)
  assert.deepEqual(
    pluck(failed.items, 'status', 'call', 'message'),
    Array(2).fill([null, null, 'The batch was cancelled before this request.']),
  )
  assert.deepEqual(pluck((await read('/audit?action=batch.cancel')).items, 'object'), [batch.id])
})
