// The three social-data endpoints, in the field names of the X API v2. All are one product with one price.
import { words } from '../kernel/words.ts'
import {
  boolean,
  component,
  type DataEndpointSpec,
  free,
  having,
  integer,
  type JsonSchema,
  list,
  loose,
  object,
  string,
} from './endpoint.ts'
import { integer as count, type Field, inPath, text } from './field.ts'

// Users, tweets and what comes with them, in the field names of the X API v2. Only what is asked for is there.

export const SOCIAL_COMPONENTS: Readonly<Record<string, JsonSchema>> = {
  SocialUser: having('id name username', {
    id: string,
    name: string,
    username: { ...string, description: 'Without a leading @.' },
    created_at: { type: 'string', format: 'date-time' },
    description: string,
    entities: free,
    location: string,
    pinned_tweet_id: string,
    profile_banner_url: string,
    profile_image_url: string,
    protected: boolean,
    public_metrics: loose({
      followers_count: integer,
      following_count: integer,
      tweet_count: integer,
      listed_count: integer,
      like_count: integer,
      media_count: integer,
    }),
    url: string,
    verified: boolean,
    verified_type: string,
  }),
  Tweet: having('id text', {
    id: string,
    text: string,
    attachments: loose({ media_keys: list(string), poll_ids: list(string) }),
    author_id: string,
    conversation_id: string,
    created_at: { type: 'string', format: 'date-time' },
    edit_history_tweet_ids: list(string),
    entities: free,
    in_reply_to_user_id: string,
    lang: string,
    possibly_sensitive: boolean,
    public_metrics: loose({
      retweet_count: integer,
      reply_count: integer,
      like_count: integer,
      quote_count: integer,
      bookmark_count: integer,
      impression_count: integer,
    }),
    referenced_tweets: list(
      object({ type: { type: 'string', examples: ['retweeted', 'quoted', 'replied_to'] }, id: string }),
    ),
    source: string,
  }),
  SocialIncludes: loose({
    users: list(component('SocialUser')),
    tweets: list(component('Tweet')),
    media: list(loose({ media_key: string, type: string })),
    places: list(free),
    polls: list(free),
  }),
}

/** What the source could not add, such as a tweet that is gone. */
const errors = list(loose({ title: string, detail: string, type: string, resource_id: string }))

const userAnswer = having('data', { data: component('SocialUser'), includes: component('SocialIncludes'), errors })

const timelineAnswer = having('data meta', {
  data: list(component('Tweet')),
  includes: component('SocialIncludes'),
  meta: having('result_count', { result_count: integer, newest_id: string, oldest_id: string, next_token: string }),
  errors,
})

const USER_FIELDS =
  'affiliation confirmed_email connection_status created_at description entities id is_identity_verified location most_recent_tweet_id name parody pinned_tweet_id profile_banner_url profile_image_url protected public_metrics receives_your_dm subscribes_to_you subscription subscription_type url username verified verified_followers_count verified_type withheld'
const TWEET_FIELDS =
  'article attachments author_id card_uri community_id context_annotations conversation_id created_at display_text_range edit_controls edit_history_tweet_ids entities geo id in_reply_to_user_id lang media_metadata non_public_metrics note_tweet organic_metrics possibly_sensitive promoted_metrics public_metrics referenced_tweets reply_settings scopes source text withheld'
const MEDIA_FIELDS =
  'alt_text duration_ms height media_key non_public_metrics organic_metrics preview_image_url promoted_metrics public_metrics type url variants width'
const PLACE_FIELDS = 'contained_within country country_code full_name geo id name place_type'
const POLL_FIELDS = 'duration_minutes end_datetime id options voting_status'
const USER_EXPANSIONS = 'affiliation most_recent_tweet_id pinned_tweet_id'
const TWEET_EXPANSIONS =
  'article.cover_media article.media_entities attachments.media_keys attachments.media_source_tweet attachments.poll_ids author_id edit_history_tweet_ids entities.mentions.username entities.note.mentions.username geo.place_id in_reply_to_user_id referenced_tweets.id referenced_tweets.id.author_id'

const listField = (description: string, example: string, names: string) =>
  ({ kind: 'list', description, example, allowed: words(names) }) as const

const ID_PATTERN = '^[0-9]{1,19}$'

