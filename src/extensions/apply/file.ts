// The file of `tollgate apply`: accounts, keys, limits, members, teams, budgets, vendors and the catalog in one YAML
// document. Problems are reported with line and column. The file is untrusted, so its size and the expansion of its
// aliases are bounded.
import * as z from 'zod'
import { keyRouting } from '../../admission/views.ts'
import { CliError } from '../../cli/command.ts'
import { readMailbox } from '../../identity/mailbox.ts'
import { role } from '../../identity/views.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { nearest } from '../../kernel/nearest.ts'
import {
  BUDGET_SPANS,
  BUDGET_UNITS,
  budgetAlertPercent,
  budgetScope,
  budgetWindow,
  LIMIT_NAMES,
  LIMITS,
  type LimitsView,
  readBudgetMax,
} from '../../meter/limits.ts'
import { issuerInput } from '../billing/invoices/details.ts'
import { referenceProblem } from './secret-reference.ts'

/** The version of the format. */
export const FORMAT = 1
const BYTES_MAX = 8 * 1_048_576
const ALIASES_MAX = 100
const DEPTH_MAX = 100
const PROBLEMS_MAX = 20
/** The most single values of a budget: as many as the gateway lists in one page. */
export const VALUES_MAX = 1_000

/** Rejects an unknown field, and suggests the name that was probably meant. */
function object<S extends z.core.$ZodLooseShape>(shape: S) {
  const known = Object.keys(shape)
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined
      const [name = ''] = issue.keys
      const near = nearest(name, known)
      const hint = near === undefined ? `it takes ${known.join(', ')}` : `did you mean "${near}"?`
      return `there is no field "${name.slice(0, 60)}" here; ${hint}`
    },
  })
}

const name = z.string().trim().min(1, 'must not be empty').max(100, 'must have at most 100 characters')
const id = z.string().regex(/^[a-z]+_\w{1,60}$/, 'must be an id such as acc_… or key_…')
const reference = z.string().superRefine((value, context) => {
  const problem = referenceProblem(value)
  if (problem !== undefined) context.addIssue(problem)
})
const countLimit = z.number().int().min(0).max(1_000_000_000_000)
const creditLimit = z.union([z.string(), z.number()]).transform((value, context) => {
  const amount = parseCredits(value)
  if (amount !== undefined && amount >= 0n) return formatCredits(amount)
  context.addIssue('must be an amount of credits such as "12.5", with at most six decimals')
  return z.NEVER
})
/** A limit that is not named is removed. */
const limits = object(
  Object.fromEntries(
    LIMIT_NAMES.map((one) => [one, (LIMITS[one].unit === 'credits' ? creditLimit : countLimit).optional()]),
  ),
).transform(
  // Its names and values are those of the table of limits.
  (given) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as LimitsView,
) // by its own table
const names = z.array(name).min(1, 'must name at least one; null allows all').max(500).nullable()

const email = z
  .string()
  .trim()
  .toLowerCase()
  .max(254)
  .refine((value) => readMailbox(value) !== undefined, 'must be an email address')

const key = object({
  id: id.optional(),
  name,
  test: z.boolean().default(false),
  models: names.optional(),
  endpoints: names.optional(),
  ipRanges: names.optional(),
  responseCache: z.boolean().nullable().optional(),
  routing: keyRouting.nullable().optional(),
  expiresAt: z.iso
    .datetime({ offset: true, error: 'must be a time such as 2027-01-01T00:00:00Z' })
    .transform((value) => new Date(Date.parse(value)).toISOString())
    .nullable()
    .optional(),
  requiredLabels: names.optional(),
  /** A team, or a project as team/project; and the email address of the member to whom it belongs. */
  team: z.string().min(1).max(210).nullable().optional(),
  member: email.nullable().optional(),
  limits: limits.optional(),
  /** Where the value of a new key is stored. Absent: it is shown once. */
  writeTo: reference.optional(),
})

const member = object({ email, role })

const people = z.array(email).max(1_000)
/** With `scimGroup`, the group of a directory decides who is in the team. */
const inTeam = { members: people.optional(), scimGroup: z.string().min(1).max(254).nullable().optional() }
const project = object({ id: id.optional(), name, ...inTeam })
const team = object({ id: id.optional(), name, ...inTeam, projects: z.array(project).max(500).optional() })

