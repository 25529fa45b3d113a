// The operator's resources as a table: input, required right, action and answer of each. The same table is mounted for
// the operator API (admin.ts) and for people in the console (console.ts).

import type { IncomingMessage, ServerResponse } from 'node:http'
import * as z from 'zod'
import { readIdempotencyKey } from '../admission/idempotency.ts'
import { jsonBody } from '../api/server/body.ts'
import { rawQuery, type WebServer } from '../api/server/server.ts'
import { json, type WebAnswer, type WebRequest } from '../api/server/web.ts'
import { parseRawQuery } from '../catalog/value.ts'
import type { By } from '../database/audit.ts'
import {
  type AccountRole,
  type AnyRole,
  coversRole,
  isSensitive,
  type OperatorRole,
  type Permission,
  roleMay,
  scopesMay,
} from '../identity/roles.ts'
import { requireFresh, type Session, type SessionUse } from '../identity/sessions.ts'
import type { TokenUse } from '../identity/tokens.ts'
import { DAY_MS, dayNumber, parseDay } from '../kernel/calendar.ts'
import { parseCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { readJson } from '../kernel/json.ts'
import { ownAccountOf } from '../kernel/test-account.ts'
import type { Commands } from './command.ts'

// Schemas of common fields. They reject what the database cannot store, and invisible characters.

/** More than one line, or one that reads otherwise than it is written, or that XML cannot hold. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}\u202a-\u202e\u2066-\u2069]/u

/** One line of visible text: no control characters, no lone surrogates. */
export const text = (charsMax: number, charsMin = 1) =>
  z
    .string()
    .transform((value) => value.trim())
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
    .refine((value) => !UNSEEN.test(value), 'must not hold control characters or characters that turn text around')
    .refine(
      (value) => value.length >= charsMin,
      charsMin === 1 ? 'must not be empty' : `must have at least ${charsMin} characters`,
    )
    .refine((value) => value.length <= charsMax, `must have at most ${charsMax} characters`)

/** With it, an answer has fingerprints of secrets. */
export const salt = z.string().regex(/^[0-9a-f]{32}$/, 'must be 16 bytes in hexadecimal')

/** A vendor's credential: a header value, or the JSON key file of a cloud login. */
export const secret = z
  .string()
  .max(16_384)
  .transform(asOneLine)
  .refine(
    (value) => /^[\x21-\x7e]{1,4096}$/.test(value) || value.startsWith('{'),
    'must be 1 to 4096 visible ASCII characters without spaces, or the JSON of a service account',
  )

/** Removes line breaks from a JSON object, because a header cannot contain them; leaves anything else unchanged. */
function asOneLine(value: string): string {
  if (!value.trimStart().startsWith('{')) return value
  try {
    return JSON.stringify(JSON.parse(value))
  } catch {
    return ''
  }
}

/** The form of our ids; anything else is answered with 404. */
export const id = z.string().regex(/^[\w+-]{1,100}$/)

/** In lower case, as people are looked up by it. */
export const email = z
  .string()
  .transform((value) => value.trim().toLowerCase())
  .refine((value) => value.length <= 254, { error: 'must have at most 254 characters', abort: true })
  .refine(
    (value) => /^[^\s@\p{Cc}]+@[^\s@.\p{Cc}]+(?:\.[^\s@.\p{Cc}]+)+$/u.test(value) && value.isWellFormed(),
    'must be an email address',
  )

/**
 * Only the length is checked here, to bound the cost of hashing. The rules for passwords are checked where one is set.
 */
export const password = z.string().max(1000)

export const linkToken = z.string().regex(/^[\w-]{20,100}$/)

export const amount = z.union([z.string(), z.number()]).transform((value, context) => {
  const credits = parseCredits(value)
  if (credits !== undefined) return credits
  context.addIssue('must be an amount of credits such as "12.5", with at most six decimals')
  return z.NEVER
})

export const paging = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z
    .string()
    .regex(/^[\w+-]{1,100}$/, 'is not a cursor that a page gave as next')
    .optional(),
}

