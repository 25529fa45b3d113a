// The catalogue of the bench: one chat model and one data endpoint at the mock upstream, priced, and as many other models
// as a case wants.
import type { CatalogInput } from '../src/catalog/document.ts'

export const MODEL = 'bench-chat'
export const ANALYTICS_PATH = '/v1/siteanalytics/websites/visits'

export function benchCatalog(upstreamPort: number, modelsMore = 0): CatalogInput {
  const pricing = { unit: 'credits' as const, tiers: [{ input: '1', cachedInput: '0.1', output: '4' }] }
  const model = (name: string) => ({
    name,
    type: 'text' as const,
    family: 'bench',
    doors: ['openai-chat' as const, 'anthropic-messages' as const],
    routes: [{ vendor: 'mock', protocol: 'openai-chat' as const, model: 'mock-1' }],
    pricing,
  })
  return {
    vendors: {
      mock: {
        baseUrl: `http://127.0.0.1:${upstreamPort}/v1`,
        headers: { authorization: 'Bearer vendor-key' },
        concurrencyMax: 10_000,
      },
    },
    models: Object.fromEntries([
      [MODEL, model('Bench chat')],
      ...Array.from({ length: modelsMore }, (_, i) => [`more-${i}`, model(`More ${i}`)]),
    ]),
    endpoints: {
      'siteanalytics/websites/visits': {
        routes: [{ vendor: 'mock', protocol: 'site-analytics' }],
        pricing: { unit: 'credits', tiers: [{ call: '0.001' }] },
      },
    },
  }
}
