// The social-data vendor, in the manner of the X API v2: default fields and chosen ones, expansions, pages of at least
// five, and errors that come with status 200.
import { answerData, dataTriggers } from './data-faults.ts'
import { Refusal } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import { renamed, selectFields, speaksPosts } from './social-fields.ts'
import { type Page, readPage } from './social-page.ts'
import { referencedTweet, type Tweet, tweetAt } from './social-tweets.ts'
import { profile, type SocialUser, SocialUsers } from './social-users.ts'

type Json = Readonly<Record<string, unknown>>

const PATH = /^\/social\/2\/users\/(?:by\/username\/(\w{1,15})|(\d{1,19})(\/tweets)?)$/
const MISSPELT = /^\/social\/2\/users\/by\/username\/([^/]{1,100})$/
/** Ids that misbehave, since a timeline is asked for by id: 99000500 answers with status 500. */
const FAULT_ID = /^99000([45]\d\d)$/
const FAULT_IDS: Readonly<Record<string, string>> = {
  99000001: 'fault_slow',
  99000002: 'fault_html',
  99000003: 'fault_cut',
}

/** Made anew for each sandbox, because it remembers long names. */
export function openSocialRoom(): Room {
  const users = new SocialUsers()
  return {
    name: 'social-v2',
    match: (method, path) => method === 'GET' && path.startsWith('/social/'),
    async serve(_req, res, ctx) {
      const found = PATH.exec(ctx.path)
      const misspelt = found ? undefined : MISSPELT.exec(ctx.path)?.[1]
      if (misspelt !== undefined) {
        const why = `The \`username\` query parameter value [${misspelt}] does not match ^[A-Za-z0-9_]{1,15}$`
        return ctx.json(400, invalidRequest(new Refusal(400, why, 'username')))
      }
      if (!found) return ctx.json(404, problem(404, 'There is nothing at this address.'))
      const [, username, id = '', timeline] = found
      const faulty = FAULT_ID.exec(id)
      const name = username ?? FAULT_IDS[id] ?? (faulty ? `fault_${faulty[1]}` : '')
      const triggers = dataTriggers(name, ctx)
      if (triggers.status?.name === '429') {
        const resetSeconds = Math.ceil(ctx.world.nowMs() / 1000) + 30
        res.setHeader('x-rate-limit-limit', '900')
        res.setHeader('x-rate-limit-remaining', '0')
        res.setHeader('x-rate-limit-reset', String(resetSeconds))
      }
      await answerData(res, ctx, { triggers, errorBody: problem }, () => {
        try {
          const user = username === undefined ? users.byId(id) : users.byName(username)
          const given =
            username === undefined ? { parameter: 'id', value: id } : { parameter: 'username', value: username }
          const value =
            unreachable(user, given, timeline !== undefined) ??
            (timeline === undefined ? profileOf(ctx, user) : tweetsOf(ctx, users, user))
          return { status: 200, value: speaksPosts(ctx.query) ? renamed(value) : value }
        } catch (error) {
          if (!(error instanceof Refusal)) throw error
          return { status: error.status, value: invalidRequest(error) }
        }
      })
    },
  }
}

const whole = (user: SocialUser) => profile(user, user.tweets > 0 ? tweetAt(user, 0).id : undefined)

function profileOf({ query }: RoomContext, user: SocialUser): Json {
  const data = selectFields(query, 'user', whole(user))
  const expanded = expansionsOf(query).some((name) => /^(pinned|most_recent)_/.test(name))
  if (!expanded || user.tweets === 0) return { data }
  return { data, includes: { tweets: [selectFields(query, 'tweet', tweetAt(user, 0).fields)] } }
}

const expansionsOf = (query: URLSearchParams) =>
  (query.get('expansions') ?? '').split(',').filter((name) => name !== '')

