// What an entry of the analytics table says, and how it becomes an endpoint.
import type { DataEndpointSpec, JsonSchema, Mode, Pair, Window } from './endpoint.ts'
import type { Field } from './field.ts'

export interface AnalyticsEntry {
  readonly title: string
  readonly description: string
  readonly returns: string
  readonly answer: JsonSchema
  readonly params: Readonly<Record<string, Field>>
  readonly window?: Window
  readonly pairs?: readonly Pair[]
  readonly modes?: readonly Mode[]
  readonly rowsMax?: number
  /** When an agent should choose it rather than a similar one. */
  readonly advice?: string
}

const DATES: Pair = { from: 'from', to: 'to', together: true }

/** An entry of the table as a whole endpoint. */
export function analyticsEndpoint(path: string, entry: AnalyticsEntry): DataEndpointSpec {
  const { pairs = [], modes = [], rowsMax = 100, advice, ...rest } = entry
  const id = `siteanalytics/${path}`
  return {
    ...rest,
    id,
    method: 'GET',
    path: `/v1/${id}`,
    aliases: [],
    tag: 'Site analytics',
    surface: 'native',
    sells: 'data',
    product: id,
    restriction: 'siteanalytics',
    vendorPath: path,
    pairs: 'from' in entry.params ? [DATES, ...pairs] : pairs,
    modes,
    rowsMax,
    ...(advice === undefined ? {} : { tool: { advice } }),
  }
}
