// Keys and teams as their owners see them, and content logging.
import * as z from 'zod'
import { region } from '../catalog/preference-body.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { count, time } from '../kernel/view.ts'
import { UNIT_NAMES } from '../meter/kind.ts'
import { limitsView } from '../meter/limits.ts'

const names = z.array(z.string().trim().min(1).max(100)).min(1, 'must name at least one').max(50)
const amount = z.union([z.string(), z.number()]).transform((value, context) => {
  const read = parseCredits(value)
  if (read !== undefined && read >= 0n) return formatCredits(read)
  context.addIssue('must be an amount of credits such as "12.5", with at most six decimals')
  return z.NEVER
})

/** Where the calls of a key may go. */
export const keyRouting = z.strictObject({
  vendors: names.exactOptional().describe('Only these vendors. This option and the next three replace all four'),
  regions: z
    .array(region)
    .min(1, 'must name at least one')
    .max(50)
    .exactOptional()
    .describe('Only vendors in these regions, such as eu,us-east-1'),
  /** Credits by unit, as in prices of the catalog: per million tokens, or per one of any other unit. */
  maxPrice: z
    .partialRecord(z.enum(UNIT_NAMES), amount)
    .exactOptional()
    .meta({ description: 'The highest prices, such as input=300,output=1500', value: 'unit=credits' }),
  /** False: its calls cannot choose vendors or fallback models. A key cannot allow what the catalog forbids. */
  callerChoice: z
    .literal(false)
    .exactOptional()
    .meta({ description: 'Its calls may choose neither vendors nor fallback models', option: 'no-caller-choice' }),
})
export type KeyRouting = z.output<typeof keyRouting>

export const keyView = z.object({
  id: z.string(),
  name: z.string(),
  /** Of the account's test account: reaches simulated vendors only, and costs nothing. */
  test: z.boolean(),
  prefix: z.string(),
  last4: z.string(),
  models: z.array(z.string()).nullable(),
  /** Which endpoints it may use, by their names; null: every endpoint. */
  endpoints: z.array(z.string()).nullable(),
  /** Names of labels that its calls must have; null: none. */
  requiredLabels: z.array(z.string()).nullable(),
  /** Its team or project, and its member; null: none. */
  teamId: z.string().nullable(),
  memberId: z.string().nullable(),
  expiresAt: time.nullable(),
  limits: limitsView,
  ipRanges: z.array(z.string()).nullable(),
  /** Whether its calls use the response cache; null: the model's default. */
  responseCache: z.boolean().nullable(),
  /** Where its calls may go; null: anywhere. */
  routing: keyRouting.nullable(),
  /** In the future if a replaced key still works. */
  revokedAt: time.nullable(),
  lastUsedAt: time.nullable(),
  createdAt: time,
  replacedBy: z.string().nullable(),
  /** For an OAuth connection: the name of the program. */
  client: z.string().nullable(),
})
export type KeyView = z.infer<typeof keyView>

/** A team, or, with a parent, a project of that team. */
export const teamView = z.object({
  id: z.string(),
  name: z.string(),
  parentId: z.string().nullable(),
  /** The group of the directory (SCIM) that decides who is in it, and whether the directory has sent such a group. */
  scimGroup: z.string().nullable(),
  scimGroupKnown: z.boolean(),
  createdAt: time,
  /** The number of valid keys. */
  keys: count,
  /** The first thousand. */
  members: z.array(z.object({ userId: z.string(), email: z.string() })),
})
export type TeamView = z.infer<typeof teamView>

/** With the full value: shown once. */
export const newKey = keyView.extend({ key: z.string() })
export type NewKey = z.infer<typeof newKey>

/** For how many days content is stored, and how many bytes of a request and of an answer. */
export const CONTENT_DAYS = { min: 1, max: 90, usual: 7 } as const
export const CONTENT_BYTES = { min: 1_024, max: 262_144, usual: 65_536 } as const

const contentRule = z.object({ days: count, maxBytes: count })
export type RecordingPolicy = Readonly<z.infer<typeof contentRule>>

export const contentRules = z.object({
  /** Null: nothing is stored, except for the keys below. */
  account: contentRule.nullable(),
  keys: z.array(contentRule.extend({ key: z.string() })),
  /** The number of calls whose content is stored now. */
  storedCalls: count,
})
export type ContentRules = z.infer<typeof contentRules>

/** Secrets and images are removed from both bodies; `cut`: the body was longer. */
export const contentView = z.object({
  requestId: z.string(),
  at: time,
  expiresAt: time,
  request: z.object({ method: z.string(), path: z.string(), body: z.string(), cut: z.boolean() }),
  /** Null: the caller disconnected before the answer. */
  answer: z.object({ status: count, contentType: z.string(), body: z.string(), cut: z.boolean() }).nullable(),
})
export type ContentView = z.infer<typeof contentView>
