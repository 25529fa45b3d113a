// Plausible data for the development mock: one busy account, one empty one, names that try to break out of the page.
import { readFileSync } from 'node:fs'
import { isDataEndpoint } from '../../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../../src/catalog/index.ts'
import type * as wire from '../src/wire.ts'

export const HOSTILE = '<img src=x onerror=alert(1)>'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const now = Date.now()
export const iso = (ms: number) => new Date(ms).toISOString()
const ago = (ms: number) => iso(now - ms)

/** The same "randomness" at every start, so that pictures can be compared. */
export function noise(seed: number): number {
  const x = Math.sin(seed * 12.9898) * 43758.5453
  return x - Math.floor(x)
}

export const document = JSON.parse(
  readFileSync(new URL('../../src/catalog/default.json', import.meta.url), 'utf8'),
) as wire.CatalogDocument

export function publicCatalog(): wire.PublicCatalog {
  const models = Object.entries(document.models)
    .filter(([, model]) => model.enabled !== false)
    .map(
      ([uid, model]) => ({ version: null, doors: [], capabilities: [], limits: {}, ...model, uid }) as wire.PublicModel,
    )
  const endpoints = ENDPOINTS.filter(isDataEndpoint).map((spec) => ({
    id: spec.id,
    product: spec.product,
    method: spec.method,
    path: spec.path,
    title: spec.title,
    description: spec.description,
    params: Object.entries(spec.params).map(([name, field]) => ({ name, ...field }) as wire.Param),
    pricing: (document.endpoints[spec.id] ?? document.models[spec.product])?.pricing ?? null,
  }))
  return { models, endpoints }
}

export const accounts: wire.Account[] = [
  {
    id: 'acc_01k9demo',
    name: 'Northwind Studio',
    balance: '48213.407215',
    held: '36.25',
    available: '48177.157215',
    limits: { requestsPerMinute: 600, spendPerDay: '2500' },
    createdAt: ago(80 * DAY),
  },
  {
    id: 'acc_01k9new0',
    name: 'Fresh account',
    balance: '1000',
    held: '0',
    available: '1000',
    limits: {},
    createdAt: ago(2 * HOUR),
  },
  ...Array.from({ length: 28 }, (_, index) => ({
    id: `acc_01k9x${String(index).padStart(3, '0')}`,
    name:
      index === 3 ? HOSTILE : `${['Lumen', 'Harbor', 'Quill', 'Cedar', 'Atlas', 'Fjord', 'Ember'][index % 7]} ${index}`,
    balance: String(Math.round(noise(index) * 90000) / 10),
    held: '0',
    available: String(Math.round(noise(index) * 90000) / 10),
    limits: {},
    createdAt: ago((index + 3) * DAY),
  })),
]

export const keys: wire.Key[] = [
  key('website', { lastUsedAt: ago(40_000) }),
  key('nightly-reports', {
    models: ['socialapi', 'siteanalytics'],
    ipRanges: ['203.0.113.0/24'],
    limits: { spendPerDay: '50' },
    lastUsedAt: ago(7 * HOUR),
    expiresAt: iso(now + 61 * DAY),
  }),
  key('design-team', { models: ['alpha-image-2', 'videogen-2.5', 'beta-opus-5'], limits: { concurrency: 4 } }),
  key(HOSTILE, { lastUsedAt: ago(3 * DAY) }),
  key('old-laptop', { revokedAt: ago(20 * DAY), lastUsedAt: ago(21 * DAY) }),
]

export function key(name: string, more: Partial<wire.Key> = {}): wire.Key {
  const tail = String(Math.floor(noise(name.length * 7) * 9000) + 1000)
  return {
    id: `key_01k9${tail}${name.length}`,
    name,
    prefix: 'tg_live_7Hq2',
    last4: `x${tail.slice(1)}`,
    models: null,
    expiresAt: null,
    limits: {},
    ipRanges: null,
    revokedAt: null,
    lastUsedAt: null,
    createdAt: ago(30 * DAY),
    replacedBy: null,
    ...more,
  }
}

const PRODUCTS = [
  ['alpha-5.4', 0.9],
  ['beta-opus-5', 2.8],
  ['gamma-v4-flash', 0.06],
  ['alpha-image-2', 4.2],
  ['siteanalytics/websites/visits', 1],
  ['socialapi', 0.2],
  ['videogen-2.5', 45],
] as const

