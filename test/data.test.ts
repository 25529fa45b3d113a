// Data endpoints through the whole gateway.
import type { DataEndpointSpec } from '../src/catalog/endpoint.ts'
import { SOCIAL } from '../src/catalog/social.ts'
import { startGateway, testGateway, WITH_EXTENSIONS } from './gateway.ts'
import { assert, atOnce, listen, type TestContext, test } from './kit.ts'
import { addCopies, copyOf, EDITIONS } from './product-copy.ts'

type Edition = (typeof EDITIONS)[number]

function ranksIn(analytics: Edition['analytics']): DataEndpointSpec {
  const found = analytics.find(({ vendorPath }) => vendorPath === 'websites/ranks')
  assert.ok(found)
  return found
}

/** Once with ours, and once with the same endpoints as a product of a document. */
function both(promise: string, run: (edition: Edition, t: TestContext) => Promise<void>): void {
  const [ours] = EDITIONS
  for (const one of EDITIONS)
    test(`${promise} (${one.edition})`, one === ours ? {} : WITH_EXTENSIONS, (t) => run(one, t))
}

const g = testGateway({
  catalog: (document) => {
    addCopies(document)
    for (const { analytics } of EDITIONS)
      document.endpoints[ranksIn(analytics).product].cache = {
        ttlSeconds: 60,
        pricing: { unit: 'credits', tiers: [{ call: '0.1' }] },
      }
  },
})

both(
  'every analytics endpoint answers a minimal query with the vendor’s JSON, and costs its price',
  async ({ analytics }) => {
    const { id, key } = await g.account()
    const before = (await g.balance(id)).posted
    for (const spec of analytics) {
      const required = Object.entries(spec.params).filter(([, field]) => field.required)
      const query = required
        .map(([name, field]) => `${name}=${encodeURIComponent(field.example ?? 'example.com')}`)
        .join('&')
      const answer = await g.call(`${spec.path}?${query}`, key)
      assert.equal(answer.status, 200, `${spec.path}?${query}: ${await answer.clone().text()}`)
      assert.match(answer.headers.get('content-type') ?? '', /json/)
      assert.ok((await answer.text()).length > 2)
    }
    assert.equal(analytics.length, 27)
    await g.settled()
    const spent = before - (await g.balance(id)).posted
    const { endpoints } = g.gateway.catalog.current.document
    const prices = analytics.map(({ product }) => endpoints[product]!.pricing.tiers[0]!.call!)
    assert.equal(
      spent,
      prices.reduce((sum, price) => sum + price, 0n),
    )
  },
)

both(
  'a cached endpoint is fetched once for many callers, and each pays the cache’s price',
  async ({ prefix, analytics }) => {
    const { id, key } = await g.account()
    const before = (await g.balance(id)).posted
    const seen = g.sandbox.seen.requests
    const answers = await atOnce(20, () => g.call(`${prefix}/siteanalytics/websites/ranks?keys=cached.example`, key))
    assert.deepEqual(new Set(answers.map((answer) => answer.status)), new Set([200]))
    assert.deepEqual(answers.map((answer) => answer.headers.get('x-cache')).sort(), [...Array(19).fill('hit'), 'miss'])
    const bodies = new Set(await Promise.all(answers.map((answer) => answer.text())))
    assert.equal(bodies.size, 1)
    assert.equal(g.sandbox.seen.requests - seen, 1)
    const price = g.gateway.catalog.current.document.endpoints[ranksIn(analytics).product]!.pricing.tiers[0]!.call!
    await g.settled()
    assert.equal(before - (await g.balance(id)).posted, price + 19n * 100_000n)
    // What other formats say in headers makes no other question of it.
    const headers = { 'anthropic-beta': 'x'.repeat(1_000) }
    const again = await g.call(`${prefix}/siteanalytics/websites/ranks?keys=cached.example`, key, undefined, {
      headers,
    })
    assert.equal(again.headers.get('x-cache'), 'hit')
  },
)

both('a bad query is refused with the field’s name, without a hold or a call', async ({ prefix }) => {
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
    const answer = await g.call(`${prefix}/siteanalytics/websites/visits?${query}`, key)
    const body = (await answer.json()) as { success: boolean; error: { code: number }; requestId: string }
    assert.equal(answer.status, 400, query)
    assert.equal(body.error.code, 10000)
    assert.equal(body.success, false)
    assert.match(body.requestId, /^req_/)
  }
  assert.equal(g.sandbox.seen.requests, seen)
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
})

both('a key without siteanalytics or socialapi is refused with 20001', async ({ prefix }) => {
  const { key } = await g.account({ models: ['alpha-5.4'] })
  for (const path of [
    `${prefix}/siteanalytics/websites/visits?keys=example.com`,
    `${prefix}/social/users?username=tollgate`,
  ]) {
    const answer = await g.call(path, key)
    assert.equal(answer.status, 403)
    assert.equal(((await answer.json()) as { error: { code: number } }).error.code, 20001)
  }
})

both(
  'a timeline of 137 tweets, walked in pages of 1, 3, 7 and 100, gives every tweet once and in order',
  async ({ prefix }) => {
    const { key } = await g.account()
    const user = (await (await g.call(`${prefix}/social/users?username=@walker137`, key)).json()) as {
      data: { id: string }
    }
    let whole: string[] | undefined
    for (const size of [100, 1, 3, 7]) {
      const ids: string[] = []
      let token: string | undefined
      do {
        const answer = await g.call(
          `${prefix}/social/users/${user.data.id}/tweets?max_results=${size}${token ? `&pagination_token=${encodeURIComponent(token)}` : ''}`,
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
  },
)

both(
  'a social vendor that speaks of posts is asked in its words, and callers read of tweets',
  async ({ prefix }, t) => {
    const asked: string[] = []
    const vendor = await listen((request, response) => {
      asked.push(request.url ?? '')
      response.setHeader('content-type', 'application/json')
      response.end('{"data":{"id":"1","name":"n","username":"u","pinned_post_id":"7"}}')
    })
    const own = await startGateway({
      catalog: (document) => {
        addCopies(document)
        for (const name of ['social', 'people']) document.vendors[name].baseUrl = vendor.url
        const traits = { names: 'post' }
        document.models.socialapi.traits = traits
        for (const spec of SOCIAL) document.endpoints[copyOf(spec).product].traits = traits
      },
    })
    t.after(async () => {
      await own.close()
      await vendor.close()
    })
    const { key } = await own.account()
    const answer = await own.call(`${prefix}/social/users/1?user.fields=pinned_tweet_id&tweet.fields=note_tweet`, key)
    assert.equal(answer.status, 200)
    assert.match(asked[0]!, /user\.fields=pinned_post_id/)
    assert.match(asked[0]!, /post\.fields=note_post/)
    assert.equal(((await answer.json()) as { data: { pinned_tweet_id: string } }).data.pinned_tweet_id, '7')
  },
)
