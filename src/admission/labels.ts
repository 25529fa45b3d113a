// Labels of a paid call: who spent it, and for what. They come from our own headers, from members that the formats have
// for them, and from the session headers of agents. They are stored with the call. Headers are never sent to a vendor;
// members of the body are, as their format says.

import { createHash } from 'node:crypto'
import type { RequestHeaders } from '../catalog/query.ts'
import { type Database, SHORT_MS, sql } from '../database/database.ts'
import { type Fault, invalid } from '../kernel/fault.ts'
import { isObject } from '../kernel/json.ts'
import { LABEL_NAME } from '../kernel/label.ts'
import { testAccountOf } from '../kernel/test-account.ts'

/** By name. `user` is the end user, `session` the session of an agent, every other one a tag. */
export type Labels = Readonly<Record<string, string>>

interface LabelSource {
  /** Of the request, by lower-case names. Absent: there is none. */
  readonly headers?: RequestHeaders | undefined
  readonly body: Readonly<Record<string, unknown>>
  /** The text format of the endpoint; absent: it has none. */
  readonly format?: string | undefined
}

/** Tags of one call; `user` and `session` come on top. */
const TAGS_MAX = 8
const CHARS_MAX = 64
/** Different names of tags in an account. A name made of an id would fill every list of names. */
const NAMES_MAX = 64
const TAGS = 'x-tollgate-tags'
const SESSION = 'x-tollgate-session'
/** What agents call a part of their run: our own header, then Claude Code's. */
const AGENT_HEADERS = ['x-tollgate-agent', 'x-claude-code-agent-id']
const PARENT_HEADERS = ['x-tollgate-parent', 'x-claude-code-parent-agent-id']
/** Codex gives a sub-agent a session of its own, and names the one that it belongs to. */
const PARENT_SESSION = 'x-codex-parent-thread-id'
/** The parts of a run, as stored. No caller can send labels of these names in other ways. */
const AGENT = ':agent'
const PARENT = ':parent'
/**
 * What agents call their session, the more exact name first: Claude Code, Codex, opencode, and programs that follow
 * them.
 */
const SESSION_HEADERS = ['x-claude-code-session-id', 'session-id', 'session_id', 'x-opencode-session', 'x-session-id']
/** Without any of these a call has no labels of its own. */
export const LABEL_HEADERS = [TAGS, SESSION, ...SESSION_HEADERS]
export const LABEL_MEMBERS = ['metadata', 'safety_identifier', 'user'] as const
const RESERVED: ReadonlySet<string> = new Set(['user', 'session', 'client'])
/** Formats whose `metadata` is an object of the caller's own. */
const WITH_METADATA: ReadonlySet<string> = new Set(['openai-chat', 'openai-responses'])

/** Rejects with the field: a label that is dropped silently would be missing in a budget. */
export function readLabels({ headers, body, format }: LabelSource): Labels | undefined {
  const tags = headers?.[TAGS]
  const metadata = format !== undefined && WITH_METADATA.has(format) ? body.metadata : undefined
  const agent = format === 'anthropic-messages' ? agentOf(body.metadata) : undefined
  const isNamed = body.safety_identifier !== undefined || body.user !== undefined
  const user = agent?.user ?? (isNamed ? (textOf(body.safety_identifier) ?? textOf(body.user)) : undefined)
  const session = headers && sessionOf(headers, agent?.session)
  if (!tags && !isObject(metadata) && user === undefined && !session) return undefined
  const labels: Record<string, string> = {}
  if (isObject(metadata)) addMetadata(labels, metadata)
  if (tags) addTags(labels, tags)
  if (Object.keys(labels).length > TAGS_MAX)
    throw invalid(`At most ${TAGS_MAX} labels are allowed on a call.`, tags ? TAGS : 'metadata')
  if (user !== undefined) labels.user = fitted(user)
  if (headers && session) addRun(labels, headers, session)
  return labels
}

/** A run is a session. Sub-agents are parts of it, each with the part that started it; the first part has no name. */
function addRun(labels: Record<string, string>, headers: RequestHeaders, session: string): void {
  const root = headers[SESSION] ? undefined : firstOf(headers, [PARENT_SESSION])
  labels.session = root ?? session
  const agent = firstOf(headers, AGENT_HEADERS) ?? (root === undefined || root === session ? undefined : session)
  if (agent === undefined) return
  labels[AGENT] = agent
  const parent = firstOf(headers, PARENT_HEADERS)
  if (parent !== undefined && parent !== agent) labels[PARENT] = parent
}

/** Other programs may use the same headers differently, so an invalid value is not an error. */
function firstOf(headers: RequestHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headers[name]
    if (value && problemOf(value) === undefined) return value
  }
  return undefined
}

/** `team=a,feature=chat`. */
function addTags(labels: Record<string, string>, header: string): void {
  for (const part of header.split(',')) {
    const equals = part.indexOf('=')
    if (equals < 0) throw invalid(`"${TAGS}" must be a list such as team=a,feature=chat.`, TAGS)
    add(labels, part.slice(0, equals).trim(), part.slice(equals + 1).trim(), TAGS)
  }
}

function addMetadata(labels: Record<string, string>, metadata: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(metadata)) {
    const field = `metadata.${name.slice(0, CHARS_MAX).toWellFormed()}`
    if (typeof value !== 'string') throw invalid(`"${field}" must be a string.`, field)
    add(labels, name, value, field)
  }
}

