// The console's own examples, made as a browser makes them, for the tests to compile and run.
import { join } from 'node:path'
import { FROM_TABLE } from '../../console/tables.ts'
import { isDataEndpoint } from '../../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../../src/catalog/index.ts'

const SNIPPETS: string = join(import.meta.dirname, '..', '..', 'console', 'src', 'pages', 'snippet.ts')

export type Example = { readonly name: string; readonly code: string }

/** `userId` is of somebody whom the vendor knows. */
export async function consoleSnippets(
  language: 'python' | 'typescript',
  { origin, userId }: { origin: string; userId: string },
): Promise<Example[]> {
  Object.assign(globalThis, FROM_TABLE, { window: { location: { origin } } })
  // By a path that the compiler does not follow: the console is compiled for browsers.
  const { snippet } = (await import(SNIPPETS)) as { snippet: (language: string, subject: object) => string }
  const data = ENDPOINTS.filter(isDataEndpoint).flatMap((spec) => {
    const { id, product, path, title, description } = spec
    const params = Object.entries(spec.params).map(([name, field]) => ({ name, ...field }))
    const endpoint = { id, product, method: 'GET' as const, path, title, description, params, pricing: null }
    const values = params
      .filter(
        ({ name, required, kind }) => required || (!/^(from|to|pagination_token)$/.test(name) && kind !== 'json-array'),
      )
      .map(({ name, example }) => [name, name === 'id' ? userId : example])
    const name = id.replaceAll(/\W+/g, '_')
    return [
      { name, code: snippet(language, { kind: 'data', endpoint, values: Object.fromEntries(values) }) },
      ...(params.some((param) => param.name === 'id')
        ? []
        : [{ name: `${name}_short`, code: snippet(language, { kind: 'data', endpoint }) }]),
    ]
  })
  const stream = { prompt: 'A lighthouse at dusk', size: '1024x1024', stream: true }
  return [
    { name: 'image', code: snippet(language, { kind: 'image', model: 'alpha-image-2' }) },
    { name: 'image_stream', code: snippet(language, { kind: 'image', model: 'alpha-image-2', body: stream }) },
    { name: 'video', code: snippet(language, { kind: 'video', model: 'videogen-2.0' }) },
    ...data,
  ]
}

/** Those that are also run; the others are compiled. */
export const RUN = /^(?:image|image_stream|video|social_.*|siteanalytics_websites_(?:visits|visits_trend|backlinks))$/
