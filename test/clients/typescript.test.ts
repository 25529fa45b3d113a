// The client for TypeScript: its whole surface against the real gateway, what it refuses to compile, and how large it
// is.
import { createHmac } from 'node:crypto'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  AuthenticationError,
  ConnectionError,
  InsufficientCreditsError,
  InvalidRequestError,
  JobFailedError,
  NotFoundError,
  RateLimitError,
  ServerError,
  TimeoutError,
  Tollgate,
  type TollgateError,
  WebhookError,
} from '../../clients/typescript/src/index.ts'
import { camel } from '../../src/extensions/docs/reference.ts'
import { above, after, assert, before, type Listening, listen, pluck, test, testGateway, until } from '../gateway.ts'
import { ISSUER } from '../invoice-shapes.ts'
import { PICTURE } from '../picture.ts'
import { METHODS } from './surface.ts'

let account: { id: string; key: string }
let client: Tollgate
let room: string
const servers: Listening[] = []
const g = testGateway()
before(async () => {
  account = await g.account({ credits: 1_000_000_000_000n })
  client = new Tollgate({ baseUrl: g.url, apiKey: account.key })
  room = await mkdtemp(join(tmpdir(), 'client-'))
})
after(async () => {
  for (const server of servers) await server.close()
})

const posted = async () => (await g.balance(account.id)).posted
/** A gateway in front of which answers get lost, or are made up. */
const through = (fetch: typeof globalThis.fetch, over = {}) =>
  new Tollgate({ baseUrl: g.url, apiKey: account.key, fetch, ...over })

test('every analytics endpoint has its method, and its answer has the price beside it', async () => {
  for (const { group, rest, spec } of METHODS) {
    const params = Object.fromEntries(
      Object.entries(spec.params)
        .filter(([name, field]) => field.required || (!/^(from|to)$/.test(name) && field.kind !== 'json-array'))
        .map(([name, field]) => [name, field.example]),
    )
    // The table has a method for each, which the compiler cannot know by a name made at run time.
    const methods = client.analytics[group as 'websites'] as unknown as Record<
      string,
      (params: object) => Promise<{ cost?: { charge: string }; requestId: string }>
    >
    const answer = await methods[camel(rest)]!(params)
    assert.match(answer.cost?.charge ?? '', /^\d+(\.\d+)?$/, spec.id)
    assert.match(answer.requestId, /^req_/)
    assert.doesNotMatch(JSON.stringify(answer), /"cost"/)
  }
})

test('dates, countries, lists and arrays are written as the gateway takes them', async () => {
  g.sandbox.seen.clear()
  await client.analytics.websites.visits({
    keys: 'example.com',
    country: 'us',
    from: new Date('2026-10-01'),
    to: new Date('2026-10-31'),
  })
  assert.match(g.sandbox.seen.calls[0]?.url ?? '', /country=840.*from=2026%7C10%7C01.*to=2026%7C10%7C31/)
  await client.analytics.websites.keywords({ keys: 'example.com', pageFilterJson: [{ url: 'example.com/blog' }] })
  await client.analytics.websites.geography({ keys: 'example.com', country: 'world', latest: '3m' })
})

test('a profile by name and by id, and a timeline to its end or to a number', async () => {
  const { data: user } = await client.social.users.byUsername('@walker137', { 'user.fields': ['public_metrics'] })
  assert.equal(user.public_metrics?.tweet_count, 137)
  assert.equal((await client.social.users.byId(user.id)).data.username, 'walker137')
  const ids = new Set<string>()
  for await (const tweet of client.social.timeline(user.id, { max_results: 50 })) ids.add(tweet.id)
  assert.equal(ids.size, 137)
  const few: string[] = []
  for await (const tweet of client.social.timeline(user.id, { max: 12, exclude: ['replies'] })) few.push(tweet.text)
  assert.equal(few.length, 12)
  const page = await client.social.page(user.id, { max_results: 5, expansions: ['author_id'] })
  assert.equal(page.includes?.users?.[0]?.id, user.id)
})

