// The operator API and the console API on a database of their own, on a real socket, without vendors behind them.
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { type Accounts, createAccounts } from '../src/admission/accounts.ts'
import { type ApiKeys, createApiKeys } from '../src/admission/api-key.ts'
import { createBudgets } from '../src/admission/budgets.ts'
import { createKeys, type Keys } from '../src/admission/keys.ts'
import { createTeams } from '../src/admission/teams.ts'
import { createAlerts } from '../src/alerts/alerts.ts'
import { openBranding } from '../src/branding/branding.ts'
import { type CatalogStore, openCatalog } from '../src/catalog/store.ts'
import { openByokKeys } from '../src/credentials/byok-keys.ts'
import { type Credentials, openCredentials } from '../src/credentials/credentials.ts'
import { openToolConnections } from '../src/credentials/tool-connections.ts'
import { type Audit, createAudit } from '../src/database/audit.ts'
import { type Changes, createChanges } from '../src/database/changes.ts'
import { type Database, openDatabase } from '../src/database/database.ts'
import { createExports } from '../src/exports/exports.ts'
import { createVendorReports } from '../src/exports/reconcile.ts'
import { createGuardrails } from '../src/guardrails/chain.ts'
import { createAttempts } from '../src/identity/attempts.ts'
import { createFlows } from '../src/identity/flows.ts'
import { createLogin } from '../src/identity/login.ts'
import { createMembers } from '../src/identity/members.ts'
import { createOwnDeletion } from '../src/identity/own-deletion.ts'
import { type Cost, createPasswords } from '../src/identity/password.ts'
import { createPeople, type People } from '../src/identity/people.ts'
import { createBrowsers, createSessions } from '../src/identity/sessions.ts'
import { createSignUp } from '../src/identity/sign-up.ts'
import { createTokens } from '../src/identity/tokens.ts'
import { createInvoices } from '../src/invoices/invoices.ts'
import { createAuditExport } from '../src/jobs/audit-export.ts'
import { createDeliveries } from '../src/jobs/deliveries.ts'
import { JOB_TIMING } from '../src/jobs/job.ts'
import type { Work } from '../src/jobs/work.ts'
import { Fault } from '../src/kernel/fault.ts'
import { createLog, type Log, silentLog } from '../src/kernel/log.ts'
import { createContentSealer, createSecrets, type Secrets } from '../src/kernel/secret.ts'
import { realWorld as world } from '../src/kernel/world.ts'
import { createLedger, type Ledger } from '../src/ledger/ledger.ts'
import { mountAdmin, operatorResources, tokenActor } from '../src/operator/admin.ts'
import { type ConsoleDeps, mountConsole } from '../src/operator/console.ts'
import type { Resource } from '../src/operator/resource.ts'
import { loginResources, mountBackchannelLogout, securityResources } from '../src/operator/resources/login.ts'
import { sessionResources, visitorResources } from '../src/operator/resources/session.ts'
import { ownDeletionResources, signUpVisitorResources } from '../src/operator/resources/sign-up.ts'
import { createRecordingPolicies, createRecordings } from '../src/recordings/recordings.ts'
import { createBilling } from '../src/reports/billing.ts'
import { createStatements } from '../src/reports/statement.ts'
import { openToolServers } from '../src/routing/tool-servers.ts'
import { createCodes } from '../src/sales/codes.ts'
import { openSales } from '../src/sales/open.ts'
import { createServer } from '../src/server/server.ts'
import { createUpstream } from '../src/upstream/exchange.ts'
import { createGuardedFetch } from '../src/upstream/guard.ts'
import { createVerifier } from '../src/verify/runs.ts'
import { checkAnswers } from './answers.ts'
import { bookedBefore, freshDatabase } from './database.ts'
import { CHEAP } from './gateway.ts'
import { SMALL_CATALOG } from './small-catalog.ts'

/** Nothing is sent here. */
const idle: Pick<Work, 'begin'> = { begin: () => ({ wake() {}, release: async () => true }) }

export const OPERATOR_TOKEN = 'tg_op_token-of-the-operator-for-tests'

export interface OperatorServer {
  readonly url: string
  readonly database: Database
  readonly databaseUrl: string
  readonly ledger: Ledger
  readonly catalog: CatalogStore
  readonly changes: Changes
  readonly accounts: Accounts
  readonly keys: Keys
  readonly apiKeys: ApiKeys
  readonly audit: Audit
  readonly credentials: Credentials
  readonly people: People
  readonly secrets: Secrets
  /** Everything that is mounted: for the operator, for people, and for whoever comes. */
  readonly resources: { operator: Resource[]; session: Resource[]; visitor: Resource[] }
  /** Everything that was logged. */
  readonly logged: () => string
  /** The environment in which credentials are looked for. */
  readonly environment: Map<string, string>
  close(): Promise<void>
}

