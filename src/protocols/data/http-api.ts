// Data over HTTP: one request that the endpoint's entry describes, with the normalised query, headers and body. The
// vendor's answer is relayed byte for byte, whatever its form: JSON, a file or a stream. Site analytics and the
// products of the catalog are such endpoints.
import { isUtf8 } from 'node:buffer'
import { type Bridge, bridgeOf } from '../../catalog/bridge.ts'
import type { CountedUnit, DataEndpointSpec, OperationFacts } from '../../catalog/endpoint.ts'
import { boundOf, countOf, type Known, requestSchema } from '../../catalog/expression.ts'
import { checkValue } from '../../catalog/json-schema.ts'
import { type NormalisedQuery, type RequestHeaders, readQuery, vendorAddress } from '../../catalog/query.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isObject, type JsonText, objectOf } from '../../kernel/json.ts'
import { redact } from '../../kernel/redact.ts'
import { sameBytes, sign } from '../../kernel/secret.ts'
import type { Unit } from '../../meter/kind.ts'
import type { Usage } from '../../meter/usage.ts'
import type { HttpCall } from '../../upstream/call.ts'
import { type Answer, type Exchange, garbled, type PaidRequest, type Target } from '../protocol.ts'
import { vendorFault } from '../vendor-fault.ts'
import type { VendorError } from '../vendor-words.ts'
import { bridgedAddress, bridgedAnswer, errorIn, periodOf } from './bridge.ts'
import { dataWords } from './data-words.ts'

export const isJsonType = (type: string) => /^(?:application|text)\/(?:[\w.-]+\+)?json$/.test(type)

export interface DataRequest extends PaidRequest {
  /** The complete query; the response cache's key is made of it. */
  readonly query: NormalisedQuery
}

/** The request as it came. */
interface AskedData {
  readonly query: string
  readonly params?: Readonly<Record<string, string>>
  readonly headers?: RequestHeaders | undefined
  readonly json?: JsonText
}

/** Page tokens, bound to the account that gets them. */
export interface PageTokens {
  seal(token: string): string
  /** Undefined: it was not made for this account and endpoint. */
  open(sealed: string): string | undefined
}

interface Rules {
  readonly nowMs: number
  /** The units that have a rate: an answer is relayed unread only where none of them must be counted in it. */
  readonly priced?: ReadonlySet<Unit>
  readonly tokens?: PageTokens
  /** How vendors with shapes of their own answer it, by the vendor's name. */
  readonly bridges?: ReadonlyMap<string, Bridge>
}

interface Read {
  readonly query: NormalisedQuery
  readonly json: JsonText | undefined
  readonly priced: ReadonlySet<Unit>
  readonly worst: Usage
  readonly tokens: PageTokens | undefined
}

const ONLY_CALLS: ReadonlySet<Unit> = new Set()
const NO_BRIDGES: ReadonlyMap<string, Bridge> = new Map()

export function readDataRequest(spec: DataEndpointSpec, asked: AskedData, rules: Rules): DataRequest {
  const { priced = ONLY_CALLS, tokens, nowMs } = rules
  const { headers, params = {} } = asked
  const query = openedToken(spec, readQuery(spec, asked.query, nowMs, { path: params, headers }), tokens)
  const json = spec.body ? asked.json : undefined
  if (spec.body && json) checkBody(spec, json)
  const bridges = rules.bridges ?? NO_BRIDGES
  const worst = worstOf(spec, { query, json, priced }, bridges)
  const read: Read = { query, json, priced, worst, tokens }
  const least = leastOf(spec, priced, bridges)
  return {
    product: spec.product,
    stream: false,
    price: {},
    worst,
    ...(least ? { likely: () => least } : {}),
    ...(spec.operation?.timeoutSeconds === undefined ? {} : { timeoutMs: spec.operation.timeoutSeconds * 1000 }),
    ...(bridges.size > 0 ? { refusal: (_, vendor) => unbridged(spec, query, bridges.get(vendor)) } : {}),
    query,
    sent: json ? json.text : JSON.stringify(query),
    open: (target) => openData(spec, read, target),
  }
}

