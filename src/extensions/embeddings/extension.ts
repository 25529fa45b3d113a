// Texts as vectors, ranked, and judged: embeddings, rerank and moderation.
import { defineExtension } from '../../extension.ts'
import { asked, paidEndpoints } from '../../pipeline/paid-endpoint.ts'
import { EMBEDDINGS } from './endpoints.ts'
import { readEmbeddingsRequest } from './request.ts'
import { readModerationsRequest, readRerankRequest } from './rerank-and-moderation.ts'

const QUESTION = 'Hi'

export const embeddings = defineExtension({
  name: 'embeddings',
  entries: paidEndpoints(EMBEDDINGS, {
    embeddings: asked('embedding', readEmbeddingsRequest, { input: QUESTION }),
    rerank: asked('rerank', readRerankRequest, { query: QUESTION, documents: [QUESTION] }),
    'rerank/v2': asked('rerank', (json, uid, model) => readRerankRequest(json, uid, model, 'cohere')),
    moderations: asked('moderation', readModerationsRequest, { input: QUESTION }),
  }),
})
