// Users and timelines from an API of the X v2 kind. Its answers are read and written anew: names, errors that come with
// status 200, pages smaller than the vendor gives, and `data` that is always there.
import type { DataEndpointSpec } from '../../catalog/endpoint.ts'
import { type NormalisedQuery, readQuery, vendorAddress } from '../../catalog/query.ts'
import type { DataTraits } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Usage } from '../../meter/usage.ts'
import { dataWords } from './data-words.ts'
import type { Exchange, OpenOptions, Target } from '../protocol.ts'
import { DATA_HEADERS, type DataAsk, jsonType } from './site-analytics.ts'
import { toPostNames, toTweetNames } from './social-names.ts'
import { type Continuation, readContinuation, writeContinuation } from './social-token.ts'

/** The vendor's least page. */
const PAGE_MIN = 5

type Json = Readonly<Record<string, unknown>>

/** `perRow`: the price has a rate for rows. A user is one, and so is each tweet of a timeline. */
export function readSocialAsk(
  spec: DataEndpointSpec,
  pathParams: Readonly<Record<string, string>>,
  rawQuery: string,
  { traits, perRow = false }: { readonly traits: DataTraits; readonly perRow?: boolean },
): DataAsk {
  // No parameter of these endpoints depends on the clock.
  const query = readQuery(spec, rawQuery, 0, pathParams)
  const asked = new Map(query)
  const token = asked.get('pagination_token')
  const since = token === undefined ? undefined : readContinuation(token, asked.get('id') ?? '')
  return {
    product: spec.product,
    stream: false,
    price: {},
    worst: usageOf(perRow, asked.has('max_results') ? pageSize(asked) : 1),
    query,
    sent: JSON.stringify(query),
    open: (target, options) => openSocial(spec, { asked, since, traits, perRow }, target, options),
  }
}

type Asked = ReadonlyMap<string, string>

interface SocialAsk {
  readonly asked: Asked
  readonly since: Continuation | undefined
  readonly traits: DataTraits
  readonly perRow: boolean
}

const usageOf = (perRow: boolean, rows: number): Usage => (perRow ? { call: 1, row: rows } : { call: 1 })

function openSocial(
  spec: DataEndpointSpec,
  { asked, since, traits, perRow }: SocialAsk,
  target: Target,
  { createdSeconds }: Pick<OpenOptions, 'createdSeconds'>,
): Exchange {
  const query = vendorQuery(asked, since)
  const worded = traits.names === 'post' ? query.map(toPostNames) : query
  return {
    call: { method: 'GET', url: target.baseUrl + vendorAddress(spec, worded), headers: DATA_HEADERS },
    answer(body, headers) {
      jsonType(headers)
      const got = readBody(body)
      const written = asked.has('max_results') ? timeline(got, asked, since) : user(got, asked)
      const usage = usageOf(perRow, Array.isArray(written.data) ? written.data.length : 1)
      return { body: JSON.stringify(written), contentType: 'application/json; charset=utf-8', usage }
    },
    said: (body) => dataWords(body, saidIn),
    retryAfterSeconds(headers) {
      const reset = Number(headers['x-rate-limit-reset'])
      return Number.isFinite(reset) && reset > createdSeconds ? Math.min(reset - createdSeconds, 3600) : undefined
    },
  }
}

function vendorQuery(asked: Asked, since: Continuation | undefined): NormalisedQuery {
  const query = new Map(asked)
  const name = asked.get('username')
  if (name !== undefined) query.set('username', name.replace(/^@/, ''))
  if (asked.has('max_results')) query.set('max_results', String(Math.max(pageSize(asked), PAGE_MIN)))
  if (since) {
    query.set('until_id', since.untilId)
    if (since.vendorToken === undefined) query.delete('pagination_token')
    else query.set('pagination_token', since.vendorToken)
  }
  return [...query]
}

const pageSize = (asked: Asked) => Number(asked.get('max_results'))

function user(got: Json, asked: Asked): Json {
  if (!isRecord(got.data)) throw carriedFault(got, asked) ?? garbled('there is no user in the answer')
  return { data: got.data, ...includes(got, asked) }
}

function timeline(got: Json, asked: Asked, since: Continuation | undefined): Json {
  // The vendor leaves `data` out of an empty page, and out of an answer that consists of errors.
  const all = got.data ?? []
  if (!Array.isArray(all)) throw garbled('the timeline is no array')
  const fault = got.data === undefined ? carriedFault(got, asked) : undefined
  if (fault) throw fault
  const data = all.slice(0, pageSize(asked))
  const ids = data.map((tweet: unknown) => (isRecord(tweet) && typeof tweet.id === 'string' ? tweet.id : undefined))
  if (ids.includes(undefined)) throw garbled('a tweet has no id')
  const meta: Record<string, unknown> = {}
  if (ids.length > 0) {
    meta.newest_id = ids[0]
    meta.oldest_id = ids.at(-1)
  }
  const next = nextToken(got, asked.get('id') ?? '', all.length > data.length ? ids.at(-1) : undefined, since)
  if (next !== undefined) meta.next_token = next
  meta.result_count = data.length
  return { data, ...includes(got, asked), meta }
}

function nextToken(
  got: Json,
  userId: string,
  untilId: string | undefined,
  since: Continuation | undefined,
): string | undefined {
  if (untilId !== undefined) return writeContinuation({ userId, untilId })
  const given = isRecord(got.meta) ? got.meta.next_token : undefined
  if (typeof given !== 'string' || given === '') return undefined
  return since ? writeContinuation({ userId, untilId: since.untilId, vendorToken: given }) : given
}

/** Only when the caller asked; the authors are there even when the page is empty. */
function includes(got: Json, asked: Asked): { includes?: Json } {
  const expansions = asked.get('expansions')?.split(',') ?? []
  if (expansions.length === 0) return {}
  const given = isRecord(got.includes) ? got.includes : undefined
  if (!given && !expansions.includes('author_id')) return {}
  return { includes: { ...(expansions.includes('author_id') ? { users: [] } : {}), ...given } }
}

/** The fault of an answer that has errors in place of data. */
function carriedFault(got: Json, asked: Asked): Fault | undefined {
  const error: unknown = Array.isArray(got.errors) ? got.errors[0] : undefined
  if (!isRecord(error)) return undefined
  const problem = String(error.type ?? '').replace(/^.*\//, '')
  const internal = { why: 'errors in place of data' }
  const name = asked.get('username')
  const who = name === undefined ? `the id ${asked.get('id')}` : `the name ${name.replace(/^@/, '')}`
  // A suspended user is "not found" by its type, and told apart only by the title.
  const hidden = problem === 'not-authorized-for-resource' || problem === 'resource-unavailable'
  if (hidden || error.title === 'Forbidden')
    return new Fault('access_denied', { message: `The user with ${who} is protected or suspended.`, internal })
  if (problem === 'resource-not-found')
    return new Fault('not_found', { message: `There is no user with ${who}.`, internal })
  return new Fault('upstream_failed', { internal })
}

function readBody(body: Buffer): Json {
  try {
    const value = toTweetNames(JSON.parse(body.toString('utf8')))
    if (isRecord(value)) return value
  } catch (cause) {
    throw new Fault('upstream_garbled', { cause })
  }
  throw garbled('the answer is no object')
}

const garbled = (why: string) => new Fault('upstream_garbled', { internal: { why } })

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function saidIn(value: Json): unknown {
  const first: unknown = Array.isArray(value.errors) ? value.errors[0] : undefined
  return (isRecord(first) ? (first.message ?? first.detail) : undefined) ?? value.detail ?? value.title
}
