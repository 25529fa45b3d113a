// One page of a timeline, newest first.
import { Refusal } from './refusal.ts'
import { hash } from './seed.ts'
import { msOfTweet, type Tweet, tweetAt } from './social-tweets.ts'
import type { SocialUser } from './social-users.ts'

export interface Page {
  readonly tweets: readonly Tweet[]
  readonly meta: Readonly<Record<string, string | number>>
}

const PAGE_MIN = 5
const PAGE_MAX = 100

export function readPage(query: URLSearchParams, user: SocialUser): Page {
  const size = readSize(query.get('max_results'))
  const after = readToken(query.get('pagination_token'), user)
  const excluded = (query.get('exclude') ?? '').split(',')
  const passes = (tweet: Tweet) =>
    !(tweet.kind === 'replied_to' && excluded.includes('replies')) &&
    !(tweet.kind === 'retweeted' && excluded.includes('retweets'))
  const cut: Tweet[] = []
  let more = false
  for (let place = 0; place < user.tweets && !more; place++) {
    const tweet = tweetAt(user, place)
    if (after !== undefined && BigInt(tweet.id) >= after) continue
    if (!inBounds(query, tweet) || !(user.patchy || passes(tweet))) continue
    if (cut.length === size) more = true
    else cut.push(tweet)
  }
  const tweets = cut.filter(passes)
  return {
    tweets,
    meta: {
      ...(tweets.length === 0 ? {} : { newest_id: tweets[0]?.id ?? '', oldest_id: tweets.at(-1)?.id ?? '' }),
      result_count: tweets.length,
      ...(more ? { next_token: writeToken(cut.at(-1)?.id ?? '0', user) } : {}),
      ...(after === undefined ? {} : { previous_token: writeToken(String(after), user) }),
    },
  }
}

function readSize(given: string | null): number {
  const size = Number(given ?? 10)
  if (!Number.isInteger(size) || size < PAGE_MIN || size > PAGE_MAX)
    throw new Refusal(
      400,
      `The \`max_results\` query parameter value [${given}] is not between 5 and 100`,
      'max_results',
    )
  return size
}

function inBounds(query: URLSearchParams, tweet: Tweet): boolean {
  const id = BigInt(tweet.id)
  const [since, until] = [query.get('since_id'), query.get('until_id')]
  const [start, end] = [query.get('start_time'), query.get('end_time')]
  return (
    (since === null || id > BigInt(since)) &&
    (until === null || id < BigInt(until)) &&
    (start === null || msOfTweet(tweet.id) >= Date.parse(start)) &&
    (end === null || msOfTweet(tweet.id) < Date.parse(end))
  )
}

/** Opaque to callers: the last id of the page before, in base 36, with a check that binds it to the user. */
function writeToken(id: string, user: SocialUser): string {
  return `7140${BigInt(id).toString(36)}${binding(id, user)}`
}

function readToken(token: string | null, user: SocialUser): bigint | undefined {
  if (token === null) return undefined
  const match = /^7140([0-9a-z]{1,13})([0-9a-f]{8})$/.exec(token)
  const id = match?.[1] ? [...match[1]].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n) : 0n
  if (!match || match[2] !== binding(String(id), user))
    throw new Refusal(400, `The \`pagination_token\` query parameter value [${token}] is not valid`, 'pagination_token')
  return id
}

const binding = (id: string, user: SocialUser) => hash(`${user.id} ${id}`).toString(16).padStart(8, '0')