const amount = z.union([z.string(), z.number()])
const budget = object({
  id: id.optional(),
  name,
  scope: budgetScope,
  /**
   * The one that it limits, by name: a team, team/project, a key, an email address, a user … Absent: each value has a
   * budget of its own.
   */
  value: z.string().min(1).max(254).optional(),
  unit: z.enum(BUDGET_UNITS).default('credits'),
  span: z.enum(BUDGET_SPANS),
  windowSeconds: budgetWindow.optional(),
  max: amount,
  hard: z.boolean().default(true),
  alertPercent: budgetAlertPercent.default(null),
  /** The maximums of single values. */
  values: z.record(z.string().min(1).max(254), amount).optional(),
}).transform(({ values, ...given }, context) => {
  const read = (max: string | number, path: PropertyKey[]) => {
    const { unit } = given
    const found = readBudgetMax(unit, max)
    if ('max' in found) return unit === 'credits' ? formatCredits(found.max) : String(found.max)
    context.addIssue({ code: 'custom', path, message: found.problem })
    return ''
  }
  const wrong = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
  if ((given.span === 'rolling') !== (given.windowSeconds !== undefined))
    wrong('windowSeconds', 'must be given with the span rolling, and with no other')
  if (given.value !== undefined && values) wrong('values', 'must not stand with a value: the budget is for one only')
  if (Object.keys(values ?? {}).length > VALUES_MAX) wrong('values', `must have at most ${VALUES_MAX}`)
  return {
    ...given,
    max: read(given.max, ['max']),
    values: values && new Map(Object.entries(values).map(([one, max]) => [one, read(max, ['values', one])])),
  }
})

const percent = z.union([z.string(), z.number()]).transform((value, context) => {
  const parsed = parseCredits(value)
  if (parsed !== undefined) return formatCredits(parsed)
  context.addIssue('must be a percentage such as "12.5"')
  return z.NEVER
})
const customerPrice = object({
  model: name,
  markupPercent: percent.optional(),
  prices: z.array(z.object({ upTo: z.number().int().optional() }).catchall(creditLimit)).optional(),
})
/** The gateway checks them. */
const money = amount.transform(String).optional()
const text = z.string().nullable().optional()
/**
 * What customers of the account pay and how, and where it is told of their purses. The purses themselves are made by
 * its programs.
 */
const purses = object({
  prices: object({
    markupPercent: percent.default('0'),
    models: z.array(customerPrice).max(500).default([]),
    volume: z
      .array(object({ from: creditLimit, discountPercent: percent }))
      .max(10)
      .default([]),
  }).optional(),
  payments: object({
    provider: z.string().optional(),
    currency: z.string().optional(),
    pricePerCredit: money,
    minimum: money,
    maximum: money,
    name: text,
    color: text,
    colorDark: text,
    issuer: object(issuerInput.shape).nullable().optional(),
    secrets: object({ stripe: reference.optional(), 'stripe-webhook': reference.optional() }).default({}),
  }).optional(),
  events: object({ url: z.string().max(2_000).nullable(), settled: z.boolean().default(false) }).optional(),
})

const account = object({
  id: id.optional(),
  name,
  /** Granted once, when the account is created. Later changes have no effect. */
  initialCredits: creditLimit.optional(),
  limits: limits.optional(),
  keys: z.array(key).max(1_000).optional(),
  members: z.array(member).max(1_000).optional(),
  teams: z.array(team).max(500).optional(),
  budgets: z.array(budget).max(64).optional(),
  purses: purses.optional(),
})

const tree = z.record(z.string(), z.unknown())
/** An entry of the catalog, which the gateway checks, with references to its secrets. */
const vendor = z
  .looseObject({ secrets: z.record(z.string(), reference).optional() })
  .transform(({ secrets, ...entry }) => ({ entry, secrets: secrets ?? {} }))

const declaration = object({
  tollgate: z.literal(FORMAT, `must be ${FORMAT}, the version of this format`),
  accounts: z.array(account).max(10_000).optional(),
  limits: limits.optional(),
  vendors: z.record(z.string(), vendor).optional(),
  catalog: tree
    .refine((value) => !Object.hasOwn(value, 'vendors'), 'its vendors stand under "vendors" at the top')
    .optional(),
})

type Declaration = z.output<typeof declaration>
export type DeclaredAccount = NonNullable<Declaration['accounts']>[number]
export type DeclaredTeam = NonNullable<DeclaredAccount['teams']>[number]
export type DeclaredBudget = NonNullable<DeclaredAccount['budgets']>[number]
export type DeclaredPurses = NonNullable<DeclaredAccount['purses']>
export type DeclaredKey = NonNullable<DeclaredAccount['keys']>[number]

type Path = readonly PropertyKey[]

export interface DeclarationFile {
  readonly declared: Declaration
  /** The position of something in the file: "tollgate.yaml:12:5". */
  at(path: Path): string
}

