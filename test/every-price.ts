// A model with all that a price and a cost can depend on.
import type { CatalogInput } from '../src/catalog/document.ts'

export const BETA = {
  name: 'Beta',
  type: 'text',
  family: 'beta',
  clientFormats: ['openai-chat'],
  routes: [
    {
      vendor: 'textworks',
      protocol: 'openai-chat',
      cost: {
        unit: 'credits',
        tiers: [
          { when: { effort: 'high' }, input: '3', output: '6', codeRun: '0.01' },
          { input: '1', output: '2', codeRun: '0.01' },
        ],
      },
    },
    { vendor: 'simulated', protocol: 'openai-chat', cost: { unit: 'credits', tiers: [{ input: '1', output: '3' }] } },
  ],
  pricing: { unit: 'credits', tiers: [{ input: '4', output: '8' }], multipliers: { service_tier: { priority: '2' } } },
  batchFactor: '0.75',
  cache: { ttlSeconds: 60, pricing: { unit: 'credits', tiers: [{ input: '1', output: '2' }] } },
} satisfies NonNullable<CatalogInput['models']>[string]