function tweetsOf({ query }: RoomContext, users: SocialUsers, user: SocialUser): Json {
  const page = readPage(query, user)
  const { result_count: count } = page.meta
  if (count === 0) return { meta: page.meta }
  const expansions = expansionsOf(query)
  const extra = expansions.map((name) => name.replace('referenced_posts', 'referenced_tweets').split('.')[0] ?? '')
  return {
    data: page.tweets.map((tweet) => selectFields(query, 'tweet', tweet.fields, extra)),
    ...(expansions.length === 0 ? {} : { includes: included(query, users, user, page) }),
    meta: page.meta,
  }
}

function included(query: URLSearchParams, users: SocialUsers, author: SocialUser, page: Page): Json {
  const expansions = expansionsOf(query)
  const wants = (name: string) => expansions.includes(name) || expansions.includes(name.replace('tweets', 'posts'))
  const people = new Map<string, SocialUser>()
  const meet = (user: SocialUser) => people.set(user.id, user)
  if (wants('author_id')) meet(author)
  for (const { fields } of page.tweets) {
    if (wants('in_reply_to_user_id') && typeof fields.in_reply_to_user_id === 'string')
      meet(users.byId(fields.in_reply_to_user_id))
    if (wants('entities.mentions.username')) for (const name of mentioned(fields)) meet(users.byName(name))
  }
  const referenced = wants('referenced_tweets.id') ? page.tweets.flatMap(references) : []
  const media = wants('attachments.media_keys') ? page.tweets.flatMap(mediaOf) : []
  return {
    ...(people.size === 0
      ? {}
      : { users: [...people.values()].map((user) => selectFields(query, 'user', whole(user))) }),
    ...(referenced.length === 0
      ? {}
      : { tweets: referenced.map((id) => selectFields(query, 'tweet', referencedTweet(id, author.id))) }),
    ...(media.length === 0 ? {} : { media }),
  }
}

function references(tweet: Tweet): string[] {
  const list = tweet.fields.referenced_tweets as readonly { id: string }[] | undefined
  return (list ?? []).map(({ id }) => id)
}

function mediaOf(tweet: Tweet): Json[] {
  const attached = tweet.fields.attachments as { media_keys: readonly string[] } | undefined
  return (attached?.media_keys ?? []).map((key) => ({ media_key: key, type: 'photo' }))
}

function mentioned(fields: Json): string[] {
  const entities = fields.entities as { mentions?: readonly { username: string }[] } | undefined
  return (entities?.mentions ?? []).map(({ username }) => username)
}

interface Given {
  readonly parameter: string
  readonly value: string
}

/** Status 200 with errors and without data, for those who are not there or not to be seen. */
function unreachable(user: SocialUser, { parameter, value }: Given, timeline: boolean): Json | undefined {
  const about = { value, resource_type: 'user', parameter, resource_id: value }
  const error = (title: string, detail: string, type: string) => ({
    errors: [{ ...about, detail, title, type: `https://api.twitter.com/2/problems/${type}` }],
  })
  if (user.state === 'missing')
    return error('Not Found Error', `Could not find user with ${parameter}: [${value}].`, 'resource-not-found')
  if (user.state === 'suspended')
    return error('Forbidden', `User has been suspended: [${value}].`, 'resource-not-found')
  if (user.state === 'protected' && timeline)
    return error(
      'Authorization Error',
      `Sorry, you are not authorized to see the user with ${parameter}: [${value}].`,
      'not-authorized-for-resource',
    )
  return undefined
}

const problem = (status: number, message: string): Json => ({
  title: status === 429 ? 'Too Many Requests' : 'Error',
  detail: message,
  type: 'about:blank',
  status,
})

const invalidRequest = (error: Refusal): Json => ({
  errors: [{ parameters: { [error.param ?? 'id']: [] }, message: error.message }],
  title: 'Invalid Request',
  detail: 'One or more parameters to your request was invalid.',
  type: 'https://api.twitter.com/2/problems/invalid-request',
})
