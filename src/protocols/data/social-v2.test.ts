import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSandbox } from '../../../sandbox/server.ts'
import { words } from '../../../test/lists.ts'
import { EDITIONS } from '../../../test/product-copy.ts'
import { started } from '../../../test/started.ts'
import type { DataEndpointSpec } from '../../catalog/endpoint.ts'
import type { DataTraits } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import { realWorld } from '../../kernel/world.ts'
import type { Exchange } from '../protocol.ts'
import { readSocialRequest } from './social-v2.ts'

const OPEN = { requestId: 'req_test', createdSeconds: 1_800_000_000, signal: new AbortController().signal }
const JSON_TYPE = { 'content-type': 'application/json' }

const sandbox = started(() => startSandbox({ world: realWorld }))

type Kind = 'users' | 'users/{id}' | 'users/{id}/tweets'

/** Those of the edition that is tested just now. */
let social: readonly DataEndpointSpec[] = EDITIONS[0].social

function specOf(kind: Kind) {
  const spec = social.find(({ path }) => path.endsWith(`/social/${kind}`))
  assert.ok(spec)
  return spec
}

async function open(kind: Kind, raw: string, id?: string, traits: DataTraits = { names: 'tweet' }): Promise<Exchange> {
  const ask = readSocialRequest(specOf(kind), id === undefined ? {} : { id }, raw, { traits })
  assert.equal(ask.product, specOf(kind).product)
  assert.deepEqual(ask.worst, { call: 1 })
  const baseUrl = `${sandbox.url}/social`
  return ask.open({ protocol: 'social-v2', baseUrl, secret: 's3cret', headers: {}, model: 'any' }, OPEN)
}

/** Once with ours, and once with the same endpoints as a product of a document. */
function both(promise: string, run: () => unknown): void {
  for (const { edition, social: specs } of EDITIONS)
    test(`${promise} (${edition})`, async () => {
      social = specs
      await run()
    })
}

interface Body {
  data: Record<string, unknown> & Record<string, unknown>[]
  includes?: Record<string, Record<string, unknown>[]>
  meta: { result_count: number; next_token?: string; newest_id?: string; oldest_id?: string; previous_token?: string }
  errors?: unknown
}

async function get(kind: Kind, raw: string, id?: string, traits: DataTraits = { names: 'tweet' }): Promise<Body> {
  const exchange = await open(kind, raw, id, traits)
  const response = await fetch(exchange.call.url, { headers: exchange.call.headers })
  const body = Buffer.from(await response.arrayBuffer())
  assert.equal(response.status, 200, body.toString())
  const answer = await exchange.answer(body, Object.fromEntries(response.headers))
  assert.deepEqual(answer.usage, { call: 1 })
  return JSON.parse(String(answer.body)) as Body
}

async function idOf(username: string): Promise<string> {
  return String((await get('users', `username=${username}`)).data.id)
}

const path = (exchange: Exchange) => decodeURIComponent(exchange.call.url.slice(`${sandbox.url}/social`.length))

function refused(kind: Kind, raw: string, id: string | undefined, words: RegExp): void {
  assert.throws(
    () => readSocialRequest(specOf(kind), id === undefined ? {} : { id }, raw, { traits: { names: 'tweet' } }),
    (error) => error instanceof Fault && error.code === 10000 && error.status === 400 && words.test(error.message),
    raw,
  )
}

async function fault(kind: Kind, raw: string, id?: string): Promise<Fault> {
  const error = await get(kind, raw, id).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Fault, String(error))
  return error
}

both('one leading @ is taken away, however it is written, and a second one is refused', async () => {
  for (const name of ['jack', '@jack', '%40jack', '@Jack'])
    assert.match(path(await open('users', `username=${name}`)), /^\/2\/users\/by\/username\/[jJ]ack$/)
  const bad = [
    '@@jack',
    '%40%40jack',
    '%2540jack',
    '@',
    '',
    'a-b',
    'sixteen_letters_',
    'j%20k',
    'j%C3%A4ck',
    '../x',
    'a%2Fb',
  ]
  for (const name of bad) refused('users', `username=${name}`, undefined, /username must be/)
  refused('users', '', undefined, /username is required/)
  refused('users', 'username=a&username=b', undefined, /more than once/)
})

