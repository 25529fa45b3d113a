// Images through the whole gateway: the official clients, the rules, the files.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateImage } from 'ai'
import OpenAI from 'openai'
import { readImageFacts } from '../src/kernel/parsers/image-file.ts'
import { assert, jsonOf, test, testGateway } from './gateway.ts'

let key: string
let account: string
const g = testGateway({ isShared: true }, async () => {
  ;({ key, id: account } = await g.account())
})

const PATH = '/alpha/v1/images/generations'
const files = async () =>
  (await readdir(join(g.config.dataDirectory, 'assets'), { recursive: true })).filter((name) =>
    /\.(png|jpg|webp)$/.test(name),
  ).length
async function fetched(url: string): Promise<{ type: string; width: number; height: number }> {
  const answer = await fetch(url)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  const image = readImageFacts([Buffer.from(await answer.arrayBuffer())])
  assert.ok(image)
  return { type: answer.headers.get('content-type') ?? '', width: image.width, height: image.height }
}

test('the openai SDK gets a picture of the asked size and format at an address that anyone can open', async () => {
  const api = new OpenAI({ apiKey: key, baseURL: `${g.url}/alpha/v1` })
  for (const [format, type] of [
    ['png', 'image/png'],
    ['jpeg', 'image/jpeg'],
    ['webp', 'image/webp'],
  ] as const) {
    const answer = await api.images.generate({
      model: 'alpha-image-2',
      prompt: 'A red bridge at dawn',
      size: '1536x1024',
      output_format: format,
      quality: 'low',
    })
    const url = answer.data?.[0]?.url ?? ''
    assert.ok(url.startsWith(`${g.url}/assets/`))
    assert.deepEqual(await fetched(url), { type, width: 1536, height: 1024 })
    assert.ok((answer.usage?.total_tokens ?? 0) > 0)
  }
})

test('ratio and tier give the size of the contract’s table', async () => {
  for (const [size, resolution, width, height] of [
    ['16:9', '1k', 1536, 864],
    ['1:1', '2k', 2048, 2048],
    ['21:9', '1k', 2016, 864],
  ] as const) {
    const answer = await g.call(PATH, key, { model: 'alpha-image-2', prompt: 'x', size, resolution, quality: 'low' })
    const body = (await answer.json()) as { created: number; data: Array<{ url: string }> }
    assert.equal(answer.status, 200, JSON.stringify(body))
    const image = await fetched(body.data[0]!.url)
    assert.deepEqual([image.width, image.height], [width, height])
  }
})

test('the AI SDK makes images with both of its providers', async () => {
  for (const model of [
    createOpenAI({ apiKey: key, baseURL: `${g.url}/alpha/v1` }).image('alpha-image-2'),
    createOpenAICompatible({ name: 'tollgate', apiKey: key, baseURL: `${g.url}/v1` }).imageModel('alpha-image-2'),
  ]) {
    const { image } = await generateImage({ model, prompt: 'A green field', size: '1024x1024' })
    assert.deepEqual([...image.uint8Array.subarray(1, 4)], [...Buffer.from('PNG')])
  }
})

test('a stream holds to the completed event and [DONE], and nothing else', async () => {
  const answer = await g.call(PATH, key, {
    model: 'alpha-image-2',
    prompt: 'A blue door',
    quality: 'low',
    stream: true,
  })
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/)
  const text = await answer.text()
  const events = text.split('\n').filter((line) => line.startsWith('event:'))
  assert.deepEqual(events, ['event: image_generation.completed'])
  const data = text.split('\n').filter((line) => line.startsWith('data: '))
  assert.equal(data.length, 2)
  const completed = JSON.parse(data[0]!.slice(6)) as { type: string; data: Array<{ index: number; url: string }> }
  assert.equal(completed.type, 'image_generation.completed')
  await fetched(completed.data[0]!.url)
  assert.equal(data[1], 'data: [DONE]')
})