const userId = {
  ...inPath('The user id, as `data.id` of a user.', '2244994945'),
  pattern: ID_PATTERN,
  form: 'a user id of 1 to 19 digits',
}

const tweetId = (description: string) => ({
  ...text(description, '1460323737035677698'),
  pattern: ID_PATTERN,
  form: 'a tweet id of 1 to 19 digits',
})

const time = (description: string) => ({
  ...text(description, '2026-11-01T00:00:00Z'),
  pattern: '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,3})?Z$',
  form: 'a UTC time as YYYY-MM-DDTHH:mm:ssZ',
})

const userFields = listField('Fields of users besides id, name and username.', 'created_at,public_metrics', USER_FIELDS)
const tweetFields = listField('Fields of tweets besides id and text.', 'created_at,public_metrics', TWEET_FIELDS)

const userParams = {
  'user.fields': userFields,
  expansions: listField('Objects to add under `includes`.', 'pinned_tweet_id', USER_EXPANSIONS),
  'tweet.fields': tweetFields,
}

const username = {
  ...text('The user name, with or without a leading @.', 'jack'),
  required: true,
  pattern: '^@?[A-Za-z0-9_]{1,15}$',
  form: '1 to 15 letters, digits or underscores, with or without one leading @',
} as const

function social(
  path: string,
  vendorPath: string,
  words: Pick<DataEndpointSpec, 'title' | 'description' | 'returns' | 'answer' | 'tool'>,
  params: Readonly<Record<string, Field>>,
): DataEndpointSpec {
  return {
    ...words,
    id: `social/${path}`,
    method: 'GET',
    path: `/v1/social/${path}`,
    aliases: [],
    tag: 'Social data',
    surface: 'native',
    sells: 'data',
    params,
    product: 'socialapi',
    restriction: 'socialapi',
    protocol: 'social-v2',
    vendorPath,
    pairs: [],
    modes: [],
    rowsMax: 100,
  }
}

export const SOCIAL: readonly DataEndpointSpec[] = [
  social(
    'users',
    '2/users/by/username/{username}',
    {
      title: 'A user by name',
      description: 'Looks up a profile by user name: the way from a name to the id that timelines need.',
      returns: '`{data: user}`, without an envelope; `includes` when expansions were asked for.',
      answer: userAnswer,
      tool: { name: 'social_user_by_name', advice: 'Begin here when you have a handle.' },
    },
    { username, ...userParams },
  ),
  social(
    'users/{id}',
    '2/users/{id}',
    {
      title: 'A user by id',
      description: 'Looks up a profile by user id.',
      returns: '`{data: user}`, without an envelope; `includes` when expansions were asked for.',
      answer: userAnswer,
      tool: { name: 'social_user_by_id' },
    },
    { id: userId, ...userParams },
  ),
  social(
    'users/{id}/tweets',
    '2/users/{id}/tweets',
    {
      title: 'The timeline of a user',
      description: 'Tweets of a user, newest first, in pages.',
      returns:
        '`{data: [tweet], includes?, meta}`, without an envelope. While `meta.next_token` is present there is another page: send it as `pagination_token`, with the other parameters unchanged.',
      answer: timelineAnswer,
      tool: { name: 'social_timeline', advice: 'It takes the id, not the handle.' },
    },
    {
      id: userId,
      max_results: { ...count('Most tweets on a page.', 1, 100, '10'), example: '25' },
      pagination_token: text('`meta.next_token` of the page before.', '7140dibdnow9c7btw423x5c1g0vuoz1jp8z6tnfb5xe2'),
      exclude: listField('Kinds of tweets to leave out.', 'replies,retweets', 'replies retweets'),
      expansions: listField('Objects to add under `includes`.', 'author_id', TWEET_EXPANSIONS),
      'tweet.fields': tweetFields,
      'user.fields': { ...userFields, description: 'Fields of the users under `includes`.' },
      'media.fields': listField('Fields of media under `includes`.', 'url,type', MEDIA_FIELDS),
      'place.fields': listField('Fields of places under `includes`.', 'full_name', PLACE_FIELDS),
      'poll.fields': listField('Fields of polls under `includes`.', 'options', POLL_FIELDS),
      start_time: time('Only tweets of this moment or later.'),
      end_time: time('Only tweets before this moment.'),
      since_id: tweetId('Only tweets newer than this one.'),
      until_id: tweetId('Only tweets older than this one.'),
    },
  ),
]
