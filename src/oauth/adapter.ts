// Where the library for OAuth keeps what it must not forget: in our database, so that any process goes on with what another began. Ids of
// codes and tokens are secrets, and only their digests are written.
import { errors } from 'oidc-provider'
import { tokenDigest } from '../admission/api-key.ts'
import { type Database, statement } from '../database/database.ts'

type Payload = Record<string, unknown> & { grantId?: string; jti?: string }

interface Row {
  readonly payload: Payload
  readonly consumed: number | null
}

/** Whoever registers and never connects is forgotten; a program that is in use is written anew with each grant. */
const CLIENT_SECONDS = 86_400

const UPSERT = statement(
  'oauth_upsert',
  `insert into oauth_object (model, digest, payload, grant_id, expires_at, origin)
   values ($1, $2, $3, $4, now() + make_interval(secs => $5), $6)
   on conflict (model, digest) do update set payload = excluded.payload, grant_id = excluded.grant_id, expires_at = excluded.expires_at`,
)
const LIVES = `(o.expires_at is null or o.expires_at > now())`
const SELECT = `select o.payload, extract(epoch from o.consumed_at)::float8 as consumed from oauth_object o`
const FIND = statement('oauth_find', `${SELECT} where o.model = $1 and o.digest = $2 and ${LIVES}`)
// A grant lives as long as the key that it is listed as.
const FIND_GRANT = statement(
  'oauth_find_grant',
  `${SELECT} join api_key k on k.grant_id = $3 where o.model = $1 and o.digest = $2 and ${LIVES}
   and (k.revoked_at is null or k.revoked_at > now()) and (k.expires_at is null or k.expires_at > now())`,
)
// Of two that come at once, one finds it unused.
const CONSUME = statement(
  'oauth_consume',
  'update oauth_object set consumed_at = now() where model = $1 and digest = $2 and consumed_at is null returning 1',
)
const DESTROY = statement('oauth_destroy', 'delete from oauth_object where model = $1 and digest = $2')
const REVOKE = statement('oauth_revoke', 'delete from oauth_object where grant_id = $1')
const KEEP_CLIENT = statement(
  'oauth_keep_client',
  `update oauth_object set expires_at = greatest(expires_at, now() + make_interval(secs => $2))
   where model in ('Client', 'ClientDocument') and digest = $1`,
)
/** A document is kept for a consent that is under way, and from then on as long as the grant. */
const DOCUMENT_SECONDS = 900
const KEEP_DOCUMENT = statement(
  'oauth_keep_document',
  `insert into oauth_object (model, digest, payload, expires_at)
   values ('ClientDocument', $1, $2, now() + make_interval(secs => $3))
   on conflict (model, digest) do update set payload = excluded.payload,
     expires_at = greatest(oauth_object.expires_at, excluded.expires_at)`,
)

export interface AdapterDeps {
  readonly database: Database
  /** The key of a grant ends with it. */
  readonly revoked: (grant: string) => Promise<void>
  /** Every process forgets the tokens that it knows. */
  readonly forget: () => Promise<void>
  /** The network address of whoever asks; undefined for a person at the console. */
  readonly origin: () => string | undefined
}

/** The last good document of each program that names itself by one. */
export interface ClientDocuments {
  keep(url: string, document: ClientDocument): Promise<void>
  find(url: string): Promise<ClientDocument | undefined>
}

interface ClientDocument {
  readonly text: string
  readonly contentType: string
}

export function createClientDocuments(database: Database): ClientDocuments {
  return {
    async keep(url, document) {
      await database.query(KEEP_DOCUMENT, [tokenDigest(url), JSON.stringify(document), DOCUMENT_SECONDS])
    },
    async find(url) {
      const [row] = await database.query<{ payload: ClientDocument }>(FIND, ['ClientDocument', tokenDigest(url)])
      return row?.payload
    },
  }
}

export function createAdapter({ database, revoked, forget, origin }: AdapterDeps, beforeConsume: () => void) {
  return (model: string) => ({
    async upsert(id: string, payload: Payload, seconds: number | undefined): Promise<void> {
      const { jti: _, ...kept } = payload
      const lasts = seconds ?? (model === 'Client' ? CLIENT_SECONDS : null)
      await database.query(UPSERT, [
        model,
        tokenDigest(id),
        JSON.stringify(kept, keepable),
        payload.grantId ?? null,
        lasts,
        origin() ?? null,
      ])
      if (model === 'Grant') await database.query(KEEP_CLIENT, [tokenDigest(String(payload.clientId)), seconds ?? 0])
    },
    async find(id: string): Promise<Payload | undefined> {
      const isGrant = model === 'Grant'
      const values = [model, tokenDigest(id), ...(isGrant ? [id] : [])]
      const [row] = await database.query<Row>(isGrant ? FIND_GRANT : FIND, values)
      return row && shown(row, id)
    },
    async consume(id: string): Promise<void> {
      beforeConsume()
      const [mine] = await database.query(CONSUME, [model, tokenDigest(id)])
      if (!mine) throw new errors.InvalidGrant('it was used before')
    },
    async destroy(id: string): Promise<void> {
      await database.query(DESTROY, [model, tokenDigest(id)])
      if (model === 'AccessToken') await forget()
      if (model === 'Grant') await revoked(id)
    },
    async revokeByGrantId(grant: string): Promise<void> {
      await database.query(REVOKE, [grant])
      await revoked(grant)
    },
  })
}

/** What the database cannot keep is the fault of whoever sent it. */
function keepable(_: string, value: unknown): unknown {
  if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed()))
    throw new errors.InvalidRequest('a value has a NUL character or half of a surrogate pair')
  return value
}

function shown({ payload, consumed }: Row, id: string): Payload {
  return { ...payload, jti: id, ...(consumed === null ? {} : { consumed }) }
}
