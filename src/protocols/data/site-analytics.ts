// Website statistics: one GET with the normalised query. The vendor's JSON is relayed byte for byte, whatever its shape.
import type { DataEndpointSpec } from '../../catalog/endpoint.ts'
import { type NormalisedQuery, readQuery, vendorAddress } from '../../catalog/query.ts'
import { Fault } from '../../kernel/fault.ts'
import { redact } from '../../kernel/redact.ts'
import type { Usage } from '../../meter/usage.ts'
import { objectOf } from '../check.ts'
import { dataWords } from './data-words.ts'
import { garbled, type PaidRequest, type Exchange, type Target } from '../protocol.ts'

export interface AnalyticsRequest extends PaidRequest {
  /** The complete query; the response cache's key is made of it. */
  readonly query: NormalisedQuery
}

/** `perRow`: the price has a rate per row, so rows are counted and the answer cannot be relayed unread. */
export function readAnalyticsRequest(
  spec: DataEndpointSpec,
  rawQuery: string,
  nowMs: number,
  { perRow = false }: { perRow?: boolean } = {},
): AnalyticsRequest {
  const query = readQuery(spec, rawQuery, nowMs)
  return {
    product: spec.product,
    stream: false,
    price: {},
    worst: perRow ? { call: 1, row: rowsMax(spec, query) } : { call: 1 },
    query,
    sent: JSON.stringify(query),
    open: (target) => openAnalytics(spec, query, target, perRow),
  }
}

const PAGE_SIZES = ['pageSize', 'PageSize', 'rowsPerPage', 'limit']

function rowsMax(spec: DataEndpointSpec, query: NormalisedQuery): number {
  const size = query.find(([name]) => PAGE_SIZES.includes(name))
  return size ? Number(size[1]) : spec.rowsMax
}

function openAnalytics(spec: DataEndpointSpec, query: NormalisedQuery, target: Target, perRow: boolean): Exchange {
  const called: Usage = { call: 1 }
  // A credential in the vendor's address may appear in the answer, e.g. in the link to the next page.
  const inAddress = typeof target.auth === 'object' && 'query' in target.auth ? target.secret : undefined
  return {
    call: {
      method: 'GET',
      url: target.baseUrl + vendorAddress(spec, query),
      headers: DATA_HEADERS,
    },
    answer(bytes, headers) {
      const contentType = jsonType(headers)
      if (bytes.length === 0) throw garbled('the answer is empty')
      const body = inAddress === undefined ? bytes : Buffer.from(redact(bytes.toString('utf8'), [inAddress]))
      return { body, contentType, usage: perRow ? { call: 1, row: countRows(body) } : called }
    },
    ...(perRow || inAddress !== undefined ? {} : { pass: (headers) => ({ contentType: jsonType(headers), usage: called }) }),
    vendorError: (body) => dataWords(body, saidIn),
  }
}

/** The headers for both data vendors. Compression is declined, because the bytes are relayed unchanged. */
export const DATA_HEADERS = { accept: 'application/json', 'accept-encoding': 'identity' } as const

const USUAL_TYPE = /^(?:application|text)\/json(?:; ?charset=(?:utf-?(?:8|16)|us-ascii|iso-8859-1|windows-1252|gbk))?$/i

/** The content type of a JSON answer. Throws for any other type, which means an error page of some proxy. */
export function jsonType(headers: Readonly<Record<string, string>>): string {
  const contentType = headers['content-type'] ?? ''
  const encoding = headers['content-encoding'] ?? 'identity'
  if (!/^(application|text)\/([\w.-]+\+)?json\s*(;|$)/i.test(contentType) || encoding !== 'identity')
    throw garbled('the answer is encoded, or not JSON by its type')
  // An unusual content type is not passed on.
  return USUAL_TYPE.test(contentType) ? contentType : 'application/json'
}

/** Rows are in an array: the answer itself, `Records`, `Data`, or `Data.Records`. Anything else counts as one row. */
function countRows(body: Buffer): number {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw new Fault('upstream_garbled', { cause })
  }
  const { Data: data, Records: records, records: others } = objectOf(value)
  for (const rows of [value, records, others, data, objectOf(data).Records])
    if (Array.isArray(rows)) return rows.length
  return 1
}

function saidIn(value: Readonly<Record<string, unknown>>): unknown {
  const { error } = value
  return value.Message ?? value.message ?? value.detail ?? objectOf(error).message ?? error ?? value.title
}