function checkBody(spec: DataEndpointSpec, { value }: JsonText): void {
  const problem = checkValue(spec.body ?? {}, value)
  if (problem) throw invalid(`${problem.at === '' ? 'The body' : `"${problem.at}"`} must ${problem.must}.`, problem.at)
}

// What a call counts.

const PAGE_SIZES = ['pageSize', 'PageSize', 'rowsPerPage', 'limit']

function rowsMax(spec: DataEndpointSpec, query: NormalisedQuery): number {
  const size = query.find(([name]) => PAGE_SIZES.includes(name))
  return size ? Number(size[1]) : spec.rowsMax
}

const countedOf = (operation: OperationFacts | undefined, priced: ReadonlySet<Unit>) =>
  (['row', 'metered'] as const satisfies readonly CountedUnit[]).flatMap((unit) => {
    const rule = operation?.counts[unit]
    return rule && priced.has(unit) ? [{ unit, ...rule }] : []
  })

function worstOf(
  spec: DataEndpointSpec,
  { query, json, priced }: Pick<Read, 'query' | 'json' | 'priced'>,
  bridges: ReadonlyMap<string, Bridge>,
): Usage {
  const { operation, answer, params, body } = spec
  if (!operation) {
    const rows = priced.has('row') ? { row: rowsMax(spec, query) } : {}
    return { call: 1, ...rows, ...(priced.has('metered') ? { metered: mostBilled(spec, query, bridges) } : {}) }
  }
  const request = requestOf(spec, query, json)
  const worst: { [unit in Unit]?: number } = { call: 1 }
  for (const { unit, expression } of countedOf(operation, priced)) {
    const known = { schema: answer ?? {}, root: answer }
    const bound = boundOf(expression, { request, answer: known })
    // The request has no usable value, such as null instead of a number: then the bound that was proved for every
    // request applies.
    const most =
      typeof bound === 'number' ? bound : boundOf(expression, { request: requestSchema(params, body), answer: known })
    if (typeof most === 'string') throw new Fault('internal', { internal: { why: most, product: spec.product } })
    worst[unit] = most
  }
  if (priced.has('byte')) worst.byte = operation.bytesMax ?? 0
  return worst
}

/** The usage of an answer without the counted value. Undefined if nothing is counted. */
function leastOf(
  { operation }: DataEndpointSpec,
  priced: ReadonlySet<Unit>,
  bridges: ReadonlyMap<string, Bridge>,
): Usage | undefined {
  if (bridges.size > 0 && priced.has('metered')) return { call: 1, metered: 1 }
  const counted = countedOf(operation, priced)
  if (counted.length === 0) return undefined
  return { call: 1, ...Object.fromEntries(counted.map(({ unit, least }) => [unit, least])) }
}

/** The parameters for an expression. A missing parameter counts as its maximum. */
function requestOf({ params, body }: DataEndpointSpec, query: NormalisedQuery, json: JsonText | undefined): Known {
  const values: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(params))
    if ('max' in field && field.max !== undefined) values[name] = field.max
  for (const [name, value] of query) {
    const kind = params[name]?.kind
    values[name] =
      kind === 'integer' || kind === 'number' ? Number(value) : kind === 'boolean' ? value === 'true' : value
  }
  if (json) values.body = json.value
  const { days, months } = periodOf(query) ?? {}
  if (days !== undefined) Object.assign(values, { days, months })
  return { ...requestSchema(params, body), json: values }
}

// A vendor with shapes of its own.

