// The one client of the console API: same origin, session cookie, native envelope. A refusal becomes an ApiError.
import type * as wire from './wire.ts'
import { zoneName } from './zone.ts'

const ROOT = '/console/api'

export class ApiError extends Error {
  readonly status: number
  readonly code: number | undefined
  readonly requestId: string | undefined
  /** What the server was sent, of which its message may name a part. */
  sent: unknown

  constructor(status: number, message: string, code?: number, requestId?: string) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

type Query = Record<string, string | number | undefined | null>

interface Options {
  query?: Query | undefined
  body?: unknown
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
}

let onSignedOut: () => void = () => undefined

/** Called when the server no longer knows our session, whichever call found out. */
export function whenSignedOut(run: () => void): void {
  onSignedOut = run
}

let onAnswered: (path: string, missing: readonly string[]) => void = () => undefined

/** Called with each answer: of which ledgers it says that they did not answer. */
export function whenAnswered(run: typeof onAnswered): void {
  onAnswered = run
}

let onProofNeeded: (ways: readonly string[]) => Promise<boolean> = () => Promise.resolve(false)

/** Called when the server asks for a fresh proof of who somebody is; answers whether it was given. */
export function whenProofNeeded(run: (ways: readonly string[]) => Promise<boolean>): void {
  onProofNeeded = run
}

function apiUrl(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return `${ROOT}${path}${search ? `?${search}` : ''}`
}

/** The bare answer, for what is not the native envelope: streams, CSV and the public API. */
async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { accept: 'application/json', ...options.headers }
  const init: RequestInit = { method, headers, credentials: 'same-origin' }
  if (options.body instanceof FormData) init.body = options.body
  else if (method !== 'GET') {
    headers['content-type'] = 'application/json'
    init.body = JSON.stringify(options.body ?? {})
  }
  if (options.signal) init.signal = options.signal
  let response: Response
  try {
    response = await fetch(apiUrl(path, options.query), init)
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new ApiError(0, 'The gateway cannot be reached. Check that it is running and that you are online.')
  }
  if (response.ok) {
    onAnswered(path, response.headers.get('x-tollgate-missing')?.split(' ') ?? [])
    return response
  }
  const refusal = await readRefusal(response)
  // A sensitive act: once the person has confirmed who they are, it is sent again.
  const proofs = response.headers.get('x-tollgate-proof')
  if (proofs && (await onProofNeeded(proofs.split(' ')))) return send(method, path, options)
  if (response.status === 401 && !path.startsWith('/login') && !path.includes('/play/')) onSignedOut()
  throw Object.assign(refusal, { sent: options.body })
}

/** Reads all the error bodies there are: native envelope, the flat bodies, and what a proxy may have put in between. */
async function readRefusal(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('x-request-id') ?? undefined
  const fallback = `The gateway answered ${response.status}.`
  try {
    const body = (await response.json()) as Record<string, unknown>
    const error = (typeof body.error === 'object' && body.error !== null ? body.error : body) as Record<string, unknown>
    const message = typeof error.message === 'string' && error.message ? error.message : fallback
    const code = [error.code, body.code].find((value) => typeof value === 'number') as number | undefined
    return new ApiError(response.status, message, code, typeof body.requestId === 'string' ? body.requestId : requestId)
  } catch {
    return new ApiError(response.status, fallback, undefined, requestId)
  }
}

async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options)
  if (response.status === 204) return undefined as T
  const body = (await response.json()) as { data?: T }
  return body.data as T
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) => call<T>('GET', path, { query, signal })
export const post = <T>(path: string, body?: unknown) => call<T>('POST', path, { body })
export const patch = <T>(path: string, body: unknown) => call<T>('PATCH', path, { body })
export const put = <T>(path: string, body: unknown, query?: Query) => call<T>('PUT', path, { body, query })
export const remove = <T>(path: string, query?: Query) => call<T>('DELETE', path, { query })

export const encode = encodeURIComponent
export const account = (id: string, rest = '') => `/accounts/${encode(id)}${rest}`
/** Of an account, or without one the gateway's own. */
const scoped = (id: string | undefined, rest: string) => (id === undefined ? rest : account(id, rest))
/** What a person allows a program. */
export interface Terms {
  account: string
  models: string[] | null
  limits: wire.LimitsInput
}

const connect = (uid: string, rest: string) => `/connect/${encode(uid)}/${rest}`

export async function file(path: string, accept: string, query?: Query): Promise<Blob> {
  return (await send('GET', path, { query, headers: { accept } })).blob()
}
export const csv = (path: string, query?: Query) => file(path, 'text/csv', query)

export interface InvoiceFilter {
  kind?: string | undefined
  from?: string | undefined
  to?: string | undefined
  q?: string | undefined
}

interface Paging {
  cursor?: string | undefined
  limit?: number
}

export interface MarginFilter extends Paging {
  by: wire.MarginGrouping
  from?: string | undefined
  to?: string | undefined
}

interface UnbilledFilter {
  from: string
  to: string
}

export interface LedgerFilter {
  from?: string | undefined
  to?: string | undefined
  kind?: string | undefined
  zero?: string | undefined
}

