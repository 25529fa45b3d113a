// Users and timelines from an API of the X v2 kind. Answers are parsed and rewritten, to normalize names, errors with
// status 200, pages smaller than the vendor's minimum, and a missing `data`.

import { createHash } from 'node:crypto'
import type { DataEndpointSpec } from '../../catalog/endpoint.ts'
import { type NormalisedQuery, readQuery, vendorAddress } from '../../catalog/query.ts'
import type { DataTraits } from '../../catalog/traits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isObject, type Json } from '../../kernel/json.ts'
import type { Usage } from '../../meter/usage.ts'
import { type Exchange, garbled, type OpenOptions, type Target } from '../protocol.ts'
import { dataWords } from './data-words.ts'
import { DATA_HEADERS, type DataRequest, jsonType } from './http-api.ts'

/** The vendor's smallest page size. */
const PAGE_MIN = 5

/** `perRow`: the price has a rate per row. A user is one row, and so is each tweet of a timeline. */
export function readSocialRequest(
  spec: DataEndpointSpec,
  pathParams: Readonly<Record<string, string>>,
  rawQuery: string,
  { traits, perRow = false }: { readonly traits: DataTraits; readonly perRow?: boolean },
): DataRequest {
  // The time is 0, because no parameter of these endpoints depends on the clock.
  const query = readQuery(spec, rawQuery, 0, { path: pathParams })
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

const usageOf = (perRow: boolean, rows: number): Usage => (perRow ? { call: 1, row: rows } : { call: 1 })

function openSocial(
  spec: DataEndpointSpec,
  {
    asked,
    since,
    traits,
    perRow,
  }: { asked: Asked; since: Continuation | undefined; traits: DataTraits; perRow: boolean },
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
    vendorError: (body) => dataWords(body, saidIn),
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
  if (!isObject(got.data)) throw carriedFault(got, asked) ?? garbled('there is no user in the answer')
  return { data: got.data, ...includes(got, asked) }
}

function timeline(got: Json, asked: Asked, since: Continuation | undefined): Json {
  // The vendor omits `data` from an empty page and from an answer that contains only errors.
  const all = got.data ?? []
  if (!Array.isArray(all)) throw garbled('the timeline is no array')
  const fault = got.data === undefined ? carriedFault(got, asked) : undefined
  if (fault) throw fault
  const data = all.slice(0, pageSize(asked))
  const ids = data.map((tweet: unknown) => (isObject(tweet) && typeof tweet.id === 'string' ? tweet.id : undefined))
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
  const given = isObject(got.meta) ? got.meta.next_token : undefined
  if (typeof given !== 'string' || given === '') return undefined
  return since ? writeContinuation({ userId, untilId: since.untilId, vendorToken: given }) : given
}

/** Only if the caller asked for it; the authors are included even if the page is empty. */
function includes(got: Json, asked: Asked): { includes?: Json } {
  const expansions = asked.get('expansions')?.split(',') ?? []
  if (expansions.length === 0) return {}
  const given = isObject(got.includes) ? got.includes : undefined
  if (!given && !expansions.includes('author_id')) return {}
  return { includes: { ...(expansions.includes('author_id') ? { users: [] } : {}), ...given } }
}

/** The fault of an answer that has errors instead of data. */
function carriedFault(got: Json, asked: Asked): Fault | undefined {
  const error: unknown = Array.isArray(got.errors) ? got.errors[0] : undefined
  if (!isObject(error)) return undefined
  const problem = String(error.type ?? '').replace(/^.*\//, '')
  const internal = { why: 'errors in place of data' }
  const name = asked.get('username')
  const who = name === undefined ? `the id ${asked.get('id')}` : `the name ${name.replace(/^@/, '')}`
  // A suspended user has the type "not found", and only the title tells it apart.
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
    if (isObject(value)) return value
  } catch (cause) {
    throw new Fault('upstream_garbled', { cause })
  }
  throw garbled('the answer is no object')
}

function saidIn(value: Json): unknown {
  const first: unknown = Array.isArray(value.errors) ? value.errors[0] : undefined
  return (isObject(first) ? (first.message ?? first.detail) : undefined) ?? value.detail ?? value.title
}

// The vendor is renaming tweets to posts. Callers always see the tweet names. A route whose trait `names` is `post`
// gets requests with the new names; answers are accepted with either.

const POST_NAME: Readonly<Record<string, string>> = {
  'tweet.fields': 'post.fields',
  edit_history_tweet_ids: 'edit_history_post_ids',
  most_recent_tweet_id: 'most_recent_post_id',
  note_tweet: 'note_post',
  pinned_tweet_id: 'pinned_post_id',
  referenced_tweets: 'referenced_posts',
  'referenced_tweets.id': 'referenced_posts.id',
  'referenced_tweets.id.author_id': 'referenced_posts.id.author_id',
  retweet_count: 'repost_count',
  tweet_count: 'post_count',
  tweets: 'posts',
}

const TWEET_NAME: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(POST_NAME).map(([tweet, post]) => [post, tweet]),
)