export async function readDeclaration(file: string, text: string): Promise<DeclarationFile> {
  if (Buffer.byteLength(text) > BYTES_MAX) throw new CliError(`${file} has more than ${BYTES_MAX} bytes.`)
  // Loaded only here, so that other commands start faster.
  const { LineCounter, isMap, isNode, isScalar, parseAllDocuments, visit } = await import('yaml')
  if (nestsTooDeep(text)) throw new CliError(`${file} is nested more than ${DEPTH_MAX} levels deep.`)
  const lines = new LineCounter()
  const documents = [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })]
  const [document] = documents
  if (!document) throw new CliError(`${file} is empty.`)
  if (documents.length > 1) throw new CliError(`${file} has ${documents.length} documents; give one.`)
  const placeAt = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${file}:${line}:${col}`
  }
  if (document.errors.length > 0)
    throw problemsIn(document.errors.map(({ pos, message }) => `${placeAt(pos[0])}: ${message.split('\n')[0]}`))

  // Objects have a member of this name already, so an entry with it would be left out without a word.
  visit(document, {
    Pair(_, { key }) {
      if (isScalar(key) && key.value === '__proto__')
        throw problemsIn([`${placeAt(key.range?.[0] ?? 0)}: nothing can have the name "__proto__"`])
    },
  })

  /** The position of a member's name, otherwise of the nearest node around it. */
  function at(path: Path): string {
    for (let length = path.length; length > 0; length--) {
      const parent = document?.getIn(path.slice(0, length - 1), true)
      const last = path[length - 1]
      const pair = isMap(parent)
        ? parent.items.find((one) => isScalar(one.key) && String(one.key.value) === String(last))
        : undefined
      if (pair && isNode(pair.key) && pair.key.range) return placeAt(pair.key.range[0])
      const node = document?.getIn(path.slice(0, length), true)
      if (isNode(node) && node.range) return placeAt(node.range[0])
    }
    return placeAt(0)
  }

  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: ALIASES_MAX })
  } catch {
    throw new CliError(`${file}: its aliases unfold to too much, or one has no anchor.`)
  }
  const read = declaration.safeParse(value)
  if (!read.success)
    throw problemsIn(
      read.error.issues.map((issue) => {
        const inner = issue.code === 'unrecognized_keys' ? [issue.keys[0] ?? ''] : []
        const where = issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''
        const words = issue.message.replace(/^Invalid input: /, '').replace('received undefined', 'but it is missing')
        return `${at([...issue.path, ...inner])}: ${where}${words}`
      }),
    )
  checkNames(read.data, at)
  return { declared: read.data, at }
}

function problemsIn(problems: readonly string[]): CliError {
  const left = problems.length - PROBLEMS_MAX
  return new CliError([...problems.slice(0, PROBLEMS_MAX), ...(left > 0 ? [`… and ${left} more`] : [])].join('\n'))
}

/** Entries are identified by name, so each name may occur once. */
function checkNames({ accounts = [], vendors = {} }: Declaration, at: (path: Path) => string): void {
  const problems: string[] = []
  const once = (keys: readonly string[], path: Path, what: string) =>
    keys.forEach((one, index) => {
      if (keys.indexOf(one) !== index) problems.push(`${at([...path, index])}: there are two ${what} "${one}"`)
    })
  once(
    accounts.map(({ id, name }) => id ?? name),
    ['accounts'],
    'accounts',
  )
  accounts.forEach(({ keys = [], members = [], teams = [], budgets = [] }, index) => {
    const named = (list: readonly { id?: string | undefined; name: string }[], what: string, ...path: PropertyKey[]) =>
      once(
        list.map(({ id, name }) => id ?? name),
        ['accounts', index, ...path],
        what,
      )
    named(budgets, 'budgets', 'budgets')
    named(teams, 'teams', 'teams')
    teams.forEach(({ projects = [] }, at) => {
      named(projects, 'projects', 'teams', at, 'projects')
    })
    once(
      keys.map(({ id, name, test }) => id ?? `${name}${test ? ' (test)' : ''}`),
      ['accounts', index, 'keys'],
      'keys',
    )
    once(
      members.map(({ email }) => email),
      ['accounts', index, 'members'],
      'members',
    )
  })
  const seen = new Map<string, string>()
  for (const [vendor, { secrets }] of Object.entries(vendors))
    for (const [credential, where] of Object.entries(secrets)) {
      const other = seen.get(credential)
      if (other !== undefined && other !== where)
        problems.push(
          `${at(['vendors', vendor, 'secrets', credential])}: another vendor takes ${credential} from ${other}`,
        )
      seen.set(credential, where)
    }
  if (problems.length > 0) throw problemsIn(problems)
}

/**
 * The parser is recursive, so the depth is checked before: by brackets in flow style, and by indentation in block
 * style.
 */
function nestsTooDeep(text: string): boolean {
  let depth = 0
  for (const char of text) {
    if (char === '[' || char === '{') depth++
    else if (char === ']' || char === '}') depth = Math.max(0, depth - 1)
    if (depth > DEPTH_MAX) return true
  }
  return text.split('\n').some((line) => /^(?:[ -]|\? )*/.exec(line)![0].length > DEPTH_MAX * 8) // It matches every line.
}
