// What a gateway can do without: with every extension switched off it starts, sells a call, and answers 404 where they were.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXTENSIONS } from '../src/compose.ts'
import { startGateway, testGateway } from './gateway.ts'

const g = testGateway({ isShared: true })
const routesOf = ({ gateway }: Pick<typeof g, 'gateway'>) =>
  gateway.app.router.routes.map(([method, path]) => `${method} ${path}`)

test('with all extensions off, calls are sold, and the addresses of extensions answer 404', async () => {
  const bare = await startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: 'all' } })
  try {
    const left = new Set(routesOf(bare))
    const gone = routesOf(g).filter((route) => !left.has(route))
    for (const path of ['POST /mcp', 'POST /oauth/token', 'GET /admin/v1/exports', 'POST /webhooks/stripe'])
      assert.ok(gone.includes(path), path)
    const { key } = await bare.account()
    for (const route of gone) {
      const [method = '', path = ''] = route.split(' ')
      const answer = await bare.call(path.replaceAll(/\{\w+\}/g, 'x'), key, undefined, { method })
      assert.equal(answer.status, 404, route)
      await answer.text()
    }
    const messages = [{ role: 'user', content: 'Say hello.' }]
    const answer = await bare.call('/v1/chat/completions', key, { model: 'alpha-5.4', messages, max_tokens: 50 })
    assert.equal(answer.status, 200, await answer.text())
    await bare.settled()
  } finally {
    await bare.close()
  }
})

for (const { name } of EXTENSIONS)
  test(`a gateway with no extension but ${name} starts`, async () => {
    const others = EXTENSIONS.map((one) => one.name).filter((one) => one !== name)
    const alone = await startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: others.join(',') } })
    await alone.close()
  })

test('a gateway does not start with an extension switched off that there is not', async () => {
  await assert.rejects(startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: 'fiance' } }), /"fiance".*agents.*finance/)
})

test('without the extension of guardrails, calls for which the catalog has any are refused, not let through unchecked', async () => {
  const bare = await startGateway({
    env: { TOLLGATE_EXTENSIONS_OFF: 'guardrails' },
    catalog: (document) => Object.assign(document, { guardrails: { all: { redact: { patterns: ['email'] } } } }),
  })
  try {
    const { key } = await bare.account()
    const messages = [{ role: 'user', content: 'Say hello.' }]
    const answer = await bare.call('/v1/chat/completions', key, { model: 'alpha-5.4', messages, max_tokens: 50 })
    assert.equal(answer.status, 503, await answer.text())
  } finally {
    await bare.close()
  }
})