export const usage: wire.UsageDetail[] = Array.from({ length: 137 }, (_, index) => {
  const [product, price] = PRODUCTS[Math.floor(noise(index + 3) * PRODUCTS.length)] ?? PRODUCTS[0]
  const failed = noise(index + 91) < 0.08
  const isText = /^(alpha-5|beta|gamma)/.test(product)
  const input = Math.floor(noise(index) * 9000) + 60
  const output = Math.floor(noise(index + 1) * 1800) + 20
  const unit = product.startsWith('video') ? 'second' : product.includes('image') ? 'image' : 'call'
  const units: Record<string, number> = isText ? { input, output } : { [unit]: unit === 'second' ? 5 : 1 }
  const rates: Record<string, string> = isText
    ? { input: '250', output: '1500' }
    : { [unit]: String(price / (units[unit] ?? 1)) }
  const lines = Object.entries(units).map(([name, quantity]) => {
    const per = isText ? 1_000_000 : 1
    return { unit: name, quantity, rate: rates[name] ?? '1', per, amount: trim((quantity * Number(rates[name])) / per) }
  })
  const charged = failed ? '0' : trim(lines.reduce((sum, line) => sum + Number(line.amount), 0))
  const name = keys[index % 3]
  return {
    id: `req_01k9${String(index).padStart(6, '0')}q7w`,
    at: ago(index * 1.7 * HOUR + 50_000),
    product,
    door: isText ? 'chat' : (product.split('/')[0] ?? null),
    keyId: index % 9 === 4 ? 'console' : (name?.id ?? ''),
    keyName: index % 9 === 4 ? null : (name?.name ?? null),
    outcome: failed ? 'released' : index === 17 ? 'expired' : 'settled',
    status: failed ? 502 : 200,
    charged,
    held: trim(Number(charged) * 3 + 0.5),
    loss: '0',
    units: failed ? {} : units,
    estimated: index === 5,
    stream: isText && index % 2 === 0,
    durationMs: Math.floor(noise(index + 5) * 4200) + 120,
    firstByteMs: Math.floor(noise(index + 5) * 700) + 90,
    route: 0,
    job: null,
    lines: failed ? [] : lines,
    catalogVersion: 4,
  }
})

function trim(amount: number): string {
  return String(Number(amount.toFixed(6)))
}

export function overview(account: wire.Account, days: number): wire.Overview {
  const hourly = days <= 2
  const count = hourly ? days * 24 : days
  const step = hourly ? HOUR : DAY
  const empty = account.id === 'acc_01k9new0'
  const series = Array.from({ length: count }, (_, index) => {
    const at = Math.floor(now / step) * step - (count - 1 - index) * step
    const weekday = new Date(at).getUTCDay()
    const wave = hourly ? 1 + Math.sin((index / 24) * 6.3) * 0.6 : weekday === 0 || weekday === 6 ? 0.45 : 1
    const requests = empty ? 0 : Math.floor((noise(index + days) * 0.5 + 0.7) * wave * (hourly ? 90 : 1600))
    const errors =
      Math.floor(requests * noise(index + 40) * 0.03) + (index === count - 9 && !empty ? Math.floor(requests / 6) : 0)
    return {
      at: iso(at),
      requests,
      errors,
      charged: trim(requests * (0.28 + noise(index) * 0.2)),
      inputTokens: requests * 1300,
      outputTokens: requests * 410,
      latencyMsAvg: requests ? Math.round(700 + noise(index + 8) * 600 + (index === count - 9 ? 900 : 0)) : null,
    }
  })
  const products = empty
    ? []
    : PRODUCTS.map(([product, price], index) => {
        const requests = Math.floor((900 * days) / (index + 2))
        return { product, requests, charged: trim(requests * Math.min(price, 2) * 0.4) }
      })
  const total = series.reduce((sum, slot) => sum + slot.requests, 0)
  const failed = series.reduce((sum, slot) => sum + slot.errors, 0)
  return { ...account, series, products, statuses: { ok: total - failed, failed } }
}

