// Vendors and their credentials: the gateway's, and those that accounts bring.

import * as z from 'zod'
import {
  type CatalogDocument,
  type CatalogInput,
  credentialName,
  credentialsOf,
  type Vendor,
} from '../../catalog/document.ts'
import { isSandbox } from '../../catalog/simulated.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { originsOf, withCredentialNamed, withoutCredentialNamed } from '../../catalog/vendor-edit.ts'
import type { Database } from '../../database/database.ts'
import { listSettings, putSetting } from '../../database/setting.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { fingerprintOf } from '../../kernel/secret.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import type { ByokFee } from '../../meter/price.ts'
import { readVendorErrors } from '../../reports/figures.ts'
import { vendorError } from '../../reports/views.ts'
import { NO_CHECKS, type VendorChecks } from '../../routing/checks.ts'
import type { CredentialHealth } from '../../routing/credential-state.ts'
import { targetOf } from '../../routing/route.ts'
import type { VendorHealth } from '../../routing/vendor.ts'
import { readVendorHistory } from '../../routing/vendor-hours.ts'
import { type VendorTest, vendorHistory, vendorTest } from '../../routing/views.ts'
import type { Reports } from '../../telemetry/reports.ts'
import { createMinuteBudget } from '../../upstream/budget.ts'
import { type ByokKeys, byokFeeOf, isForElsewhere, shownEnd } from '../../upstream/credentials/byok-keys.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { type Resource, requireRight, resource, salt, secret } from '../resource.ts'
import {
  type ByokKeyView,
  byokKeyStored,
  byokKeyView,
  credentialView,
  type VendorCredentialView,
  type VendorView,
  vendorCredentialView,
  vendorView,
} from '../views.ts'
import { mayAllGo } from './credential-moves.ts'

const HOUR_MS = 3_600_000

export interface VendorDeps extends VendorCredentialDeps {
  readonly database: Database
  readonly world: World
  readonly reports: Reports
  /** Where the simulated vendors listen. */
  readonly sandboxUrl: () => string | undefined
  readonly checks: VendorChecks
}

