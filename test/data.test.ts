// Data endpoints through the whole gateway.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { ANALYTICS } from '../src/catalog/analytics.ts'
import { startGateway, testGateway } from './gateway.ts'

const g = testGateway({
  catalog: (document) => {
    document.endpoints['siteanalytics/websites/ranks'].cache = {
      ttlSeconds: 60,
      pricing: { unit: 'credits', tiers: [{ call: '0.1' }] },
    }
  },
})

test('every analytics endpoint answers a minimal query with the vendor’s JSON, and costs its price', async () => {
  const { id, key } = await g.account()
  const before = (await g.balance(id)).posted
  for (const spec of ANALYTICS) {
    const required = Object.entries(spec.params).filter(([, field]) => field.required)
    const query = required
      .map(([name, field]) => `${name}=${encodeURIComponent(field.example ?? 'example.com')}`)
      .join('&')
    const answer = await g.call(`${spec.path}?${query}`, key)
    assert.equal(answer.status, 200, `${spec.path}?${query}: ${await answer.clone().text()}`)
    assert.match(answer.headers.get('content-type') ?? '', /json/)
    assert.ok((await answer.text()).length > 2)
  }
  assert.equal(ANALYTICS.length, 27)
  await g.settled()
  const spent = before - (await g.balance(id)).posted
  const prices = Object.entries(g.gateway.catalog.current.document.endpoints).map(
    ([name, endpoint]) =>
      (name === 'siteanalytics/websites/ranks' ? endpoint.pricing : endpoint.pricing).tiers[0]!.call!,
  )
  assert.equal(
    spent,
    prices.reduce((sum, price) => sum + price, 0n),
  )
})

test('a cached endpoint is fetched once for many callers, and each pays the cache’s price', async () => {
  const { id, key } = await g.account()
  const before = (await g.balance(id)).posted
  const seen = g.sandbox.seen.requests
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => g.call('/v1/siteanalytics/websites/ranks?keys=cached.example', key)),
  )
  assert.deepEqual(new Set(answers.map((answer) => answer.status)), new Set([200]))
  assert.deepEqual(answers.map((answer) => answer.headers.get('x-cache')).sort(), [...Array(19).fill('hit'), 'miss'])
  const bodies = new Set(await Promise.all(answers.map((answer) => answer.text())))
  assert.equal(bodies.size, 1)
  assert.equal(g.sandbox.seen.requests - seen, 1)
  const price = g.gateway.catalog.current.document.endpoints['siteanalytics/websites/ranks']!.pricing.tiers[0]!.call!
  await g.settled()
  assert.equal(before - (await g.balance(id)).posted, price + 19n * 100_000n)
  // What other formats say in headers makes no other question of it.
  const headers = { 'anthropic-beta': 'x'.repeat(1_000) }
  const again = await g.call('/v1/siteanalytics/websites/ranks?keys=cached.example', key, undefined, { headers })
  assert.equal(again.headers.get('x-cache'), 'hit')
})

test('a bad query is refused with the field’s name, without a hold or a call', async () => {
  const { id, key } = await g.account()
  const seen = g.sandbox.seen.requests
  for (const query of [
    '',
    'keys=a.com&keys=b.com',
    'Keys=a.com',
    'keys=a.com&country=abc',
    'keys=http://a.com',
    'keys=a.com&from=2026-01-01',
  ]) {
    const answer = await g.call(`/v1/siteanalytics/websites/visits?${query}`, key)
    const body = (await answer.json()) as { success: boolean; error: { code: number }; requestId: string }
    assert.equal(answer.status, 400, query)
    assert.equal(body.error.code, 10000)
    assert.equal(body.success, false)
    assert.match(body.requestId, /^req_/)
  }
  assert.equal(g.sandbox.seen.requests, seen)
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
})

test('a key without siteanalytics or socialapi is refused with 20001', async () => {
  const { key } = await g.account({ models: ['alpha-5.4'] })
  for (const path of ['/v1/siteanalytics/websites/visits?keys=example.com', '/v1/social/users?username=tollgate']) {
    const answer = await g.call(path, key)
    assert.equal(answer.status, 403)
    assert.equal(((await answer.json()) as { error: { code: number } }).error.code, 20001)
  }
})

test('a timeline of 137 tweets, walked in pages of 1, 3, 7 and 100, gives every tweet once and in order', async () => {
  const { key } = await g.account()
  const user = (await (await g.call('/v1/social/users?username=@walker137', key)).json()) as { data: { id: string } }
  let whole: string[] | undefined
  for (const size of [100, 1, 3, 7]) {
    const ids: string[] = []
    let token: string | undefined
    do {
      const answer = await g.call(
        `/v1/social/users/${user.data.id}/tweets?max_results=${size}${token ? `&pagination_token=${encodeURIComponent(token)}` : ''}`,
        key,
      )
      assert.equal(answer.status, 200, await answer.clone().text())
      const page = (await answer.json()) as {
        data: Array<{ id: string }>
        meta: { next_token?: string; result_count: number }
      }
      assert.equal(page.meta.result_count, page.data.length)
      ids.push(...page.data.map((tweet) => tweet.id))
      token = page.meta.next_token
    } while (token)
    whole ??= ids
    assert.equal(ids.length, 137)
    assert.deepEqual(ids, whole)
  }
})

test('a social vendor that speaks of posts is asked in its words, and callers read of tweets', async (t) => {
  const asked: string[] = []
  const vendor = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.setHeader('content-type', 'application/json')
    response.end('{"data":{"id":"1","name":"n","username":"u","pinned_post_id":"7"}}')
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  const { port } = vendor.address() as AddressInfo
  const own = await startGateway({
    catalog: (document) => {
      document.vendors.social.baseUrl = `http://127.0.0.1:${port}`
      document.models.socialapi.traits = { names: 'post' }
    },
  })
  t.after(async () => {
    await own.close()
    vendor.close()
  })
  const { key } = await own.account()
  const answer = await own.call('/v1/social/users/1?user.fields=pinned_tweet_id&tweet.fields=note_tweet', key)
  assert.equal(answer.status, 200)
  assert.match(asked[0]!, /user\.fields=pinned_post_id/)
  assert.match(asked[0]!, /post\.fields=note_post/)
  assert.equal(((await answer.json()) as { data: { pinned_tweet_id: string } }).data.pinned_tweet_id, '7')
})