export const ledger: wire.LedgerRow[] = (() => {
  let balance = 48213.407215
  const rows: wire.LedgerRow[] = []
  for (const [index, row] of usage.entries()) {
    const grant = index % 40 === 12
    rows.push({
      id: `tx_${index}`,
      at: row.at,
      kind: grant ? (index > 90 ? 'takeback' : 'grant') : row.outcome,
      amount: grant ? (index > 90 ? '-250' : '5000') : `-${row.charged}`,
      loss: '0',
      balanceAfter: trim(balance),
      requestId: grant ? null : row.id,
      product: grant ? null : row.product,
      note: grant ? `Invoice 2026-${100 + index}` : null,
      actor: grant ? 'operator@example.com' : null,
    })
    balance += grant ? (index > 90 ? 250 : -5000) : Number(row.charged)
  }
  return rows
})()

export const members: wire.Member[] = [
  { userId: 'usr_1', email: 'operator@example.com', role: 'owner', createdAt: ago(80 * DAY), lastSeenAt: ago(HOUR) },
  { userId: 'usr_2', email: 'mira@northwind.example', role: 'owner', createdAt: ago(70 * DAY), lastSeenAt: ago(HOUR) },
  {
    userId: 'usr_3',
    email: 'jonas@northwind.example',
    role: 'member',
    createdAt: ago(12 * DAY),
    lastSeenAt: ago(HOUR),
  },
]

export const versions: wire.CatalogVersion[] = [
  { version: 4, appliedAt: ago(5 * HOUR), actor: 'operator@example.com', note: 'alpha-5.4: pricing' },
  { version: 3, appliedAt: ago(9 * DAY), actor: 'operator@example.com', note: 'Second route for beta' },
  { version: 2, appliedAt: ago(33 * DAY), actor: 'operator token', note: '' },
  { version: 1, appliedAt: ago(80 * DAY), actor: 'first start', note: 'the shipped catalogue' },
]

export const vendors: wire.Vendor[] = Object.entries(document.vendors).map(([name], index) => ({
  name,
  baseUrl: name === 'beta' ? 'https://api.example.com/v1' : 'sandbox',
  simulated: name !== 'beta',
  credential: {
    name: `${name.toUpperCase()}_API_KEY`,
    present: index % 3 !== 2,
    source: index % 3 === 0 ? 'env' : index % 3 === 1 ? 'stored' : 'none',
  },
  breaker: name === 'delta' ? 'open' : name === 'zeta' ? 'half-open' : 'closed',
  inFlight: Math.floor(noise(index) * 12),
  requests: Math.floor(noise(index + 2) * 40_000),
  errors: Math.floor(noise(index + 2) * (name === 'delta' ? 3000 : 120)),
  latencyMsP50: 380 + index * 41,
  latencyMsP95: 1900 + index * 230,
  lastError: name === 'delta' ? `503: overloaded ${HOSTILE}` : null,
  lastAt: ago(index * 9000),
}))

const ACTIONS = [
  'key.create',
  'key.revoke',
  'catalog.apply',
  'account.credit',
  'session.login',
  'member.invite',
  'limits.change',
]
export const audit: wire.AuditRow[] = Array.from({ length: 90 }, (_, index) => ({
  id: `aud_${index}`,
  at: ago(index * 2.3 * HOUR),
  actor: index % 5 === 0 ? 'operator token' : 'operator@example.com',
  action: ACTIONS[index % ACTIONS.length] ?? '',
  object: index % 7 === 1 ? 'key_01k98123' : 'acc_01k9demo',
  ip: '192.0.2.17',
  requestId: `req_01k9${index}`,
  detail: index % 3 ? { name: index % 6 ? 'website' : HOSTILE } : {},
}))

export const system: wire.System = {
  version: '0.1.0',
  runtime: 'Node 26.10.0',
  store: { kind: 'embedded PostgreSQL', version: '18.4', sizeBytes: 48_300_000 },
  migrations: { applied: 4, latest: 4 },
  processes: [
    { id: 'proc_01k9a', startedAt: ago(3 * DAY), heartbeatAt: ago(1500) },
    { id: 'proc_01k9b', startedAt: ago(3 * DAY), heartbeatAt: ago(900) },
  ],
  queue: { active: 2, created: 5, failed: 0 },
  catalogVersion: 4,
  uptimeSeconds: 271_344,
}
