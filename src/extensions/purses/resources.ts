// What an account does with its purses, for its people and its programs. Its keys reach the same at /v1/purses.
import * as z from 'zod'
import { isRestricted, type Principal } from '../../admission/api-key.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Paging } from '../../kernel/view.ts'
import { amount, paging, type Resource, range, resource, text } from '../../operator/resource.ts'
import { csvLine } from '../../reports/csv.ts'
import { PURSE_ID } from './calls.ts'
import type { PurseEvents } from './events.ts'
import { type PurseLists, priceListInput } from './prices.ts'
import type { Purses } from './purses.ts'
import type { PurseSessions } from './sessions.ts'
import * as views from './views.ts'

interface PurseResourceDeps {
  readonly purses: Purses
  readonly lists: PurseLists
  readonly sessions: PurseSessions
  readonly events: PurseEvents
}

const SESSION_SECONDS = { min: 60, max: 86_400, usual: 3_600 }
const ORIGIN = /^https?:\/\/[a-z0-9.-]{1,253}(?::\d{1,5})?$/

const purseId = z.string().regex(PURSE_ID, 'must have 1 to 64 letters, digits or any of _ + -')
const name = text(100, 0).describe('For people: the name of the customer')
const low = amount
  .refine((value) => value >= 0n, 'must not be below zero')
  .nullable()
  .meta({ description: 'Tell the account when less than this is left', value: 'credits', none: 'never' })
const note = text(200).optional().describe('Why, for the statement')

const creation = z.strictObject({
  id: purseId.describe('The account’s own name of its customer: the same name is the same purse'),
  name: name.default(''),
  low: low.default(null),
  credits: amount
    .default(0n)
    .meta({ description: 'What it has at first; given once, however often it is created', value: 'credits' }),
})

const names = z.array(text(100)).min(1).max(100).nullable().default(null)
const session = z.strictObject({
  seconds: z
    .number()
    .int()
    .min(SESSION_SECONDS.min)
    .max(SESSION_SECONDS.max)
    .default(SESSION_SECONDS.usual)
    .describe(`For how long; ${SESSION_SECONDS.usual} by default`),
  models: names.meta({ description: 'Only these models', none: 'all' }),
  endpoints: names.meta({ description: 'Only these endpoints', none: 'all' }),
  origins: z
    .array(z.string().regex(ORIGIN, 'must be a site such as https://app.example'))
    .min(1)
    .max(10)
    .nullable()
    .default(null)
    .meta({ description: 'The sites whose pages may use it; without them no page may', none: 'none' }),
  callMax: amount
    .refine((value) => value >= 0n, 'must not be below zero')
    .nullable()
    .default(null)
    .meta({ description: 'The most that the purse pays for one call, at its prices', value: 'credits' }),
})

const url = z
  .string()
  .max(2_000)
  .refine((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ''), 'must be an http or https address')

export function purseResources(deps: PurseResourceDeps): Resource[] {
  return [
    ...resourcesOfPurses(deps),
    ...resourcesOfMoving(deps),
    ...resourcesOfSessions(deps),
    ...resourcesOfSelling(deps),
  ]
}

function resourcesOfPurses({ purses }: PurseResourceDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/purses', 'budgets:read', {
      title: 'List the purses of an account’s customers',
      query: z.strictObject({
        ...paging,
        search: text(100).optional().describe('A part of the id or the name'),
        status: z.enum(views.PURSE_STATUSES).optional().describe('Only these: open, frozen or closed'),
      }),
      answer: views.pursePage,
      run: ({ params, query }) => purses.list(params.id, query),
      csv: ({ params, query }) => lines(views.purseView, (at) => purses.list(params.id, { ...query, ...at })),
    }),
    resource('POST /accounts/{id}/purses', 'budgets:write', {
      title: 'Create a purse for a customer',
      body: creation,
      answer: views.purseView,
      run: ({ params, body, by }) => purses.create(params.id, body, by),
    }),
    resource('GET /accounts/{id}/purses/{purse}', 'budgets:read', {
      title: 'Show a purse',
      answer: views.purseView,
      run: ({ params }) => purses.find(params.id, params.purse),
    }),
    resource('PATCH /accounts/{id}/purses/{purse}', 'budgets:write', {
      title: 'Rename, freeze, reopen or close a purse',
      body: z.strictObject({
        name: name.optional(),
        low: low.optional(),
        status: z
          .enum(views.PURSE_STATUSES)
          .optional()
          .describe('Calls of one that is frozen are rejected; one that is closed gives back what it has, for good'),
        note,
      }),
      answer: views.purseView,
      run: ({ params, body, by }) => purses.change(params.id, params.purse, body, by),
    }),
  ]
}