test('a picture is saved at once, made from local files, and followed by its events', async () => {
  const file = join(room, 'a.png')
  const answer = await client.images.generate({ prompt: 'A gate', size: '1024x1024' }).save(file)
  assert.deepEqual((await readFile(file)).subarray(1, 4).toString(), 'PNG')
  assert.ok(answer.cost && answer.data[0]?.url)
  await writeFile(join(room, 'small.png'), PICTURE)
  const edited = await client.images.generate({
    prompt: 'Bluer',
    image_urls: [join(room, 'small.png'), new Blob([PICTURE]), new Uint8Array(PICTURE)],
  })
  assert.equal(edited.data.length, 1)
  const events: string[] = []
  for await (const event of client.images.stream({ prompt: 'A gate' })) events.push(event.type)
  assert.deepEqual(events, ['image_generation.completed'])
})

test('a video is waited for by events, by asking where there are none, and from its id alone', async () => {
  const seen: string[] = []
  const video = await client.videos.create({ prompt: 'A boat', resolution: '480p', duration: 4, first_frame: PICTURE })
  await video.wait({ onProgress: (job) => seen.push(job.status) })
  assert.equal(seen.at(-1), 'COMPLETED')
  await video.save(join(room, 'a.mp4'))
  assert.ok((await readFile(join(room, 'a.mp4'))).length > 0)
  assert.deepEqual((await client.videos.resume(video.id).wait()).urls, video.urls)

  const noEvents: typeof fetch = async (url, init) =>
    String(url).endsWith('/events') ? new Response('', { headers: { 'content-type': 'text/html' } }) : fetch(url, init)
  const other = await through(noEvents).videos.create({ prompt: 'A bell', resolution: '480p' })
  await other.wait({ pollMs: 20 })
  assert.equal(other.status, 'COMPLETED')

  const failed = await client.videos.create({ prompt: 'x [[fail]]', resolution: '480p' })
  await assert.rejects(failed.wait(), (error: JobFailedError) => {
    assert.ok(error instanceof JobFailedError)
    return error.jobId === failed.id && error.message.length > 5
  })
  const jobs: string[] = []
  for await (const job of client.jobs.list({ limit: 1 })) jobs.push(job.id)
  assert.deepEqual(jobs.toSorted(), [video.id, other.id, failed.id].toSorted())
  assert.equal((await client.jobs.get(video.id)).status, 'COMPLETED')
})

test('text in its three formats, embeddings, and what is free', async () => {
  const messages = [{ role: 'user' as const, content: 'hello' }]
  const chat = await client.chat.create({ model: 'alpha-5.4', messages })
  assert.ok((chat.choices[0]?.message.content ?? '').length > 0 && chat.cost)
  let chunks = 0
  for await (const chunk of client.chat.stream({ model: 'alpha-5.4', messages })) chunks += chunk.object ? 1 : 0
  assert.ok(chunks > 2)
  assert.equal((await client.responses.create({ model: 'alpha-5.4', input: 'hello' })).object, 'response')
  const message = await client.messages.create({ model: 'beta-sonnet-4-6', max_tokens: 50, messages })
  assert.equal(message.type, 'message')
  const vectors = await client.embeddings.create({ model: 'alpha-embed-3-small', input: ['a', 'b'] })
  assert.equal(vectors.data.length, 2)
  assert.ok((await client.countTokens({ model: 'beta-sonnet-4-6', messages })).input_tokens > 0)
  const models = await client.models()
  assert.equal((await client.model(models[0]!.uid)).uid, models[0]?.uid)
  const own = await client.account()
  assert.equal(own.id, account.id)
  assert.match(own.available, /^\d/)
  const quoted = await client.quote({ model: 'alpha-5.4', max_tokens: 10, messages })
  assert.ok(Number(quoted.costAtMost) > 0 && quoted.affordable)
  const data = await client.quote({ keys: 'example.com', country: 'us' }, { endpoint: 'siteanalytics/websites/visits' })
  assert.equal(data.endpoint, 'siteanalytics/websites/visits')
})

