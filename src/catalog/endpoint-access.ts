// The names of endpoints in restrictions of keys. A name includes all paths of an endpoint, and what
// belongs to it: `responses` for stored responses and conversations too, `video` for jobs, `batches` for files.
import { invalid } from '../kernel/fault.ts'
import { nearestId } from '../kernel/nearest.ts'
import { type EndpointSpec, isDataEndpoint, isToolServerName, isToolSpec } from './endpoint.ts'
import { quoteModel } from './unknown-model.ts'

/** Undefined: every key may use it, because it shows only the key's own data. */
export function accessNameOf(spec: EndpointSpec): string | undefined {
  if (isToolSpec(spec)) return spec.restriction
  if (spec.tag === 'Account and models') return undefined
  if (isDataEndpoint(spec)) return spec.id
  return spec.partOf ?? (spec.modelOf ?? spec.id).replace(/\/.*/, '')
}

interface EndpointAccess {
  readonly name: string
  readonly title: string
  /** Its paths; that of the endpoint with this name comes first. */
  readonly paths: readonly string[]
}

export function endpointAccess(endpoints: readonly EndpointSpec[]): EndpointAccess[] {
  return [...Map.groupBy(endpoints, accessNameOf)].flatMap(([name, specs]) => {
    if (name === undefined) return []
    const named = specs.find(({ id }) => id === name) ?? specs[0]
    const paths = specs.flatMap(({ method, path, aliases }) => [path, ...aliases].map((one) => `${method} ${one}`))
    return [{ name, title: named?.title ?? name, paths: [...new Set(paths)] }]
  })
}

/** Rejects an unknown name, because a key with a mistyped restriction could use nothing. */
export function checkAccessNames(names: readonly string[], endpoints: readonly EndpointSpec[]): void {
  const known = new Set(endpoints.map(accessNameOf))
  for (const name of names) {
    if (known.has(name) || isToolServerName(name)) continue
    const near = nearestName(name, endpoints)
    throw invalid(
      [
        `endpoints: there is no endpoint ${quoteModel(name)}.`,
        ...(near === undefined ? [] : [`Did you mean "${near}"?`]),
        `Use ${[...known].filter((one) => one !== undefined).join(', ')}.`,
      ].join(' '),
      'endpoints',
    )
  }
}

/** Suggests a name for an unknown one, which may be the path of an endpoint. */
function nearestName(asked: string, endpoints: readonly EndpointSpec[]): string | undefined {
  const path = asked.replace(/^[A-Z]+ /, '').replace(/\/$/, '')
  const at = endpoints.find((spec) => spec.path === path || spec.aliases.includes(path))
  const byPath = at && accessNameOf(at)
  return (
    byPath ??
    nearestId(
      asked,
      endpointAccess(endpoints).map(({ name, title }) => [name, [name, title]]),
    )
  )
}
