// One entry per public endpoint. Paths, validation, OpenAPI, reference docs and contract tests derive from it.
import type { Surface } from '../protocols/protocol.ts'

export interface EndpointSpec {
  /** `chat`, `images`, `social/users`, `siteanalytics/websites/visits` …: the data ones are also products with a price. */
  readonly id: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Paths by which SDKs reach the same endpoint. */
  readonly aliases: readonly string[]
  readonly surface: Surface
  readonly title: string
  readonly description: string
}