function unbridged(spec: DataEndpointSpec, query: NormalisedQuery, bridge: Bridge | undefined): Fault | undefined {
  try {
    if (bridge) bridgedAddress(bridge, spec, query)
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
}

/** The most that any of the vendors bills. */
function mostBilled(spec: DataEndpointSpec, query: NormalisedQuery, bridges: ReadonlyMap<string, Bridge>): number {
  const request = requestOf(spec, query, undefined)
  const bounds = [...bridges.values()].flatMap(({ metered }) => {
    const bound = metered && boundOf(metered, { request, answer: {} })
    return typeof bound === 'number' ? [bound] : []
  })
  return Math.max(0, ...bounds)
}

function openBridged(spec: DataEndpointSpec, { query, priced, worst }: Read, target: Target, bridge: Bridge): Exchange {
  const { noData = [] } = target.bridge ?? {}
  const meant = (said: VendorError): VendorError =>
    noData.some((text) => said.message.toLowerCase().includes(text.toLowerCase()))
      ? { ...said, message: 'The source has no data for this.', as: 'not_found' }
      : said
  const key = keyInAddress(target)
  return {
    call: { method: 'GET', url: target.baseUrl + bridgedAddress(bridge, spec, query), headers: DATA_HEADERS },
    answer(bytes, headers) {
      jsonType(headers)
      const value = parsed(bytes)
      const said = target.bridge && errorIn(target.bridge, value)
      if (said !== undefined) {
        const { as, message } = meant({ message: said, words: [] })
        throw as === undefined ? vendorFault({ message }) : new Fault(as, { message })
      }
      const made = Buffer.from(JSON.stringify(bridgedAnswer(bridge, query, value)))
      const body = key === undefined ? made : withoutKey(made, key)
      const billed =
        bridge.metered &&
        countOf(bridge.metered, { request: requestOf(spec, query, undefined), answer: { json: value } })
      const rows = priced.has('row') ? { row: countRows(body) } : {}
      if (billed === undefined)
        return {
          body,
          contentType: 'application/json',
          usage: priced.has('metered') ? undefined : { call: 1, ...rows },
        }
      // A count above the proven bound is wrong, and is capped at the bound, which the hold covers.
      const metered = priced.has('metered') ? Math.min(billed, worst.metered ?? 0) : billed
      return { body, contentType: 'application/json', usage: { call: 1, ...rows, metered } }
    },
    vendorError(body) {
      const said = dataWords(body, saidIn)
      return said && meant(said)
    },
  }
}

// The exchange with the vendor.

function openData(spec: DataEndpointSpec, read: Read, target: Target): Exchange {
  const { query, priced, tokens } = read
  const { operation } = spec
  const bridge = target.bridge && bridgeOf(target.bridge, spec.product)
  if (bridge) return openBridged(spec, read, target, bridge)
  const called: Usage = { call: 1 }
  // A credential in the vendor's address may appear in the answer, e.g. in the link to the next page.
  const inAddress = keyInAddress(target)
  const isRead =
    priced.has('row') || priced.has('metered') || priced.has('byte') || inAddress !== undefined || operation?.pageToken
  const typeOf = (headers: Headers) => (operation ? answerType(operation, headers) : jsonType(headers))
  return {
    call: target.simulated && operation ? simulatedCall(spec, query, target) : callOf(spec, read, target),
    answer(bytes, headers) {
      if (bytes.length === 0 && operation && headers['content-type'] === undefined)
        return { body: bytes, contentType: 'text/plain', usage: called }
      const contentType = typeOf(headers)
      if (bytes.length === 0) throw garbled('the answer is empty')
      if (operation?.bytesMax !== undefined && bytes.length > operation.bytesMax)
        throw garbled('the answer is larger than the catalog allows')
      const body = inAddress === undefined ? bytes : withoutKey(bytes, inAddress)
      if (!operation)
        return { body, contentType, usage: priced.has('row') ? { call: 1, row: countRows(body) } : called }
      return counted(spec, read, {
        body: operation.pageToken && tokens ? sealed(body, operation.pageToken.path, tokens) : body,
        contentType,
      })
    },
    // An effect is charged, whether or not its caller waits for the answer.
    drains: operation && !operation.readOnly ? 'call' : undefined,
    ...(isRead ? {} : { pass: (headers: Headers) => ({ contentType: typeOf(headers), usage: called }) }),
    ...(operation && !operation.answers.every(isJsonType)
      ? { passesAsItComes: (headers: Headers) => !isJsonType(bare(headers['content-type'] ?? '')) }
      : {}),
    vendorError: (body) => dataWords(body, saidIn),
  }
}

const keyInAddress = ({ auth, secret }: Target) => (typeof auth === 'object' && 'query' in auth ? secret : undefined)

/** In a text of any type the credential is replaced by a mark; any other file that contains it is an error. */
function withoutKey(bytes: Buffer, key: string): Buffer {
  const isText = isUtf8(bytes) && !bytes.includes(0)
  // Removing zero bytes makes a UTF-16 text searchable like any other.
  const text = isText ? bytes.toString('utf8') : bytes.toString('latin1').replaceAll('\0', '')
  const clean = redact(text, [key])
  if (clean === text) return bytes
  if (!isText) throw garbled('the answer contains the credential')
  return Buffer.from(clean)
}

type Headers = Readonly<Record<string, string>>

/**
 * The usage that the answer shows. Without the counted value there is none, and the minimum is charged as an estimate.
 */
function counted(
  spec: DataEndpointSpec,
  { priced, query, json, worst }: Read,
  answer: Pick<Answer, 'body' | 'contentType'>,
): Answer {
  const usage: { [unit in Unit]?: number } = { call: 1 }
  const rules = countedOf(spec.operation, priced)
  if (priced.has('byte')) usage.byte = answer.body.length
  if (rules.length === 0) return { ...answer, usage }
  const scope = { request: requestOf(spec, query, json), answer: { json: parsed(answer.body) } }
  for (const { unit, expression } of rules) {
    const count = countOf(expression, scope)
    // A count above the proven bound is wrong, and is capped at the bound, which the hold covers.
    if (count === undefined) return { ...answer, usage: undefined }
    usage[unit] = Math.min(count, worst[unit] ?? 0)
  }
  return { ...answer, usage }
}

function parsed(body: string | Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch (cause) {
    throw new Fault('upstream_garbled', { cause })
  }
}

/** Only what the entry names is sent: no other parameter, header or path of the caller. */
function callOf(spec: DataEndpointSpec, { query, json }: Read, target: Target): HttpCall {
  const { operation, params } = spec
  const inHeader = query
    .filter(([name]) => params[name]?.in === 'header')
    .map(([name, value]) => [name.toLowerCase(), value])
  const accept = operation ? { accept: operation.answers.join(', ') } : {}
  const headers = { ...DATA_HEADERS, ...accept, ...Object.fromEntries(inHeader) }
  const call = { method: spec.method, url: target.baseUrl + vendorAddress(spec, query), headers }
  if (!json) return call
  const [type, body] = bodyAs(operation?.bodyAs ?? 'json', json)
  return { ...call, headers: { ...headers, 'content-type': type }, body }
}

function bodyAs(as: OperationFacts['bodyAs'], { text, value }: JsonText): readonly [type: string, body: string] {
  if (as === 'list') return ['application/json', `[${text}]`]
  if (as === 'json') return ['application/json', text]
  const form = new URLSearchParams()
  for (const [name, given] of Object.entries(value))
    for (const one of Array.isArray(given) ? given : [given])
      if (one !== null) form.append(name, typeof one === 'object' ? JSON.stringify(one) : String(one))
  return ['application/x-www-form-urlencoded', form.toString()]
}

/** The simulated vendor does not know products, so the request tells it what to answer. */
function simulatedCall(spec: DataEndpointSpec, query: NormalisedQuery, { baseUrl }: Target): HttpCall {
  const { answers = ['application/json'], example = {} } = spec.operation ?? {}
  const type = (answers[0] ?? 'application/json').replace('*', 'octet-stream')
  const body = typeof example === 'string' && !isJsonType(type) ? example : JSON.stringify(example)
  return {
    method: 'POST',
    url: baseUrl + vendorAddress(spec, query),
    headers: { 'content-type': type, accept: type },
    body,
  }
}

/** The headers for data vendors. Compression is declined, because the bytes are relayed unchanged. */
export const DATA_HEADERS = { accept: 'application/json', 'accept-encoding': 'identity' } as const

const USUAL_TYPE = /^(?:application|text)\/json(?:; ?charset=(?:utf-?(?:8|16)|us-ascii|iso-8859-1|windows-1252|gbk))?$/i
const PLAIN_TYPE = /^[a-z]+\/[\w.+-]+(?:; ?charset=[\w-]{1,20})?$/i

const bare = (contentType: string) => (contentType.split(';')[0] ?? '').trim().toLowerCase()

/** The content type of a JSON answer. Throws for any other type, which means an error page of some proxy. */
export function jsonType(headers: Headers): string {
  const contentType = headers['content-type'] ?? ''
  if (!isJsonType(bare(contentType)) || (headers['content-encoding'] ?? 'identity') !== 'identity')
    throw garbled('the answer is encoded, or not JSON by its type')
  // An unusual content type is not passed on.
  return USUAL_TYPE.test(contentType) ? contentType : 'application/json'
}

/** One of those that the operation names. */
function answerType({ answers }: OperationFacts, headers: Headers): string {
  const contentType = headers['content-type'] ?? ''
  const type = bare(contentType)
  if (isJsonType(type) && answers.some(isJsonType)) return jsonType(headers)
  const isNamed = answers.some((one) => (one.endsWith('/*') ? type.startsWith(one.slice(0, -1)) : one === type))
  if (!isNamed || (headers['content-encoding'] ?? 'identity') !== 'identity')
    throw garbled('the answer is encoded, or of a type that the operation does not have')
  return PLAIN_TYPE.test(contentType) ? contentType : type
}

/** Rows are in an array: the answer itself, `Records`, `Data`, or `Data.Records`. Anything else counts as one row. */
function countRows(body: Buffer): number {
  const value = parsed(body)
  const { Data: data, Records: records, records: others } = objectOf(value)
  for (const rows of [value, records, others, data, objectOf(data).Records]) if (Array.isArray(rows)) return rows.length
  return 1
}

function saidIn(value: Readonly<Record<string, unknown>>): unknown {
  const { error, meta } = value
  return (
    value.Message ??
    value.message ??
    value.detail ??
    objectOf(error).message ??
    error ??
    objectOf(meta).error_message ??
    value.title
  )
}

// Tokens for the next page, bound to the account that got them.

function openedToken(
  { operation }: DataEndpointSpec,
  query: NormalisedQuery,
  tokens: PageTokens | undefined,
): NormalisedQuery {
  const { param } = operation?.pageToken ?? {}
  if (param === undefined || !tokens) return query
  return query.map(([name, value]) => {
    if (name !== param) return [name, value] as const
    const opened = tokens.open(value)
    if (opened === undefined)
      throw invalid(`${name} must be what an answer of this endpoint gave to this account.`, name)
    return [name, opened] as const
  })
}

/** The same bytes, with the token replaced. */
function sealed(body: Buffer, path: string, tokens: PageTokens): Buffer {
  const text = body.toString('utf8')
  const value = parsed(body)
  const parts = path.split('.')
  const last = parts.pop() ?? ''
  const holder = parts.reduce<unknown>((found, part) => objectOf(found)[part], value)
  const token = objectOf(holder)[last]
  if (typeof token !== 'string' || token === '' || !isObject(holder)) return body
  const [plain, bound] = [JSON.stringify(token), JSON.stringify(tokens.seal(token))]
  if (text.includes(plain)) return Buffer.from(text.replaceAll(plain, () => bound))
  holder[last] = tokens.seal(token)
  return Buffer.from(JSON.stringify(value))
}

/** The token is readable, but valid only for the account and endpoint for which it was signed. */
export function boundTokens(key: Buffer, account: string, endpoint: string): PageTokens {
  const seal = (token: string) => {
    const mark = sign(key, JSON.stringify([account, endpoint, token])).subarray(0, 16)
    return `tgp1.${mark.toString('base64url')}.${Buffer.from(token).toString('base64url')}`
  }
  return {
    seal,
    open(sealed) {
      const token = Buffer.from(sealed.split('.')[2] ?? '', 'base64url').toString('utf8')
      return sameBytes(Buffer.from(sealed), Buffer.from(seal(token))) ? token : undefined
    },
  }
}
