// What one account sends in bulk is its own trouble: it is bounded, kept apart, and read back in small pages.
import { assert, atOnce, none, pluck, test, testGateway } from './gateway.ts'

const on = testGateway({ isShared: true })

const VIDEO = { model: 'videogen-2.0', prompt: 'a harbour' }
const MB = 1_000_000

interface Page {
  data: Array<{ id: string; inputParams: { prompt: string } }>
  hasMore: boolean
  nextBefore?: string
  error?: { code: number; message: string }
}

test('a video request with more text than any video needs is refused, and holds nothing', async () => {
  const { id, key } = await on.account()
  const picture = `data:image/png;base64,${'A'.repeat(100)}`
  for (const junk of [
    { note: 'x'.repeat(2 * MB) },
    { notes: Array.from({ length: 30_000 }, () => picture) },
    { prompt: 'x'.repeat(2 * MB) },
  ]) {
    const response = await on.call('/v1/video/seedance', key, { ...VIDEO, ...junk })
    const { error } = (await response.json()) as Page
    assert.deepEqual([response.status, error!.code], [413, 10000])
    assert.match(error!.message, /at most 1 MB besides the pictures/)
  }
  assert.equal((await on.balance(id)).held, 0n)
})

test('what a video request says beyond its parameters is not stored', async () => {
  const { key } = await on.account()
  const response = await on.call('/v1/video/seedance', key, { ...VIDEO, note: 'x'.repeat(500_000) })
  const { data } = (await response.json()) as { data: { jobId: string } }
  const [row] = await on.sql<{ chars: number }>(
    'select length(input) + length(request) as chars from job where id = $1',
    [data.jobId],
  )
  assert.ok(row!.chars < 1_000, `${row!.chars} characters`)
  const job = (await (await on.call(`/v1/jobs/${data.jobId}`, key)).json()) as { data: { inputParams: unknown } }
  assert.deepEqual(job.data.inputParams, VIDEO)
})

test('while one account sends large videos, not a call of another is refused', async () => {
  const [{ key: large }, { key: small }] = [await on.account(), await on.account()]
  const image = `data:image/png;base64,${'A'.repeat(12 * MB)}`
  let sending = true
  const sent = atOnce(4, (i) =>
    on.call('/v1/video/seedance', large, { ...VIDEO, prompt: i === 3 ? 'x'.repeat(12 * MB) : 'it moves', image }),
  ).finally(() => {
    sending = false
  })
  const seen: number[] = []
  do {
    const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'hi' }], max_tokens: 20 }
    const answer = await on.call('/v1/chat-completions', small, body)
    await answer.arrayBuffer()
    seen.push(answer.status)
  } while (sending)
  none(seen, (status) => status !== 200)
  assert.deepEqual(pluck(await sent, 'status'), [200, 200, 200, 413])
})

test('a list of large jobs comes in pages of bounded size, and misses none', async () => {
  const { id: account, key } = await on.account()
  // Rows of an earlier version may be of any size.
  await on.sql(
    `insert into job (id, account_id, key_id, hold_id, product, catalog_version, status, verdict, open, input, request)
        select (7000000000000000000 + i)::text, $1, 'k', 'h-' || $1 || '-' || to_char(i, 'FM00'), 'videogen-2.0', 1, 'FAILED',
          'FAILED', false, json_build_object('prompt', repeat('x', 1500000) || i), '{}'
        from generate_series(1, 14) i`,
    [account],
  )
  const prompts: number[] = []
  let before = ''
  for (let pages = 1; ; pages++) {
    const response = await on.call(`/v1/jobs?limit=100${before}`, key)
    const text = await response.text()
    assert.ok(text.length < 6 * MB, `a page of ${text.length} characters`)
    const page = JSON.parse(text) as Page
    prompts.push(...page.data.map(({ inputParams }) => Number(inputParams.prompt.slice(1_500_000))))
    if (!page.hasMore) break
    assert.ok(page.data.length > 0 && pages < 14)
    before = `&before=${page.nextBefore}`
  }
  assert.deepEqual(
    prompts,
    Array.from({ length: 14 }, (_, i) => 14 - i),
  )
})
