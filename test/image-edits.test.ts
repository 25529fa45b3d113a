// Edits as SDKs send them: a form with pictures and a mask, beside the contract's JSON endpoint.
import OpenAI, { toFile } from 'openai'
import { readImageFacts } from '../src/kernel/parsers/image-file.ts'
import { assert, pluck, test, testGateway } from './gateway.ts'
import { PICTURE } from './picture.ts'

const MODEL = 'alpha-image-2'
const PATH = '/v1/images/edits'

let key: string
let account: string
const g = testGateway({ catalog: addPlainModel }, async () => {
  ;({ key, id: account } = await g.account())
})

/** The same, at a vendor that takes no masks. */
function addPlainModel(document: any): void {
  const { offers: _, ...plain } = document.vendors.alpha
  document.vendors.plain = plain
  document.models['plain-image'] = {
    ...document.models[MODEL],
    routes: [{ vendor: 'plain', protocol: 'openai-images', model: MODEL }],
  }
}

const client = () => new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
const picture = (name = 'photo.png') => toFile(PICTURE, name, { type: 'image/png' })
const seen = () => JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}') as { files: { name: string; type: string }[] }

test('the openai SDK edits one picture, several, and one with a mask; each is paid as an image of its model', async () => {
  const before = await g.balance(account)
  const asked = { model: MODEL, prompt: 'Make it snow', quality: 'low' } as const
  const one = await client().images.edit({ ...asked, image: await picture() })
  const drawn = Buffer.from(one.data?.[0]?.b64_json ?? '', 'base64')
  assert.equal(readImageFacts([drawn])?.type, 'png')
  assert.ok((one.usage?.input_tokens_details.image_tokens ?? 0) > 0)

  await client().images.edit({ ...asked, image: [await picture(), await picture('second.png')] })
  assert.deepEqual(pluck(seen().files, 'name'), ['image[]', 'image[]'])

  await client().images.edit({ ...asked, image: await picture(), mask: await picture('mask.png') })
  assert.deepEqual(pluck(seen().files, 'name', 'type'), [
    ['image[]', 'image/png'],
    ['mask', 'image/png'],
  ])
  const rows = await g.calls(account)
  const after = await g.balance(account)
  assert.ok(after.posted < before.posted && after.held === 0n)
  assert.deepEqual(
    rows.map(({ endpoint, outcome }) => `${endpoint} ${outcome}`),
    Array(3).fill('images/edits settled'),
  )
})

test('variations, which no model makes any more, are said to be edits', async () => {
  await assert.rejects(
    client().images.createVariation({ image: await picture() }),
    /404 Variations are not offered.*images\/edits/,
  )
})

test('a stream has the events of an edit, and an address is given where one is asked for', async () => {
  const asked = { model: MODEL, prompt: 'Make it snow', quality: 'low' } as const
  const stream = await client().images.edit({ ...asked, image: await picture(), stream: true })
  const events = []
  for await (const event of stream) events.push(event)
  assert.deepEqual(pluck(events, 'type'), ['image_edit.completed'])
  const [event] = events
  assert.equal(readImageFacts([Buffer.from(event?.b64_json ?? '', 'base64')])?.type, 'png')

  const linked = await client().images.edit({ ...asked, image: await picture(), response_format: 'url' })
  assert.equal(linked.data?.[0]?.b64_json, undefined)
  assert.equal((await fetch(linked.data?.[0]?.url ?? '')).status, 200)
})

test('a form that is sent again with its key is paid once; another form with it is refused', async () => {
  const before = await g.balance(account)
  const options = { headers: { 'idempotency-key': 'edit-1' } }
  const asked = async (prompt: string) => ({ model: MODEL, prompt, quality: 'low' as const, image: await picture() })
  const first = await client().images.edit(await asked('once'), options)
  await g.settled()
  const paid = await g.balance(account)
  assert.ok(paid.posted < before.posted)
  const again = await client().images.edit(await asked('once'), options)
  assert.equal(again.data?.[0]?.b64_json, first.data?.[0]?.b64_json)
  await assert.rejects(client().images.edit(await asked('twice'), options), /409/)
  assert.deepEqual(await g.balance(account), paid)
})

test('what is wrong with a form is said by field, before anything is held or sent', async () => {
  const before = { balance: await g.balance(account), seen: g.sandbox.seen.requests }
  const png = new Blob([new Uint8Array(PICTURE)], { type: 'image/png' })
  const cases: Array<[Array<[string, string | Blob]>, string | null, number?]> = [
    [[['prompt', 'x']], 'image'],
    [[['image', png]], 'prompt'],
    [[['image', new Blob(['GIF?'])]], 'image'],
    [[['image', new Blob([])]], 'image'],
    [[['image', 'https://a.example/x.png']], 'image'],
    [Array.from({ length: 17 }, () => ['image[]', png] as [string, Blob]), 'image'],
    [
      [
        ['image', png],
        ['mask', png],
        ['mask', png],
      ],
      'mask',
    ],
    [
      [
        ['image', png],
        ['picture', png],
      ],
      'picture',
    ],
    [
      [
        ['image', png],
        ['n', '2'],
      ],
      'n',
    ],
    [
      [
        ['image', png],
        ['stream', 'perhaps'],
      ],
      'stream',
    ],
    [
      [
        ['image', png],
        ['image_urls', 'x'],
      ],
      'image_urls',
    ],
  ]
  for (const [parts, field] of cases) {
    const form = new FormData()
    const fields = new Map(parts.filter(([, value]) => typeof value === 'string') as [string, string][])
    form.append('model', MODEL)
    if (field !== 'prompt' && !fields.has('prompt')) form.append('prompt', 'x')
    for (const [name, value] of parts)
      if (typeof value === 'string') form.append(name, value)
      else form.append(name, value, 'photo.png')
    const answer = await fetch(g.url + PATH, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    })
    const { message } = (await answer.json()) as { message: string }
    assert.equal(answer.status, 400, `${field}: ${message}`)
    assert.match(message, new RegExp(`"${field}"`))
  }
  const json = await g.call(PATH, key, { model: MODEL, prompt: 'x' })
  assert.equal(json.status, 400)
  assert.match(((await json.json()) as { message: string }).message, /multipart\/form-data/)
  assert.deepEqual({ balance: await g.balance(account), seen: g.sandbox.seen.requests }, before)
})

test('a mask is refused where no vendor of the model takes masks, and the contract’s own path keeps refusing forms', async () => {
  const before = g.sandbox.seen.requests
  await assert.rejects(
    async () =>
      client().images.edit({ model: 'plain-image', prompt: 'x', image: await picture(), mask: await picture() }),
    /400 .*offers masks/,
  )
  assert.equal(g.sandbox.seen.requests, before)
  for (const path of ['/alpha/v1/images/edits', '/alpha/images/edits'])
    assert.equal((await g.call(path, key, {})).status, 404)
})
