// Timelines of the simulated network. A tweet follows from its author and its place in the timeline; ids hold the
// moment of writing, as the vendor's do, so they fall from the newest to the oldest.
import { dice, hash } from './seed.ts'
import { encodedId, type SocialUser } from './social-users.ts'

export interface Tweet {
  readonly id: string
  readonly kind: 'plain' | 'replied_to' | 'retweeted' | 'quoted'
  /** In the vendor's names, with every field there is. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** The newest tweet of everyone is of this day, whatever the clock says: 2026-11-10T12:00:00Z. */
const NEWEST_MS = 1_794_312_000_000
const ID_EPOCH_MS = 1_288_834_974_657
const HOUR_MS = 3_600_000

const THOUGHTS = [
  'Every toll is a promise kept twice.',
  'Measured the queue again today: shorter than the complaint about it.',
  'Tea first, timelines later.',
  'A page with five rows is still a page.',
  'Counting is easy. Counting once is the hard part.',
  'The road was free, the bridge was not.',
] as const

/** By place, 0 being the newest. */
export function tweetAt(user: SocialUser, place: number): Tweet {
  const name = user.username.toLowerCase()
  const die = dice(hash(`tweet ${name} ${place}`))
  const stepMs = HOUR_MS * (1 + (hash(`pace ${name}`) % 20))
  const ms = NEWEST_MS - place * stepMs - die.roll(stepMs / 2)
  const id = tweetId(ms, hash(`${name} ${place}`) % 4_194_304)
  const kind = die.pick([
    'plain',
    'plain',
    'plain',
    'plain',
    'plain',
    'replied_to',
    'replied_to',
    'retweeted',
    'quoted',
  ] as const)
  const other = die.pick(['walker137', 'chatty', 'solo'] as const)
  const referenced = tweetId(ms - 50 * HOUR_MS, die.roll(4_194_304))
  const text = `${kind === 'retweeted' ? `RT @${other}: ` : kind === 'replied_to' ? `@${other} ` : ''}${die.pick(THOUGHTS)} #${place + 1}`
  const mention = text.indexOf('@')
  return {
    id,
    kind,
    fields: {
      id,
      text,
      edit_history_tweet_ids: [id],
      author_id: user.id,
      conversation_id: kind === 'replied_to' ? referenced : id,
      created_at: utcText(ms),
      entities: {
        hashtags: [{ start: text.lastIndexOf('#'), end: text.length, tag: String(place + 1) }],
        ...(mention < 0 ? {} : { mentions: [{ start: mention, end: mention + other.length + 1, username: other }] }),
      },
      lang: 'en',
      possibly_sensitive: false,
      public_metrics: {
        retweet_count: die.roll(80),
        reply_count: die.roll(30),
        like_count: die.roll(900),
        quote_count: die.roll(12),
        bookmark_count: die.roll(40),
        impression_count: 1000 + die.roll(40_000),
      },
      reply_settings: 'everyone',
      source: 'Simulated Web App',
      ...(kind === 'plain' ? {} : { referenced_tweets: [{ type: kind, id: referenced }] }),
      ...(kind === 'replied_to' ? { in_reply_to_user_id: encodedId(other) } : {}),
      ...(kind === 'plain' && die.roll(4) === 0 ? { attachments: { media_keys: [`3_${id}`] } } : {}),
    },
  }
}

/** A tweet that another one points at: it can be included, but stands in no timeline. */
export function referencedTweet(id: string, authorId: string): Readonly<Record<string, unknown>> {
  return {
    id,
    text: 'An older simulated thought.',
    edit_history_tweet_ids: [id],
    author_id: authorId,
    created_at: utcText(msOfTweet(id)),
    lang: 'en',
  }
}

export const msOfTweet = (id: string) => Number(BigInt(id) >> 22n) + ID_EPOCH_MS

function tweetId(ms: number, low: number): string {
  return String((BigInt(ms - ID_EPOCH_MS) << 22n) | BigInt(low))
}

const utcText = (ms: number) => new Date(ms).toISOString()
