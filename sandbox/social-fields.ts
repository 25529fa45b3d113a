// Field selection, and the two vocabularies that the vendor speaks at present: tweets, and posts for those who ask so.
import { Refusal } from './refusal.ts'

type Json = Readonly<Record<string, unknown>>

const DEFAULTS = { user: ['id', 'name', 'username'], tweet: ['id', 'text', 'edit_history_tweet_ids'] } as const

/** The default fields, those asked for, and those that an expansion needs; a field without a value stays away. */
export function selectFields(
  query: URLSearchParams,
  kind: 'user' | 'tweet',
  fields: Json,
  extra: readonly string[] = [],
): Json {
  const asked = query.get(`${kind}.fields`) ?? (kind === 'tweet' ? query.get('post.fields') : null)
  const names = (asked ?? '').split(',').filter((name) => name !== '')
  for (const name of names)
    if (!/^[a-z_]{2,40}$/.test(name))
      throw new Refusal(400, `The \`${kind}.fields\` query parameter value [${name}] is not valid`, `${kind}.fields`)
  const wanted = new Set([...DEFAULTS[kind], ...names.map(oldName), ...extra.map(oldName)])
  return Object.fromEntries([...wanted].flatMap((name) => (name in fields ? [[name, fields[name]]] : [])))
}

/** Whoever asks in the new words is answered in them. */
export function speaksPosts(query: URLSearchParams): boolean {
  return query.has('post.fields') || /post/.test(`${query.get('expansions')} ${query.get('user.fields')}`)
}

const NEW_NAMES: Readonly<Record<string, string>> = {
  edit_history_tweet_ids: 'edit_history_post_ids',
  most_recent_tweet_id: 'most_recent_post_id',
  pinned_tweet_id: 'pinned_post_id',
  referenced_tweets: 'referenced_posts',
  retweet_count: 'repost_count',
  tweet_count: 'post_count',
  tweets: 'posts',
}
const OLD_NAMES = Object.fromEntries(Object.entries(NEW_NAMES).map(([old, now]) => [now, old]))

const oldName = (name: string) => OLD_NAMES[name] ?? name

export function renamed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renamed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [NEW_NAMES[name] ?? name, renamed(inner)]))
}