/** A moment in the future or null: `2027-01-01T00:00:00Z`. */
export const moment = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2027-01-01T00:00:00Z' })
  .transform((value) => Date.parse(value))
  .meta({ value: 'time' })

/** A day means its first moment, or as the end of a range its last. */
const edge = (daysLater: number) =>
  z
    .string()
    .transform((value, context) => {
      const day = parseDay(value)
      if (day !== undefined) return (day + daysLater) * DAY_MS
      const parsed = moment.safeParse(value)
      if (parsed.success) return parsed.data
      context.addIssue('must be a day such as 2026-11-15 or a time such as 2026-11-15T08:00:00Z')
      return z.NEVER
    })
    .refine((ms) => ms >= EARLIEST_MS && ms < LATEST_MS, 'is out of range')
    .optional()

const EARLIEST_MS = 0
const LATEST_MS = dayNumber({ year: 3000, month: 1, day: 1 }) * DAY_MS

export const dryRun = z.enum(['0', '1', 'true', 'false']).optional().describe('Only shows what would change')
export const isDryRun = ({ dryRun: given }: { readonly dryRun?: string | undefined }) =>
  given === '1' || given === 'true'

/** The rows of the account's test account instead of its own. */
export const test = z.enum(['true', 'false']).optional().describe('Those of its test keys instead')

export const range = {
  from: edge(0).meta({ description: 'From this day or time on, such as 2026-11-01', value: 'time' }),
  to: edge(1).meta({ description: 'Up to this day (included) or time', value: 'time' }),
}

/** A right from the table of roles; `self`: any signed-in person, about themselves; `visitor`: no session needed. */
type Access = Permission | 'self' | 'visitor'

export interface Actor {
  /** For the audit. */
  readonly name: string
  /** In the whole gateway. */
  readonly role: OperatorRole | null
  /** In accounts. */
  readonly roles: ReadonlyMap<string, AccountRole>
  /** Of a person in the console. */
  readonly session: Session | null
  /** The token of the request; absent in the console. */
  readonly token?: TokenUse
}

/** The person who buys; null for tokens. */
export const buyerOf = ({ session }: Actor) => ({
  personId: session?.person.id ?? null,
  email: session?.person.email ?? null,
})

export interface ResourceCall<P = unknown, Q = unknown, B = unknown> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly actor: Actor
  readonly by: By
  readonly visit: SessionUse
  /** The Idempotency-Key, if the resource is `repeatable` and the caller sent one. */
  readonly idempotencyKey: string | undefined
  /** For libraries that read the raw request. */
  readonly http: { readonly request: IncomingMessage; readonly response: ServerResponse }
}

/** For the few answers that set a header of their own, or that lack what some ledgers would have said. */
export class WithHeaders<T = unknown> {
  readonly data: T
  readonly headers: Readonly<Record<string, string | string[]>>
  /** The ledgers that did not answer. */
  readonly missing: readonly string[]

  constructor(data: T, headers: Readonly<Record<string, string | string[]>>, missing: readonly string[] = []) {
    this.data = data
    this.headers = headers
    this.missing = missing
  }
}