test('references are edited: data URIs arrive at the vendor as files', async () => {
  const first = (await (
    await g.call(PATH, key, { model: 'alpha-image-2', prompt: 'x', quality: 'low', response_format: 'b64_json' })
  ).json()) as { data: Array<{ b64_json: string }> }
  const uri = `data:image/png;base64,${first.data[0]!.b64_json}`
  const answer = await g.call(PATH, key, {
    model: 'alpha-image-2',
    prompt: 'Put them together',
    quality: 'low',
    image_urls: [uri, uri],
  })
  assert.equal(answer.status, 200, await answer.clone().text())
  const call = g.sandbox.seen.calls.at(-1)
  assert.match(call?.url ?? '', /\/images\/edits/)
})

test('what the contract refuses is refused before any hold, and leaves no file', async () => {
  const before = { balance: await g.balance(account), files: await files(), seen: g.sandbox.seen.requests }
  const good = { model: 'alpha-image-2', prompt: 'x' }
  const cases: Array<[object | string, number, number, Record<string, string>?]> = [
    [{ model: 'alpha-image-2' }, 400, 10000],
    [{ prompt: 'x' }, 400, 10000],
    [{ ...good, n: 2 }, 400, 10000],
    [{ ...good, n: '1' }, 400, 10000],
    [{ ...good, mask: 'x' }, 400, 10000],
    [{ ...good, mask_url: 'https://a.example/x.png' }, 400, 10000],
    [{ ...good, maskUrl: 'x' }, 400, 10000],
    [{ ...good, size: '1:1', resolution: '4k' }, 400, 10000],
    [{ ...good, size: '999x999' }, 400, 10000],
    [{ ...good, quality: 'best' }, 400, 10000],
    [{ ...good, output_format: 'gif' }, 400, 10000],
    [{ ...good, image_urls: Array(17).fill('data:image/png;base64,AAAA') }, 400, 10000],
    [{ ...good, image_urls: ['ftp://a.example/x.png'] }, 400, 10000],
    [{ ...good, model: 'alpha-image-9' }, 404, 30000],
    [{ ...good, model: 'alpha-5.4' }, 404, 30000],
    ['not json', 400, 10000],
    [JSON.stringify(good), 400, 10000, { 'content-type': 'multipart/form-data; boundary=x' }],
  ]
  for (const [body, status, code, headers] of cases) {
    const answer = await g.call(PATH, key, body, headers ? { headers } : {})
    const text = await answer.text()
    assert.equal(answer.status, status, `${JSON.stringify(body).slice(0, 80)}: ${text}`)
    const fault = JSON.parse(text) as Record<string, unknown>
    assert.equal(fault.code, code)
    assert.deepEqual(Object.keys(fault), ['code', 'message', 'type'])
  }
  assert.deepEqual({ balance: await g.balance(account), files: await files(), seen: g.sandbox.seen.requests }, before)
  assert.equal((await g.call('/alpha/v1/images/edits', key, good)).status, 404)
})

test('a dead reference, a vendor that fails and one that breaks mid-stream cost nothing and leave no file', async () => {
  const { id, key: own } = await g.account()
  const before = await files()
  for (const body of [
    { prompt: 'x', image_urls: ['http://127.0.0.1:9/x.png'] },
    { prompt: '[[500]]' },
    { prompt: '[[cut=0]]', stream: true },
    { prompt: '[[garbage]]' },
  ]) {
    const answer = await g.call(PATH, own, { model: 'alpha-image-2', quality: 'low', ...body })
    const text = await answer.text()
    assert.ok(answer.status >= 400 || /"code":50000/.test(text), text.slice(0, 300))
    assert.doesNotMatch(text, /^data: \[DONE\]\s*$/)
  }
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
  assert.equal(await files(), before)
  assert.deepEqual(await readdir(join(g.config.dataDirectory, 'assets', 'unfinished')), [])
})

test('a key without credit is told what is missing, and draws nothing', async () => {
  const { key: poor } = await g.account({ credits: 0n })
  const body = await jsonOf<{ code: number; message: string }>(
    g.call(PATH, poor, { model: 'alpha-image-2', prompt: 'x' }),
    402,
  )
  assert.equal(body.code, 40000)
  assert.match(body.message, /needs .* credits, 0 are available/)
})
