// The rights of each role: one table by resource and verb. The routes of the operator API and the console, the
// console's menu, the scopes of tokens, the reference page and the test of all rights are derived from it. A new
// resource adds its row here, and its routes name `<resource>:<verb>`; the compiler demands the row.

/** Gateway roles; each applies in every account too. */
export const OPERATOR_ROLES = ['operator', 'finance', 'support', 'auditor'] as const
export type OperatorRole = (typeof OPERATOR_ROLES)[number]

/** Roles in one account. */
export const ACCOUNT_ROLES = ['owner', 'admin', 'member', 'viewer', 'billing'] as const
export type AccountRole = (typeof ACCOUNT_ROLES)[number]

export type AnyRole = OperatorRole | AccountRole
/** What is stored may be of another version. */
const isRole = (name: string): boolean => [...OPERATOR_ROLES, ...ACCOUNT_ROLES].some((role) => role === name)

/** What each role is for, in the words that the console and the reference show. */
export const ROLE_WORDS: Readonly<Record<AnyRole, string>> = {
  operator: 'runs the gateway: everything',
  finance: 'money: credits, statements, margins, what a credit is worth',
  support: 'reads accounts and calls; changes nothing',
  auditor: 'reads everything except secrets and logged content; changes nothing',
  owner: 'everything in the account',
  admin: 'everything in the account except its money; cannot give or take the owner role',
  member: 'uses the account: keys, playground, usage',
  viewer: 'reads; changes nothing and spends nothing',
  billing: 'the account’s money: balance, statements, payments',
}

const VERBS = ['read', 'write'] as const
type Verb = (typeof VERBS)[number]

interface RightRow {
  readonly about: string
  /**
   * The roles that have the right, besides `operator`, which has all rights. Account roles count only in their account.
   */
  readonly read?: readonly Exclude<AnyRole, 'operator'>[]
  readonly write?: readonly Exclude<AnyRole, 'operator'>[]
  /** Needs a recent confirmation of the person's identity. */
  readonly sensitive?: readonly Verb[]
}

const STAFF = ['finance', 'support', 'auditor'] as const
const EVERYBODY = [...STAFF, ...ACCOUNT_ROLES] as const
/** Those who work with the account, and those who only look. */
const USERS = ['owner', 'admin', 'member'] as const
const MANAGERS = ['owner', 'admin'] as const