export interface Resource {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the prefix, with its parameters in braces. */
  readonly path: string
  readonly access: Access
  /** What it does, for OpenAPI, the reference and the finder. Those that only the console uses have none. */
  readonly title?: string
  /** Requires a recent confirmation of the person's identity. */
  readonly isSensitive: boolean
  /** The account whose roles count too. Absent: only gateway roles count. */
  readonly account?: (params: never) => string | Promise<string>
  /** It spans accounts, and `run` shows each person only those in which they have the right (`accountsOf`). */
  readonly own?: true
  readonly params?: z.ZodType
  /** Strict, so that a misspelt filter is rejected and not ignored. */
  readonly query?: z.ZodType
  /** Strict: an unknown field is rejected. */
  readonly body?: z.ZodType
  readonly bodyBytesMax?: number
  /** Requires a recent confirmation of identity, like sensitive rights. */
  readonly fresh?: true
  /** Also for a person who still has to set up the second factor that their role requires. */
  readonly beforeFactor?: true
  /** Takes an Idempotency-Key, so that it can be sent again without a second effect. */
  readonly repeatable?: boolean
  /** The schema of the answer's data. OpenAPI and the types of the console and the command line are derived from it. */
  readonly answer: z.ZodType
  /** Its commands; all others are reached with `tollgate api`. */
  readonly command?: Commands[string]
  readonly run: (call: never) => unknown
  /** How the answers of several databases become one, if not as a list or a sum: see extensions/ledgers/across.ts. */
  readonly across?: Readonly<Record<'ask' | 'merge' | 'csv', (...of: never[]) => unknown>>
  /** The same rows as text, for `accept: text/csv`. */
  readonly csv?: (call: never) => AsyncGenerator<string>
  /** The same as a page for `accept: text/html`, for a sandboxed frame without scripts. */
  readonly html?: (call: never) => string
  /** The same as a named file, for requests whose `accept` header names its type. */
  readonly files?: Readonly<Partial<Record<FileType, (call: never) => Promise<FileAnswer>>>>
}

const FILE_TYPES = ['text/csv', 'application/pdf', 'application/zip'] as const
export type FileType = (typeof FILE_TYPES)[number]

export interface FileAnswer {
  readonly name: string
  readonly body: Buffer | AsyncGenerator<Buffer>
  /** Of an archive, which is read either as a whole or by these. */
  readonly files?: AsyncIterable<{ readonly name: string; readonly body: Buffer }>
}

type Given<T> = T | WithHeaders<T>

type NamesIn<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
type ParamsOf<Path> = { readonly [Name in NamesIn<Path>]: string }

/** Schemas of path parameters; all other parameters are ids. */
const PARAMS: Readonly<Record<string, z.ZodType<string>>> = { name: text(100), uid: text(100), token: linkToken }

interface Entry<Path, Q extends z.ZodType, B extends z.ZodType, A extends z.ZodType>
  extends Omit<Resource, 'method' | 'path' | 'access' | 'isSensitive' | 'params'> {
  readonly query?: Q
  readonly body?: B
  /** Optional for paths below an account. */
  readonly account?: (params: ParamsOf<Path>) => string | Promise<string>
  readonly answer: A
  readonly run: (
    call: ResourceCall<ParamsOf<Path>, z.output<Q>, z.output<B>>,
  ) => Given<z.input<A>> | Promise<Given<z.input<A>>>
  readonly csv?: (call: ResourceCall<ParamsOf<Path>, z.output<Q>, z.output<B>>) => AsyncGenerator<string>
  readonly html?: (call: ResourceCall<ParamsOf<Path>, z.output<Q>, z.output<B>>) => string
  readonly files?: Readonly<
    Partial<Record<FileType, (call: ResourceCall<ParamsOf<Path>, z.output<Q>, z.output<B>>) => Promise<FileAnswer>>>
  >
}

/**
 * Defines a resource such as `GET /accounts/{id}`. `run` gets the types of its path and schemas, and must return every
 * field of its answer.
 */
export function resource<Path extends string, Q extends z.ZodType, B extends z.ZodType, A extends z.ZodType>(
  route: `${Resource['method']} ${Path}`,
  access: Access,
  entry: Entry<Path, Q, B, A>,
): Resource {
  // The type of the route says what stands before its space.
  const [method, path = ''] = route.split(' ') as [Resource['method'], string]
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const below = path.startsWith('/accounts/{id}')
  return {
    ...(below ? { account: ({ id: account }: { id: string }) => account } : {}),
    ...(names.length === 0
      ? {}
      : { params: z.strictObject(Object.fromEntries(names.map((name) => [name, PARAMS[name] ?? id]))) }),
    ...entry,
    method,
    path,
    access,
    isSensitive: access !== 'self' && access !== 'visitor' && isSensitive(access),
  }
}

