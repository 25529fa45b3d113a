// A stand-in for the gateway while the console is developed: serves console/dist under the real content policy and fakes
// the console API in memory. Not a part of the product.
//   node console/dev/mock.ts [port]          then open http://127.0.0.1:8090/console/  (any email and password)
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkDocument } from '../../src/catalog/document.ts'
import { listChanges } from '../../src/catalog/store.ts'
import { realWorld } from '../../src/kernel/world.ts'
import { startSandbox } from '../../src/sandbox/server.ts'
import * as data from './mock-data.ts'
import { files, jobs, json, play } from './mock-play.ts'

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const dist = join(import.meta.dirname, '..', 'dist')

interface Call {
  path: string
  query: URLSearchParams
  body: Record<string, unknown>
}

const page = <T>(items: readonly T[], { query }: Call) => {
  const limit = Number(query.get('limit') ?? 50)
  const from = Number(query.get('cursor') ?? 0)
  return { items: items.slice(from, from + limit), next: from + limit < items.length ? String(from + limit) : null }
}

class Refused extends Error {
  readonly status: number
  readonly code: number
  constructor(status: number, code: number, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export interface MockOptions {
  port?: number
  role?: 'operator' | 'user'
}

export async function startMock({
  port = 0,
  role = 'operator',
}: MockOptions = {}): Promise<{ url: string; server: Server }> {
  const sandbox = await startSandbox({ world: realWorld, speed: 50 })
  const state = { signedIn: true, catalog: data.document as unknown, versions: [...data.versions], limits: {} }
  const routes = api(state, role)

  const server = createServer((req, res) => {
    void answer(req, res).catch((error: Error) => {
      const refused = error instanceof Refused ? error : new Refused(500, 50003, error.message)
      json(res, refused.status, {
        success: false,
        error: { code: refused.code, message: refused.message },
        requestId: 'req_01k9mock7',
      })
    })
  })

  async function answer(req: IncomingMessage, res: ServerResponse) {
    const url = new URL(req.url ?? '/', 'http://mock')
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : {}
    const asset = files.get(url.pathname.replace('/assets/', ''))
    if (asset && url.pathname.startsWith('/assets/'))
      return res.writeHead(200, { 'content-type': asset.type }).end(asset.bytes)
    const played = /^\/console\/api\/accounts\/[^/]+\/play(\/.*)$/.exec(url.pathname)
    if (played) return play(req, res, new URL((played[1] ?? '') + url.search, 'http://mock'), body, sandbox)
    if (!url.pathname.startsWith('/console/api')) return serveFile(url.pathname, res)
    const path = url.pathname.slice('/console/api'.length)
    if (path.includes('broken'))
      throw new Refused(503, 50001, 'The service is not available right now. Nothing was charged; try again shortly.')
    for (const [pattern, run] of routes) {
      const [method, shape = ''] = pattern.split(' ')
      const found = new RegExp(`^${shape.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`).exec(path)
      if (method === req.method && found)
        return json(res, 200, {
          success: true,
          data: await run({ path, query: url.searchParams, body }, decoded(found.groups)),
          requestId: 'req_mock',
        })
    }
    throw new Refused(404, 30000, 'There is nothing at this address.')
  }

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  server.on('close', () => void sandbox.close())
  const address = server.address()
  return { url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : port}`, server }
}

const decoded = (groups: Record<string, string> | undefined) =>
  Object.fromEntries(Object.entries(groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]))

async function serveFile(path: string, res: ServerResponse) {
  const inside = normalize(path).replace(/^\/console\/?/, '')
  // Whatever is not a file is a page of the app: models have dots in their names.
  const found = await readFile(join(dist, inside)).catch(() => undefined)
  const name = found ? inside : 'index.html'
  const bytes = found ?? (await readFile(join(dist, name)).catch(() => undefined))
  if (!bytes) return res.writeHead(404).end()
  res
    .writeHead(200, {
      'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
      'content-security-policy': CSP,
    })
    .end(bytes)
}

interface State {
  signedIn: boolean
  catalog: unknown
  versions: typeof data.versions
  limits: object
}

type Route = [pattern: string, run: (call: Call, params: Record<string, string>) => unknown]

function api(state: State, role: 'operator' | 'user'): Route[] {
  const account = (id: string) => {
    const found = data.accounts.find((one) => one.id === id)
    if (!found) throw new Refused(404, 30000, 'There is no account with this id.')
    return found
  }
  const fresh = (id = '') => id === 'acc_01k9new0'
  const newKey = (name: string) => {
    const made = { ...data.key(name), createdAt: data.iso(Date.now()) }
    data.keys.unshift(made)
    return { ...made, key: `tg_live_7Hq2${'aB3dE5fG7hJ9kL1m'.repeat(2).slice(0, 28)}x91Zq2` }
  }
  const applied = (document: unknown, note: string) => {
    const changes = listChanges(state.catalog, document)
    state.catalog = document
    const version = (state.versions[0]?.version ?? 0) + 1
    state.versions.unshift({ version, appliedAt: data.iso(Date.now()), actor: 'operator@example.com', note })
    return { version, changes }
  }
  const usageOf = ({ query }: Call) =>
    data.usage.filter(
      (row) =>
        (!query.get('product') || row.product === query.get('product')) &&
        (!query.get('outcome') || row.outcome === query.get('outcome')) &&
        (!query.get('key') || row.keyId === query.get('key')) &&
        (!query.get('from') || row.at >= (query.get('from') ?? '')) &&
        (!query.get('to') || row.at < (query.get('to') ?? '')),
    )
  return [
    [
      'GET /session',
      () => {
        if (!state.signedIn) throw new Refused(401, 20000, 'You are not signed in.')
        const own = data.accounts
          .slice(0, 2)
          .map(({ id, name }, index) => ({ id, name, role: index ? 'member' : 'owner' }))
        return { user: { id: 'usr_1', email: 'operator@example.com', role }, accounts: own }
      },
    ],
    ['GET /setup', () => ({ open: !state.signedIn })],
    ['POST /setup', () => Object.assign(state, { signedIn: true }) && {}],
    [
      'POST /login',
      ({ body }) => {
        if (String(body.password).includes('wrong')) throw new Refused(401, 20000, 'Email or password is not right.')
        state.signedIn = true
        return {}
      },
    ],
    ['POST /logout', () => Object.assign(state, { signedIn: false }) && {}],
    ['POST /password', () => ({})],
    [
      'GET /sessions',
      () => ({
        items: [
          {
            id: 's1',
            createdAt: data.iso(Date.now() - 7e5),
            lastSeenAt: data.iso(Date.now()),
            ip: '192.0.2.17',
            userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0 Safari/537.36',
            current: true,
          },
          {
            id: 's2',
            createdAt: data.iso(Date.now() - 9e7),
            lastSeenAt: data.iso(Date.now() - 8e6),
            ip: '198.51.100.4',
            userAgent: 'Mozilla/5.0 (iPhone) Version/20.0 Safari/604',
            current: false,
          },
        ],
        next: null,
      }),
    ],
    ['DELETE /sessions/{id}', () => ({})],
    [
      'GET /invites/{token}',
      () => ({ kind: 'member', account: 'Northwind Studio', email: 'new@northwind.example', role: 'member' }),
    ],
    ['POST /invites/{token}', () => Object.assign(state, { signedIn: true }) && {}],
    [
      'GET /accounts',
      (call) => {
        const text = (call.query.get('q') ?? '').toLowerCase()
        const seen = role === 'operator' ? data.accounts : data.accounts.slice(0, 2)
        return page(
          seen.filter((one) => `${one.name} ${one.id}`.toLowerCase().includes(text)),
          call,
        )
      },
    ],
    [
      'POST /accounts',
      ({ body }) => {
        const made = { ...account('acc_01k9new0'), id: `acc_${Date.now()}`, name: String(body.name) }
        data.accounts.unshift(made)
        return made
      },
    ],
    ['GET /accounts/{id}', (_, { id = '' }) => account(id)],
    ['PATCH /accounts/{id}', ({ body }, { id = '' }) => Object.assign(account(id), body)],
    [
      'POST /accounts/{id}/credits',
      ({ body }, { id = '' }) =>
        Object.assign(account(id), { balance: String(Number(account(id).balance) + Number(body.amount)) }),
    ],
    ['GET /limits', () => state.limits],
    ['PATCH /limits', ({ body }) => Object.assign(state.limits, body)],
    ['GET /accounts/{id}/members', (call, { id }) => page(fresh(id) ? [] : data.members, call)],
    ['POST /accounts/{id}/invites', () => ({ link: '/console/invite#token=inv_Zk3pQ8vT2mX7cB1nL5wR' })],
    ['DELETE /accounts/{id}/members/{user}', () => ({})],
    ['POST /password-link', () => ({ link: '/console/invite#token=pwd_Zk3pQ8vT2mX7cB1nL5wR' })],
    ['GET /accounts/{id}/keys', (call, { id }) => page(fresh(id) ? [] : data.keys, call)],
    ['POST /accounts/{id}/keys', ({ body }) => newKey(String(body.name))],
    ['PATCH /keys/{id}', ({ body }, { id }) => Object.assign(data.keys.find((one) => one.id === id) ?? {}, body)],
    [
      'DELETE /keys/{id}',
      (_, { id }) => Object.assign(data.keys.find((one) => one.id === id) ?? {}, { revokedAt: data.iso(Date.now()) }),
    ],
    ['POST /keys/{id}/rotate', (_, { id }) => newKey(data.keys.find((one) => one.id === id)?.name ?? 'key')],
    [
      'GET /accounts/{id}/overview',
      ({ query }, { id = '' }) => data.overview(account(id), Number(query.get('days') ?? 30)),
    ],
    ['GET /accounts/{id}/usage', (call, { id }) => page(fresh(id) ? [] : usageOf(call), call)],
    [
      'GET /usage/{id}',
      (_, { id }) => {
        const found = data.usage.find((row) => row.id === id)
        if (!found) throw new Refused(404, 30000, 'There is no usage of a call with this id.')
        return found
      },
    ],
    ['GET /accounts/{id}/ledger', (call, { id }) => page(fresh(id) ? [] : data.ledger, call)],
    [
      'GET /accounts/{id}/jobs',
      (call, { id }) =>
        page(
          fresh(id) ? [] : jobs.filter((one) => !call.query.get('status') || one.status === call.query.get('status')),
          call,
        ),
    ],
    ['GET /catalog/public', () => data.publicCatalog()],
    ['GET /catalog', () => ({ ...state.versions[0], document: state.catalog })],
    [
      'PUT /catalog',
      ({ query, body }) => {
        const checked = checkDocument(body.document)
        const problems = checked.ok ? [] : checked.problems
        return query.get('dryRun')
          ? { problems, changes: listChanges(state.catalog, body.document) }
          : applied(body.document, String(body.note ?? ''))
      },
    ],
    ['GET /catalog/versions', (call) => page(state.versions, call)],
    ['POST /catalog/rollback', ({ body }) => applied(state.catalog, `back to version ${body.version}`)],
    [
      'PATCH /models/{uid}',
      ({ body }, { uid = '' }) => {
        const next = structuredClone(state.catalog) as typeof data.document
        Object.assign(next.models[uid] ?? next.endpoints[uid] ?? {}, body)
        Object.assign(data.document.models[uid] ?? {}, body)
        return applied(next, `${uid}: ${Object.keys(body).join(', ')}`)
      },
    ],
    ['GET /vendors', (call) => page(data.vendors, call)],
    [
      'POST /vendors/{name}/test',
      (_, { name }) => ({
        ok: name !== 'delta',
        status: name === 'delta' ? 503 : 200,
        latencyMs: 412,
        message: name === 'delta' ? 'It answered: overloaded.' : 'It answered as expected.',
      }),
    ],
    ['PUT /vendors/{name}/credential', () => ({})],
    ['DELETE /vendors/{name}/credential', () => ({})],
    [
      'GET /ledger/verify',
      () => ({ ok: true, checked: { accounts: 30, transfers: 48_211, holds: 51_007, usage: 50_994 }, problems: [] }),
    ],
    ['GET /audit', (call) => page(data.audit, call)],
    [
      'GET /requests/live',
      (call) =>
        page(
          data.usage.slice(0, 40).map((row, index) => ({
            ...row,
            account: 'acc_01k9demo',
            running: index < 3,
            status: index < 3 ? null : row.status,
            charged: index < 3 ? '0' : row.charged,
          })),
          call,
        ),
    ],
    ['GET /system', () => data.system],
  ]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startMock({ port: Number(process.argv[2] ?? 8090) })
  process.stdout.write(`${url}/console/\n`)
}