/** A query pair with the new names. */
function toPostNames([name, value]: readonly [string, string]): readonly [string, string] {
  const listed = name.endsWith('.fields') || name === 'expansions'
  return [POST_NAME[name] ?? name, listed ? renameEach(value) : value]
}

function renameEach(list: string): string {
  return list
    .split(',')
    .map((item) => POST_NAME[item] ?? item)
    .join(',')
}

/** An answer with the old names, whichever it came with. */
function toTweetNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toTweetNames)
  if (typeof value !== 'object' || value === null) return value
  const renamed: [string, unknown][] = Object.entries(value).map(([key, inner]) => [
    TWEET_NAME[key] ?? key,
    key === 'type' && inner === 'reposted' ? 'retweeted' : toTweetNames(inner),
  ])
  return Object.fromEntries(renamed)
}

// Our own continuation tokens for timelines. The vendor returns at least five tweets per page. If a caller asks for
// fewer, the vendor's token would skip the rest, so ours means "older than the last tweet returned". It contains
// nothing secret, only ids that the caller has seen.

interface Continuation {
  readonly userId: string
  /** Only tweets older than this one. */
  readonly untilId: string
  /** The vendor's own token within those bounds. */
  readonly vendorToken?: string
}

/** Vendor tokens contain no dot, so the prefix identifies ours. */
const PREFIX = 'tg1.'
const ID = /^[0-9]{1,19}$/
const VENDOR_TOKEN = /^[A-Za-z0-9_-]{1,512}$/

function writeContinuation({ userId, untilId, vendorToken = '' }: Continuation): string {
  const payload = `${userId}.${untilId}.${vendorToken}`
  return PREFIX + Buffer.from(`${checksum(payload)}${payload}`).toString('base64url')
}

/** Undefined for a vendor's token, which the vendor validates. */
function readContinuation(token: string, userId: string): Continuation | undefined {
  if (!/^tg\d+\./.test(token)) return undefined
  const text = token.startsWith(PREFIX) ? Buffer.from(token.slice(PREFIX.length), 'base64url').toString('latin1') : ''
  const payload = text.slice(CHECKSUM_CHARS)
  const [owner = '', untilId = '', vendorToken = ''] = payload.split('.')
  const sound =
    text.startsWith(checksum(payload)) &&
    ID.test(owner) &&
    ID.test(untilId) &&
    (vendorToken === '' || VENDOR_TOKEN.test(vendorToken))
  const read = { userId: owner, untilId, ...(vendorToken === '' ? {} : { vendorToken }) }
  if (!sound || writeContinuation(read) !== token || owner !== userId)
    throw invalid('pagination_token must be the meta.next_token of a page of this timeline.', 'pagination_token')
  return read
}

const CHECKSUM_CHARS = 6

/** Detects truncated or mistyped tokens. It does not prevent forgery, because a forged token gains nothing. */
function checksum(payload: string): string {
  return createHash('sha256').update(payload).digest('base64url').slice(0, CHECKSUM_CHARS)
}