test('the official SDKs come set to the gateway, from their packages or from their classes', async () => {
  const { default: OpenAI } = await import('openai')
  const { default: Anthropic } = await import('@anthropic-ai/sdk')
  for (const openai of [await client.openai(), client.openai(OpenAI)]) {
    const answer = await openai.chat.completions.create({
      model: 'alpha-5.4',
      messages: [{ role: 'user', content: 'hello' }],
    })
    assert.ok(answer.choices[0]?.message.content)
  }
  for (const anthropic of [await client.anthropic(), client.anthropic(Anthropic)]) {
    const answer = await anthropic.messages.create({
      model: 'beta-sonnet-4-6',
      max_tokens: 20,
      messages: [{ role: 'user', content: 'hello' }],
    })
    assert.equal(answer.role, 'assistant')
  }
})

test('a webhook is believed only with its own signature, and only while it is young', async () => {
  const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
  const body = JSON.stringify({ type: 'job.completed', timestamp: '2026-11-15T00:00:00Z', data: { id: '1' } })
  const signedAt = (seconds: number, text = body) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
      .update(`msg_1.${seconds}.${text}`)
      .digest('base64')}`,
  })
  const now = Math.floor(Date.now() / 1000)
  assert.equal((await client.webhooks.verify(body, signedAt(now), secret)).data.id, '1')
  assert.equal((await client.webhooks.verify(body, new Headers(signedAt(now)), secret)).type, 'job.completed')
  for (const [text, headers] of [
    [`${body} `, signedAt(now)],
    [body, signedAt(now - 400)],
    [body, { ...signedAt(now), 'webhook-signature': 'v1,AAAA' }],
    [body, {}],
  ] as const)
    await assert.rejects(client.webhooks.verify(text, headers, secret), WebhookError)
})

test('errors are classes that say code, status, request and amounts', async () => {
  const stranger = new Tollgate({ baseUrl: g.url, apiKey: 'tg_live_nobody' })
  await assert.rejects(stranger.account(), (error: TollgateError) => {
    assert.ok(error instanceof AuthenticationError)
    assert.equal(error.code, 20000)
    assert.match(error.requestId ?? '', /^req_/)
    return error.status === 401
  })
  const poor = new Tollgate({ baseUrl: g.url, apiKey: (await g.account({ credits: 1n })).key })
  await assert.rejects(poor.analytics.websites.visits({ keys: 'example.com' }), (error: InsufficientCreditsError) => {
    assert.ok(error instanceof InsufficientCreditsError)
    assert.equal(error.available, '0.000001')
    return Number(error.required) > 0 && error.code === 40000
  })
  await assert.rejects(client.model('nothing'), NotFoundError)
  const wrong = { keys: 'not a domain' }
  await assert.rejects(client.analytics.websites.visits(wrong), InvalidRequestError)
  assert.throws(() => new Tollgate({ apiKey: '' }), /TOLLGATE_KEY/)
})

test('an answer that got lost is asked for again, and paid for once', async () => {
  let lost = 0
  const losing: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init)
    await answer.arrayBuffer()
    if (lost++ === 0) throw new TypeError('fetch failed')
    return fetch(url, init)
  }
  const before = await posted()
  const first = await client.embeddings.create({ model: 'alpha-embed-3-small', input: 'once' })
  const price = before - (await posted())
  assert.ok(price > 0n)
  const answer = await through(losing).embeddings.create({ model: 'alpha-embed-3-small', input: 'once' })
  assert.deepEqual(answer.data, first.data)
  assert.equal(before - (await posted()), price * 2n)
})

test('a paid GET whose answer got lost is not asked again; one that never left is', async () => {
  let asked = 0
  const losing: typeof fetch = async (url, init) => {
    asked++
    await (await fetch(url, init)).arrayBuffer()
    throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
  }
  await assert.rejects(through(losing).analytics.websites.visits({ keys: 'example.com' }), ConnectionError)
  assert.equal(asked, 1)
  let refused = 0
  const notThere: typeof fetch = async (url, init) => {
    if (refused++ < 2) throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } })
    return fetch(url, init)
  }
  assert.ok((await through(notThere).analytics.websites.visits({ keys: 'example.com' })).Data)
  assert.equal(refused, 3)
})

/** A server that answers by a list, one after another, the last one for ever. */
async function scripted(answers: readonly { status: number; headers?: Record<string, string>; body?: string }[]) {
  const seen: { atMs: number; key: string | undefined }[] = []
  const server = await listen((request, response) => {
    const next = answers[Math.min(seen.length, answers.length - 1)]!
    seen.push({ atMs: performance.now(), key: request.headers['idempotency-key'] as string | undefined })
    request.resume()
    if (next.status === 0) return
    response.writeHead(next.status, { 'content-type': 'application/json', ...next.headers }).end(next.body ?? '{}')
  })
  servers.push(server)
  return { seen, client: (over = {}) => new Tollgate({ baseUrl: server.url, apiKey: 'tg_live_x', ...over }) }
}

const CHAT = { model: 'm', messages: [{ role: 'user' as const, content: 'x' }] }

test('repetitions keep their key, wait as long as they are told, and end where they are told to', async () => {
  const busy = await scripted([
    { status: 503, headers: { 'retry-after-ms': '300' } },
    { status: 409, headers: { 'retry-after-ms': '10' } },
    { status: 200, body: '{"choices":[]}' },
  ])
  const retries: number[] = []
  await busy
    .client({ hooks: { onRetry: ({ delayMs }: { delayMs: number }) => retries.push(delayMs) } })
    .chat.create(CHAT)
  assert.deepEqual(retries, [300, 10])
  assert.ok(busy.seen[1]!.atMs - busy.seen[0]!.atMs >= 290)
  assert.equal(new Set(busy.seen.map(({ key }) => key)).size, 1)
  assert.match(busy.seen[0]?.key ?? '', /^\w{32}$/)

  const spent = await scripted([
    { status: 429, headers: { 'x-should-retry': 'false' }, body: '{"code":40001,"message":"no"}' },
  ])
  await assert.rejects(spent.client().chat.create(CHAT), RateLimitError)
  assert.equal(spent.seen.length, 1)

  const broken = await scripted([{ status: 502, headers: { 'retry-after-ms': '1' } }])
  await assert.rejects(broken.client({ retriesMax: 2 }).chat.create(CHAT), ServerError)
  assert.equal(broken.seen.length, 3)

  const later = await scripted([{ status: 503, headers: { 'retry-after-ms': '60000' } }])
  await assert.rejects(later.client({ deadlineMs: 30_000 }).chat.create(CHAT), ServerError)
  assert.equal(later.seen.length, 1)
})

test('an attempt has its time, a call its deadline, and a signal ends both', async () => {
  const silent = await scripted([{ status: 0 }])
  let attempts = 0
  const impatient = silent.client({ timeoutMs: 50, retriesMax: 1, hooks: { onRequest: () => attempts++ } })
  await assert.rejects(impatient.chat.create(CHAT), TimeoutError)
  assert.equal(attempts, 2)
  const stop = new AbortController()
  const before = silent.seen.length
  void until(() => silent.seen.length, above(before)).then(() => stop.abort(new Error('enough')))
  await assert.rejects(silent.client().account({ signal: stop.signal }), /enough/)

  const leave = new AbortController()
  let pieces = 0
  await assert.rejects(async () => {
    const body = {
      model: 'alpha-5.4',
      messages: [{ role: 'user' as const, content: 'go on [[slow=20]] [[chunks=500]]' }],
    }
    for await (const _ of client.chat.stream(body, { signal: leave.signal }))
      if (++pieces === 3) leave.abort(new Error('left'))
  }, /left/)
})

test('hooks hear of every attempt, with its price, and never the key', async () => {
  const heard: unknown[] = []
  const hooks = { onRequest: (call: object) => heard.push(call), onAnswer: (call: object) => heard.push(call) }
  const watched = new Tollgate({ baseUrl: g.url, apiKey: account.key, hooks })
  const { cost } = await watched.analytics.websites.ranks({ keys: 'example.com' })
  assert.equal(heard.length, 2)
  assert.deepEqual((heard[1] as { cost: unknown }).cost, cost)
  assert.doesNotMatch(JSON.stringify(heard), new RegExp(account.key))
})

test('a customer has a purse, is granted credits once, calls with a session token, and sees it on the statement', async () => {
  const made = await client.purses.create({ id: 'ann', name: 'Ann', credits: '3' })
  assert.deepEqual([made.id, made.balance, made.status], ['ann', '3', 'open'])
  for (let times = 0; times < 2; times++)
    assert.equal((await client.purses.grant('ann', { credits: '2', kind: 'topup', reference: 'order-1' })).balance, '5')
  // One whose answer is lost is sent again, and granted once.
  let lost = 0
  const unlucky = through(
    async (url, init) => {
      const answer = await fetch(url, init)
      if (String(url).endsWith('/grants') && lost++ === 0) throw new TypeError('fetch failed')
      return answer
    },
    { retriesMax: 0 },
  )
  const grant = { credits: '1', reference: 'order-2' }
  await assert.rejects(unlucky.purses.grant('ann', grant), ConnectionError)
  assert.equal((await unlucky.purses.grant('ann', grant)).balance, '6')
  const { token, id } = await client.purses.session('ann', { seconds: 60, models: ['alpha-5.4'], callMax: '2' })
  const customer = new Tollgate({ baseUrl: g.url, apiKey: token, retriesMax: 0 })
  const body = { model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user' as const, content: 'Hello' }] }
  await customer.chat.create(body)
  await g.settled()
  const { spent, closing, lines } = await client.purses.statement('ann')
  assert.deepEqual([lines[0]?.product, lines[0]?.calls], ['alpha-5.4', 1])
  assert.deepEqual([closing, Number(spent) > 0], [(await client.purses.get('ann')).balance, true])
  for (const more of ['anna', 'ben']) await client.purses.create({ id: more })
  const seen = async <T>(rows: AsyncIterable<T>) => {
    const all: T[] = []
    for await (const row of rows) all.push(row)
    return all
  }
  assert.deepEqual(pluck(await seen(client.purses.list({ search: 'ann' })), 'id'), ['ann', 'anna'])
  // More than a page.
  for (let one = 0; one < 55; one++) await client.purses.grant('ben', { credits: '1', reference: `order-${one}` })
  const moved = await seen(client.purses.movements('ben'))
  assert.deepEqual([moved.length, moved[0]?.balanceAfter, moved.at(-1)?.balanceAfter], [55, '55', '1'])
  assert.match((await client.purses.page('ann', { seconds: 60 })).url, /\/purse#tgs_/)
  const sold = {
    provider: 'simulated',
    currency: 'EUR',
    pricePerCredit: '0.01',
    minimum: '1',
    maximum: '9',
    issuer: ISSUER,
  }
  assert.equal((await g.operator('PATCH', `/accounts/${account.id}/purse-payments`, sold)).status, 200)
  const topUp = await client.purses.topUp('ann', { amount: '5.00' })
  assert.equal(topUp.credits, '500')
  assert.equal((await client.purses.topUpState('ann', topUp.id)).state, 'pending')
  assert.equal((await client.purses.billingDetails('ann')).company, null)
  assert.equal((await client.purses.changeBillingDetails('ann', { company: 'Ann SA', country: 'FR' })).country, 'FR')
  await fetch(topUp.url, { method: 'POST', body: new URLSearchParams({ outcome: 'paid' }), redirect: 'manual' })
  assert.equal((await client.purses.topUpState('ann', topUp.id)).state, 'paid')
  const [invoice, ...others] = await seen(client.purses.invoices('ann'))
  assert.deepEqual([invoice?.customer, invoice?.gross, others], ['Ann SA', '5.00', []])
  const pdf = await client.purses.invoice('ann', invoice?.id ?? '')
  assert.equal(Buffer.from(pdf).subarray(0, 5).toString(), '%PDF-')
  await client.purses.revoke('ann', id)
  const ended = (await seen(client.purses.sessions('ann'))).filter(({ revokedAt }) => revokedAt !== null)
  assert.deepEqual([pluck(ended, 'id'), ended.some((one) => 'token' in one)], [[id], false])
  await assert.rejects(customer.chat.create(body), AuthenticationError)
  assert.equal((await client.purses.change('ann', { status: 'frozen', note: 'test' })).status, 'frozen')
  await assert.rejects(client.purses.get('nobody'), NotFoundError)
})
