// Login flows that are started and finished once in the same browser: single sign-on, the challenge of a passkey, a
// login link. The browser (or the link) holds 32 random bytes, the database their SHA-256. Finishing deletes the row,
// so a flow can be finished only once.
import { createHash } from 'node:crypto'
import { type Database, type Queryable, sql } from '../database/database.ts'
import type { World } from '../kernel/world.ts'

interface Flow<T> {
  readonly person: string | null
  readonly data: T
}

interface FlowOptions {
  readonly person?: string | undefined
  readonly minutes: number
  /** The transaction of what makes it. */
  readonly on?: Queryable
}

export interface Flows {
  /** Returns the token that finishes it. */
  begin(kind: string, data: object, options: FlowOptions): Promise<string>
  /** Finishes a flow; undefined if it is unknown, finished or expired. */
  finish<T>(kind: string, token: string | undefined, on?: Queryable): Promise<Flow<T> | undefined>
  /** Reads a flow without finishing it. */
  look<T>(kind: string, token: string | undefined): Promise<Flow<T> | undefined>
  /** False if this id was seen before: prevents the replay of tokens from others. */
  firstSeen(on: Queryable, id: string, minutes: number): Promise<boolean>
}

const BEGIN = sql('flow_begin')`
  insert into login_flow (digest, kind, person_id, data, expires_at) values ($1, $2, $3, $4, now() + make_interval(mins => $5))`
const FINISH = sql('flow_finish')`
  delete from login_flow where digest = $1 and kind = $2 returning person_id, data, expires_at > now() as alive`
const LOOK = sql('flow_look')`
  select person_id, data, expires_at > now() as alive from login_flow where digest = $1 and kind = $2`
const SEEN = sql('flow_seen')`
  insert into login_flow (digest, kind, data, expires_at) values ($1, 'seen', '{}', now() + make_interval(mins => $2))
   on conflict do nothing returning kind`
const TOKEN_BYTES = 32
const TOKEN = /^[\w-]{43}$/

export function createFlows({ database, world }: { database: Database; world: World }): Flows {
  async function read<T>(
    text: typeof LOOK,
    { kind, token, on = database }: { kind: string; token: string | undefined; on?: Queryable | undefined },
  ): Promise<Flow<T> | undefined> {
    if (token === undefined || !TOKEN.test(token)) return undefined
    const found = await on.query<{ person_id: string | null; data: T; alive: boolean }>(text, [digestOf(token), kind])
    const [row] = found
    return row?.alive ? { person: row.person_id, data: row.data } : undefined
  }

  return {
    async begin(kind, data, { person, minutes, on = database }) {
      const token = world.bytes(TOKEN_BYTES).toString('base64url')
      await on.query(BEGIN, [digestOf(token), kind, person ?? null, JSON.stringify(data), minutes])
      return token
    },
    finish: (kind, token, on) => read(FINISH, { kind, token, on }),
    look: (kind, token) => read(LOOK, { kind, token }),
    async firstSeen(on, id, minutes) {
      const [row] = await on.query(SEEN, [digestOf(id), minutes])
      return row !== undefined
    },
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