export function vendorResources(deps: VendorDeps): Resource[] {
  const { catalog, credentials, database, reports } = deps
  const find = (name: string) => findVendor(catalog, name)

  /** The vendor's only credential. */
  function credentialOf(name: string): string {
    const [first, ...others] = credentialsOf(find(name))
    if (first === undefined)
      throw new Fault('conflict', {
        message: `The catalog names no credential for the vendor "${name}". Add "credential" to its entry first.`,
      })
    if (others.length > 0)
      throw new Fault('conflict', { message: `The vendor "${name}" has several credentials: say which one.` })
    return first.name
  }

  /** The first credential that has a value. */
  function testedOf(name: string): string | undefined {
    const all = credentialsOf(find(name))
    return (all.find((one) => credentials.source(one.name) !== 'none') ?? all[0])?.name
  }

  function show(name: string, vendor: Vendor, known: readonly VendorHealth[], tests: Tests): VendorView {
    const health = known.find((one) => one.name === name)
    const all = showCredentials(name, vendor, { ...deps, vendorHealth: () => known })
    const first = all.find(({ present }) => present) ?? all[0]
    return {
      name,
      baseUrl: vendor.baseUrl,
      simulated: isSandbox(vendor.baseUrl),
      credential: {
        name: first?.name ?? null,
        present: first?.present ?? false,
        source: first?.source ?? 'none',
        ...(first?.unreadable ? { unreadable: true } : {}),
      },
      credentials: all,
      breaker: health?.breaker ?? 'closed',
      reason: health?.reason ?? null,
      since: isoOf(health?.sinceMs ?? null),
      probe: deps.checks.prober.view(name),
      inFlight: health?.inFlight ?? 0,
      requests: health?.requests ?? 0,
      errors: health?.errors ?? 0,
      latencyMsP50: health?.latencyMsP50 ?? null,
      latencyMsP95: health?.latencyMsP95 ?? null,
      recent: health?.recent ?? { minutes: 0, requests: 0, errors: 0 },
      lastError: health?.lastError ?? null,
      lastAt: isoOf(health?.lastAtMs ?? null),
      lastTest: tests.get(name) ?? null,
    }
  }

  return [
    resource('GET /vendors', 'vendors:read', {
      title: 'List vendors',
      answer: page(vendorView),
      async run() {
        const [known, tests] = await Promise.all([reports.read(), readTests(database)])
        const vendors = Object.entries(catalog.current.document.vendors)
        return { items: vendors.map(([name, vendor]) => show(name, vendor, known.vendors, tests)), next: null }
      },
    }),
    resource('GET /vendors/history', 'vendors:read', {
      title: 'Show the vendors’ calls by the hour',
      query: z.strictObject({ hours: z.coerce.number().int().min(1).max(168).default(24) }),
      answer: page(vendorHistory),
      async run({ query }) {
        const { vendors } = catalog.current.document
        const history = await readVendorHistory(database, query.hours)
        return { items: history.filter(({ vendor }) => Object.hasOwn(vendors, vendor)), next: null }
      },
    }),
    resource('POST /vendors/{name}/test', 'vendors:write', {
      title: 'Test a vendor with a real call',
      query: z.strictObject({ credential: credentialName.optional() }),
      answer: vendorTest,
      async run({ params: { name }, query }) {
        const vendor = find(name)
        const tested = deps.checks.testedRoute(name, catalog.current.document)
        if (!tested)
          throw new Fault('conflict', {
            message: `No model or endpoint has a route to the vendor "${name}": give it one.`,
          })
        const { sandboxUrl } = deps
        const credential = query.credential ?? testedOf(name)
        const one = { ...vendor, credential }
        const target = targetOf(tested.route, one, tested.uid, { sandboxUrl, credential: credentials.get })
        if (credential !== undefined && target.secret === undefined)
          throw new Fault('conflict', {
            message: `Its credential ${credential} is neither stored nor in the gateway's environment.`,
          })
        const result = await deps.checks.test(target, tested.facts)
        const { ok, message } = result
        const kept = {
          ok,
          message: message.slice(0, MESSAGE_CHARS_MAX),
          at: new Date(deps.world.nowMs()).toISOString(),
        }
        await putSetting(database, TEST_OF + name, JSON.stringify(kept))
        return result
      },
    }),
    resource('GET /vendors/{name}/errors', 'vendors:read', {
      title: 'List the latest errors of a vendor',
      query: z.strictObject({ hours: z.coerce.number().int().min(1).max(168).default(24) }),
      answer: page(vendorError),
      run: async ({ params: { name }, query }) => ({
        items: await readVendorErrors(database, name, deps.world.nowMs() - query.hours * HOUR_MS),
        next: null,
      }),
    }),
    resource('PUT /vendors/{name}/credential', 'vendor-credentials:write', {
      title: 'Store the credential of a vendor',
      body: z.strictObject({
        value: secret.meta({ description: 'The credential', read: 'sealed', option: 'credential-env' }),
        shared,
      }),
      answer: credentialView,
      async run({ params, body, by }) {
        const name = credentialOf(params.name)
        requireAlone(name, params.name, body.shared, catalog)
        await credentials.store(name, body.value, by)
        return { name, present: true, source: credentials.source(name) }
      },
    }),
    resource('DELETE /vendors/{name}/credential', 'vendor-credentials:write', {
      title: 'Remove the credential of a vendor',
      answer: credentialView,
      async run({ params, by }) {
        const name = credentialOf(params.name)
        const removed = await credentials.remove(name, by)
        if (!removed)
          throw new Fault('not_found', {
            message: `No credential "${name}" is stored. One that comes from the environment is removed there.`,
          })
        const source = credentials.source(name)
        return { name, present: source !== 'none', source }
      },
    }),
  ]
}

/** Confirms that other vendors with the same credential get the value too. */
const shared = z
  .boolean()
  .default(false)
  .describe('Even if other vendors have the same credential, which then get the new value too')

type Tests = ReadonlyMap<string, NonNullable<VendorView['lastTest']>>

/** The last test of each vendor, for people who did not run it. */
async function readTests(database: Database): Promise<Tests> {
  return new Map([...(await listSettings(database, TEST_OF))].map(([vendor, value]) => [vendor, JSON.parse(value)]))
}

const TEST_OF = 'vendor test '
const MESSAGE_CHARS_MAX = 300

// Vendors with several credentials: adding, replacing and removing them while calls run.

interface VendorCredentialDeps {
  readonly catalog: CatalogStore
  readonly credentials: Credentials
  readonly vendorHealth: () => readonly VendorHealth[]
  readonly credentialHealth: (vendor: string, credential: string) => CredentialHealth
  /** The number of running jobs that only this credential can poll. */
  readonly openJobs: (vendor: string, credential: string) => Promise<number>
}

function findVendor({ current }: CatalogStore, name: string): Vendor {
  const { vendors } = current.document
  const vendor = Object.hasOwn(vendors, name) ? vendors[name] : undefined
  if (!vendor) throw new Fault('not_found', { message: `The catalog has no vendor "${name}".` })
  return vendor
}

