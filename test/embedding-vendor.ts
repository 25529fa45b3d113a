// A gateway with a model of embeddings whose vendor answers what a test says.
import { listen, started, testGateway } from './gateway.ts'

export function embeddingGateway() {
  const other = { answer: '' }
  const vendor = started(() =>
    listen((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(other.answer)
    }),
  )
  const g = testGateway(() => ({
    catalog: (document) => {
      document.vendors.other = { baseUrl: vendor.url }
      document.models['other-embed'] = {
        ...document.models['alpha-embed-3-small'],
        routes: [{ vendor: 'other', protocol: 'openai-embeddings', model: 'their-embed' }],
        pricing: { unit: 'credits', tiers: [{ input: '1000000' }] },
      }
    },
  }))
  return { g, other }
}
