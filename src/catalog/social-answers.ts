// Users, tweets and what comes with them, in the field names of the X API v2. Only what is asked for is there.
import type { JsonSchema } from './endpoint.ts'
import { boolean, component, free, integer, list, loose, object, string } from './schema.ts'

export const SOCIAL_COMPONENTS: Readonly<Record<string, JsonSchema>> = {
  SocialUser: object(
    {
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
    },
    ['id', 'name', 'username'],
  ),
  Tweet: object(
    {
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
    },
    ['id', 'text'],
  ),
  SocialIncludes: loose({
    users: list(component('SocialUser')),
    tweets: list(component('Tweet')),
    media: list(object({ media_key: string, type: string }, [])),
    places: list(free),
    polls: list(free),
  }),
}

/** What the source could not add, such as a tweet that is gone. */
const errors = list(loose({ title: string, detail: string, type: string, resource_id: string }))

export const userAnswer = object({ data: component('SocialUser'), includes: component('SocialIncludes'), errors }, [
  'data',
])

export const timelineAnswer = object(
  {
    data: list(component('Tweet')),
    includes: component('SocialIncludes'),
    meta: object({ result_count: integer, newest_id: string, oldest_id: string, next_token: string }, ['result_count']),
    errors,
  },
  ['data', 'meta'],
)