export const beforeFactor = (resources: readonly Resource[]): Resource[] =>
  resources.map((entry) => ({ ...entry, beforeFactor: true }))

/** Authenticates a request by its headers; throws if it has no valid credentials. */
type Authenticate = (request: WebRequest, entry: Resource) => Actor | Promise<Actor>

const BODY_BYTES_MAX = 262_144

/** Which resource answers a request: the one at its address, or with several ledgers that of another one. */
export interface Delegation {
  at(entry: Resource, request: Pick<WebRequest, 'params' | 'raw'>): Resource | Promise<Resource>
}

export const HERE: Delegation = { at: (entry) => entry }

export function mountResources(
  app: WebServer,
  prefix: string,
  resources: readonly Resource[],
  { authenticate, delegation }: { readonly authenticate: Authenticate; readonly delegation: Delegation },
): void {
  for (const mounted of resources) {
    const handle = async (request: WebRequest) => {
      const actor = await authenticate(request, mounted)
      const entry = await delegation.at(mounted, request)
      await checkAccess(entry, request, actor)
      if (entry.fresh || entry.isSensitive) requireFresh(actor.session)
      if (entry.access === 'visitor') app.bodyDeadline(request.response)
      const body = await request.body(entry.bodyBytesMax ?? BODY_BYTES_MAX)
      await app.posted()
      return answer(entry, request, body, actor)
    }
    app.add(mounted.method, prefix + mounted.path, handle, mounted)
  }
}

async function checkAccess(entry: Resource, request: WebRequest, actor: Actor): Promise<void> {
  const { access } = entry
  if (access === 'visitor' || access === 'self' || may(actor, access)) return
  if (entry.own) {
    // A person without any account gets an empty list instead of 403.
    if (accountsOf(actor, access)?.length === 0 && (actor.token || actor.roles.size > 0)) requireRight(actor, access)
    return
  }
  // `resource` gave it the types of its path.
  requireRight(actor, access, await entry.account?.(readParams(entry, request) as never))
}

/** In the whole gateway, or in the account if one is named. */
export function may(actor: Actor, permission: Permission, account?: string): boolean {
  if (actor.token && !withinToken(actor.token, permission, account)) return false
  if (actor.role !== null && roleMay(actor.role, permission)) return true
  const role = account === undefined ? undefined : actor.roles.get(ownAccountOf(account))
  return role !== undefined && roleMay(role, permission)
}

/**
 * Nobody can give or remove a role with more rights than their own, or create a login link for a person with such a
 * role.
 */
export const mayGive = (actor: Actor) => (role: AnyRole, account?: string) =>
  coversRole((permission) => may(actor, permission, account), role)

/** A token of an account reaches that account only, and has at most the rights of an owner. */
function withinToken({ scopes, account: own }: TokenUse, permission: Permission, account: string | undefined): boolean {
  if (!scopesMay(scopes, permission)) return false
  return own === null || (account !== undefined && ownAccountOf(account) === own && roleMay('owner', permission))
}

/** The accounts in which the actor has the right; null: all. */
export function accountsOf(actor: Actor, permission: Permission): string[] | null {
  if (may(actor, permission)) return null
  const own = actor.token?.account
  return [...(own ? [own] : actor.roles.keys())].filter((account) => may(actor, permission, account))
}

export function requireRight(actor: Actor, permission: Permission, account?: string): void {
  if (may(actor, permission, account)) return
  if (actor.token && !scopesMay(actor.token.scopes, permission))
    throw new Fault('access_denied', { message: `This token does not have the scope ${permission}.` })
  const role = account === undefined ? undefined : actor.roles.get(ownAccountOf(account))
  const own = [actor.role ?? undefined, role].filter((one) => one !== undefined)
  if (own.length > 0) throw refusal(permission, own)
  const message = account === undefined ? 'Only operators may do that.' : 'You do not belong to this account.'
  throw new Fault('access_denied', { message })
}

/**
 * Every way to make credits asks for this, besides the right of its route: gifts, starting credits, codes, what is
 * sold, and who says that it was paid.
 */