function resourcesOfMoving({ purses }: PurseResourceDeps): Resource[] {
  return [
    resource('POST /accounts/{id}/purses/{purse}/grants', 'budgets:write', {
      title: 'Put credits into a purse, or take them back',
      repeatable: true,
      body: z.strictObject({
        credits: amount.meta({ description: 'How many; below zero they are taken back', value: 'credits' }),
        kind: z
          .enum(['grant', 'topup'])
          .default('grant')
          .describe('topup if the customer paid for them; grant by default'),
        reference: text(100).optional().describe('Your own name of this grant: the same name is granted once'),
        note,
      }),
      answer: views.purseView,
      run: ({ params, body, by, idempotencyKey }) => {
        const { credits, kind, reference = idempotencyKey, note: why = null } = body
        return purses.grant(params.id, params.purse, { amount: credits, kind, reference, note: why }, by)
      },
    }),
    resource('GET /accounts/{id}/purses/{purse}/movements', 'budgets:read', {
      title: 'List the calls, grants and changes of a purse',
      query: z.strictObject(paging),
      answer: views.movementPage,
      run: ({ params, query }) => purses.movements(params.id, params.purse, query),
      csv: ({ params, query }) =>
        lines(views.purseMovement, (at) => purses.movements(params.id, params.purse, { ...query, ...at })),
    }),
    resource('GET /accounts/{id}/purses/{purse}/statement', 'budgets:read', {
      title: 'Show the statement of a purse',
      query: z.strictObject({ month: text(7).optional().describe('Such as 2026-11; this month by default') }),
      answer: views.purseStatement,
      run: ({ params, query }) => purses.statement(params.id, params.purse, query.month),
    }),
  ]
}

function resourcesOfSessions({ purses, sessions }: PurseResourceDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/purses/{purse}/sessions', 'budgets:read', {
      title: 'List the session tokens of a purse',
      query: z.strictObject(paging),
      answer: views.sessionPage,
      async run({ params, query }) {
        await purses.find(params.id, params.purse)
        return sessions.list(params.id, params.purse, query)
      },
    }),
    resource('POST /accounts/{id}/purses/{purse}/sessions', 'budgets:write', {
      title: 'Create a session token for a customer’s app or page',
      body: session,
      answer: views.newSessionView,
      async run({ params, body }) {
        const { status } = await purses.find(params.id, params.purse)
        if (status !== 'open') throw new Fault('conflict', { message: `This purse is ${status}.` })
        return sessions.make(params.id, params.purse, body)
      },
    }),
    resource('DELETE /accounts/{id}/purses/{purse}/sessions/{session}', 'budgets:write', {
      title: 'Revoke a session token',
      answer: views.sessionView,
      run: ({ params, by }) => sessions.revoke(params.id, params.purse, params.session, by),
    }),
  ]
}

function resourcesOfSelling({ purses, lists, events }: PurseResourceDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/purse-prices', 'budgets:read', {
      title: 'Show what customers of an account pay',
      answer: views.pricesView,
      run: ({ params }) => lists.view(params.id),
    }),
    resource('PUT /accounts/{id}/purse-prices', 'budgets:write', {
      title: 'Set what customers of an account pay',
      body: priceListInput,
      answer: views.pricesView,
      run: ({ params, body, by }) => lists.set(params.id, body, by),
    }),
    resource('GET /accounts/{id}/purse-margins', 'budgets:read', {
      title: 'Show what purses paid and what their calls cost',
      query: z.strictObject(range),
      answer: views.purseMargins,
      run: ({ params, query }) => purses.margins(params.id, { fromMs: query.from, toMs: query.to }),
    }),
    resource('GET /accounts/{id}/purse-events', 'budgets:read', {
      title: 'Show where an account is told of its purses',
      answer: views.eventsView,
      run: ({ params }) => events.get(params.id),
    }),
    resource('PUT /accounts/{id}/purse-events', 'budgets:write', {
      title: 'Set where an account is told of its purses',
      body: z.strictObject({
        url: url.nullable().meta({ description: 'Gets signed webhooks', none: 'none' }),
        settled: z.boolean().default(false).describe('Also of every call that was settled'),
      }),
      answer: views.eventsView,
      run: ({ params, body, by }) => events.set(params.id, body, by),
    }),
  ]
}

const CSV_ROWS = 200

async function* lines<T extends Readonly<Record<string, string | number | null>>>(
  { shape }: { readonly shape: Readonly<Record<string, unknown>> },
  read: (paging: Paging) => Promise<{ items: T[]; next: string | null }>,
): AsyncGenerator<string> {
  const columns = Object.keys(shape)
  yield csvLine(columns)
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await read({ limit: CSV_ROWS, cursor })
    yield items.map((row) => csvLine(columns.map((column) => row[column] ?? null))).join('')
    if (next === null) return
    cursor = next
  }
}

const ACCOUNT = '/accounts/{id}'

/** The same for a key of the account, below /v1: what is named by the account above follows from the key. */
export function ownResources(resources: readonly Resource[], accountOf: (actor: object) => string): Resource[] {
  return resources
    .filter(({ path }) => path.startsWith(`${ACCOUNT}/purses`))
    .map(({ account: _, command: __, params, csv, files, ...entry }) => {
      type Call = { readonly actor: object; readonly params?: object }
      // With the account, it is what the entry's own `run` takes.
      const own = (call: Call) => ({ ...call, params: { ...call.params, id: accountOf(call.actor) } }) as never
      const pdf = files?.['application/pdf']
      const names = params instanceof z.ZodObject ? params.omit({ id: true }) : undefined
      // The entry, at another path.
      return {
        ...entry,
        path: entry.path.slice(ACCOUNT.length),
        access: 'self' as const,
        ...(names && Object.keys(names.shape).length > 0 ? { params: names } : {}),
        run: (call: Call) => entry.run(own(call)),
        ...(csv && { csv: (call: Call) => csv(own(call)) }),
        ...(pdf && { files: { 'application/pdf': (call: Call) => pdf(own(call)) } }),
      } as Resource
    })
}

/** Making credits is for keys that may do everything in their account. */
export function requireUnrestricted(principal: Principal): void {
  if (isRestricted(principal))
    throw new Fault('access_denied', {
      message: 'This key is restricted to models or endpoints, so it may not manage purses.',
    })
}