function showCredentials(vendorName: string, vendor: Vendor, deps: VendorCredentialDeps): VendorCredentialView[] {
  const { credentials, vendorHealth, credentialHealth } = deps
  return credentialsOf(vendor).map(({ name, weight }) => {
    const source = credentials.source(name)
    const value = credentials.get(name)
    const { disabledUntilMs, why, status, lastSuccessMs } = credentialHealth(vendorName, name)
    // With a single credential, the vendor's last success is the credential's.
    const successMs = vendor.credentials
      ? lastSuccessMs
      : vendorHealth().find((one) => one.name === vendorName)?.lastSuccessMs
    return {
      name,
      weight,
      present: source !== 'none',
      source,
      ...(source === 'none' && credentials.unreadable.includes(name) ? { unreadable: true as const } : {}),
      last4: value === undefined ? null : shownEnd(value),
      disabledUntil: isoOf(disabledUntilMs),
      disabledReason: why,
      status,
      lastSuccessAt: isoOf(successMs ?? null),
      sharedWith: othersWith(name, vendorName, deps.catalog),
    }
  })
}

/** The other vendors of the catalog that have this credential. */
function othersWith(name: string, vendorName: string, { current }: CatalogStore): string[] {
  return Object.entries(current.document.vendors).flatMap(([other, vendor]) =>
    other !== vendorName && credentialsOf(vendor).some((one) => one.name === name) ? [other] : [],
  )
}

/** Rejects a new value that other vendors would get too, unless `shared` confirms it. */
function requireAlone(name: string, vendorName: string, shared: boolean, catalog: CatalogStore): void {
  const others = othersWith(name, vendorName, catalog)
  if (shared || others.length === 0) return
  throw new Fault('conflict', {
    message: `The catalog gives ${name} to ${others.join(' and ')} too, which would get the new value as well. Send "shared": true if that is meant, or give "${vendorName}" a credential of another name.`,
  })
}

export function vendorCredentialResources(deps: VendorCredentialDeps): Resource[] {
  const { catalog, credentials } = deps
  const listed = (name: string) => ({ items: showCredentials(name, findVendor(catalog, name), deps), next: null })

  /** `current` is what is stored now, which may be newer than what this process knows. */
  function entryIn(current: CatalogInput, name: string): CatalogInput['vendors'][string] {
    const vendor = Object.hasOwn(current.vendors, name) ? current.vendors[name] : undefined
    if (!vendor) throw new Fault('not_found', { message: `The catalog has no vendor "${name}".` })
    return vendor
  }

  return [
    resource('GET /vendors/{name}/credentials', 'vendor-credentials:read', {
      title: 'List the credentials of a vendor',
      query: z.strictObject({ salt: salt.optional() }),
      answer: page(vendorCredentialView),
      async run({ params, query: { salt }, actor }) {
        const { items, next } = listed(params.name)
        if (salt === undefined) return { items, next }
        // A fingerprint tells whether a value is the stored one, so it needs the right to replace it.
        requireRight(actor, 'vendor-credentials:write')
        const compared: VendorCredentialView[] = []
        for (const item of items) {
          const value = credentials.get(item.name)
          compared.push(value === undefined ? item : { ...item, fingerprint: await fingerprintOf(value, salt) })
        }
        return { items: compared, next }
      },
    }),
    resource('PUT /vendors/{name}/credentials/{credential}', 'vendor-credentials:write', {
      title: 'Store one of several credentials of a vendor',
      body: z.strictObject({
        value: secret.optional().meta({ description: 'The value', read: 'input', option: 'key-stdin' }),
        weight: z.number().int().min(1).max(1000).optional().describe('Its share among the others; 1 by default'),
        shared,
      }),
      answer: page(vendorCredentialView),
      async run({ params: { name: vendorName, credential }, body: { value, weight, shared: isShared }, by }) {
        const name = readName(credential)
        if (value !== undefined) requireAlone(name, vendorName, isShared, catalog)
        const isNamed = credentialsOf(findVendor(catalog, vendorName)).some((one) => one.name === name)
        if (value === undefined && !isNamed && credentials.source(name) === 'none')
          throw new Fault('request_invalid', {
            message: `${name} is neither stored nor among the variables of the gateway's environment that may be credentials (those with KEY or TOKEN in their name): give its "value".`,
            param: 'value',
          })
        const store = { name, value, by }
        if (isNamed && weight === undefined) {
          if (value !== undefined) await credentials.store(store.name, value, by)
          return listed(vendorName)
        }
        // The value and the catalog entry are stored in one transaction: either alone would make calls fail.
        await catalog.amend(
          async (current, tx) => {
            const vendor = withCredentialNamed(entryIn(current, vendorName), { name, weight })
            await mayAllGo(vendor, { name, value }, { current, credentials })
            if (value !== undefined) await credentials.storeWith(tx, name, value, by)
            return { ...current, vendors: { ...current.vendors, [vendorName]: vendor } }
          },
          by,
          `${vendorName}: credential ${name}`,
        )
        await credentials.noticed()
        return listed(vendorName)
      },
    }),
    resource('DELETE /vendors/{name}/credentials/{credential}', 'vendor-credentials:write', {
      title: 'Remove one of several credentials of a vendor',
      query: z.strictObject({ force: z.enum(['true', 'false']).optional().describe('Even if it has running jobs') }),
      answer: page(vendorCredentialView),
      async run({ params: { name: vendorName, credential }, query, by }) {
        const name = readName(credential)
        const named = credentialsOf(findVendor(catalog, vendorName))
        if (!named.some((one) => one.name === name))
          throw new Fault('not_found', { message: `The vendor "${vendorName}" has no credential "${name}".` })
        if (named.length === 1)
          throw new Fault('conflict', {
            message: `It is the only one of "${vendorName}". Add another first, or replace its value.`,
          })
        const jobs = await deps.openJobs(vendorName, name)
        if (jobs > 0 && query.force !== 'true')
          throw new Fault('conflict', {
            message: `${jobs} running jobs were made by ${name}, and only it can look after them. Wait for them, or use force=true: they may then fail, and are refunded.`,
          })
        await catalog.amend(
          (current) => {
            const vendor = withoutCredentialNamed(entryIn(current, vendorName), name)
            return { ...current, vendors: { ...current.vendors, [vendorName]: vendor } }
          },
          by,
          `${vendorName}: without the credential ${name}`,
        )
        const { vendors } = catalog.current.document
        const isElsewhere = Object.values(vendors).some((one) =>
          credentialsOf(one).some((other) => other.name === name),
        )
        if (!isElsewhere) await credentials.remove(name, by)
        return listed(vendorName)
      },
    }),
  ]
}

