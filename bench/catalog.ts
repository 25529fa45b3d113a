// The catalog of the bench: one chat model and one data endpoint at the mock upstream, priced, and as many other models
// as a case wants.
import type { CatalogInput } from '../src/catalog/document.ts'

export const MODEL = 'bench-chat'
/** At the upstream whose streams take their time. */
export const SLOW_MODEL = 'bench-slow'
/** At the same upstream behind TLS. */
export const TLS_MODEL = 'bench-tls'
export const ANALYTICS_PATH = '/v1/siteanalytics/websites/visits'

export function benchCatalog(
  ports: {
    readonly upstreamPort: number
    readonly slowPort: number
    readonly tls?: { readonly port: number } | undefined
  },
  modelsMore = 0,
): CatalogInput {
  const pricing = { unit: 'credits' as const, tiers: [{ input: '1', cachedInput: '0.1', output: '4' }] }
  const model = (name: string, vendor = 'mock') => ({
    name,
    type: 'text' as const,
    family: 'bench',
    limits: { outputTokensMax: 64_000 },
    clientFormats: ['openai-chat' as const, 'anthropic-messages' as const],
    routes: [{ vendor, protocol: 'openai-chat' as const, model: 'mock-1' }],
    pricing,
  })
  const vendor = (port: number, scheme = 'http') => ({
    baseUrl: `${scheme}://127.0.0.1:${port}/v1`,
    headers: { authorization: 'Bearer vendor-key' },
    concurrencyMax: 10_000,
  })
  return {
    vendors: {
      mock: vendor(ports.upstreamPort),
      slow: vendor(ports.slowPort),
      tls: vendor(ports.tls?.port ?? ports.upstreamPort, ports.tls ? 'https' : 'http'),
    },
    models: Object.fromEntries([
      [MODEL, model('Bench chat')],
      [SLOW_MODEL, model('Bench chat, slow', 'slow')],
      [TLS_MODEL, model('Bench chat, TLS', 'tls')],
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
