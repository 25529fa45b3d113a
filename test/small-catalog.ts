// A catalog of three products for tests that need prices but no vendors.
import type { CatalogInput } from '../src/catalog/document.ts'

export const SMALL_CATALOG: CatalogInput = {
  vendors: {
    simulated: { baseUrl: 'sandbox' },
    textworks: { baseUrl: 'https://text.example/v1', credential: 'TEXTWORKS_API_KEY' },
    dataworks: { baseUrl: 'https://data.example' },
  },
  models: {
    'alpha-5.4': {
      name: 'Alpha 5.4',
      type: 'text',
      family: 'alpha',
      clientFormats: ['openai-chat'],
      routes: [{ vendor: 'textworks', protocol: 'openai-chat' }],
      pricing: {
        unit: 'credits',
        tiers: [
          { upTo: 1000, input: '2', output: '8' },
          { input: '4', cachedInput: '1', output: '16' },
        ],
      },
    },
    socialapi: {
      name: 'Social data',
      type: 'data',
      family: 'social',
      routes: [{ vendor: 'simulated', protocol: 'social-v2' }],
      pricing: { unit: 'credits', tiers: [{ call: '0.5', row: '0.01' }] },
    },
  },
  endpoints: {
    'siteanalytics/websites/visits': {
      routes: [{ vendor: 'dataworks', protocol: 'site-analytics' }],
      pricing: { unit: 'credits', tiers: [{ call: '1.25' }] },
    },
  },
}