function add(labels: Record<string, string>, name: string, value: string, field: string): void {
  if (RESERVED.has(name)) throw invalid(`The label name "${name}" is reserved.`, field)
  if (!LABEL_NAME.test(name))
    throw invalid(
      `A label's name must have 1 to ${CHARS_MAX} letters, digits or any of . _ : / - and begin with a letter.`,
      field,
    )
  const problem = problemOf(value)
  if (problem) throw invalid(`The label "${name}" ${problem}.`, field)
  labels[name] = value
}

function problemOf(value: string): string | undefined {
  if (value === '' || value.length > CHARS_MAX) return `must have a value of 1 to ${CHARS_MAX} characters`
  return /\p{Cc}/u.test(value) || !value.isWellFormed() ? 'must not hold control characters' : undefined
}

function sessionOf(headers: RequestHeaders, fromBody: string | undefined): string | undefined {
  const own = headers[SESSION]
  if (own) {
    const problem = problemOf(own)
    if (problem) throw invalid(`"${SESSION}" ${problem}.`, SESSION)
    return own
  }
  for (const name of SESSION_HEADERS) if (headers[name]) return firstOf(headers, SESSION_HEADERS) ?? fromBody
  return fromBody
}

interface Agent {
  readonly user: string | undefined
  readonly session?: string | undefined
}

const OLD_USER_ID = /^user_([0-9a-f]{8,64})_account_([\w-]{0,64})_session_([\w-]{1,64})$/

/**
 * Anthropic's `metadata.user_id`. Claude Code puts its session there too: as `user_…_account_…_session_…`, and since
 * 2.1.78 as JSON.
 */
function agentOf(metadata: unknown): Agent | undefined {
  const id = isObject(metadata) ? textOf(metadata.user_id) : undefined
  if (id === undefined) return undefined
  const [, device, account, session] = OLD_USER_ID.exec(id) ?? []
  if (session) return { user: account || device, session }
  if (!id.startsWith('{') || id.length > 1000) return { user: id }
  try {
    const parsed: unknown = JSON.parse(id)
    if (!isObject(parsed)) return { user: id }
    const inner = textOf(parsed.session_id)
    return {
      user: textOf(parsed.account_uuid) ?? textOf(parsed.device_id) ?? id,
      session: inner !== undefined && problemOf(inner) === undefined ? inner : undefined,
    }
  } catch {
    return { user: id }
  }
}

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)

/** The formats allow longer ids of end users than a label. A hash of one still tells users apart. */
function fitted(user: string): string {
  if (problemOf(user) === undefined) return user
  return `sha256-${createHash('sha256').update(user).digest('base64url')}`
}

/** Throws for a call without a label that its key must carry. */
export function requireLabels(required: readonly string[] | undefined, labels: Labels | undefined): void {
  const missing = required?.find((name) => labels?.[name] === undefined)
  if (missing === undefined) return
  const how = missing === 'user' ? '"user"' : missing === 'session' ? `the header ${SESSION}` : `the header ${TAGS}`
  throw invalid(`This key requires the label "${missing}": send it in ${how}.`, missing)
}

// A name that another call adds at the same moment is not listed yet, so it is returned as if it were added here.
const LEARN = sql('label_name_learn', SHORT_MS)`with listed as (
     select n.name from label_name n where n.account_id = $1
   ), added as (
     insert into label_name (account_id, name)
     select $1, x.name from unnest($2::text[]) as x(name)
     where not exists (select 1 from listed l where l.name = x.name)
       and (select count(*) from listed) + (select count(*) from unnest($2::text[]) as y(name) where not exists (select 1 from listed l where l.name = y.name)) <= $3
     on conflict (account_id, name) do update set name = excluded.name returning name
   )
   select name from listed union select name from added`
const NAMES = sql('label_name_list')`select name from label_name where account_id = any($1) order by name limit 200`

/** Of the account's tags, those of its test account included. */
export async function readLabelNames(database: Pick<Database, 'query'>, account: string): Promise<string[]> {
  const rows = await database.query<{ name: string }>(NAMES, [[account, testAccountOf(account)]])
  return [...new Set(rows.map(({ name }) => name))]
}

/** Accounts whose names are remembered; the oldest are asked for again. */
const ACCOUNTS_MAX = 20_000

/** No tag: reserved, or put there by the gateway for the key's team. */
const isOwn = (name: string) => RESERVED.has(name) || name.startsWith(':')

export type LabelNames = ReturnType<typeof createLabelNames>

export function createLabelNames({ database }: { readonly database: Pick<Database, 'query'> }) {
  const known = new Map<string, ReadonlySet<string>>()

  async function learn(account: string, names: readonly string[]): Promise<void> {
    const rows = await database.query<{ name: string }>(LEARN, [account, names, NAMES_MAX])
    const all = new Set(rows.map(({ name }) => name))
    known.delete(account)
    if (known.size >= ACCOUNTS_MAX) known.delete(known.keys().next().value ?? '')
    known.set(account, all)
    const refused = names.find((name) => !all.has(name))
    if (refused !== undefined) throw tooManyNames(refused)
  }

  return {
    /** Undefined: all names are known. Rejects a call with a new name when the account has too many. */
    check(account: string, labels: Labels): Promise<void> | undefined {
      const names = known.get(account)
      for (const name in labels)
        if (!isOwn(name) && !names?.has(name))
          return learn(
            account,
            Object.keys(labels).filter((one) => !isOwn(one)),
          )
      return undefined
    },
  }
}

function tooManyNames(name: string): Fault {
  return invalid(
    `The label "${name}" is new, and this account has ${NAMES_MAX} names of labels already. Put the part that varies into the value.`,
    TAGS,
  )
}