both('ids are digits, and unknown names are refused by name', () => {
  for (const id of ['x', '1x', '-1', '', '1.0', '12345678901234567890']) {
    refused('users/{id}', '', id, /id must be a user id of 1 to 19 digits/)
    refused('users/{id}/tweets', '', id, /id must be/)
  }
  refused('users/{id}', 'id=1', '12', /"id" is not a parameter/)
  refused('users', 'username=a&userfields=name', undefined, /"userfields" is not a parameter/)
  refused('users/{id}/tweets', 'Max_results=5', '12', /did you mean max_results\?/)
  refused('users/{id}/tweets', 'post.fields=text', '12', /"post.fields" is not a parameter/)
  for (const value of ['0', '101', '1.0', '05', 'ten', '', '-1'])
    refused('users/{id}/tweets', `max_results=${value}`, '12', /max_results must be/)
  for (const value of ['replies,likes', 'Replies', ','])
    refused('users/{id}/tweets', `exclude=${value}`, '12', /exclude must be/)
  refused('users/{id}/tweets', 'tweet.fields=text,secrets', '12', /tweet.fields must be/)
  refused('users/{id}/tweets', 'start_time=2026-13-01T00:00:00Z', '12', /start_time must be a UTC time/)
  refused('users/{id}/tweets', 'until_id=abc', '12', /until_id must be a tweet id/)
})

both('every listed parameter and value is forwarded', async () => {
  for (const kind of ['users', 'users/{id}', 'users/{id}/tweets'] as const)
    for (const [name, field] of Object.entries(specOf(kind).params)) {
      if (field.in === 'path' || name === 'username') continue
      const values = field.kind === 'list' ? [...field.allowed, field.allowed.join(',')] : [field.example]
      for (const value of values) {
        const base = kind === 'users' ? 'username=jack&' : ''
        const exchange = await open(
          kind,
          `${base}${name}=${encodeURIComponent(value)}`,
          kind === 'users' ? undefined : '12',
        )
        assert.equal(new URL(exchange.call.url).searchParams.get(name), value)
      }
    }
})

both('a user comes without an envelope, with the fields that were asked for', async () => {
  const plain = await get('users', 'username=jack')
  assert.deepEqual(Object.keys(plain), ['data'])
  assert.deepEqual(Object.keys(plain.data), ['id', 'name', 'username'])
  const fuller = await get('users', 'username=jack&user.fields=created_at,public_metrics, verified')
  assert.deepEqual(Object.keys(fuller.data).toSorted(), words('created_at id name public_metrics username verified'))
  const byId = await get('users/{id}', 'user.fields=location', String(plain.data.id))
  assert.equal(byId.data.id, plain.data.id)
  const long = await idOf('a_long_name_123')
  assert.equal((await get('users/{id}', '', long)).data.username, 'a_long_name_123')
})

both('unknown users are 404, protected and suspended ones 403, although the vendor says 200', async () => {
  for (const [kind, raw, id] of [
    ['users', 'username=nobody', undefined],
    ['users/{id}', '', '999999999999999999'],
    ['users/{id}/tweets', '', '1'],
  ] as const) {
    const error = await fault(kind, raw, id)
    assert.deepEqual([error.status, error.code], [404, 30000])
    assert.match(error.message, /There is no user with the (name nobody|id \d+)/)
  }
  const suspended = await fault('users', 'username=@banned')
  assert.deepEqual([suspended.status, suspended.code], [403, 20001])
  const locked = await fault('users/{id}/tweets', '', await idOf('locked'))
  assert.deepEqual([locked.status, locked.code], [403, 20001])
})

both('an empty timeline has data, and a partial answer loses its errors', async () => {
  const empty = await get('users/{id}/tweets', 'expansions=author_id', await idOf('quiet'))
  assert.deepEqual(empty, { data: [], includes: { users: [] }, meta: { result_count: 0 } })
  const exchange = await open('users/{id}/tweets', '', '12')
  const written = await exchange.answer(
    Buffer.from(
      '{"data":[{"id":"9","text":"x"}],"errors":[{"title":"x"}],"includes":{"users":[]},"meta":{"previous_token":"p","odd":1}}',
    ),
    JSON_TYPE,
  )
  assert.deepEqual(JSON.parse(String(written.body)), {
    data: [{ id: '9', text: 'x' }],
    meta: { newest_id: '9', oldest_id: '9', result_count: 1 },
  })
})

both('nonsense from the vendor is the vendor at fault', async () => {
  const user = await open('users', 'username=jack')
  const tweets = await open('users/{id}/tweets', '', '12')
  const kindOf = async (exchange: Exchange, text: string, headers: Record<string, string> = JSON_TYPE) => {
    try {
      await exchange.answer(Buffer.from(text), headers)
      return 'answered'
    } catch (error) {
      return error instanceof Fault ? error.kind : String(error)
    }
  }
  for (const text of ['', '[]', 'null', '{"data":', '{}', '{"data":null}', '{"data":[]}'])
    assert.equal(await kindOf(user, text), 'upstream_garbled', text)
  for (const text of ['', '[]', '{"data":{}}', '{"data":[{}]}', '{"data":[null]}', '"x"'])
    assert.equal(await kindOf(tweets, text), 'upstream_garbled', text)
  assert.equal(await kindOf(tweets, '{}'), 'answered')
  assert.equal(await kindOf(user, '{"data":{"id":"1"}}', { 'content-type': 'text/html' }), 'upstream_garbled')
  assert.equal(await kindOf(tweets, '{"errors":[{"title":"Odd","type":"about:blank"}]}'), 'upstream_failed')
})

