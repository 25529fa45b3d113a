// A gateway for tests of the operator API and the console API: a small catalog, everything that it logs, and what it
// serves, by who may ask.

import type { WebServer } from '../src/api/server/server.ts'
import type { Database } from '../src/database/database.ts'
import type { VerificationRun, VerificationState } from '../src/extensions/verify/views.ts'
import type { Cost } from '../src/identity/password.ts'
import type { People } from '../src/identity/people.ts'
import { createLog, type Log } from '../src/kernel/log.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import type { Resolution } from '../src/ledger/operation.ts'
import { chargeOf } from '../src/meter/charge.ts'
import type { Usage } from '../src/meter/usage.ts'
import type { Resource } from '../src/operator/resource.ts'
import { freshDatabase } from './database.ts'
import { OPERATOR_TOKEN, startGateway, type TestGateway } from './gateway.ts'
import { assert, closing, until } from './kit.ts'
import { settlement } from './settlement.ts'
import { SMALL_CATALOG } from './small-catalog.ts'

export { OPERATOR_TOKEN }

/** Of everybody who signs in. */
export const PASSWORD = 'seven tired otters juggle'

type Parts = Pick<
  TestGateway['gateway'],
  'ledger' | 'catalog' | 'changes' | 'accounts' | 'keys' | 'apiKeys' | 'audit' | 'credentials' | 'secrets'
>

export interface OperatorServer extends Parts, AsyncDisposable {
  readonly url: string
  readonly app: WebServer
  readonly database: Database
  readonly sql: TestGateway['sql']
  readonly databaseUrl: string
  readonly people: People
  /** Everything that is mounted: for the operator, for people, and for whoever comes. */
  readonly resources: { operator: Resource[]; session: Resource[]; visitor: Resource[] }
  /** Everything that was logged. */
  readonly logged: () => string
  /** The environment in which credentials are looked for. */
  readonly environment: Map<string, string>
  /** People who log in from one address would wait for each other. */
  forgetTries(): Promise<unknown>
  close(): Promise<void>
}

interface OperatorServerOptions {
  readonly cost?: Cost
  readonly trustedProxies?: readonly string[]
  readonly outboundAllow?: readonly string[]
  /** Receivers of alerts and of the audit log may have names that no server knows. */
  readonly anyReceiver?: boolean
}

export async function startOperatorServer(options: OperatorServerOptions = {}): Promise<OperatorServer> {
  const { cost, trustedProxies = [], outboundAllow = [] } = options
  const fresh = await freshDatabase()
  const { log, logged } = memoryLog()
  const started = await startGateway({
    database: fresh,
    log,
    jobs: {},
    initialCatalog: SMALL_CATALOG,
    ...(cost ? { passwordCost: cost } : {}),
    env: {
      TOLLGATE_UNKNOWN_KEYS_PER_MINUTE: '60',
      TOLLGATE_TRACE_URL: 'https://traces.example/search?id={request_id}',
      TOLLGATE_TRUST_PROXY: trustedProxies.join(),
      TOLLGATE_OUTBOUND_ALLOW: outboundAllow.join(),
    },
  })
  const { url, gateway, config } = started
  const { app, database, guard } = gateway
  if (options.anyReceiver) Object.assign(guard, { check: async () => undefined })
  // What is mounted there is a resource.
  const mounted = app.router.routes.flatMap(([method, path, { resource }]) =>
    resource && method !== 'HEAD' ? [{ path, resource: resource as Resource }] : [],
  )
  const under = (prefix: string, access?: string) =>
    mounted.flatMap(({ path, resource }) =>
      path.startsWith(prefix) && (!access || resource.access === access) ? [resource] : [],
    )
  return closing({
    ...gateway,
    url,
    app,
    database,
    databaseUrl: fresh.url,
    logged,
    sql: started.sql,
    forgetTries: () => started.sql('delete from login_attempt'),
    environment: config.vendorKeys as Map<string, string>, // It is made by readConfig.
    resources: {
      operator: under('/admin/v1'),
      session: under('/console/api', 'self'),
      visitor: under('/console/api', 'visitor'),
    },
    async close() {
      await started.close()
      await fresh.drop()
    },
  })
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
export function asOperator(server: Pick<OperatorServer, 'url'>): Ask {
  return (method, path, body, headers = {}) =>
    send(`${server.url}/admin/v1${path}`, method, body, { authorization: `Bearer ${OPERATOR_TOKEN}`, ...headers })
}

/** Whom the operator invited there, with a password of theirs and logged in. */
export async function joined(
  server: Pick<OperatorServer, 'url'>,
  path: string,
  invited: { readonly email: string; readonly role?: string },
  password = PASSWORD,
) {
  const { data, text } = await asOperator(server)<{ link: string } | undefined>('POST', path, invited)
  const browser = asBrowser(server)
  const accepted = await browser('POST', `/invites/${tokenOf(data?.link)}`, { password })
  assert.equal(accepted.status, 200, text + accepted.text)
  return browser
}

/** What a link of an invitation proves. */
export const tokenOf = (link = '') => link.split('#token=')[1] ?? ''

/** The first operator, who comes by the link that is said at the start. */
export async function setUpOperator(server: Pick<OperatorServer, 'url' | 'people'>, email = 'op@example.com') {
  const browser = asBrowser(server)
  const token = await server.people.openSetup()
  const { status, text } = await browser('POST', '/setup', { token, email, password: PASSWORD })
  assert.equal(status, 200, text)
  return browser
}

export async function makeAccount(server: Pick<OperatorServer, 'url'>, input: object = {}): Promise<string> {
  const account = { name: 'Some account', credits: '100', ...input }
  return (await asOperator(server)<{ id: string }>('POST', '/accounts', account)).data.id
}

/** A run of the verification, to its end. */
export async function verified(server: Pick<OperatorServer, 'url'>, body = { full: true }): Promise<VerificationRun> {
  const ask = asOperator(server)
  const { data: begun } = await ask<VerificationRun>('POST', '/ledger/verify', body)
  const look = async () => (await ask<VerificationState>('GET', '/ledger/verify')).data
  return (await until(look, ({ running }) => running?.id !== begun.id)).last ?? assert.fail('it has no result')
}

/** Calls that no vendor answers: a hold, or a call from its hold to its settlement. */
export function callsOn(server: OperatorServer) {
  const of = (account: string) => ({
    id: newId(realWorld),
    account,
    key: 'key_x',
    tokens: 5,
    product: 'alpha-5.4',
    catalogVersion: server.catalog.current.version,
  })
  async function reserve(account: string, want: bigint, key = 'key_x') {
    const call = { ...of(account), key }
    return { ...(await server.ledger.reserve({ ...call, want, floor: want })), id: call.id }
  }
  async function call(account: string, usage: Usage, more: Partial<Resolution> = {}): Promise<string> {
    const { tokens, ...common } = of(account)
    await server.ledger.reserve({ ...common, ...more, want: 1_000_000n, floor: 1n, tokens })
    const { amount, lines } = chargeOf(server.catalog.current.document.models['alpha-5.4']!.pricing, usage)
    const facts = { lines, stream: true, inputTokens: usage.input ?? 0, outputTokens: usage.output ?? 0 }
    await server.ledger.resolve(settlement(account, common.id, amount, { ...common, ...facts, ...more }))
    return `req_${common.id}`
  }
  return { reserve, call }
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
