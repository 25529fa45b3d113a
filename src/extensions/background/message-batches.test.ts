// Message batches and files with the official anthropic package, unchanged, on the gateway's own batches and files.
import Anthropic, { toFile } from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { assert, BY, test, testGateway, until } from '../../../test/gateway.ts'

let key: string
let account: string
const g = testGateway({}, async () => {
  ;({ key, id: account } = await g.account())
})
const client = (apiKey = key) => new Anthropic({ apiKey, baseURL: g.url, maxRetries: 0 })
const asked = (custom_id: string, content: string, over: object = {}) => ({
  custom_id,
  params: { model: 'beta-sonnet-4-6', max_tokens: 50, messages: [{ role: 'user' as const, content }], ...over },
})
const ended = async (id: string) => {
  await until(async () => (await client().messages.batches.retrieve(id)).processing_status, 'ended')
  return client().messages.batches.retrieve(id)
}

test('messages of a batch are answered and charged, and each result is found by its name', async () => {
  const made = await client().messages.batches.create({
    requests: [asked('one', 'Say hello.'), asked('two', 'Count.'), asked('bad', 'Hi', { model: 'no-such-model' })],
  })
  assert.deepEqual(
    [made.type, made.processing_status, made.request_counts.processing],
    ['message_batch', 'in_progress', 3],
  )
  assert.equal(made.results_url, null)
  await assert.rejects(client().messages.batches.results(made.id), /finished processing/)
  const { request_counts: counts, results_url } = await ended(made.id)
  assert.deepEqual(counts, { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 })
  assert.ok(results_url)
  const results = new Map<string, Anthropic.Messages.MessageBatchResult>()
  for await (const { custom_id, result } of await client().messages.batches.results(made.id))
    results.set(custom_id, result)
  for (const name of ['one', 'two']) {
    const result = results.get(name)
    assert.ok(result?.type === 'succeeded' && result.message.content[0]?.type === 'text')
    assert.equal(result.message.model, 'beta-sonnet-4-6')
  }
  const bad = results.get('bad')
  assert.ok(bad?.type === 'errored' && /no-such-model/.test(bad.error.error.message), JSON.stringify(bad))
  const rows = (await g.calls(account)).filter(({ charged }) => charged > 0n)
  assert.equal(rows.length, 2)
  // It is a batch of the gateway.
  const same = await new OpenAI({ apiKey: key, baseURL: `${g.url}/v1` }).batches.retrieve(made.id)
  assert.deepEqual([same.endpoint, same.status], ['/v1/messages', 'completed'])
})

test('batches are listed page by page, cancelled, and seen by their own account alone', async () => {
  const other = await g.account()
  const { batches } = client(other.key).messages
  // The second message waits for the next minute.
  await g.gateway.accounts.change(other.id, { limits: { requestsPerMinute: 1 } }, BY)
  const ids: string[] = []
  for (let i = 0; i < 3; i++) {
    const { id } = await batches.create({ requests: [asked('x', 'Say hello.'), asked('y', 'Count.')] })
    ids.unshift(id)
  }
  const seen: string[] = []
  for await (const { id } of batches.list({ limit: 2 })) seen.push(id)
  assert.deepEqual(seen, ids)
  const [id = ''] = ids
  await assert.rejects(client().messages.batches.retrieve(id), { status: 404 })
  await until(async () => (await batches.retrieve(id)).request_counts.processing > 0, true)
  await assert.rejects(client(other.key).get(`/v1/messages/batches/${id}/results`), { status: 409 })
  const { processing_status: status, cancel_initiated_at: at } = await batches.cancel(id)
  assert.ok(status === 'canceling' && at)
  await until(async () => (await batches.retrieve(id)).processing_status, 'ended')
  const { succeeded, canceled } = (await batches.retrieve(id)).request_counts
  assert.ok(canceled > 0 && succeeded + canceled === 2)
  const types: string[] = []
  for await (const { result } of await batches.results(id)) types.push(result.type)
  assert.equal(types.filter((type) => type === 'canceled').length, canceled)
  for (const one of ids.slice(1)) await batches.cancel(one)
})

test('what is wrong with a batch is said when it is made, and leaves nothing', async () => {
  const { key: own } = await g.account()
  const wrong: [requests: unknown, words: RegExp][] = [
    [[], /requests/],
    [undefined, /requests/],
    [[asked('a', 'x'), asked('a', 'y')], /requests\[1\].*same "custom_id"/],
    [[{ custom_id: 'a' }], /params/],
    [[asked('', 'x')], /custom_id/],
  ]
  for (const [requests, words] of wrong)
    await assert.rejects(client(own).messages.batches.create({ requests } as never), (error: unknown) => {
      assert.ok(error instanceof Anthropic.BadRequestError)
      return words.test(error.message) || assert.fail(error.message)
    })
  assert.equal((await client(own).beta.files.list()).data.length, 0)
})

test('files are uploaded, listed page by page, read and deleted in the shapes of this SDK', async () => {
  const { key: own } = await g.account()
  const { files } = client(own).beta
  const made: string[] = []
  for (const text of ['first', 'second', 'third']) {
    const file = await files.upload({ file: await toFile(Buffer.from(text), `${text}.txt`) })
    assert.deepEqual([file.type, file.filename, file.size_bytes], ['file', `${text}.txt`, text.length])
    made.unshift(file.id)
  }
  const listed: string[] = []
  for await (const { id } of files.list({ limit: 2 })) listed.push(id)
  assert.deepEqual(listed, made)
  const [id = ''] = made
  assert.equal((await files.retrieveMetadata(id)).filename, 'third.txt')
  assert.equal(await (await files.download(id)).text(), 'third')
  assert.deepEqual(await files.delete(id), { id, type: 'file_deleted' })
  await assert.rejects(files.retrieveMetadata(id), { status: 404 })
})
