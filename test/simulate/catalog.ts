// The catalog of the stories: a text model and a video model, each at two vendors.
import { checkDocument, type ModelOf } from '../../src/catalog/document.ts'
import type { Catalog, CatalogStore } from '../../src/catalog/store.ts'
import { faultModel, MODEL } from '../faults/chat-vendor.ts'

export const VIDEO_MODEL = 'video-1'
/** In micro-credits. */
export const PRICE_PER_SECOND = 200n

const timeouts = { firstByteMs: 20_000, idleMs: 10_000 }
const checked = checkDocument({
  vendors: {
    first: { baseUrl: 'http://first.example', timeouts },
    second: { baseUrl: 'http://second.example', onAbort: 'drain', timeouts },
    third: { baseUrl: 'http://third.example', timeouts },
    fourth: { baseUrl: 'http://fourth.example', timeouts },
  },
  models: {
    [MODEL]: faultModel(['first', 'second']),
    [VIDEO_MODEL]: {
      name: 'Video 1',
      type: 'video',
      family: 'video',
      routes: [
        { vendor: 'third', protocol: 'video-task', order: 0 },
        { vendor: 'fourth', protocol: 'video-task', order: 1 },
      ],
      pricing: { unit: 'credits', tiers: [{ second: '0.0002' }] },
    },
  },
  endpoints: {},
})
if (!checked.ok) throw new Error(checked.problems.join('\n'))
const { document } = checked

export const catalog: Catalog = {
  version: 1,
  document,
  setAside: [],
  input: document as never,
  simulated: false,
  isGuarded: false,
  added: [],
  sockets: [],
}
export const textModel = document.models[MODEL] as ModelOf<'text'>
export const catalogs = { current: catalog, at: async () => catalog } as unknown as CatalogStore
