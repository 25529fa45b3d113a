// What the console takes from the tables of endpoints and faults: the build puts it in as constants.
import { exampleBody, isDataEndpoint } from '../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { clientCall } from '../src/catalog/reference.ts'
import { ADVICE, FAULTS } from '../src/kernel/fault.ts'

/** By the id of a text endpoint, or by the kind of product that the endpoint sells: of several that sell the same, the first. */
const posts = ENDPOINTS.flatMap((spec) => {
  const { id, sells, format, method, path } = spec
  if (!sells || method !== 'POST') return []
  const { model: _, file: __, ...example } = exampleBody(spec)
  return [[format ? id : sells, { id, path, example }] as const]
})

const calls = ENDPOINTS.filter(isDataEndpoint).map((spec) => [spec.id, clientCall(spec)])

const faults = Object.entries(FAULTS).map(([name, { text }]) => [name, { text, advice: Reflect.get(ADVICE, name) }])

export const FROM_TABLE = {
  POST_ENDPOINTS: Object.fromEntries(posts.toReversed()),
  CLIENT_CALLS: Object.fromEntries(calls),
  FAULT_WORDS: Object.fromEntries(faults),
}