/** What calls are chosen by: lists, sums, latencies and files take the same. */
export const CALL_FILTERS = [
  ...(['from', 'to', 'test', 'product', 'key', 'endpoint', 'vendor', 'client', 'labels', 'outcome', 'status'] as const),
  ...(['fault', 'minMs', 'minCharged', 'q', 'account'] as const),
] as const
export type CallFilter = Partial<Record<(typeof CALL_FILTERS)[number], string | undefined>>
type Order = { sort?: string | undefined; order?: string | undefined }
type Steps = { by: string; per?: string | undefined }
type Compared = { verdict?: string | undefined; tolerance: string }
type ByLabel = { label: string; sort?: string | undefined }

export const api = {
  session: (signal?: AbortSignal) => get<wire.Session>('/session', undefined, signal),
  setupOpen: () => get<wire.Setup>('/setup'),
  setUp: (input: { token: string; email: string; password: string }) => post<unknown>('/setup', input),
  logIn: (input: { email: string; password: string }) => post<wire.LoginStep>('/login', input),
  loginOptions: (signal?: AbortSignal) => get<wire.LoginOptions>('/login', undefined, signal),
  loginSso: (provider: string) => post<{ redirect: string }>('/login/sso', { provider }),
  finishSso: (input: { provider: string; parameters: string }) => post<wire.SsoStep>('/login/sso/finish', input),
  connectLogin: (input: { password: string; code?: string }) => post<wire.LoginStep>('/login/connect', input),
  loginCode: (code: string) => post<wire.LoginStep>('/login/code', { code }),
  loginPasskeyOptions: () => post<wire.PasskeyOptions>('/login/passkey/options'),
  loginPasskey: (response: unknown) => post<wire.LoginStep>('/login/passkey', { response }),
  loginLink: (token: string) => post<wire.LoginStep>('/login/link', { token }),
  security: (signal?: AbortSignal) => get<wire.Security>('/security', undefined, signal),
  beginTotp: () => post<wire.TotpSecret>('/second-factors/totp'),
  confirmTotp: (code: string) => put<wire.RecoveryCodes>('/second-factors/totp', { code }),
  removeFactor: (id: string) => remove<unknown>(`/second-factors/${encode(id)}`),
  renewRecoveryCodes: () => post<wire.RecoveryCodes>('/recovery-codes'),
  newPasskeyOptions: () => post<wire.PasskeyOptions>('/passkeys/options'),
  addPasskey: (input: { name: string; response: unknown }) => post<wire.RecoveryCodes>('/passkeys', input),
  connectProvider: (provider: string) => post<{ redirect: string }>('/identities', { provider }),
  disconnectLogin: (id: string) => remove<unknown>(`/identities/${encode(id)}`),
  prove: (input: { code: string } | { password: string }) => post<unknown>('/proof', input),
  provePasskeyOptions: () => post<wire.PasskeyOptions>('/proof/passkey/options'),
  provePasskey: (response: unknown) => post<unknown>('/proof/passkey', { response }),
  proveSso: () => post<{ redirect: string }>('/proof/sso'),
  loginProviders: (signal?: AbortSignal) => get<wire.Page<wire.LoginProvider>>('/login-providers', undefined, signal),
  putLoginProvider: (id: string, input: wire.LoginProviderInput) =>
    put<wire.LoginProvider>(`/login-providers/${encode(id)}`, input),
  removeLoginProvider: (id: string) => remove<unknown>(`/login-providers/${encode(id)}`),
  testLoginProvider: (id: string) => post<wire.ProviderTest>(`/login-providers/${encode(id)}/test`),
  loginPolicy: (signal?: AbortSignal) => get<wire.LoginPolicy>('/login-policy', undefined, signal),
  changeLoginPolicy: (policy: wire.LoginPolicy) => put<wire.LoginPolicy>('/login-policy', policy),
  auditExport: (signal?: AbortSignal) => get<wire.AuditExportView>('/audit-export', undefined, signal),
  putAuditExport: (input: wire.AuditExportInput) => put<wire.AuditExportView>('/audit-export', input),
  endAuditExport: () => remove<wire.AuditExportView>('/audit-export'),
  logOut: () => post<unknown>('/logout'),
  changePassword: (input: { current: string; next: string }) => post<unknown>('/password', input),
  sessions: (signal?: AbortSignal) => get<wire.Page<wire.SessionRow>>('/sessions', undefined, signal),
  endSession: (id: string) => remove<unknown>(`/sessions/${encode(id)}`),
  invite: (token: string, signal?: AbortSignal) => get<wire.Invite>(`/invites/${encode(token)}`, undefined, signal),
  publicBranding: (signal?: AbortSignal) => get<wire.PublicBranding>('/public/branding', undefined, signal),
  signUp: (signal?: AbortSignal) => get<wire.SignUp>('/public/sign-up', undefined, signal),
  askSignUp: (email: string) => post<unknown>('/public/sign-up', { email }),
  askPassword: (email: string) => post<unknown>('/public/password', { email }),
  signUpLink: (token: string, signal?: AbortSignal) =>
    get<wire.SignUpLink>(`/public/sign-up/${encode(token)}`, undefined, signal),
  finishSignUp: (token: string, input: { password: string; name?: string; terms?: string }) =>
    post<unknown>(`/public/sign-up/${encode(token)}`, input),
  deleteMe: (input: { email: string; forfeit: boolean }) => post<unknown>('/me/delete', input),
  signUpSettings: (signal?: AbortSignal) => get<wire.SignUpSettings>('/sign-up', undefined, signal),
  changeSignUp: (settings: Omit<wire.SignUpSettings, 'limits' | 'mailServer'> & { limits: wire.LimitsInput }) =>
    put<wire.SignUpSettings>('/sign-up', settings),
  signUpInvites: (signal?: AbortSignal) => get<wire.Page<wire.SignUpInvite>>('/sign-up/invites', undefined, signal),
  inviteToSignUp: (email: string) => post<wire.Link>('/sign-up/invites', { email }),
  withdrawSignUpInvite: (invite: string) => remove<unknown>(`/sign-up/invites/${encode(invite)}`),
  branding: (signal?: AbortSignal) => get<wire.Branding>('/branding', undefined, signal),
  changeBranding: (input: Omit<wire.Branding, 'logo'>) => put<wire.Branding>('/branding', input),
  changeLogo: (data: string) => put<wire.Branding>('/branding/logo', { data }),
  removeLogo: () => remove<wire.Branding>('/branding/logo'),
  mails: (signal?: AbortSignal) => get<wire.Page<wire.MailPreview>>('/mails', undefined, signal),
  /** For a frame, which asks for HTML. */
  mailAddress: (name: string) => apiUrl(`/mails/${encode(name)}`),
  joinByInvite: (token: string) => post<unknown>(`/invites/${encode(token)}/join`),
  acceptInvite: (token: string, password: string, endOthers: boolean) =>
    post<unknown>(`/invites/${encode(token)}`, { password, endOthers }),

  accounts: (query: { q?: string } & Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.Account>>('/accounts', { ...query }, signal),
  labels: (id: string, signal?: AbortSignal) => get<{ names: string[] }>(account(id, '/labels'), undefined, signal),
  account: (id: string, signal?: AbortSignal) => get<wire.Account>(account(id), undefined, signal),
  createAccount: (input: { name: string; credits?: string; limits?: wire.LimitsInput }) =>
    post<wire.Account>('/accounts', input),
  changeAccount: (id: string, input: { name?: string; limits?: wire.LimitsInput }) =>
    patch<wire.Account>(account(id), input),
  /** `key` is the idempotency key: sent again after a lost answer, the credits are added once. */
  addCredits: (id: string, body: { amount: string; note: string; correction: boolean }, key: string) =>
    call<wire.Account>('POST', account(id, '/credits'), { body, headers: { 'idempotency-key': key } }),
  suspendAccount: (id: string, input: { reason: string }) => post<wire.Account>(account(id, '/suspend'), input),
  closeAccount: (id: string, input: { reason: string; balance: 'payout' | 'writeoff' }) =>
    post<wire.Account>(account(id, '/close'), input),
  reopenAccount: (id: string) => post<wire.Account>(account(id, '/reopen')),
  systemLimits: (signal?: AbortSignal) => get<wire.Limits>('/limits', undefined, signal),
  changeSystemLimits: (limits: wire.LimitsInput) => patch<wire.Limits>('/limits', limits),

  sales: (id: string, signal?: AbortSignal) => get<wire.Sales>(account(id, '/sales'), undefined, signal),
  buy: (id: string, order: { pack?: string; amount?: string; saveCard?: boolean }) =>
    post<wire.Checkout>(account(id, '/purchases'), order),
  accountPayments: (id: string, cursor?: string, signal?: AbortSignal) =>
    get<wire.Page<wire.Payment>>(account(id, '/payments'), { cursor }, signal),
  checkPayment: (id: string, payment: string) => post<wire.Payment>(account(id, `/payments/${encode(payment)}/check`)),
  saveCard: (id: string) => post<wire.Checkout>(account(id, '/card')),
  portal: (id: string) => post<wire.Checkout>(account(id, '/portal')),
  setTopUp: (id: string, input: { below: string; amount: string; ceiling: string }) =>
    put<wire.Sales>(account(id, '/top-up'), input),
  endTopUp: (id: string) => remove<wire.Sales>(account(id, '/top-up')),
  payments: (filter: { state?: string | undefined; cursor?: string | undefined }, signal?: AbortSignal) =>
    get<wire.Page<wire.Payment>>('/payments', filter, signal),
  refundPayment: (id: string, amount: string) => post<wire.Payment>(`/payments/${encode(id)}/refund`, { amount }),
  acceptPayment: (id: string, to: { account: string; credits: string }) =>
    post<wire.Payment>(`/payments/${encode(id)}/accept`, to),
  dismissPayment: (id: string) => post<wire.Payment>(`/payments/${encode(id)}/dismiss`),
  reconciliations: (cursor?: string, signal?: AbortSignal) =>
    get<wire.Page<wire.Reconciliation>>('/reconciliations', { cursor }, signal),
  paymentSettings: (signal?: AbortSignal) => get<wire.PaymentSettings>('/payment-settings', undefined, signal),
  changePaymentSettings: (input: wire.PaymentSettingsInput) => patch<wire.PaymentSettings>('/payment-settings', input),
  balance: (id: string, signal?: AbortSignal) => get<wire.Balance>(account(id, '/balance'), undefined, signal),
  plan: (id: string, signal?: AbortSignal) => get<wire.AccountPlan>(account(id, '/plan'), undefined, signal),
  /** `checkout`: on the payment page, also where a card is saved. */
  choosePlan: (id: string, input: { plan: string | null; checkout?: boolean }) =>
    put<wire.ChosenPlan>(account(id, '/plan'), input),
  redeemCode: (id: string, code: string) => post<wire.Redeemed>(account(id, '/codes'), { code }),
  plans: (signal?: AbortSignal) => get<{ plans: wire.PlanOffer[] }>('/plans', undefined, signal),
  codeBatches: (cursor?: string, signal?: AbortSignal) =>
    get<wire.Page<wire.CodeBatch>>('/code-batches', { cursor }, signal),
  createCodes: (input: Readonly<Record<string, unknown>>) => post<wire.NewCodeBatch>('/code-batches', input),
  endCodes: (batch: string) => post<wire.CodeBatch>(`/code-batches/${encode(batch)}/end`),
  reconcile: () => post<wire.Reconciliation>('/reconciliations', {}),
  members: (id: string, signal?: AbortSignal) =>
    get<wire.Page<wire.Member>>(account(id, '/members'), undefined, signal),
  inviteMember: (id: string, input: { email: string; role: wire.AccountRole }) =>
    post<{ link: string | null }>(account(id, '/invites'), input),
  changeRole: (id: string, userId: string, role: wire.AccountRole) =>
    patch<{ ended: wire.Ended | null }>(account(id, `/members/${encode(userId)}`), { role }),
  invites: (id: string, signal?: AbortSignal) =>
    get<wire.Page<wire.PendingInvite>>(account(id, '/invites'), undefined, signal),
  withdrawInvite: (id: string, inviteId: string) => remove<unknown>(account(id, `/invites/${encode(inviteId)}`)),
  operators: (signal?: AbortSignal) => get<wire.Page<wire.Operator>>('/operators', undefined, signal),
  removeOperator: (userId: string) => remove<unknown>(`/operators/${encode(userId)}`),
  operatorInvites: (signal?: AbortSignal) => get<wire.Page<wire.PendingInvite>>('/operator-invites', undefined, signal),
  inviteOperator: (input: { email: string; role: wire.OperatorRole }) => post<wire.Link>('/operator-invites', input),
  changeOperator: (userId: string, role: wire.OperatorRole) => patch<unknown>(`/operators/${encode(userId)}`, { role }),
  domains: (id: string, signal?: AbortSignal) =>
    get<wire.Page<wire.Domain>>(account(id, '/domains'), undefined, signal),
  proveDomain: (id: string, domain: string) => post<wire.Domain>(account(id, '/domains'), { domain }),
  removeDomain: (id: string, domain: string) => remove<unknown>(account(id, '/domains'), { domain }),
  tokens: (id: string | undefined, signal?: AbortSignal) =>
    get<wire.Page<wire.Token>>(id === undefined ? '/tokens' : account(id, '/tokens'), undefined, signal),
  createToken: (id: string | undefined, input: wire.TokenInput) =>
    post<wire.NewToken>(id === undefined ? '/tokens' : account(id, '/tokens'), input),
  revokeToken: (id: string | undefined, token: string) =>
    id === undefined
      ? remove<wire.Token>(`/tokens/${encode(token)}`)
      : remove<wire.Token>(account(id, `/tokens/${encode(token)}`)),
  withdrawOperatorInvite: (inviteId: string) => remove<unknown>(`/operator-invites/${encode(inviteId)}`),
  webhookSecret: (id: string, signal?: AbortSignal) =>
    get<wire.WebhookSecret>(account(id, '/webhook-secret'), undefined, signal),
  passwordLink: (email: string) => post<wire.Link>('/password-link', { email }),
  removeMember: (id: string, userId: string, keysTo: string) =>
    remove<{ ended: wire.Ended }>(
      account(id, `/members/${encode(userId)}`) + (keysTo ? `?keysTo=${encode(keysTo)}` : ''),
    ),

  budgets: (id: string, signal?: AbortSignal) =>
    get<wire.Page<wire.Budget>>(account(id, '/budgets'), undefined, signal),
  createBudget: (id: string, input: wire.BudgetInput) => post<wire.Budget>(account(id, '/budgets'), input),
  changeBudget: (id: string, budget: string, input: Partial<wire.BudgetInput>) =>
    patch<wire.Budget>(account(id, `/budgets/${encode(budget)}`), input),
  endBudget: (id: string, budget: string) => remove<wire.Budget>(account(id, `/budgets/${encode(budget)}`)),
  budgetValues: (id: string, budget: string, signal?: AbortSignal) =>
    get<wire.Page<wire.BudgetValue>>(account(id, `/budgets/${encode(budget)}/values`), undefined, signal),
  setBudgetValue: (id: string, budget: string, input: { value: string; max: string | null }) =>
    put<wire.BudgetValue>(account(id, `/budgets/${encode(budget)}/values`), input),
  teams: (id: string, signal?: AbortSignal) => get<wire.Page<wire.Team>>(account(id, '/teams'), undefined, signal),
  createTeam: (id: string, input: { name: string; parentId: string | null }) =>
    post<wire.Team>(account(id, '/teams'), input),
  changeTeam: (id: string, team: string, input: { name?: string; scimGroup?: string | null }) =>
    patch<wire.Team>(account(id, `/teams/${encode(team)}`), input),
  removeTeam: (id: string, team: string) => remove<wire.Team>(account(id, `/teams/${encode(team)}`)),
  setTeamMembers: (id: string, team: string, userIds: string[]) =>
    put<wire.Team>(account(id, `/teams/${encode(team)}/members`), { userIds }),

  keys: (id: string, paging: Paging = {}, signal?: AbortSignal) =>
    get<wire.Page<wire.Key>>(account(id, '/keys'), { ...paging }, signal),
  connection: (uid: string, signal?: AbortSignal) => get<wire.Connect>(connect(uid, 'details'), undefined, signal),
  allowConnection: (uid: string, terms: Terms) => post<{ redirect: string }>(connect(uid, 'allow'), terms),
  refuseConnection: (uid: string) => post<{ redirect: string }>(connect(uid, 'refuse')),
  device: (code: string) => post<wire.Device>('/device', { code }),
  allowDevice: (code: string, terms: Terms) => post<{ allowed: boolean }>('/device/allow', { code, ...terms }),
  refuseDevice: (code: string) => post<{ allowed: boolean }>('/device/refuse', { code }),

  testBalance: (id: string, signal?: AbortSignal) => get<wire.Account>(account(id, '/test-balance'), undefined, signal),
  refillTest: (id: string) => put<wire.Account>(account(id, '/test-balance'), {}),
  createKey: (id: string, input: wire.KeyInput) => post<wire.NewKey>(account(id, '/keys'), input),
  changeKey: (keyId: string, input: Partial<wire.KeyInput>) => patch<wire.Key>(`/keys/${encode(keyId)}`, input),
  revokeKey: (keyId: string) => remove<unknown>(`/keys/${encode(keyId)}`),
  rotateKey: (keyId: string, input: Partial<wire.KeyInput> & { overlapSeconds: number }) =>
    post<wire.NewKey>(`/keys/${encode(keyId)}/rotate`, input),

  overview: (id: string, days: number, signal?: AbortSignal) =>
    get<wire.Overview>(account(id, '/overview'), { days }, signal),
  /** Calls of an account, or without one of all accounts. */
  usage: (id: string | undefined, query: CallFilter & Order & Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.ListedCall>>(scoped(id, '/usage'), { ...query }, signal),
  usageByClient: (id: string, query: Pick<CallFilter, 'from' | 'to' | 'test'>, signal?: AbortSignal) =>
    get<wire.Page<wire.ClientSum>>(account(id, '/usage-by-client'), { ...query }, signal),
  /** `compare`: with the totals of the period before. */
  sums: (id: string | undefined, query: CallFilter & Steps & { compare?: 'true' | undefined }, signal?: AbortSignal) =>
    get<wire.UsageSums>(scoped(id, '/usage/sums'), { zone: zoneName(), ...query }, signal),
  latency: (id: string | undefined, query: CallFilter & Steps, signal?: AbortSignal) =>
    get<wire.UsageLatency>(scoped(id, '/usage/latency'), { zone: zoneName(), ...query }, signal),
  usageCsv: (id: string | undefined, query: CallFilter & Order) => csv(scoped(id, '/usage'), { ...query }),
  sumsCsv: (id: string | undefined, query: CallFilter & Steps) =>
    csv(scoped(id, '/usage/sums'), { zone: zoneName(), ...query }),
  /** What the values of a label came to: end users, sessions, teams. */
  labelSums: (id: string | undefined, query: CallFilter & ByLabel & Paging, signal?: AbortSignal) =>
    get<wire.LabelSums>(scoped(id, '/usage/labels'), { ...query }, signal),
  labelSumsCsv: (id: string | undefined, query: CallFilter & ByLabel) => csv(scoped(id, '/usage/labels'), { ...query }),
  actions: (signal?: AbortSignal) => get<wire.Page<wire.Action>>('/actions', undefined, signal),
  act: (method: string, path: string, query: Query, body: unknown) => call<unknown>(method, path, { query, body }),
  views: (page: string, signal?: AbortSignal) => get<wire.Page<wire.SavedView>>('/views', { page }, signal),
  saveView: (view: wire.SavedView & { page: string }) => put<wire.SavedView>('/views', view),
  deleteView: (page: string, name: string) => remove<unknown>('/views', { page, name }),
  limitFills: (id: string, signal?: AbortSignal) =>
    get<wire.Page<wire.Fill>>(account(id, '/limits'), undefined, signal),
  keyFigures: (id: string, days: number, signal?: AbortSignal) =>
    get<wire.Page<wire.KeyFigures>>(account(id, '/keys/figures'), { days }, signal),
  search: (q: string, signal?: AbortSignal) => get<wire.Page<wire.Found>>('/search', { q }, signal),
  home: (days: number, signal?: AbortSignal) => get<wire.HomeFigures>('/home', { days }, signal),
  run: (id: string, run: string, signal?: AbortSignal) => get<wire.Run>(account(id, '/run'), { run }, signal),
  usageOf: (requestId: string, signal?: AbortSignal) =>
    get<wire.UsageDetail>(`/usage/${encode(requestId)}`, undefined, signal),
  content: (requestId: string, signal?: AbortSignal) =>
    get<wire.Content>(`/usage/${encode(requestId)}/content`, undefined, signal),
  removeContent: (requestId: string) => remove<unknown>(`/usage/${encode(requestId)}/content`),
  contentRules: (id: string, signal?: AbortSignal) =>
    get<wire.ContentRules>(account(id, '/content'), undefined, signal),
  setContentRule: (id: string, rule: { key?: string; days: number; maxBytes: number }) =>
    put<wire.ContentRules>(account(id, '/content'), rule),
  unsetContentRule: (id: string, key?: string) => remove<wire.ContentRules>(account(id, '/content'), { key }),
  ledger: (id: string, query: LedgerFilter & Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.LedgerRow>>(account(id, '/ledger'), { ...query }, signal),
  jobs: (id: string, query: { status?: string | undefined } & Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.ListedJob>>(account(id, '/jobs'), { ...query }, signal),
  job: (id: string, jobId: string, signal?: AbortSignal) =>
    get<wire.Job>(account(id, `/play/v1/jobs/${encode(jobId)}`), undefined, signal),
  cancelJob: (id: string, jobId: string) => remove<unknown>(account(id, `/play/v1/jobs/${encode(jobId)}`)),
  batches: (id: string, query: { status?: string | undefined } & Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.Batch>>(account(id, '/batches'), { ...query }, signal),
  batch: (id: string, batch: string, signal?: AbortSignal) =>
    get<wire.BatchDetail>(account(id, `/batches/${encode(batch)}`), undefined, signal),
  batchLines: (id: string, batch: string, query: { outcome: 'failed' | 'completed' } & Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.BatchLine>>(account(id, `/batches/${encode(batch)}/lines`), { ...query }, signal),
  cancelBatch: (id: string, batch: string) => post<wire.BatchDetail>(account(id, `/batches/${encode(batch)}/cancel`)),
  checkFile: (id: string, file: string, endpoint: string) =>
    get<wire.FileCheck>(account(id, `/files/${encode(file)}/check`), { endpoint }),
  /** Where the browser can save it from. */
  fileAddress: (id: string, file: string) => apiUrl(account(id, `/play/v1/files/${encode(file)}/content`)),
  ledgerCsv: (id: string, query: LedgerFilter = {}) => csv(account(id, '/ledger'), { ...query }),

  /** With a label: its usage by the label's values. */
  statement: (id: string, month: string, label: string | undefined, signal?: AbortSignal) =>
    get<wire.MonthlyStatement>(account(id, `/statements/${month}`), { label }, signal),
  statementFile: (id: string, month: string, label: string | undefined, type: 'application/pdf' | 'text/csv') =>
    file(account(id, `/statements/${month}`), type, { label }),
  invoices: (id: string | undefined, query: InvoiceFilter & Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.Invoice>>(scoped(id, '/invoices'), { ...query }, signal),
  invoicesZip: (query: InvoiceFilter) => file('/invoices', 'application/zip', { ...query }),
  invoiceFile: (id: string, invoice: string) => file(account(id, `/invoices/${encode(invoice)}`), 'application/pdf'),
  invoiceSettings: (signal?: AbortSignal) => get<wire.InvoiceSettings>('/invoice-settings', undefined, signal),
  changeInvoiceSettings: (input: { issuer?: Readonly<Record<string, unknown>> | null; monthly?: boolean }) =>
    patch<wire.InvoiceSettings>('/invoice-settings', input),
  billingDetails: (id: string, signal?: AbortSignal) =>
    get<wire.BillingDetails>(account(id, '/billing-details'), undefined, signal),
  changeBillingDetails: (id: string, input: Readonly<Record<string, string | null>>) =>
    put<wire.BillingDetails>(account(id, '/billing-details'), input),
  statements: (month: string, query: { cursor?: string | undefined; limit: number }, signal?: AbortSignal) =>
    get<wire.Page<wire.StatementSummary>>(`/statements/${month}`, query, signal),
  statementsZip: (month: string) => file(`/statements/${month}`, 'application/zip'),
  margins: (query: MarginFilter, signal?: AbortSignal) => get<wire.Margins>('/margins', { ...query }, signal),
  marginsCsv: (query: MarginFilter) => csv('/margins', { ...query }),
  unbilled: (query: UnbilledFilter & { cursor?: string | undefined; limit: number }, signal?: AbortSignal) =>
    get<wire.Page<wire.UnbilledRow>>('/margins/unbilled', { ...query }, signal),
  unbilledCsv: (query: UnbilledFilter) => csv('/margins/unbilled', { ...query }),
  toolSignIns: (id: string | undefined, signal?: AbortSignal) =>
    get<wire.Page<wire.ToolSignIn>>(scoped(id, '/tool-connections'), undefined, signal),
  beginToolSignIn: (id: string | undefined, server: string, shared: boolean) =>
    post<{ redirect: string }>(scoped(id, `/tool-connections/${encode(server)}`), { shared }),
  finishToolSignIn: (id: string | undefined, parameters: string) =>
    put<unknown>(scoped(id, '/tool-connections'), { parameters }),
  endToolSignIn: (id: string | undefined, server: string, shared: boolean) =>
    remove<unknown>(scoped(id, `/tool-connections/${encode(server)}`), { shared: String(shared) }),
  productPresets: (signal?: AbortSignal) => get<wire.Page<wire.ProductPreset>>('/products/presets', undefined, signal),
  readProduct: (input: { document: string; operations?: string[] }) =>
    post<wire.ImportedDocument>('/products/read', input),
  checkProduct: (body: wire.ProductInput, signal?: AbortSignal) =>
    call<wire.ProductCheck>('POST', '/products', { body, query: { dryRun: 1 }, signal }),
  putProduct: (input: wire.ProductInput) => post<wire.Applied>('/products', input),
  checkRemoveProduct: (id: string, signal?: AbortSignal) =>
    call<wire.ProductCheck>('DELETE', `/products/${encode(id)}`, { query: { dryRun: 1 }, signal }),
  removeProduct: (id: string) => remove<wire.Applied>(`/products/${encode(id)}`),
  toolServers: (signal?: AbortSignal) => get<wire.Page<wire.ToolServer>>('/tool-servers', undefined, signal),
  toolServer: (name: string, signal?: AbortSignal) =>
    get<wire.ToolServer>(`/tool-servers/${encode(name)}`, undefined, signal),
  registerToolServer: (name: string, input: object) => put<wire.ToolServer>(`/tool-servers/${encode(name)}`, input),
  refreshToolServer: (name: string) => post<wire.ToolServer>(`/tool-servers/${encode(name)}/refresh`),
  chooseTool: (name: string, input: object) => put<wire.ToolServer>(`/tool-servers/${encode(name)}/tools`, input),
  removeToolServer: (name: string) => remove<unknown>(`/tool-servers/${encode(name)}`),
  exports: (signal?: AbortSignal) => get<wire.Page<wire.Export>>('/exports', undefined, signal),
  export: (id: string, signal?: AbortSignal) => get<wire.Export>(`/exports/${encode(id)}`, undefined, signal),
  createExport: (input: { name: string; kind: string; settings: Record<string, unknown> }) =>
    post<wire.Export>('/exports', input),
  changeExport: (id: string, input: { name: string; settings: Record<string, unknown> }) =>
    patch<wire.Export>(`/exports/${encode(id)}`, input),
  removeExport: (id: string) => remove<wire.Export>(`/exports/${encode(id)}`),
  pauseExport: (id: string) => post<wire.Export>(`/exports/${encode(id)}/pause`),
  resumeExport: (id: string) => post<wire.Export>(`/exports/${encode(id)}/resume`),
  testExport: (id: string) => post<wire.ExportTest>(`/exports/${encode(id)}/test`),
  backfillExport: (id: string, days: { from: string; to: string }) =>
    post<wire.Export>(`/exports/${encode(id)}/backfill`, days),
  storeExportCredential: (id: string, value: string) => put<unknown>(`/exports/${encode(id)}/credential`, { value }),
  exportCustomers: (id: string, query: Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.ExportCustomer>>(`/exports/${encode(id)}/customers`, { ...query }, signal),
  nameExportCustomer: (id: string, whose: string, customer: string | null) =>
    put<unknown>(`/exports/${encode(id)}/customers`, { account: whose, customer }),
  focusCsv: (days: { from: string; to: string }) => csv('/focus', { ...days }),
  vendorReports: (signal?: AbortSignal) => get<wire.Page<wire.VendorReport>>('/vendor-reports', undefined, signal),
  vendorReport: (id: string, signal?: AbortSignal) =>
    get<wire.VendorReport>(`/vendor-reports/${encode(id)}`, undefined, signal),
  createVendorReport: (input: Readonly<Record<string, unknown>>) => post<wire.VendorReport>('/vendor-reports', input),
  removeVendorReport: (id: string) => remove<wire.VendorReport>(`/vendor-reports/${encode(id)}`),
  storeReportCredential: (input: { source: string; value: string; url?: string }) =>
    put<{ name: string }>('/vendor-reports/credential', input),
  comparedLines: (id: string, query: Compared & Paging, signal?: AbortSignal) =>
    get<wire.ComparedPage>(`/vendor-reports/${encode(id)}/lines`, { ...query }, signal),
  comparedCsv: (id: string, query: Compared) => csv(`/vendor-reports/${encode(id)}/lines`, { ...query }),
  comparedCalls: (
    id: string,
    query: { day: string; model: string; credential?: string | undefined } & Paging,
    signal?: AbortSignal,
  ) => get<wire.Page<wire.ComparedCall>>(`/vendor-reports/${encode(id)}/calls`, { ...query }, signal),
  billing: (signal?: AbortSignal) => get<wire.Billing>('/billing', undefined, signal),
  changeBilling: (input: { worth?: wire.CreditWorth | null; contact?: string | null }) =>
    patch<wire.Billing>('/billing', input),

  agentSetups: (signal?: AbortSignal) =>
    get<wire.Page<wire.AgentSetup>>('/agent-setup', { url: window.location.origin }, signal),
  publicCatalog: (signal?: AbortSignal) => get<wire.PublicCatalog>('/catalog/public', undefined, signal),
  catalog: (signal?: AbortSignal) => get<wire.Catalog>('/catalog', undefined, signal),
  checkCatalog: (document: unknown) => put<wire.CatalogCheck>('/catalog', { document }, { dryRun: 1 }),
  /** `basedOn`: rejected if another version is current by now. */
  applyCatalog: (document: unknown, note: string, basedOn?: number) =>
    put<wire.Applied>('/catalog', { document, note: note || undefined, basedOn }),
  tryRedaction: (redact: Pick<NonNullable<wire.GuardrailRule['redact']>, 'patterns' | 'own'>, text: string) =>
    post<wire.RedactionSample>('/guardrails/try', { redact, text }),
  gatewayWebhookSecret: (signal?: AbortSignal) => get<wire.WebhookSecret>('/webhook-secret', undefined, signal),
  catalogVersions: (paging: Paging, signal?: AbortSignal) =>
    get<wire.Page<wire.CatalogVersion>>('/catalog/versions', { ...paging }, signal),
  catalogVersion: (version: number, signal?: AbortSignal) =>
    get<wire.CatalogVersionDocument>(`/catalog/versions/${version}`, undefined, signal),
  comparePrices: () => post<wire.PriceComparison>('/prices/compare', {}),
  applyPrices: (rows: readonly string[]) => post<wire.Applied>('/prices', { rows }),
  rollBackCatalog: (version: number) => post<wire.Applied>('/catalog/rollback', { version }),
  checkRollback: (version: number) =>
    call<wire.VendorCheck>('POST', '/catalog/rollback', { body: { version }, query: { dryRun: 1 } }),
  routeFigures: (uid: string, signal?: AbortSignal) =>
    get<wire.Page<wire.RouteFigures>>(`/models/${encode(uid)}/routes`, undefined, signal),
  vendors: (signal?: AbortSignal) => get<wire.Page<wire.Vendor>>('/vendors', undefined, signal),
  vendorHistory: (hours: number, signal?: AbortSignal) =>
    get<wire.Page<wire.VendorHistory>>('/vendors/history', { hours }, signal),
  vendorErrors: (name: string, signal?: AbortSignal) =>
    get<wire.Page<wire.VendorError>>(`/vendors/${encode(name)}/errors`, undefined, signal),
  checkVendor: (name: string, input: wire.VendorChange) =>
    call<wire.VendorCheck>('PATCH', `/vendors/${encode(name)}`, { body: input, query: { dryRun: 1 } }),
  changeVendor: (name: string, input: wire.VendorChange) => patch<wire.Applied>(`/vendors/${encode(name)}`, input),
  checkRemoval: (name: string) =>
    call<wire.VendorCheck>('DELETE', `/vendors/${encode(name)}`, { query: { dryRun: 1 } }),
  /** With `force` also if no other vendor serves something: only for whoever has seen what that is. */
  removeVendor: (name: string, force: boolean) =>
    call<wire.Applied>('DELETE', `/vendors/${encode(name)}`, { query: { force: String(force) } }),
  presets: (signal?: AbortSignal) => get<wire.Page<wire.Preset>>('/presets', undefined, signal),
  testConnection: (place: wire.ConnectPlace & { model?: string }) => post<wire.VendorTest>('/connect/test', place),
  checkConnection: (input: wire.ConnectInput) =>
    call<wire.ConnectCheck>('POST', '/connect', { body: input, query: { dryRun: 1 } }),
  connectVendor: (input: wire.ConnectInput) => post<wire.Applied>('/connect', input),
  testVendor: (name: string) => post<wire.VendorTest>(`/vendors/${encode(name)}/test`),
  byokKeys: (id: string, signal?: AbortSignal) =>
    get<wire.Page<wire.ByokKey>>(account(id, '/byok-keys'), undefined, signal),
  putByokKey: (id: string, vendor: string, input: { value?: string; fallback?: boolean }) =>
    put<wire.ByokKeyStored>(account(id, `/byok-keys/${encode(vendor)}`), input),
  dropByokKey: (id: string, vendor: string) => remove<unknown>(account(id, `/byok-keys/${encode(vendor)}`)),
  putCredential: (name: string, credential: string, input: { value?: string; weight?: number; shared?: boolean }) =>
    put<unknown>(`/vendors/${encode(name)}/credentials/${encode(credential)}`, input),
  dropCredential: (name: string, credential: string, force: boolean) =>
    call<unknown>('DELETE', `/vendors/${encode(name)}/credentials/${encode(credential)}`, {
      query: { force: String(force) },
    }),
  removeCredential: (name: string) => remove<unknown>(`/vendors/${encode(name)}/credential`),

  alerts: (id: string | undefined, query: Paging & { of?: 'all' | 'gateway' }, signal?: AbortSignal) =>
    get<wire.AlertPage>(scoped(id, '/alerts'), { ...query }, signal),
  /** Those up to this one have been seen. */
  readAlerts: (id: string | undefined, until: string) => post<unknown>(scoped(id, '/alerts/read'), { until }),
  testAlerts: (id: string | undefined) => post<wire.Alert>(scoped(id, '/alerts/test')),
  alertSettings: (id: string | undefined, signal?: AbortSignal) =>
    get<wire.AlertSettings>(scoped(id, '/alert-settings'), undefined, signal),
  changeAlerts: (id: string | undefined, settings: wire.AlertSettingsInput) =>
    put<wire.AlertSettings>(scoped(id, '/alert-settings'), settings),

  deliveries: (
    id: string | undefined,
    query: Paging & { status?: string | undefined; kind?: string | undefined; account?: string | undefined },
    signal?: AbortSignal,
  ) => get<wire.DeliveryPage>(scoped(id, '/deliveries'), { ...query }, signal),
  delivery: (id: string | undefined, delivery: string, signal?: AbortSignal) =>
    get<wire.DeliveryDetail>(scoped(id, `/deliveries/${encode(delivery)}`), undefined, signal),
  repeatDelivery: (id: string | undefined, delivery: string) =>
    post<wire.Delivery>(scoped(id, `/deliveries/${encode(delivery)}/repeat`)),

  ledgerChecks: (signal?: AbortSignal) => get<wire.LedgerChecks>('/ledger/verify', undefined, signal),
  checkLedger: (full: boolean) => post<wire.LedgerCheck>('/ledger/verify', { full }),
  audit: (
    query: Paging & { [name in 'actor' | 'action' | 'object' | 'token' | 'from' | 'to']?: string | undefined },
    signal?: AbortSignal,
  ) => get<wire.Page<wire.AuditRow>>('/audit', { ...query }, signal),
  liveCalls: (signal?: AbortSignal) => get<wire.Live>('/requests/live', undefined, signal),
  system: (signal?: AbortSignal) => get<wire.System>('/system', undefined, signal),

  /** The public API, called on behalf of an account: same body, same answer. */
  play: (
    id: string,
    method: string,
    path: string,
    options: { query?: Query; body?: unknown; signal?: AbortSignal } = {},
  ) => send(method, account(id, `/play${path}`), options),
}