const TABLE = {
  accounts: { about: 'accounts: name, status, balance, limits', read: EVERYBODY, write: [] },
  credits: { about: 'credits given or taken back by hand', write: ['finance'], sensitive: ['write'] },
  'test-balance': { about: 'the credits of the test account', write: USERS },
  keys: { about: 'API keys, and programs that act for a person', read: [...STAFF, ...USERS, 'viewer'], write: USERS },
  budgets: { about: 'budgets of users, tags, keys and teams', read: EVERYBODY, write: [...MANAGERS, 'billing'] },
  teams: {
    about: 'teams and projects, and who is in them',
    read: [...STAFF, ...USERS, 'viewer', 'billing'],
    write: MANAGERS,
  },
  'imported-keys': { about: 'API keys imported from another gateway', write: [] },
  'webhook-secret': { about: 'the secret that signs webhooks', read: MANAGERS, sensitive: ['read'] },
  playground: { about: 'calls from the console, on the account’s credits', write: USERS },
  usage: { about: 'calls: lists, sums, latencies', read: EVERYBODY },
  jobs: { about: 'videos, batches and their files', read: [...STAFF, ...USERS, 'viewer'], write: USERS },
  statements: { about: 'monthly statements and all movements of credits', read: EVERYBODY },
  plan: {
    about: 'the plan of an account, and codes that it redeems',
    read: EVERYBODY,
    write: ['finance', 'owner', 'billing'],
  },
  plans: { about: 'plans of the catalog, and batches of codes', read: ['finance', 'auditor'], write: ['finance'] },
  invoices: { about: 'invoices and credit notes', read: [...STAFF, ...MANAGERS, 'billing'] },
  'billing-details': {
    about: 'the billing details on the account’s invoices',
    read: [...STAFF, ...MANAGERS, 'billing'],
    write: ['finance', 'owner', 'billing'],
  },
  // Whoever sets it says where the customers' money goes.
  'purse-payments': {
    about: 'how customers of the account pay into their purses, and refunds of that',
    read: [...STAFF, ...MANAGERS, 'billing'],
    write: ['owner', 'billing'],
    sensitive: ['write'],
  },
  'invoice-settings': {
    about: 'whether invoices are issued, and by whom',
    read: ['finance', 'auditor'],
    write: ['finance'],
  },
  // Contains addresses that the gateway calls, and secrets for signatures.
  exports: {
    about: 'where usage is sent, and FOCUS files',
    read: ['finance', 'auditor'],
    write: [],
    sensitive: ['write'],
  },
  'vendor-reports': {
    about: 'vendors’ reports compared with recorded costs',
    read: ['finance', 'auditor'],
    write: ['finance'],
  },
  purchases: {
    about: 'what the account can buy, its payments, its card and automatic top-up',
    read: EVERYBODY,
    write: ['finance', 'owner', 'billing'],
  },
  payments: {
    about: 'payments of all accounts, quarantine, refunds, reconciliation',
    read: ['finance', 'support', 'auditor'],
    write: ['finance'],
    sensitive: ['write'],
  },
  'payment-settings': {
    about: 'payment settings and their secrets',
    read: ['finance', 'auditor'],
    write: [],
    sensitive: ['write'],
  },
  recordings: { about: 'logged requests and answers of calls', read: USERS, write: USERS },
  'content-logging': {
    about: 'content logging: whether it is on, and for how long',
    read: [...STAFF, ...USERS, 'viewer'],
    write: MANAGERS,
  },
  'tool-connections': {
    about: 'sign-ins of people at tool servers',
    read: [...STAFF, ...USERS, 'viewer'],
    write: USERS,
  },
  'byok-keys': {
    about: 'the account’s BYOK keys',
    read: [...STAFF, ...USERS, 'viewer'],
    write: MANAGERS,
    sensitive: ['write'],
  },
  members: {
    about: 'people of an account, their roles, invitations',
    read: ['support', 'auditor', ...MANAGERS],
    write: MANAGERS,
    sensitive: ['write'],
  },
  owners: {
    about: 'the owner role: giving and taking it (with members:write)',
    write: ['owner'],
    sensitive: ['write'],
  },
  alerts: { about: 'alerts that were raised', read: EVERYBODY, write: USERS },
  'alert-settings': {
    about: 'alert rules and their receivers',
    read: ['support', 'auditor', ...MANAGERS],
    write: MANAGERS,
  },
  deliveries: {
    about: 'webhooks and messages that were sent',
    read: ['support', 'auditor', ...USERS, 'viewer'],
    write: USERS,
  },
  operators: {
    about: 'people who run the gateway, their roles, invitations',
    read: ['auditor'],
    write: [],
    sensitive: ['write'],
  },
  tokens: {
    about: 'tokens of the operator API',
    read: ['auditor', ...MANAGERS],
    write: MANAGERS,
    sensitive: ['write'],
  },
  scim: {
    about: 'people and groups from a company’s directory, by SCIM',
    read: ['owner'],
    write: ['owner'],
    sensitive: ['write'],
  },
  'password-links': { about: 'links to choose a new password', write: [], sensitive: ['write'] },
  'login-providers': {
    about: 'single sign-on, and who needs a second factor',
    read: ['auditor'],
    write: [],
    sensitive: ['write'],
  },
  'login-links': { about: 'login links, and resets of second factors', write: [], sensitive: ['write'] },
  limits: { about: 'limits of the whole gateway', read: STAFF, write: [] },
  home: { about: 'the gateway’s figures of a period', read: ['finance', 'auditor'] },
  margins: { about: 'cost and margin of calls', read: ['finance', 'auditor'] },
  billing: {
    about: 'the currency, what a credit is worth, and who issues statements',
    read: ['finance', 'auditor'],
    write: ['finance'],
  },
  ledger: { about: 'the check of the whole ledger', read: ['finance', 'auditor'], write: ['finance'] },
  audit: { about: 'who changed what', read: ['auditor'] },
  'audit-export': { about: 'where the audit log is exported to', read: ['auditor'], write: [], sensitive: ['write'] },
  'live-calls': { about: 'calls that are running', read: ['support', 'auditor'] },
  catalog: { about: 'models, prices and routes', read: STAFF, write: [] },
  vendors: { about: 'vendors, their health, and which one answered a call', read: STAFF, write: [] },
  'vendor-credentials': {
    about: 'names and state of vendor credentials',
    read: ['auditor'],
    write: [],
    sensitive: ['write'],
  },
  'sign-up': { about: 'who may sign up, and invitations to it', read: ['support', 'auditor'], write: [] },
  branding: { about: 'name, colors and logo; how mails look', read: ['support', 'auditor'], write: [] },
  system: { about: 'version, processes, database', read: STAFF },
} as const satisfies Readonly<Record<string, RightRow>>

