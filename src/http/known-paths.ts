// Which paths there are and which methods each takes, so that another method is told what to use instead.
import type { Surface } from '../catalog/endpoint.ts'
import { ENDPOINTS } from '../catalog/index.ts'

interface Place {
  readonly below: Map<string, Place>
  methods: Set<string> | undefined
  /** What the faults of the path are written as. */
  surface: Surface | undefined
}

const PARAMETER = ':'
const REST = '*'

export class KnownPaths {
  readonly #root: Place = { below: new Map(), methods: undefined, surface: undefined }

  add(url: string, methods: readonly string[], surface?: Surface): void {
    let place = this.#root
    for (const part of partsOf(url)) {
      const name = part.startsWith(PARAMETER) ? PARAMETER : part
      const next = place.below.get(name) ?? { below: new Map(), methods: undefined, surface: undefined }
      place.below.set(name, next)
      place = next
    }
    place.methods ??= new Set()
    place.surface ??= surface
    for (const method of methods) place.methods.add(method)
  }

  /** Undefined where there is no such path. */
  methodsAt(url: string): ReadonlySet<string> | undefined {
    return this.#at(url)?.methods
  }

  surfaceAt(url: string): Surface | undefined {
    return this.#at(url)?.surface
  }

  #at(url: string): Place | undefined {
    const end = url.search(/[?#]/)
    let place = this.#root
    for (const part of partsOf(end < 0 ? url : url.slice(0, end))) {
      const next = place.below.get(part) ?? place.below.get(PARAMETER)
      if (!next) return place.below.get(REST)
      place = next
    }
    return place
  }
}

/** What stands before the id of a model, where an address ends with one. */
const BEFORE_MODEL: readonly string[] = [
  ...new Set(
    ENDPOINTS.flatMap(({ path, aliases }) => [path, ...aliases])
      .filter((path) => path.includes('/models/{'))
      .map((path) => path.slice(0, path.indexOf('{'))),
  ),
]

/** Ids of models may have slashes, and SDKs write them into an address as they are: the router is given them as one part. */
export function withModelAsPart(url: string): string {
  const before = url.includes('/models/') && BEFORE_MODEL.find((start) => url.startsWith(start))
  if (!before) return url
  const mark = url.indexOf('?')
  const end = mark < 0 ? url.length : mark
  return before + partsOf(url.slice(before.length, end)).join('%2F') + url.slice(end)
}

/** As the router reads them: empty parts do not count. */
function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}
