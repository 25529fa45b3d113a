// Google's format: what its callers and vendors speak, with embeddings, counts of tokens and lists of models in its
// shape. The contract does without.
import { counting } from '../../api/account.ts'
import { type Api, mountFree } from '../../api/api.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { defineExtension } from '../../extension.ts'
import { paidEndpoints, type Serving } from '../../pipeline/paid-endpoint.ts'
import { byModel, readText } from '../../pipeline/readers.ts'
import { countGeminiTokens } from './count.ts'
import { readGeminiEmbeddingsRequest, type Shape } from './embed.ts'
import { FREE_GEMINI, LISTS, PAID_GEMINI } from './endpoints.ts'
import { geminiFormat } from './format.ts'

interface Core {
  readonly catalog: CatalogStore
}

interface Place {
  readonly api: Api
}

const embedding = (shape: Shape): Serving => ({
  read: byModel('embedding', (json, uid, model) => readGeminiEmbeddingsRequest(json, uid, model, shape)),
})

export const gemini = defineExtension<Core, object, Place>({
  name: 'gemini',
  formats: [geminiFormat],
  entries: [
    ...paidEndpoints(PAID_GEMINI, {
      gemini: { read: readText },
      'gemini/stream': { read: readText },
      'gemini/embed': embedding('one'),
      'gemini/embed_batch': embedding('batch'),
    }),
    ...Object.values(FREE_GEMINI),
    ...LISTS,
  ],
  endpoints({ catalog }, { api }) {
    mountFree(api, FREE_GEMINI, {
      'gemini/count_tokens': counting(FREE_GEMINI['gemini/count_tokens'], catalog, (json) => ({
        totalTokens: countGeminiTokens(json),
      })),
    })
  },
})
