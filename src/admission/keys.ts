// Keys as their owners see them: made once, restricted, exchanged for another, revoked. The value leaves only in the
// answer that makes it; what stays is a digest. Every process hears of a change within a second, this one at once.
import type { CatalogStore } from '../catalog/store.ts'
import { didYouMean, quoteModel } from '../catalog/unknown-model.ts'
import type { Audit, By } from '../database/audit.ts'
import type { Changes } from '../database/changes.ts'
import type { Database, Queryable } from '../database/database.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { testAccountOf } from '../kernel/test-account.ts'
import type { Page, Paging } from '../kernel/view.ts'
import { newId, type World } from '../kernel/world.ts'
import { keepLimits, type Limits, type LimitsPatch, mergeLimits } from '../ledger/limits.ts'
import { type Accounts, accountMoving, accountUnknown } from './accounts.ts'
import { digestOf, IMPORTED_PREFIX, importedDigest, makeKey, readIpRanges } from './api-key.ts'
import {
  ACCOUNT,
  BY_DIGEST,
  CHANGE,
  EARLIER,
  GET,
  INSERT,
  KEEP_CONTENT_RULE,
  type KeyRow,
  keyView,
  LIST,
  LOCK,
  OF_CONSENT,
  OF_GRANT,
  OF_PERSON,
  REPLACE,
  REVOKE,
  told,
} from './key-rows.ts'
import type { KeyView, NewKey } from './views.ts'

interface KeyInput {
  readonly name: string
  readonly models?: readonly string[] | null | undefined
  readonly expiresAtMs?: number | null | undefined
  readonly limits?: LimitsPatch | null | undefined
  readonly ipRanges?: readonly string[] | null | undefined
  /** Whether its calls may be answered from kept answers; null: as the model says. */
  readonly keepsAnswers?: boolean | null | undefined
}

interface NewKeyInput extends KeyInput {
  /** A key of the account's test account, which is made with the first. */
  readonly test?: boolean | undefined
  /** A connection by OAuth: its grant, and the program's name. */
  readonly grant?: { readonly id: string; readonly client: string } | undefined
}

/** A key that another gateway made. */
interface ImportedKeyInput extends KeyInput {
  /** Of its value, in hexadecimal. */
  readonly sha256: string
  readonly last4: string
}

/** What is absent stays as it is. */
type KeyPatch = { readonly [field in keyof KeyInput]?: KeyInput[field] | undefined }

export interface Keys {
  /** Those of its test account among them. */
  list(account: string, paging: Paging): Promise<Page<KeyView>>
  get(id: string): Promise<{ account: string; key: KeyView } | undefined>
  create(account: string, input: NewKeyInput, by: By): Promise<NewKey>
  /** Its holders go on using it. If the account has it already, it stays as it is. */
  import(account: string, input: ImportedKeyInput, by: By): Promise<KeyView>
  change(id: string, input: KeyPatch, by: By): Promise<KeyView>
  revoke(id: string, by: By): Promise<KeyView>
  /** Ends the key of a grant, if there is one that lives. */
  revokeGrant(grant: string, by: By): Promise<void>
  /** Ends what a person let programs do with an account, as part of another transaction; `noticed` is to be called when that is committed. */
  endConnections(tx: Queryable, of: { account: string; person: string }, by: By): Promise<void>
  noticed(): Promise<void>
  /** A new key like the old one, which goes on working for the overlap. */
  rotate(id: string, overlapSeconds: number, by: By): Promise<NewKey>
}

/** What a key may be restricted to besides the models. */
const DATA_NAMES: readonly string[] = ['socialapi', 'siteanalytics']

