// The vendor is renaming tweets to posts. Callers always see the tweet names; a route whose trait `names` is `post` is
// asked with the new ones, and whichever names come back are read.

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

/** A query pair in the new names. */
export function toPostNames([name, value]: readonly [string, string]): readonly [string, string] {
  const listed = name.endsWith('.fields') || name === 'expansions'
  return [POST_NAME[name] ?? name, listed ? renameEach(value) : value]
}

function renameEach(list: string): string {
  return list
    .split(',')
    .map((item) => POST_NAME[item] ?? item)
    .join(',')
}

/** An answer in the old names, whichever it came in. */
export function toTweetNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toTweetNames)
  if (typeof value !== 'object' || value === null) return value
  const renamed: [string, unknown][] = Object.entries(value).map(([key, inner]) => [
    TWEET_NAME[key] ?? key,
    key === 'type' && inner === 'reposted' ? 'retweeted' : toTweetNames(inner),
  ])
  return Object.fromEntries(renamed)
}
