// Profiles and timelines as people read them. Pictures are not loaded: they live on other servers.
import { formatCompact, formatTime } from '../../format.ts'
import { Badge } from '../../ui/page.tsx'

interface User {
  id: string
  name: string
  username: string
  description?: string
  location?: string
  verified?: boolean
  protected?: boolean
  created_at?: string
  public_metrics?: Record<string, number>
}

interface Tweet {
  id: string
  text: string
  created_at?: string
  author_id?: string
  public_metrics?: Record<string, number>
}

type SocialShape = { users: User[] } | { tweets: Tweet[] } | undefined

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

export function socialShape(body: unknown): SocialShape {
  const data = isObject(body) ? body.data : undefined
  const list = Array.isArray(data) ? data : [data]
  if (list.length === 0 || !list.every(isObject)) return undefined
  if (list.every((one) => typeof one.username === 'string')) return { users: list as unknown as User[] }
  if (list.every((one) => typeof one.text === 'string' && typeof one.id === 'string'))
    return { tweets: list as unknown as Tweet[] }
  return undefined
}

export function SocialView({ shape }: { shape: NonNullable<SocialShape> }) {
  if ('users' in shape) return shape.users.map((user) => <Profile key={user.id} user={user} />)
  return (
    <ul className="tweets">
      {shape.tweets.map((tweet) => (
        <li key={tweet.id}>
          <p className="turn-plain">{tweet.text}</p>
          <p className="receipt">
            {tweet.created_at ? <span>{formatTime(tweet.created_at)}</span> : null}
            <Metrics metrics={tweet.public_metrics} />
          </p>
        </li>
      ))}
    </ul>
  )
}

function Profile({ user }: { user: User }) {
  return (
    <div className="profile">
      <span className="profile-face" aria-hidden="true">
        {user.name.slice(0, 1)}
      </span>
      <div className="stack-tight">
        <p>
          <b>{user.name}</b> <span className="muted">@{user.username}</span>{' '}
          {user.verified ? <Badge tone="good">verified</Badge> : null}
          {user.protected ? <Badge tone="warn">protected</Badge> : null}
        </p>
        {user.description ? <p className="turn-plain">{user.description}</p> : null}
        <p className="receipt">
          {user.location ? <span>{user.location}</span> : null}
          {user.created_at ? <span>since {user.created_at.slice(0, 10)}</span> : null}
          <Metrics metrics={user.public_metrics} />
          <span>
            id <code>{user.id}</code>
          </span>
        </p>
      </div>
    </div>
  )
}

const COUNTED: Record<string, string> = {
  tweet_count: 'tweets',
  like_count: 'likes',
  retweet_count: 'retweets',
  reply_count: 'replies',
  quote_count: 'quotes',
  bookmark_count: 'bookmarks',
  impression_count: 'views',
  listed_count: 'lists',
}

function Metrics({ metrics }: { metrics: Record<string, number> | undefined }) {
  return Object.entries(metrics ?? {})
    .filter(([, count]) => typeof count === 'number')
    .map(([name, count]) => (
      <span key={name}>
        {formatCompact(count)} {COUNTED[name] ?? name.replace(/_count$/, '').replaceAll('_', ' ')}
      </span>
    ))
}