type ResourceName = keyof typeof TABLE
type VerbOf<R extends ResourceName> = keyof (typeof TABLE)[R] & Verb
/** `keys:read`. The scopes of tokens are these names too. */
export type Permission = { [R in ResourceName]: `${R}:${VerbOf<R>}` }[ResourceName]

interface Right {
  readonly permission: Permission
  readonly about: string
  readonly roles: ReadonlySet<AnyRole>
  readonly isSensitive: boolean
}

/** The table, line by line. */
export const RIGHTS: readonly Right[] = Object.entries<RightRow>(TABLE).flatMap(([resource, row]) =>
  VERBS.flatMap((verb) => {
    const others = row[verb]
    if (!others) return []
    // `Permission` is made of the same names and verbs.
    const permission = `${resource}:${verb}` as Permission
    const isSensitive = row.sensitive?.includes(verb) ?? false
    return [{ permission, about: row.about, roles: new Set<AnyRole>(['operator', ...others]), isSensitive }]
  }),
)

const BY_PERMISSION: ReadonlyMap<string, Right> = new Map(RIGHTS.map((right) => [right.permission, right]))

const rightOf = (permission: Permission): Right => BY_PERMISSION.get(permission)! // The type names only what is in the table.

/** The roles that have the right: of the whole gateway, and of the account where there is one. */
export const rolesWith = (permission: Permission, inAccount: boolean): AnyRole[] =>
  [...OPERATOR_ROLES, ...(inAccount ? ACCOUNT_ROLES : [])].filter((role) => roleMay(role, permission))

export const isSensitive = (permission: Permission): boolean => rightOf(permission).isSensitive

export const roleMay = (role: AnyRole, permission: Permission): boolean => rightOf(permission).roles.has(role)

const permissionsOf = (role: AnyRole): Permission[] =>
  RIGHTS.filter(({ roles }) => roles.has(role)).map(({ permission }) => permission)

/** Nobody can give, change or remove a role that has rights which they do not have. */
export const coversRole = (may: (permission: Permission) => boolean, role: AnyRole): boolean =>
  // Of a role that another version has given, nobody here knows what it may do.
  (isRole(role) ? permissionsOf(role) : RIGHTS.map(({ permission }) => permission)).every(may)

/** What a token may do: a right, all verbs of a resource, or `*` for everything. */
export function scopesMay(scopes: readonly string[], permission: Permission): boolean {
  return scopes.some((scope) => scope === '*' || scope === permission || permission.startsWith(`${scope}:`))
}

/** The rights of the role that the scopes name. */
export const rightsIn = (scopes: readonly string[], role: AnyRole): Permission[] =>
  permissionsOf(role).filter((permission) => scopesMay(scopes, permission))