const nobody = async (): Promise<never> => {
  throw new Fault('not_found')
}

export async function startOperatorServer(
  options: { cost?: Cost; overrides?: Partial<ConsoleDeps>; trustedProxies?: string[]; outboundAllow?: string[] } = {},
): Promise<OperatorServer> {
  const fresh = await freshDatabase()
  const database = openDatabase({ connection: fresh.connection })
  const { log, logged } = memoryLog()
  const secrets = createSecrets('a root secret of at least 32 bytes for tests')
  const environment = new Map<string, string>()
  const changes = createChanges(database, world)
  const audit = createAudit({ database, world })
  const catalog = await openCatalog({ database, changes, audit, initial: SMALL_CATALOG })
  const ledger = createLedger({ database, world, processId: 'p1' })
  await ledger.sweep()
  const pepper = secrets.key('api-key')
  const apiKeys = createApiKeys({ database, changes, world, pepper, unknownPerMinute: 60 })
  const credentials = await openCredentials({
    ...{ database, changes, world, audit, secrets, environment },
  })
  const accounts = createAccounts({ database, world, ledger, audit, changes })
  const keys = createKeys({ database, changes, catalog, world, audit, accounts, ledger, pepper })
  const sessions = createSessions({ database, world })
  const passwords = createPasswords({ world, cost: options.cost ?? CHEAP })
  const browsers = createBrowsers({ key: secrets.key('browser'), world })
  const flows = createFlows({ database, world })
  const identity = { database, world, audit, passwords, attempts: createAttempts(database), browsers, sessions, flows }
  const people = createPeople(identity)
  const branding = await openBranding({ database, changes, audit })
  await changes.start()

  const deliveries = createDeliveries({
    ...{ database, secrets, world, log: silentLog, audit, mailer: undefined, work: idle, timing: JOB_TIMING },
    guard: { post: async () => ({ status: 200, excerpt: '' }) },
  })
  const billing = createBilling({ database, audit, world })
  let url = ''
  const invoices = createInvoices({ database, audit, world })
  const mailing = { mailboxKey: secrets.key('mailbox'), mails: undefined }
  const guard = createGuardedFetch({ world, allow: options.outboundAllow ?? [] })
  const toolConnections = await openToolConnections({ database, changes, audit, secrets, world, guard })
  const members = createMembers({ ...identity, keys, toolConnections })
  const login = createLogin({
    ...{ ...identity, credentials, members, guard, factorKey: secrets.key('second-factor') },
    publicUrl: () => url,
  })
  const deps: ConsoleDeps = {
    ...login,
    guard,
    ...{ database, changes, catalog, audit, world, accounts, keys, credentials, people, sessions, browsers },
    budgets: createBudgets({ database, world, audit, ledger }),
    teams: createTeams({ database, world, audit }),
    byokKeys: await openByokKeys({ database, changes, world, audit, secrets }),
    flows,
    toolConnections,
    toolServers: await openToolServers({
      ...{ database, changes, audit, log, catalog, world, upstream: createUpstream({ world }) },
      ...{ connections: toolConnections, publicUrl: () => url },
      logins: { open: () => assert.fail('no tool server here has a login') },
      sources: { sandboxUrl: () => undefined, credential: credentials.get },
    }),
    members,
    statements: createStatements(database),
    billing,
    vendorReports: createVendorReports({
      ...{ database, audit, catalog, credentials, billing, world, guard },
    }),
    exports: createExports({
      ...{ database, audit, credentials, billing, secrets, world, log: silentLog, work: idle, timing: JOB_TIMING },
      ...{ guard, branding, catalog },
    }),
    invoices,
    sales: openSales({
      ...{ database, catalog, world, ledger, audit, credentials, invoices, accounts, log: silentLog, branding },
      ...{ stripeUrl: undefined, mails: undefined, publicUrl: () => url },
    }),
    codes: createCodes({ database, audit, world, ledger, attempts: identity.attempts }),
    contents: createRecordings({
      database,
      guardrails: createGuardrails({ secrets }),
      world,
      log: silentLog,
      audit,
      sealer: createContentSealer(secrets, world),
      catalog,
      credentials,
    }),
    contentRules: createRecordingPolicies({ database, changes, audit }),
    publicUrl: () => url,
    tokens: createTokens({ database, world, audit, pepper: secrets.key('access-token') }),
    traceUrl: 'https://traces.example/search?id={request_id}',
    verifier: createVerifier({ database, audit, world, log: silentLog, usageMonths: 24, nightlyAt: 'off' }),
    webhookSecret: (account) => `whsec_${account}`,
    listJobs: async () => ({ items: [], next: null }),
    batches: {
      cancel: async () => undefined,
      queries: {
        list: async () => ({ items: [], next: null }),
        find: async () => undefined,
        lines: async () => undefined,
        check: async () => undefined,
      },
    },
    reports: {
      read: async () => ({ calls: [], running: 0, vendors: [], processes: { answering: 1, silent: 0 } }),
      leave: async () => undefined,
    },
    vendorHealth: () => [],
    prober: { view: () => null },
    credentialHealth: () => ({ disabledUntilMs: null, why: null, status: null, lastSuccessMs: null }),
    openJobs: async () => 0,
    sandboxUrl: () => undefined,
    test: async () => ({
      ...{ ok: true, status: 200, latencyMs: 3, message: 'It answers.' },
      ...{ steps: [], models: [], addressSuggested: null },
    }),
    system: {
      version: '0.0.0-test',
      storeKind: 'server',
      storeVersion: '18',
      migrations: { applied: 3, latest: 3 },
      queue: async () => ({ active: 0, created: 0, failed: 0, byStatus: {} }),
    },
    play: async () => undefined,
    auditExport: createAuditExport({
      ...{ database, audit, secrets, world, log: silentLog, work: idle, timing: JOB_TIMING },
      guard: { check: async () => undefined, post: nobody, send: nobody },
    }),
    deliveries,
    alerts: createAlerts({
      ...{ database, secrets, world, log: silentLog, mails: false, failingVendors: () => [], overruns: () => [] },
      guard: { check: async () => undefined },
      ...{ deliveries, branding, publicUrl: () => url },
    }),
    branding,
    signUp: createSignUp({ ...identity, accounts, branding, publicUrl: () => url, log, ...mailing }),
    ownDeletion: createOwnDeletion({
      ...{ ...identity, accounts, keys, toolConnections, branding, publicUrl: () => url, mails: undefined },
    }),
    connections: { look: nobody, allow: nobody, refuse: nobody },
    ...options.overrides,
  }
  const app = createServer({ world, log, strictErrors: false, trustedProxies: options.trustedProxies ?? [] })
  app.posted = ledger.posted
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', () => ({ ready: true }))
  const checkAnswered = checkAnswers(app)
  const operator = operatorResources(deps)
  await deps.tokens.adopt(OPERATOR_TOKEN)
  mountAdmin(app, operator, tokenActor(deps.tokens))
  mountConsole(app, operator, deps)
  mountBackchannelLogout(app, { sso: login.sso, world })
  await app.listen({ port: 0, host: '127.0.0.1' })
  url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  return {
    ...{
      url,
      database: bookedBefore({ database, ledger }),
      databaseUrl: fresh.url,
      ledger,
      catalog,
      changes,
      accounts,
      keys,
      apiKeys,
      audit,
      credentials,
    },
    ...{ people, secrets, logged, environment },
    resources: {
      operator,
      session: [...sessionResources(deps), ...securityResources(deps), ...ownDeletionResources(deps)],
      visitor: [...visitorResources(deps), ...loginResources(deps), ...signUpVisitorResources(deps)],
    },
    async close() {
      await app.close()
      await deps.alerts.stop()
      changes.stop()
      await ledger.idle()
      await database.close()
      await fresh.drop()
      checkAnswered()
    },
  }
}

