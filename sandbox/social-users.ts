// The people of the simulated social network. Almost every name exists, and most ids can be computed back into their
// name, so that nothing needs to be stored; a few names and shapes of names stand for a condition.
import { dice, hash } from './seed.ts'

export interface SocialUser {
  readonly id: string
  /** As it was first written. */
  readonly username: string
  readonly state: 'open' | 'protected' | 'suspended' | 'missing'
  readonly tweets: number
  /** Pages are cut before exclusions are made, so that they come out short, or even empty. */
  readonly patchy: boolean
}

const TWEETS_BY_NAME: Readonly<Record<string, number>> = { walker137: 137, quiet: 0, chatty: 3200, solo: 1 }

/** The id in the documentation's examples, which people try first, with the name that is its real owner's. */
const DOCUMENTED = { id: '2244994945', username: 'XDevelopers' }

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789_'
/** Names up to this length are written into their id. */
const ENCODED_MAX = 10
/** Only one number in 97 is an id, as most numbers are nobody's. */
const SPREAD = 97n
/** Longer names get an id up here, and are remembered. */
const REMEMBERED_FROM = 7_000_000_000_000_000_000n
const REMEMBERED_MAX = 10_000

export class SocialUsers {
  readonly #names = new Map<string, string>()

  byName(username: string): SocialUser {
    const name = username.toLowerCase()
    if (name === DOCUMENTED.username.toLowerCase()) return describe(DOCUMENTED.id, username)
    return describe(name.length <= ENCODED_MAX ? encodedId(name) : this.#remember(name), username)
  }

  byId(id: string): SocialUser {
    if (id === DOCUMENTED.id) return describe(id, DOCUMENTED.username)
    return describe(id, this.#names.get(id) ?? decode(BigInt(id)) ?? 'nobody')
  }

  #remember(name: string): string {
    const id = String(REMEMBERED_FROM + BigInt(hash(name)) * 500_000_000n + BigInt(hash(`${name}!`) % 499_999_999))
    if (this.#names.size >= REMEMBERED_MAX) this.#names.clear()
    this.#names.set(id, name)
    return id
  }
}

function describe(id: string, username: string): SocialUser {
  const name = username.toLowerCase()
  const state = /^(nobody|missing|ghost)/.test(name)
    ? 'missing'
    : /^(locked|private|protected)/.test(name)
      ? 'protected'
      : /^(banned|suspended)/.test(name)
        ? 'suspended'
        : 'open'
  const tweets = TWEETS_BY_NAME[name] ?? 20 + (hash(`tweets ${name}`) % 380)
  return { id, username, state, tweets, patchy: name === 'patchy' }
}

/** The id of a name of at most ten characters: a number without zeros in base 37, spread out with a check. */
export function encodedId(name: string): string {
  let number = 0n
  for (const letter of name) number = number * 37n + BigInt(LETTERS.indexOf(letter) + 1)
  return String(number * SPREAD + check(number))
}

function decode(id: bigint): string | undefined {
  let number = id / SPREAD
  if (number === 0n || id % SPREAD !== check(number)) return undefined
  let name = ''
  while (number > 0n) {
    const digit = (number - 1n) % 37n
    name = LETTERS[Number(digit)] + name
    number = (number - 1n - digit) / 37n
  }
  return name.length <= ENCODED_MAX ? name : undefined
}

const check = (number: bigint) => (number * 31n + 7n) % SPREAD

const FIRST = ['Ada', 'Noor', 'Kenji', 'Lucia', 'Tomas', 'Amara', 'Ivo', 'Mei', 'Rafael', 'Signe'] as const
const LAST = ['Okafor', 'Lindqvist', 'Tanaka', 'Moreau', 'Silva', 'Novak', 'Haddad', 'Weber', 'Rossi', 'Chen'] as const

/** The profile in the vendor's names, with every field there is. */
export function profile(user: SocialUser, pinnedId: string | undefined): Readonly<Record<string, unknown>> {
  const die = dice(hash(`profile ${user.username.toLowerCase()}`))
  const address = `https://people.example/${user.username.toLowerCase()}`
  const verified = die.roll(3) === 0
  return {
    id: user.id,
    name: `${die.pick(FIRST)} ${die.pick(LAST)}`,
    username: user.username,
    created_at: `20${10 + die.roll(14)}-0${1 + die.roll(9)}-1${die.roll(10)}T08:30:00.000Z`,
    description: 'A simulated person who writes about toll roads, tea and timelines.',
    entities: { url: { urls: [{ start: 0, end: 23, url: 'https://t.example/abc', expanded_url: address }] } },
    location: die.pick(['Lisbon', 'Osaka', 'Nairobi', 'Oslo', 'Montevideo'] as const),
    ...(pinnedId === undefined ? {} : { pinned_tweet_id: pinnedId, most_recent_tweet_id: pinnedId }),
    profile_banner_url: `${address}/banner.png`,
    profile_image_url: `${address}/face.png`,
    protected: user.state === 'protected',
    public_metrics: {
      followers_count: die.roll(90_000),
      following_count: die.roll(3000),
      tweet_count: user.tweets,
      listed_count: die.roll(400),
      like_count: die.roll(20_000),
      media_count: die.roll(500),
    },
    url: 'https://t.example/abc',
    verified,
    verified_type: verified ? 'blue' : 'none',
    verified_followers_count: die.roll(900),
    is_identity_verified: verified,
    parody: false,
    subscription_type: verified ? 'Premium' : 'None',
  }
}