export function requireCredits(actor: Actor): void {
  requireRight(actor, 'credits:write')
  requireFresh(actor.session)
}

function refusal(permission: Permission, roles: readonly AnyRole[]): Fault {
  const message = `That needs the right ${permission}, which the role ${[...new Set(roles)].join(', ')} does not have.`
  return new Fault('access_denied', { message })
}

export function sessionOf(actor: Actor): Session {
  if (!actor.session) throw new Fault('key_unknown', { message: 'You are not signed in.' })
  return actor.session
}

async function answer(entry: Resource, request: WebRequest, body: Buffer, actor: Actor): Promise<WebAnswer> {
  const call: ResourceCall = {
    params: readParams(entry, request),
    query: readFields(entry.query ?? NOTHING, Object.fromEntries(parseRawQuery(rawQuery(request))), 'query parameter'),
    body: readBody(entry, request, body),
    actor,
    by: {
      actor: actor.name,
      ip: request.ip,
      requestId: request.id,
      token: actor.token?.isFirst ? undefined : actor.token?.name,
      person: (actor.session ?? actor.token)?.person?.id,
    },
    visit: { ip: request.ip, userAgent: userAgentOf(request), browser: readBrowser(request) },
    idempotencyKey: entry.repeatable ? readIdempotencyKey(headerOf(request, 'idempotency-key')) : undefined,
    http: { request: request.raw, response: request.response },
  }
  if (entry.csv && /\btext\/csv\b/.test(request.headers.accept ?? ''))
    return csvAnswer(entry.path, entry.csv(call as never))
  const isPage = entry.html && /\btext\/html\b/.test(request.headers.accept ?? '')
  // It takes what `resource` gave it the types of.
  if (entry.html && isPage) return { headers: HTML_HEADERS, body: entry.html(call as never) }
  for (const type of FILE_TYPES) {
    const file = entry.files?.[type]
    // It takes what `resource` gave it the types of.
    if (file && request.headers.accept?.includes(type)) return fileAnswer(type, await file(call as never))
  }
  const result = await entry.run(call as never)
  const { data, headers, missing } = result instanceof WithHeaders ? result : new WithHeaders(result, {})
  const requestId = request.id
  return json({ success: true, data, requestId, ...(missing.length > 0 ? { missing } : {}) }, headers)
}

function headerOf(request: WebRequest, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** The user agent, shortened for the list of sessions. */
function userAgentOf(request: WebRequest): string {
  return (request.headers['user-agent'] ?? '').replaceAll(/[^\x20-\x7e]/g, '').slice(0, 200)
}

export function readParams(entry: Resource, request: Pick<WebRequest, 'params'>): unknown {
  if (!entry.params) return {}
  const result = entry.params.safeParse(request.params)
  if (!result.success) throw new Fault('not_found', { message: 'There is nothing with this id.' })
  return result.data
}

function readBody(entry: Resource, { headers }: WebRequest, body: Buffer): unknown {
  const given = () => readJson(jsonBody({ headers, body })).value
  const empty = body.length === 0
  if (!entry.body) {
    // Some clients cannot send a POST or DELETE without a body, so an empty object counts as no body.
    if (!empty) readFields(NOTHING, given(), 'field')
    return undefined
  }
  return readFields(entry.body, empty ? {} : given(), 'field')
}

const NOTHING = z.strictObject({})

/** Rejects a request with all problems, each with its field. */
export function readFields<T extends z.ZodType>(schema: T, input: unknown, noun: string): z.output<T> {
  const result = schema.safeParse(input)
  if (result.success) return result.data
  const problems = result.error.issues.slice(0, 5).map((issue) => problemOf(issue, schema, noun))
  const param = String(result.error.issues[0]?.path[0] ?? '')
  throw new Fault('request_invalid', { message: problems.join(' '), ...(param ? { param } : {}) })
}

function problemOf(issue: z.core.$ZodIssue, schema: z.ZodType, noun: string): string {
  const path = issue.path.join('.')
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((name) => JSON.stringify(name.slice(0, 60).toWellFormed())).join(', ')
    const object = schema instanceof z.ZodPipe ? schema.in : schema
    const known = path === '' && object instanceof z.ZodObject ? Object.keys(object.shape) : []
    const allowed = known.length > 0 ? ` It takes ${known.join(', ')}.` : ''
    return `${path ? `${path}: ` : ''}There is no ${noun} ${names} here.${allowed}`
  }
  const message = issue.message.replace(/^Invalid input: /, '').replace(/\.?$/, '.')
  return `${path || 'body'}: ${message}`
}

