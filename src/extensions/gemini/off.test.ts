// A gateway without Google's format: its addresses are not there, and models that only it could reach are set aside.
import { freshDatabase } from '../../../test/database.ts'
import { startGateway, testGateway, textOf } from '../../../test/gateway.ts'
import { assert, test } from '../../../test/kit.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import { silentLog } from '../../kernel/log.ts'

const hello = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }
const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 })

function catalog({ vendors, models }: CatalogInput): void {
  vendors.google = { baseUrl: 'sandbox/google' }
  const base = models['delta-3.8-flash']! // Of the shipped catalog.
  const own = { vendor: 'google', protocol: 'gemini' as const }
  models.only = {
    ...base,
    clientFormats: ['openai-chat', 'gemini'],
    routes: [own],
    limits: { ...base.limits, contextTokens: 100_000 },
  }
  models.either = { ...models.only, routes: [own, ...base.routes] }
  models.callers = { ...base, clientFormats: ['gemini'] }
  const short = { ...base.limits, contextTokens: 1_000 }
  models.behind = { ...base, limits: short, contextFallback: 'only' }
}

test('without the extension its addresses answer 404, and models that need its format are set aside with a message', async () => {
  const said: object[] = []
  const log = { ...silentLog, warn: (fields: object) => said.push(fields) }
  await using database = await freshDatabase()
  await (await startGateway({ database, catalog })).close()
  await using bare = await startGateway({ database, env: { TOLLGATE_EXTENSIONS_OFF: 'gemini' }, log })
  const { key } = await bare.account()
  for (const path of ['models', 'models/either', 'models/either:generateContent', 'models/either:countTokens'])
    await textOf(bare.call(`/gemini/v1beta/${path}`, key, path.includes(':') ? hello : undefined), 404)
  const { setAside, document, input } = bare.gateway.catalog.current
  assert.match(setAside.join('\n'), /^models\.only: .*"gemini" is switched off\nmodels\.either \(a route\): .*"gemini"/)
  assert.ok(
    setAside.some((part) => part.startsWith('models.behind: contextFallback')),
    setAside.join('\n'),
  )
  assert.ok(
    said.some((fields) => 'setAside' in fields),
    'the operator is told at the start',
  )
  assert.deepEqual([document.models.only, document.models.either?.routes.length], [undefined, 1])
  assert.equal((await bare.call('/v1/chat/completions', key, chat('either'))).status, 200)
  await textOf(bare.call('/v1/chat/completions', key, chat('only')), 404)
  const refused = await textOf(bare.call('/v1/chat/completions', key, chat('callers')), 400)
  assert.match(refused, /is not offered here\./)
  // An edit of something else keeps them.
  await bare.operator('PATCH', '/models/alpha-5.4', { enabled: false })
  assert.deepEqual(bare.gateway.catalog.current.input.models.only, input.models.only)
  await bare.settled()
})

const g = testGateway(() => ({ catalog }))

test('with the extension they answer as ever, and the lists are in the shape of Google’s SDKs', async () => {
  const { key } = await g.account()
  for (const model of ['only', 'either', 'callers'])
    await textOf(g.call(`/gemini/v1beta/models/${model}:generateContent`, key, hello), 200)
  const { models } = (await (await g.call('/gemini/v1beta/models', key)).json()) as { models: { name: string }[] }
  assert.ok(models.some(({ name }) => name === 'models/only'))
  assert.deepEqual(g.gateway.catalog.current.setAside, [])
})