both('pages of 5 and more follow the vendor, and its own token passes unchanged', async () => {
  const id = await idOf('walker137')
  const first = await get('users/{id}/tweets', 'max_results=100', id)
  assert.equal(first.data.length, 100)
  assert.match(first.meta.next_token ?? '', /^7140/)
  const exchange = await open('users/{id}/tweets', `pagination_token=${first.meta.next_token}`, id)
  assert.equal(new URL(exchange.call.url).searchParams.get('pagination_token'), first.meta.next_token)
  assert.equal(new URL(exchange.call.url).searchParams.get('max_results'), '10')
  const second = await get('users/{id}/tweets', `max_results=100&pagination_token=${first.meta.next_token}`, id)
  assert.deepEqual([second.data.length, second.meta.next_token, second.meta.previous_token], [37, undefined, undefined])
})

/** Walks a timeline to its end, with a page size that may change on the way. */
async function walk(id: string, sizeAt: (page: number) => number, rest = ''): Promise<string[]> {
  const ids: string[] = []
  let token: string | undefined
  for (let page = 0; ; page++) {
    const size = sizeAt(page)
    const body = await get(
      'users/{id}/tweets',
      `max_results=${size}${token ? `&pagination_token=${token}` : ''}${rest}`,
      id,
    )
    assert.ok(body.data.length <= size)
    assert.equal(body.meta.result_count, body.data.length)
    assert.equal(body.meta.newest_id, body.data[0]?.id)
    assert.equal(body.meta.oldest_id, body.data.at(-1)?.id)
    ids.push(...body.data.map((tweet) => String(tweet.id)))
    token = body.meta.next_token
    if (token === undefined) return ids
    assert.ok(page < 1000, 'the walk ends')
  }
}

both('a timeline of 137 is walked with every page size from 1 to 100: every tweet once, in order', async () => {
  const id = await idOf('walker137')
  const all = await walk(id, () => 100)
  assert.equal(new Set(all).size, 137)
  assert.deepEqual(
    all,
    all.toSorted((a, b) => (BigInt(a) < BigInt(b) ? 1 : -1)),
  )
  for (let size = 1; size <= 100; size++) assert.deepEqual(await walk(id, () => size), all, `pages of ${size}`)
})

both('page sizes may change on the way, and filters hold on every page', async () => {
  const id = await idOf('walker137')
  const all = await walk(id, () => 100)
  assert.deepEqual(await walk(id, (page) => [3, 7, 1, 40, 2, 5][page % 6] ?? 1), all)
  const calm = await walk(id, () => 100, '&exclude=replies,retweets')
  assert.ok(calm.length > 50 && calm.length < 137)
  for (const size of [1, 2, 3, 4, 5, 9]) assert.deepEqual(await walk(id, () => size, '&exclude=replies,retweets'), calm)
  const [newest, bound, oldest] = [all[20], all[60], all[100]]
  assert.deepEqual(await walk(id, () => 2, `&until_id=${newest}&since_id=${oldest}`), all.slice(21, 100))
  assert.ok(bound)
  // This vendor user's pages come short or empty, with a token all the same.
  const patchy = await idOf('patchy')
  const whole = await walk(patchy, () => 100, '&exclude=replies,retweets')
  for (const size of [1, 3, 5, 6])
    assert.deepEqual(await walk(patchy, () => size, '&exclude=replies,retweets'), whole, `${size}`)
})

both('a token of ours that was cut, changed, or made for someone else is refused', async () => {
  const id = await idOf('walker137')
  const token = (await get('users/{id}/tweets', 'max_results=1', id)).meta.next_token ?? ''
  assert.match(token, /^tg1\.[\w-]+$/)
  assert.doesNotMatch(Buffer.from(token.slice(4), 'base64url').toString(), /s3cret/)
  const query = new URL((await open('users/{id}/tweets', `pagination_token=${token}`, id)).call.url).searchParams
  assert.equal(query.get('pagination_token'), null)
  assert.match(query.get('until_id') ?? '', /^\d+$/)
  refused('users/{id}/tweets', `pagination_token=${token}`, '12', /pagination_token must be the meta.next_token/)
  refused('users/{id}/tweets', `pagination_token=${token.replace('tg1.', 'tg2.')}`, id, /pagination_token/)
  for (let at = 4; at < token.length; at++) {
    refused('users/{id}/tweets', `pagination_token=${token.slice(0, at)}`, id, /pagination_token/)
    const other = token[at] === 'A' ? 'B' : 'A'
    refused(
      'users/{id}/tweets',
      `pagination_token=${token.slice(0, at)}${other}${token.slice(at + 1)}`,
      id,
      /pagination_token/,
    )
  }
  const exchange = await open('users/{id}/tweets', 'pagination_token=bogus', id)
  const response = await fetch(exchange.call.url)
  assert.equal(response.status, 400)
  assert.match(
    exchange.vendorError?.(Buffer.from(await response.arrayBuffer()))?.message ?? '',
    /pagination_token.*is not valid/,
  )
})