/** A Content-Disposition with the file name in UTF-8, and an ASCII fallback for old clients. */
function fileAnswer(type: FileType, { name, body }: FileAnswer): WebAnswer {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^\w.-]/g, '_')
  const headers = {
    'content-type': type === 'text/csv' ? CSV_TYPE : type,
    'content-disposition': `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(name)}`,
  }
  return { headers, body }
}

const CSV_TYPE = 'text/csv; charset=utf-8'
const HTML_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox",
  'x-content-type-options': 'nosniff',
  vary: 'accept',
}

function csvAnswer(path: string, body: AsyncGenerator<string>): WebAnswer {
  const name = path.split('/').at(-1)
  return { headers: { 'content-type': CSV_TYPE, 'content-disposition': `attachment; filename="${name}.csv"` }, body }
}

// The cookies of the console, and the protection against cross-site requests.

/** The `__Host-` prefix binds cookies to this host and `Path=/`; only a secure origin can set them. */
const SESSION = '__Host-tg_s'
const BROWSER = '__Host-tg_b'
const FLOW = '__Host-tg_f'
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'
const SESSION_SECONDS = 86_400
const BROWSER_SECONDS = 31_536_000
const FLOW_SECONDS = 900

type Cookies = Readonly<Record<'set-cookie', string[]>>

/** Sets the session and the browser cookie, and removes that of the login flow. */
export function loginCookies(session: string, browser: string): Cookies {
  return {
    'set-cookie': [
      `${SESSION}=${session}; ${ATTRIBUTES}; Max-Age=${SESSION_SECONDS}`,
      `${BROWSER}=${browser}; ${ATTRIBUTES}; Max-Age=${BROWSER_SECONDS}`,
      ...NO_FLOW['set-cookie'],
    ],
  }
}

export const NO_SESSION: Cookies = { 'set-cookie': [`${SESSION}=; ${ATTRIBUTES}; Max-Age=0`] }

/** Binds a login flow to this browser: single sign-on, or the challenge of a passkey. */
export const flowCookie = (token: string): Cookies => ({
  'set-cookie': [`${FLOW}=${token}; ${ATTRIBUTES}; Max-Age=${FLOW_SECONDS}`],
})
export const NO_FLOW: Cookies = { 'set-cookie': [`${FLOW}=; ${ATTRIBUTES}; Max-Age=0`] }

type WithCookies = Pick<IncomingMessage, 'headers'>
export const readSession = (request: WithCookies) => readCookie(request, SESSION)
export const readFlow = (request: WithCookies) => readCookie(request, FLOW)
const readBrowser = (request: WithCookies) => readCookie(request, BROWSER)

function readCookie(request: WithCookies, name: string): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return undefined
}

/**
 * Requests that change something or cost credits must come from our own pages. Browsers say so in `Sec-Fetch-Site`; to
 * a plain http address that is not this machine they send only `Origin`, which must then be ours.
 */
export function checkOrigin(request: WebRequest, publicUrl: string): void {
  const site = request.headers['sec-fetch-site']
  if (site === 'same-origin') return
  const { origin, host } = request.headers
  const given = site === undefined && origin !== undefined ? URL.parse(origin) : null
  if (given && given.origin === origin && (origin === URL.parse(publicUrl)?.origin || given.host === host)) return
  throw new Fault('access_denied', { message: 'The console takes changes and calls only from its own pages.' })
}
