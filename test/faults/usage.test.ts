// F11: vendors that report nonsense. A charge is never negative, never more than the call can have used, and what is
// wrong is said in the log.

import fc from 'fast-check'
import { type Log, silentLog } from '../../src/kernel/log.ts'
import { afterEach, assert, type Call, runs, started, test, textOf } from '../gateway.ts'
import {
  CHAT_PATH,
  chatBody,
  chunk,
  DONE,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usageChunk,
  wholeAnswer,
} from './chat-vendor.ts'
import { each } from './raw-client.ts'

/** Of the model in chat-vendor.ts. */
const CONTEXT = 100_000
const OUTPUT_MAX = 50

const anomalies: object[] = []
const vendor = started(startVendor)
const log: Log = {
  ...silentLog,
  warn(fields) {
    if ('anomaly' in fields) anomalies.push(fields)
  },
}
const g = started(() => startFaultGateway({ vendors: { mock: { baseUrl: vendor.url } }, log }))
afterEach(() => g.settled())

/** Reported as the next answer's usage, by the number in the prompt. */
let reports: unknown[] = []

/** `contrary` answers with a stream whoever wants JSON, and the other way round. */
function answerWithReports(contrary = false): void {
  vendor.answer = ({ response, prompt, body }) => {
    const report = reports[Number(prompt)]
    if (((JSON.parse(body) as { stream?: boolean }).stream ?? false) !== contrary) {
      response.writeHead(200, STREAM_HEADERS)
      response.end(chunk('hello there', 'stop') + (report === undefined ? '' : usageChunk(report)) + DONE)
    } else response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('hello there', report))
  }
}

async function charge(index: number, stream: boolean): Promise<Call> {
  const { id, key } = await g.account()
  g.mayExceedHold(id)
  await textOf(g.call(CHAT_PATH, key, chatBody(String(index), { max_tokens: OUTPUT_MAX, stream })))
  const row = await g.lastCall(id)
  assert.equal((await g.balance(id)).posted, 1_000_000_000n - row.charged)
  return row
}

test('reports of usage are taken as they are where they make sense, and estimated or cut where not', async () => {
  answerWithReports()
  const table: Array<[report: unknown, check: (charged: bigint, held: bigint, estimated: boolean) => boolean]> = [
    [{ prompt_tokens: 10, completion_tokens: 20 }, (charged) => charged === 50n],
    [{ prompt_tokens: 0, completion_tokens: 0 }, (charged, _, estimated) => charged === 0n && !estimated],
    [{ prompt_tokens: 10, completion_tokens: OUTPUT_MAX }, (charged) => charged === 110n],
    // A vendor that breaks the limit that it was told is owed what it reports.
    [{ prompt_tokens: 10, completion_tokens: OUTPUT_MAX + 1 }, (charged, _, marked) => charged === 112n && !marked],
    [{ prompt_tokens: 10, completion_tokens: 1e15 }, (charged, held, marked) => charged === held && marked],
    [{ prompt_tokens: 1e15, completion_tokens: 20 }, (charged, held, marked) => charged === held - 60n && marked],
    [undefined, (charged, held, estimated) => charged > 0n && charged <= held && estimated],
    [null, (charged, held) => charged > 0n && charged <= held],
    ['many', (charged, held) => charged > 0n && charged <= held],
    [{ prompt_tokens: -5, completion_tokens: -5 }, (charged, held) => charged >= 0n && charged <= held],
    [{ prompt_tokens: '10', completion_tokens: '20' }, (charged, held) => charged >= 0n && charged <= held],
    [{ prompt_tokens: 1e300, completion_tokens: 0.5 }, (charged, held) => charged >= 0n && charged <= held],
  ]
  reports = table.map(([report]) => report)
  for (const [index, [report, check]] of table.entries())
    for (const stream of [false, true]) {
      const { charged, held, estimated } = await charge(index, stream)
      assert.ok(
        check(charged, held, estimated),
        `${JSON.stringify(report)} ${stream}: ${charged} of ${held}, ${estimated}`,
      )
    }
  assert.ok(anomalies.length >= 4, 'impossible reports are written down')
})

test('an answer of the other kind than was asked for is charged like the kind that was', async () => {
  answerWithReports(true)
  reports = [{ prompt_tokens: 10, completion_tokens: 20 }, { prompt_tokens: 0, completion_tokens: 0 }, undefined]
  for (const stream of [false, true]) {
    assert.equal((await charge(0, stream)).charged, 50n)
    assert.equal((await charge(1, stream)).charged, 0n)
    const { charged, held, estimated } = await charge(2, stream)
    assert.ok(estimated && charged > 0n && charged <= held)
  }
  const { key } = await g.account()
  const stream = await g.call(CHAT_PATH, key, chatBody('0', { max_tokens: OUTPUT_MAX, stream: true }))
  assert.match(stream.headers.get('content-type') ?? '', /^text\/event-stream/)
  assert.match(await stream.text(), /"content":"hello there".*: tollgate charge=0\.00005.*data: \[DONE\]\n\n$/s)
  const whole = await g.call(CHAT_PATH, key, chatBody('0', { max_tokens: OUTPUT_MAX }))
  assert.match(whole.headers.get('content-type') ?? '', /^application\/json/)
  const body = (await whole.json()) as { choices: Array<{ message: { content: string } }> }
  assert.equal(body.choices[0]?.message.content, 'hello there')
  vendor.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"error":{"message":"overloaded"}}')
  assert.equal((await g.call(CHAT_PATH, key, chatBody('0', { stream: true }))).status, 502)
})

const anything = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, -1, 1e18, 2 ** 53, 2 ** 63, 1e308, '7', '', null, true, [], {}),
  fc.nat({ max: 100 }),
)
const report = fc.oneof(
  { weight: 1, arbitrary: fc.jsonValue() },
  {
    weight: 5,
    arbitrary: fc.record(
      {
        prompt_tokens: anything,
        completion_tokens: anything,
        total_tokens: anything,
        prompt_tokens_details: fc.oneof(anything, fc.record({ cached_tokens: anything, cache_write_tokens: anything })),
        completion_tokens_details: fc.oneof(anything, fc.record({ reasoning_tokens: anything })),
        cache_read_input_tokens: anything,
        cache_creation_input_tokens: anything,
      },
      { requiredKeys: [] },
    ),
  },
)

test('whatever a vendor reports, the charge stays between nothing and what the call can have used', async () => {
  answerWithReports()
  reports = fc.sample(report, { numRuns: runs(400, 10_000), seed: 7 })
  const { id, key } = await g.account()
  g.mayExceedHold(id)
  await each(reports.keys(), 20, async (index) => {
    const answer = await g.call(
      CHAT_PATH,
      key,
      chatBody(String(index), { max_tokens: OUTPUT_MAX, stream: index % 2 === 0 }),
    )
    assert.ok(answer.status === 200 || answer.status === 502, `${answer.status}: ${JSON.stringify(reports[index])}`)
    await answer.text()
  })
  const rows = await g.calls(id)
  assert.equal(rows.length, reports.length)
  for (const { charged, held, loss, estimated, lines } of rows) {
    assert.ok(charged >= 0n && loss === 0n)
    if (estimated) {
      assert.ok(charged <= held, `an estimate of ${charged} above the hold of ${held}`)
      continue
    }
    const output = lines.find(([unit]) => unit === 'output')?.[1] ?? 0
    // The model can read and write no more than its context.
    assert.ok(output <= CONTEXT, `${output} tokens of output`)
    assert.ok(charged <= BigInt(3 * CONTEXT), `${charged} of ${held}`)
  }
})
