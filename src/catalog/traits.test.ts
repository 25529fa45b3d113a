import assert from 'node:assert/strict'
import { test } from 'node:test'
import shipped from './default.json' with { type: 'json' }
import { checkDocument } from './document.ts'
import { readTextTraits } from './traits.ts'

type Changed = Record<string, Record<string, Record<string, unknown>>>

/** What is wrong with the shipped catalog after a change. */
function problems(change: (document: Changed) => void): string[] {
  const document = structuredClone(shipped) as unknown as Changed
  change(document)
  const checked = checkDocument(document)
  return checked.ok ? [] : checked.problems
}
const withTraits = (traits: object, uid = 'alpha-5.4') =>
  problems(({ models }) => Object.assign(models![uid]!, { traits }))

test('every trait of the shipped catalog is known and well formed', () => {
  assert.deepEqual(
    problems(() => undefined),
    [],
  )
})

test('unknown and malformed traits are told by model and name', () => {
  assert.match(withTraits({ tokenField: 'x' })[0]!, /^models\.alpha-5\.4\.traits: .*tokenField/)
  assert.match(withTraits({ tokensField: 'x' })[0]!, /^models\.alpha-5\.4\.traits\.tokensField: .*either/)
  assert.match(withTraits({ nMax: 0 })[0]!, /nMax/)
  assert.match(withTraits({ developerRole: 'no' })[0]!, /developerRole: .*boolean/)
  assert.match(withTraits({ quirks: ['odd'] })[0]!, /quirks\.0: .*tool-index/)
  assert.match(withTraits({ dropParams: 'thinking' })[0]!, /dropParams: .*array/)
  assert.match(withTraits({ nMax: 1 }, 'videogen-2.0')[0]!, /^models\.videogen-2\.0\.traits: .*nMax/)
  assert.match(withTraits({ secondsMax: 'long' }, 'videogen-2.0')[0]!, /secondsMax/)
  const family = problems(({ families }) => Object.assign(families!.alpha!, { traits: { tokenField: 'x' } }))
  assert.match(family[0]!, /^families\.alpha\.traits: .*tokenField/)
})

test('a route in a format that cannot serve the product is refused', () => {
  const routed = problems(({ models }) => {
    models!['alpha-5.4']!.routes = [{ vendor: 'alpha', protocol: 'openai-images' }]
  })
  assert.deepEqual(routed, [
    'models.alpha-5.4.routes.0.protocol: "openai-images" does not serve text; that takes openai-chat or openai-responses or anthropic-messages or gemini',
  ])
})

test('the traits of a family lie under those of its text models, and absent ones have their defaults', () => {
  const checked = checkDocument(shipped)
  assert.ok(checked.ok)
  const model = checked.document.models['beta-haiku-4-5']
  assert.ok(model?.type === 'text')
  assert.equal(model.traits.effort, 'budget')
  assert.equal(model.traits.nMax, 1)
  assert.equal(model.traits.tokensField, readTextTraits().tokensField)
})

test('the price of a cached response is checked like any other, and only text models have a response cache', () => {
  const priced = (...tiers: object[]) => ({ cache: { ttlSeconds: 60, pricing: { unit: 'credits', tiers } } })
  const at = (uid: string, cache: object) => problems(({ models }) => Object.assign(models![uid]!, cache))
  assert.deepEqual(at('alpha-5.4', priced({ upTo: 5, call: '1' }, { output: '1' })), [])
  assert.match(
    at('alpha-5.4', priced({ upTo: 5, call: '1' })).join(),
    /^models\.alpha-5\.4\.cache\.pricing: the last tier/,
  )
  assert.match(
    at('alpha-5.4', priced({ image: '1' })).join(),
    /^models\.alpha-5\.4\.cache\.pricing: tier 0 has no price/,
  )
  const [image = ''] = Object.entries(shipped.models).find(([, { type }]) => type === 'image') ?? []
  assert.deepEqual(at(image, priced({ call: '1' })), [`models.${image}.cache: only text models have a response cache`])
  const website = 'siteanalytics/websites/ranks'
  const data = problems(({ endpoints }) => Object.assign(endpoints![website]!, priced({ when: { a: 'b' }, call: '1' })))
  assert.match(data.join(), /cache\.pricing: the last tier/)
})

test('titles and addresses of tool servers are one line without invisible characters', () => {
  const problemsOf = (title: string, baseUrl: string) => {
    const vendors = { ...shipped.vendors, tools: { baseUrl } }
    const checked = checkDocument({ ...shipped, vendors, toolServers: { tools: { vendor: 'tools', title } } })
    return checked.ok ? '' : checked.problems.join('; ')
  }
  assert.equal(problemsOf('Tools (日本)', 'https://tools.example/mcp'), '')
  for (const odd of ['\u202e', '\n', '\u2028', '\u200b']) {
    assert.match(problemsOf(`a${odd}b`, 'https://tools.example/mcp'), /title.*one line/, JSON.stringify(odd))
    assert.match(problemsOf('Tools', `https://tools.example/a${odd}b`), /baseUrl/, JSON.stringify(odd))
  }
})