export function memoryLog(): { log: Log; logged: () => string } {
  const lines: string[] = []
  const stream = { write: (line: string) => lines.push(line) } as unknown as NodeJS.WritableStream
  return { log: createLog({ level: 'trace', stream }), logged: () => lines.join('') }
}

export interface Answer<T = unknown> {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly data: T
  readonly error: { code: number; message: string } | undefined
}

export type Ask = <T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Answer<T>>

async function send<T>(
  url: string,
  method: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Answer<T>> {
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    redirect: 'manual',
  })
  const text = await response.text()
  const json = response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : {}
  return { status: response.status, headers: response.headers, text, data: json.data as T, error: json.error }
}

/** The operator API with the token. */
export function asOperator(server: OperatorServer): Ask {
  return (method, path, body, headers = {}) =>
    send(`${server.url}/admin/v1${path}`, method, body, { authorization: `Bearer ${OPERATOR_TOKEN}`, ...headers })
}

/** The console API as a browser on our own pages, with whatever cookies it was given last. */
export function asBrowser(server: Pick<OperatorServer, 'url'>): Ask & { cookie: string } {
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await send(`${server.url}/console/api${path}`, method, body, {
      'sec-fetch-site': 'same-origin',
      ...(browser.cookie ? { cookie: browser.cookie } : {}),
      ...headers,
    })
    const kept = new Map(browser.cookie.split('; ').map((pair) => [pair.split('=')[0]!, pair]))
    for (const set of answer.headers.getSetCookie()) {
      const [pair = ''] = set.split(';')
      if (set.includes('Max-Age=0')) kept.delete(pair.split('=')[0]!)
      else kept.set(pair.split('=')[0]!, pair)
    }
    browser.cookie = [...kept.values()].filter(Boolean).join('; ')
    return answer
  }
  const browser = Object.assign(ask as Ask, { cookie: '' })
  return browser
}
