// Sessions of the console. The browser holds 32 random bytes, the database their SHA-256. Sessions are ended in the database, so a copied
// cookie is worthless afterwards.
import { createHash } from 'node:crypto'
import { type Database, type Queryable, statement } from '../database/database.ts'
import { sameBytes, sign } from '../kernel/secret.ts'
import { newId, type World } from '../kernel/world.ts'
import type { OperatorRole } from './roles.ts'
import type { SessionView, WhoView } from './views.ts'

export interface SessionUse {
  readonly ip: string
  readonly userAgent: string
  /** The mark that an earlier login left in the browser, if there is one. */
  readonly browser?: string | undefined
}

export interface Person {
  readonly id: string
  readonly email: string
  /** In the whole gateway. */
  readonly role: OperatorRole | null
}

export interface Session {
  readonly id: string
  readonly person: Person
  readonly accounts: WhoView['accounts']
}

export interface Sessions {
  /** Returns the value of the cookie. */
  start(on: Queryable, person: string, visit: SessionUse): Promise<string>
  find(token: string): Promise<Session | undefined>
  list(person: string, current: string): Promise<SessionView[]>
  /** Returns false if the person has no such session. */
  end(person: string, id: string): Promise<boolean>
  endAll(on: Queryable, person: string): Promise<void>
}

const TOKEN_BYTES = 32
/** The length of the token in base64url. */
const TOKEN_CHARS = 43

const ALIVE = `s.seen_at > now() - interval '60 minutes' and s.created_at > now() - interval '24 hours'`
const INSERT = statement(
  'session_insert',
  'insert into session (id, digest, person_id, ip, user_agent) values ($1, $2, $3, $4, $5)',
)
const FIND = statement(
  'session_find',
  `select s.id, s.seen_at < now() - interval '60 seconds' as resting, p.id as person_id, p.email, p.operator_role,
     coalesce((select json_agg(json_build_object('id', a.id, 'name', a.name, 'role', m.role) order by a.name)
       from membership m join account a on a.id = m.account_id where m.person_id = p.id), '[]') as accounts
   from session s join person p on p.id = s.person_id where s.digest = $1 and ${ALIVE}`,
)
const SEEN = statement('session_seen', 'update session set seen_at = now() where id = $1')
const LIST = statement(
  'session_list',
  `select s.id, s.created_at, s.seen_at, s.ip, s.user_agent from session s where s.person_id = $1 and ${ALIVE}
   order by s.seen_at desc limit 200`,
)
const END = statement('session_end', 'delete from session where person_id = $1 and id = $2 returning id')
const END_ALL = statement('session_end_all', 'delete from session where person_id = $1')

interface FoundRow {
  id: string
  resting: boolean
  person_id: string
  email: string
  operator_role: OperatorRole | null
  accounts: WhoView['accounts']
}

export function createSessions({ database, world }: { database: Database; world: World }): Sessions {
  return {
    async start(on, person, { ip, userAgent }) {
      const token = world.bytes(TOKEN_BYTES).toString('base64url')
      await on.query(INSERT, [`ses_${newId(world)}`, digestOf(token), person, ip, userAgent])
      return token
    },
    async find(token) {
      if (token.length !== TOKEN_CHARS) return undefined
      const [row] = await database.query<FoundRow>(FIND, [digestOf(token)])
      if (!row) return undefined
      // Updated at most once a minute, which is precise enough for the idle timeout.
      if (row.resting) await database.query(SEEN, [row.id])
      return {
        id: row.id,
        person: { id: row.person_id, email: row.email, role: row.operator_role },
        accounts: row.accounts,
      }
    },
    async list(person, current) {
      const rows = await database.query<{
        id: string
        created_at: Date
        seen_at: Date
        ip: string
        user_agent: string
      }>(LIST, [person])
      return rows.map((row) => ({
        id: row.id,
        createdAt: row.created_at.toISOString(),
        lastSeenAt: row.seen_at.toISOString(),
        ip: row.ip,
        userAgent: row.user_agent,
        current: row.id === current,
      }))
    },
    async end(person, id) {
      const [row] = await database.query(END, [person, id])
      return row !== undefined
    },
    async endAll(on, person) {
      await on.query(END_ALL, [person])
    },
  }
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

// A known browser is one in which a person has logged in before. Only its own failed attempts make it wait, so guessing from elsewhere does
// not delay the person. The mark is not a credential: a thief still has to guess the password, as slowly as anybody.

export interface Browsers {
  mark(email: string): string
  /** The id by which the browser's attempts are counted; undefined unless the mark has our signature for this person. */
  recognise(mark: string | undefined, email: string): string | undefined
}

const ID_BYTES = 16

export function createBrowsers({ key, world }: { key: Buffer; world: World }): Browsers {
  const signatureOf = (id: string, email: string) => sign(key, `${id} ${email}`)
  return {
    mark(email) {
      const id = world.bytes(ID_BYTES).toString('base64url')
      return `${id}.${signatureOf(id, email).toString('base64url')}`
    },
    recognise(mark, email) {
      const [id = '', signature = ''] = (mark ?? '').split('.', 2)
      return sameBytes(Buffer.from(signature, 'base64url'), signatureOf(id, email)) ? id : undefined
    },
  }
}