export function createKeys(options: {
  database: Database
  changes: Changes
  catalog: CatalogStore
  world: World
  audit: Audit
  accounts: Pick<Accounts, 'openTest'>
  pepper: Buffer
}): Keys {
  const { database, changes, catalog, world, audit, accounts, pepper } = options

  /** The transaction of a change: other processes will see the counter, and this one forgets what it knew at once. */
  async function changing<T>(run: (tx: Queryable) => Promise<T>): Promise<T> {
    const result = await database.transaction(async (tx) => {
      await changes.bump(tx, 'keys')
      return run(tx)
    })
    await changes.notice('keys')
    return result
  }

  function check(input: KeyPatch): void {
    const { models } = catalog.current.document
    for (const name of input.models ?? [])
      if (!Object.hasOwn(models, name) && !DATA_NAMES.includes(name))
        throw invalid(
          [
            `models: there is no model ${quoteModel(name)}.`,
            ...didYouMean(name, models, () => true),
            'GET /catalog lists them.',
          ].join(' '),
          'models',
        )
    if (input.ipRanges) readIpRanges(input.ipRanges)
    if (typeof input.expiresAtMs === 'number' && input.expiresAtMs <= world.nowMs())
      throw invalid('expiresAt: must lie in the future.', 'expiresAt')
  }

  async function insert(tx: Queryable, account: string, row: KeyRowInput): Promise<NewKey> {
    const key = makeKey(world, account)
    const value = { digest: digestOf(pepper, key), prefix: key.slice(0, 12), last4: key.slice(-4) }
    const inserted = await insertRow(tx, account, { ...row, ...value })
    return { ...keyView(inserted!), key }
  }

  async function insertRow(
    tx: Queryable,
    account: string,
    row: KeyRowInput & { readonly digest: Buffer; readonly prefix: string; readonly last4: string },
  ): Promise<KeyRow | undefined> {
    const [inserted] = await tx.query<KeyRow>(INSERT, [
      `key_${newId(world)}`,
      account,
      row.name,
      row.digest,
      row.prefix,
      row.last4,
      row.models,
      row.ipRanges,
      JSON.stringify(row.limits),
      row.expiresAtMs,
      row.grant?.id ?? null,
      row.grant?.client ?? null,
      row.keepsAnswers,
    ])
    return inserted
  }

  async function locked(tx: Queryable, id: string): Promise<KeyRow> {
    const [row] = await tx.query<KeyRow>(LOCK, [id])
    if (!row) throw keyUnknown()
    await lockAccount(tx, row.account_id)
    return row
  }

  async function revoke(tx: Queryable, id: string, by: By): Promise<KeyView> {
    await locked(tx, id)
    const [row] = await tx.query<KeyRow>(REVOKE, [id, world.nowMs()])
    await audit.write(tx, by, { action: 'key.revoke', object: id })
    return keyView(row!)
  }

  /** One key for each consent. The new one goes on with what the earlier has spent, as a rotated one does. */
  async function replaceConsent(tx: Queryable, made: { account: string; grant: string; key: string }, by: By) {
    for (const { id } of await tx.query<{ id: string }>(OF_CONSENT, [made.account, made.grant])) {
      await tx.query(REPLACE, [id, made.key, world.nowMs()])
      await revoke(tx, id, by)
    }
  }

  function mustLive(row: KeyRow): void {
    if (row.revoked_at) throw new Fault('conflict', { message: 'This key is revoked or replaced. Create a new one.' })
  }

  return {
    async list(account, { cursor, limit }) {
      const rows = await database.query<KeyRow>(LIST, [[account, testAccountOf(account)], cursor ?? '~', limit + 1])
      const items = rows.slice(0, limit).map(keyView)
      return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
    },

    async get(id) {
      const [row] = await database.query<KeyRow>(GET, [id])
      return row && { account: row.account_id, key: keyView(row) }
    },

    async create(owner, input, by) {
      check(input)
      const account = input.test ? testAccountOf(owner) : owner
      return changing(async (tx) => {
        await lockAccount(tx, owner)
        if (input.test) await accounts.openTest(tx, owner, by)
        const limits = mergeLimits({}, input.limits)
        const made = await insert(tx, account, {
          name: input.name,
          models: input.models ?? null,
          ipRanges: input.ipRanges ?? null,
          expiresAtMs: input.expiresAtMs ?? null,
          keepsAnswers: input.keepsAnswers ?? null,
          limits,
          grant: input.grant,
        })
        if (input.grant) await replaceConsent(tx, { account, grant: input.grant.id, key: made.id }, by)
        await keep(tx, { id: made.id, account_id: account }, limits)
        await audit.write(tx, by, { action: 'key.create', object: made.id, detail: { account, ...told(made) } })
        return made
      })
    },

    async import(account, input, by) {
      check(input)
      const digest = importedDigest(pepper, input.sha256)
      return changing(async (tx) => {
        await lockAccount(tx, account)
        const limits = mergeLimits({}, input.limits)
        const { name, last4, models = null, ipRanges = null, expiresAtMs = null, keepsAnswers = null } = input
        const row = {
          name,
          last4,
          models,
          ipRanges,
          expiresAtMs,
          keepsAnswers,
          limits,
          digest,
          prefix: IMPORTED_PREFIX,
        }
        const made = await insertRow(tx, account, row)
        if (!made) {
          const [there] = await tx.query<KeyRow>(BY_DIGEST, [digest])
          if (there?.account_id === account) return keyView(there)
          throw new Fault('conflict', { message: 'This key belongs to another account already.' })
        }
        await keepLimits(tx, { kind: 'key', account, key: made.id, earlier: [] }, limits)
        const view = keyView(made)
        await audit.write(tx, by, { action: 'key.import', object: made.id, detail: { account, ...told(view) } })
        return view
      })
    },

    async change(id, input, by) {
      check(input)
      return changing(async (tx) => {
        const row = await locked(tx, id)
        mustLive(row)
        const limits = input.limits === undefined ? row.limits : mergeLimits(row.limits, input.limits)
        const [changed] = await tx.query<KeyRow>(CHANGE, [
          id,
          input.name ?? row.name,
          input.models === undefined ? row.models : input.models,
          input.ipRanges === undefined ? row.ip_ranges : input.ipRanges,
          JSON.stringify(limits),
          input.expiresAtMs === undefined ? (row.expires_at?.getTime() ?? null) : input.expiresAtMs,
          input.keepsAnswers === undefined ? row.keeps_answers : input.keepsAnswers,
        ])
        if (input.limits !== undefined) await keep(tx, changed!, limits)
        const view = keyView(changed!)
        await audit.write(tx, by, { action: 'key.change', object: id, detail: told(view) })
        return view
      })
    },

    revoke: (id, by) => changing((tx) => revoke(tx, id, by)),

    async endConnections(tx, { account, person }, by) {
      const rows = await tx.query<{ id: string }>(OF_PERSON, [[account, testAccountOf(account)], person])
      if (rows.length > 0) await changes.bump(tx, 'keys')
      for (const { id } of rows) await revoke(tx, id, by)
    },

    noticed: () => changes.notice('keys'),

    async revokeGrant(grant, by) {
      const [row] = await database.query<{ id: string }>(OF_GRANT, [grant])
      if (row) await this.revoke(row.id, by)
    },

    async rotate(id, overlapSeconds, by) {
      return changing(async (tx) => {
        const row = await locked(tx, id)
        mustLive(row)
        if (row.client !== null)
          throw new Fault('conflict', {
            message: 'The tokens of a connection renew themselves. Revoke it, and connect anew.',
          })
        const made = await insert(tx, row.account_id, {
          name: row.name,
          models: row.models,
          ipRanges: row.ip_ranges,
          expiresAtMs: row.expires_at?.getTime() ?? null,
          keepsAnswers: row.keeps_answers,
          limits: row.limits,
        })
        await tx.query(REPLACE, [id, made.id, world.nowMs() + overlapSeconds * 1000])
        await keep(tx, { id: made.id, account_id: row.account_id }, row.limits)
        await tx.query(KEEP_CONTENT_RULE, [id, made.id])
        await audit.write(tx, by, { action: 'key.rotate', object: id, detail: { replacedBy: made.id, overlapSeconds } })
        return made
      })
    },
  }
}

async function lockAccount(tx: Queryable, id: string): Promise<void> {
  const [found] = await tx.query<{ frozen: boolean | null }>(ACCOUNT, [id])
  if (!found) throw accountUnknown()
  if (found.frozen) throw accountMoving()
}

/** A key that replaced others goes on with what they have spent; otherwise rotating would lift a limit. */
async function keep(tx: Queryable, row: { id: string; account_id: string }, limits: Limits): Promise<void> {
  const earlier = await tx.query<{ id: string }>(EARLIER, [row.id])
  const scope = { kind: 'key', account: row.account_id, key: row.id, earlier: earlier.map(({ id }) => id) } as const
  await keepLimits(tx, scope, limits)
}

export function keyUnknown(): Fault {
  return new Fault('not_found', { message: 'There is no key with this id.' })
}

interface KeyRowInput {
  name: string
  models: readonly string[] | null
  ipRanges: readonly string[] | null
  expiresAtMs: number | null
  keepsAnswers: boolean | null
  limits: Limits
  grant?: NewKeyInput['grant']
}