function readName(given: string): string {
  const read = credentialName.safeParse(given)
  if (read.success) return read.data
  throw new Fault('request_invalid', { message: 'A credential\'s name has upper-case letters, digits and "_" only.' })
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

// BYOK keys of accounts. A key is tested when it is stored, only at the vendor's address in the catalog, and only a few
// times a minute. The account sees only the result, not the vendor's address.

export interface ByokKeyDeps {
  readonly catalog: CatalogStore
  readonly byokKeys: ByokKeys
  readonly world: World
  readonly sandboxUrl: () => string | undefined
  readonly checks: VendorChecks
}

/** For each account, so that nobody can check a list of stolen keys here. */
const TESTS_PER_MINUTE = 5

export function byokKeyResources(deps: ByokKeyDeps): Resource[] {
  const { catalog, byokKeys, world } = deps
  const tests = createMinuteBudget(world, TESTS_PER_MINUTE)

  async function list(account: string): Promise<{ items: ByokKeyView[]; next: null }> {
    const { document } = catalog.current
    const stored = new Map((await byokKeys.list(account)).map((one) => [one.vendor, one]))
    const allowed = Object.keys(document.vendors).filter((vendor) => takesByokKeys(vendor, document))
    // A key that was stored before the catalog stopped accepting BYOK keys is shown, so that it can be removed.
    const items = [...new Set([...allowed, ...stored.keys()])].sort().map((vendor) => {
      const known = stored.get(vendor)
      const { last4 = null, fallback = false, updatedAt } = known ?? {}
      return {
        vendor,
        allowed: allowed.includes(vendor),
        stored: known !== undefined,
        addressChanged: known !== undefined && isForElsewhere(known, document),
        last4,
        fallback,
        updatedAt: updatedAt?.toISOString() ?? null,
        fee: feeView(document.vendors[vendor]?.byokFee),
        products: productsAt(vendor, document),
      }
    })
    return { items, next: null }
  }

  /** Undefined: this gateway tests no vendors. */
  async function test(account: string, vendorName: string, value: string): Promise<VendorTest | undefined> {
    const { document } = catalog.current
    const vendor = document.vendors[vendorName]
    const isTested = deps.checks !== NO_CHECKS
    const tested = isTested ? deps.checks.testedRoute(vendorName, document) : undefined
    if (!vendor || !takesByokKeys(vendorName, document) || (isTested && !tested))
      throw new Fault('conflict', { message: `BYOK keys for "${vendorName}" are not accepted here.` })
    if (!tested) return undefined
    const wait = tests.spend(account, 1)
    if (wait !== undefined)
      throw new Fault('rate_limited', {
        message: `Keys can be tested ${TESTS_PER_MINUTE} times a minute. Try again in ${wait} s.`,
        retryAfterSeconds: wait,
      })
    const { sandboxUrl } = deps
    const named = { ...vendor, credential: 'OWN', headers: {} }
    const target = targetOf(tested.route, named, tested.uid, { sandboxUrl, credential: () => value })
    return deps.checks.test(target, tested.facts, true)
  }

  return [
    resource('GET /accounts/{id}/byok-keys', 'byok-keys:read', {
      title: 'List the vendor keys of an account (BYOK)',
      answer: page(byokKeyView),
      run: ({ params }) => list(params.id),
    }),
    resource('PUT /accounts/{id}/byok-keys/{name}', 'byok-keys:write', {
      title: 'Store a vendor key of an account (BYOK)',
      body: z.strictObject({
        value: secret.optional().meta({ description: 'The key', read: 'sealed', option: 'key-env' }),
        fallback: z
          .boolean()
          .optional()
          .meta({
            description: 'Calls may use the gateway’s credential, at the full price, if the key fails',
            off: 'no-fallback|Calls fail if the key fails',
          }),
      }),
      answer: byokKeyStored,
      async run({ params: { id, name: vendor }, body: { value, fallback }, by }) {
        const before = (await byokKeys.list(id)).find((one) => one.vendor === vendor)
        const allowed = fallback ?? before?.fallback ?? false
        if (value === undefined) {
          if (!before)
            throw new Fault('request_invalid', { message: 'Give the key as "value": none is stored.', param: 'value' })
          await byokKeys.allowFallback(id, { vendor, fallback: allowed }, by)
          return { ...(await list(id)), test: null }
        }
        // The address at which it was tested, even if the catalog changes meanwhile.
        const place = catalog.current.document.vendors[vendor]
        const origin = place ? originsOf(place) : ''
        const result = await test(id, vendor, value)
        const told = result ? inWords(result, vendor) : UNTESTED
        if (told.refused)
          throw new Fault('request_invalid', { message: `${told.message} It was not stored.`, param: 'value' })
        await byokKeys.store(id, { vendor, value, fallback: allowed, origin }, by)
        return { ...(await list(id)), test: { ok: told.ok, message: told.message } }
      },
    }),
    resource('DELETE /accounts/{id}/byok-keys/{name}', 'byok-keys:write', {
      title: 'Remove a vendor key of an account (BYOK)',
      answer: page(byokKeyView),
      async run({ params: { id, name }, by }) {
        if (!(await byokKeys.remove(id, name, by)))
          throw new Fault('not_found', { message: `This account has no BYOK key for "${name}".` })
        return list(id)
      },
    }),
  ]
}

/** Whether the catalog has a BYOK fee for this vendor. */
function takesByokKeys(vendor: string, document: CatalogDocument): boolean {
  return document.vendors[vendor]?.byokFee !== undefined || productsAt(vendor, document).length > 0
}

/** Products with a route to this vendor and a BYOK fee of their own. */
function productsAt(vendor: string, document: CatalogDocument): ByokKeyView['products'] {
  return Object.entries({ ...document.models, ...document.endpoints }).flatMap(([uid, product]) => {
    if (!product.enabled || !product.routes.some((route) => route.vendor === vendor && route.enabled)) return []
    const fee = byokFeeOf(product, vendor, document)
    return fee ? [{ uid, fee: feeView(fee) ?? {} }] : []
  })
}

function feeView(fee: ByokFee | undefined): ByokKeyView['fee'] {
  if (!fee) return null
  const { call, share } = fee
  return {
    ...(call === undefined ? {} : { call: formatCredits(call) }),
    ...(share === undefined ? {} : { share: formatCredits(share) }),
  }
}

const UNTESTED = {
  ok: false,
  refused: false,
  message: 'The key is stored, and was not checked: vendors are not tested here.',
}

/** The result for the account, which sees only the vendor's name. */
function inWords({ ok, status }: VendorTest, vendor: string): { ok: boolean; refused: boolean; message: string } {
  if (ok) return { ok, refused: false, message: `${vendor} accepts the key.` }
  if (status === 401 || status === 403) return { ok, refused: true, message: `${vendor} does not accept the key.` }
  if (status === 402)
    return { ok, refused: false, message: `${vendor} accepts the key, but its account has no money left.` }
  if (status === 429)
    return { ok, refused: false, message: `${vendor} accepts the key, but its rate limit is reached.` }
  const why = status === null ? 'did not answer' : `answered with a fault (${status})`
  return { ok, refused: false, message: `The key could not be checked: ${vendor} ${why}.` }
}
