// What examples are made of, from the table of endpoints.
import { exampleBody, isDataEndpoint } from './endpoint.ts'
import { ENDPOINTS } from './index.ts'
import { clientCall } from './reference.ts'
import type { Tables } from './snippet-words.ts'

/** By the id of a text endpoint, or by the kind of product that the endpoint sells: of several that sell the same, the first. */
export function snippetTables(): Pick<Tables, 'posts' | 'calls'> {
  const posts = ENDPOINTS.flatMap((spec) => {
    const { id, sells, format, method, path } = spec
    if (!sells || method !== 'POST') return []
    const { model: _, file: __, ...example } = exampleBody(spec)
    return [[format ? id : sells, { id, path, example }] as const]
  })
  const calls = ENDPOINTS.filter(isDataEndpoint).map((spec) => [spec.id, clientCall(spec)] as const)
  return { posts: Object.fromEntries(posts.toReversed()), calls: Object.fromEntries(calls) }
}
