// Why a call failed, as an operator finds it.
import { assert, BY, started, test } from '../gateway.ts'
import { startConsole } from './console.ts'

const home = started(() =>
  startConsole({
    catalog: (document) => {
      document.vendors.delta.timeouts = { firstByteMs: 300 }
      document.guardrails = { nice: { models: ['beta-haiku-4-5'], moderate: { model: 'alpha-moderation-1' } } }
    },
  }),
)
const operator = started(() => home.signedIn())

const chat = (model: string, content = 'Hello') => ({
  model,
  messages: [{ role: 'user', content }],
  max_completion_tokens: 20,
})

/** What was asked, and what the page of the call says: the reason, who caused it and what to do. */
const FAILURES: readonly {
  readonly name: string
  readonly body: unknown
  readonly path?: string
  readonly status: number
  readonly badge: RegExp
  readonly said: readonly (string | RegExp)[]
}[] = [
  {
    name: 'an unknown model',
    body: chat('alpha-54'),
    status: 404,
    badge: /Rejected · Unknown model/,
    said: [/Did you mean "alpha-5\.4"\?/, /Cause: your request/, /What to do: Take the id from/],
  },
  {
    name: 'too few credits',
    body: { ...chat('alpha-5.4'), max_completion_tokens: 100_000 },
    status: 402,
    badge: /Rejected · Not enough credits/,
    said: [/this call needs \S+ credits, \S+ are available/, /What to do: .*Add credits/],
  },
  {
    name: 'the rate limit of the key',
    body: chat('beta-opus-5'),
    status: 429,
    badge: /Rejected · Rate limit/,
    said: [/requests per minute/, /Cause: your request/, /What to do: /],
  },
  {
    name: 'a request that a guardrail blocks',
    body: chat('beta-haiku-4-5', 'Some violence.'),
    status: 400,
    badge: /^(?!.*Failed).*Blocked by a guardrail/,
    said: [/The guardrail "nice" blocked this request/, /Cause: your request/, /What to do: .*Change the texts/],
  },
  {
    name: 'a vendor that answers 500',
    body: chat('gamma-v4-pro', '[[500]]'),
    status: 502,
    badge: /Failed · Vendor error/,
    said: [/The vendor failed/, /gamma answered HTTP 500/, /Cause: the vendor/, /What to do: Try again/],
  },
  {
    name: 'a vendor that answers 504',
    body: chat('gamma-v4-pro', '[[504]]'),
    status: 504,
    badge: /Failed · Vendor timeout/,
    said: [/The vendor was too slow/, /gamma answered HTTP 504/, /What to do: .*stream: true/],
  },
  {
    name: 'a vendor that never answers',
    body: chat('delta-3.8-flash', '[[stall]]'),
    status: 504,
    badge: /Failed · Vendor timeout/,
    said: [/delta had not answered after 300 ms \(waiting for the first byte\)/, /Cause: the vendor/],
  },
  {
    name: 'content that the vendor rejects',
    path: '/alpha/v1/images/generations',
    body: { model: 'alpha-image-2', prompt: '[[reject]]' },
    status: 400,
    badge: /Failed · Rejected by the vendor/,
    said: [/rejected by the safety system/, /Cause: your request/, /Another vendor would reject the same request/],
  },
]

test('why a call failed: two clicks from its account, whatever the reason', async () => {
  const { page } = operator
  const limited = { requestsPerMinute: 1 }
  for (const { name, body, path = '/v1/chat/completions', status, badge, said } of FAILURES) {
    const account = await home.gateway.accounts.create({ name, credits: status === 402 ? 1_000n : 100_000_000n }, BY)
    const limits = status === 429 ? { limits: limited } : {}
    const { key } = await home.gateway.keys.create(account, { name: 'website', ...limits }, BY)
    let answer = await home.call(path, key, body)
    if (status === 429) answer = await home.call(path, key, body)
    await answer.text()
    assert.equal(answer.status, status, name)
    await home.settled()
    await home.gateway.refusals.flush()
    await operator.go(`/a/${account}`)
    await page.getByRole('link', { name: 'Usage', exact: true }).locator('visible=true').first().click()
    const row = page.getByRole('table', { name: 'Calls' }).locator('tbody tr').filter({ hasText: badge })
    await row.first().getByRole('link').first().click()
    const reason = page.getByRole('region', { name: 'What went wrong' })
    for (const words of said) await reason.getByText(words).first().waitFor()
    await page.getByRole('region', { name: 'Request', exact: true }).getByText('website').waitFor()
  }
  assert.deepEqual(await home.violations(page), [])
})