both('includes come only when asked for, and user.fields shape the authors', async () => {
  const id = await idOf('walker137')
  assert.equal((await get('users/{id}/tweets', '', id)).includes, undefined)
  const body = await get('users/{id}/tweets', 'expansions=author_id&user.fields=verified&tweet.fields=created_at', id)
  assert.deepEqual(Object.keys(body.includes?.users?.[0] ?? {}), ['id', 'name', 'username', 'verified'])
  assert.equal(body.data[0]?.author_id, id)
  assert.ok(body.data[0]?.created_at)
})

both('callers see tweet names whichever names the vendor speaks', async () => {
  const id = await idOf('walker137')
  const raw =
    'tweet.fields=referenced_tweets,public_metrics,edit_history_tweet_ids&expansions=author_id,referenced_tweets.id&user.fields=public_metrics,pinned_tweet_id&max_results=20'
  const exchange = await open('users/{id}/tweets', raw, id, { names: 'post' })
  const sent = new URL(exchange.call.url).searchParams
  assert.equal(sent.get('post.fields'), 'referenced_posts,public_metrics,edit_history_post_ids')
  assert.equal(sent.get('expansions'), 'author_id,referenced_posts.id')
  assert.equal(sent.has('tweet.fields'), false)
  const response = await fetch(exchange.call.url)
  assert.match(await response.text(), /repost_count.*includes.*posts/s)
  const inPosts = await get('users/{id}/tweets', raw, id, { names: 'post' })
  assert.deepEqual(inPosts, await get('users/{id}/tweets', raw, id))
  assert.doesNotMatch(JSON.stringify(inPosts), /_post|post_|repost/)
  const user = await get(
    'users',
    'username=walker137&user.fields=pinned_tweet_id&expansions=pinned_tweet_id',
    undefined,
    { names: 'post' },
  )
  assert.ok(user.data.pinned_tweet_id && user.includes?.tweets?.[0]?.edit_history_tweet_ids)
})

both('a rate limit of the vendor says when it ends', async () => {
  const exchange = await open('users', 'username=fault_429')
  const response = await fetch(exchange.call.url)
  assert.equal(response.status, 429)
  assert.ok(response.headers.get('x-rate-limit-reset'))
  assert.equal(exchange.retryAfterSeconds?.({ 'x-rate-limit-reset': String(OPEN.createdSeconds + 42) }), 42)
  assert.equal(exchange.retryAfterSeconds?.({ 'x-rate-limit-reset': 'soon' }), undefined)
  assert.equal(exchange.retryAfterSeconds?.({}), undefined)
})

both('where the price has a rate for rows, a user is one and so is each tweet of a page', async () => {
  const rows = async (kind: Kind, raw: string, id?: string) => {
    const ask = readSocialRequest(specOf(kind), id === undefined ? {} : { id }, raw, {
      traits: { names: 'tweet' },
      perRow: true,
    })
    const baseUrl = `${sandbox.url}/social`
    const exchange = await ask.open({ protocol: 'social-v2', baseUrl, secret: 's', headers: {}, model: 'any' }, OPEN)
    const response = await fetch(exchange.call.url, { headers: exchange.call.headers })
    const answer = await exchange.answer(Buffer.from(await response.arrayBuffer()), JSON_TYPE)
    const { data } = JSON.parse(String(answer.body)) as { data: unknown }
    return { worst: ask.worst, usage: answer.usage, given: Array.isArray(data) ? data.length : 1 }
  }
  const id = await idOf('jack')
  const one = { call: 1, row: 1 }
  assert.deepEqual(await rows('users', 'username=jack'), { worst: one, usage: one, given: 1 })
  assert.deepEqual(await rows('users/{id}', '', id), { worst: one, usage: one, given: 1 })
  const page = await rows('users/{id}/tweets', 'max_results=7', id)
  assert.deepEqual(page.worst, { call: 1, row: 7 })
  assert.ok(page.given > 1, `${page.given} tweets`)
  assert.deepEqual(page.usage, { call: 1, row: page.given })
})
