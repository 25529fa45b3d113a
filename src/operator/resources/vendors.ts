import * as z from 'zod'
import { credentialName, credentialsOf, isSandbox, type Vendor } from '../../catalog/document.ts'
import { type Database, statement } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import { probedRoute } from '../../routing/probe.ts'
import { targetOf } from '../../routing/route.ts'
import type { VendorHealth } from '../../routing/vendor.ts'
import { readVendorHistory } from '../../routing/vendor-hours.ts'
import { vendorHistory, vendorTest } from '../../routing/views.ts'
import type { Reports } from '../../telemetry/reports.ts'
import { secret } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'
import { credentialView, type VendorView, vendorView } from '../views.ts'
import type { ConnectDeps } from './connect.ts'
import { findVendor, isoOf, showCredentials, type VendorCredentialDeps } from './vendor-credentials.ts'

export interface VendorDeps extends VendorCredentialDeps {
  readonly database: Database
  readonly world: World
  readonly reports: Reports
  /** Where the simulated vendors listen. */
  readonly sandboxUrl: () => string | undefined
  readonly probe: ConnectDeps['probe']
}

export function vendorResources(deps: VendorDeps): Resource[] {
  const { catalog, credentials, database, reports } = deps
  const find = (name: string) => findVendor(catalog, name)

  /** The only one. */
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

  /** The first that is there. */
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
    resource('GET /vendors', 'operator', {
      answer: page(vendorView),
      async run() {
        const [known, tests] = await Promise.all([reports.read(), readTests(database)])
        const vendors = Object.entries(catalog.current.document.vendors)
        return { items: vendors.map(([name, vendor]) => show(name, vendor, known.vendors, tests)), next: null }
      },
    }),
    resource('GET /vendors/history', 'operator', {
      query: z.strictObject({ hours: z.coerce.number().int().min(1).max(168).default(24) }),
      answer: page(vendorHistory),
      async run({ query }) {
        const { vendors } = catalog.current.document
        const history = await readVendorHistory(database, query.hours)
        return { items: history.filter(({ vendor }) => Object.hasOwn(vendors, vendor)), next: null }
      },
    }),
    resource('POST /vendors/{name}/test', 'operator', {
      query: z.strictObject({ credential: credentialName.optional() }),
      answer: vendorTest,
      async run({ params: { name }, query }) {
        const vendor = find(name)
        const probed = probedRoute(name, catalog.current.document)
        if (!probed)
          throw new Fault('conflict', {
            message: `No model or endpoint has a route to the vendor "${name}": give it one.`,
          })
        const { sandboxUrl } = deps
        const credential = query.credential ?? testedOf(name)
        const one = { ...vendor, credential }
        const target = targetOf(probed.route, one, probed.uid, { sandboxUrl, credential: credentials.get })
        if (credential !== undefined && target.secret === undefined)
          throw new Fault('conflict', {
            message: `Its credential ${credential} is neither stored nor in the gateway's environment.`,
          })
        const tested = await deps.probe(target, probed.facts)
        const { ok, message } = tested
        const kept = {
          ok,
          message: message.slice(0, MESSAGE_CHARS_MAX),
          at: new Date(deps.world.nowMs()).toISOString(),
        }
        await database.query(KEEP_TEST, [TEST_OF + name, JSON.stringify(kept)])
        return tested
      },
    }),
    resource('PUT /vendors/{name}/credential', 'operator', {
      body: z.strictObject({ value: secret }),
      answer: credentialView,
      async run({ params, body, by }) {
        const name = credentialOf(params.name)
        await credentials.store(name, body.value, by)
        return { name, present: true, source: credentials.source(name) }
      },
    }),
    resource('DELETE /vendors/{name}/credential', 'operator', {
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

type Tests = ReadonlyMap<string, NonNullable<VendorView['lastTest']>>

/** How the last test of each vendor went, for whoever did not see it. */
async function readTests(database: Database): Promise<Tests> {
  const rows = await database.query<{ name: string; value: string }>(TESTS, [TEST_OF])
  return new Map(rows.map(({ name, value }) => [name.slice(TEST_OF.length), JSON.parse(value)]))
}

const TEST_OF = 'vendor test '
const MESSAGE_CHARS_MAX = 300
const TESTS = statement('vendor_tests', 'select name, value from setting where starts_with(name, $1)')
const KEEP_TEST = statement(
  'vendor_test_keep',
  'insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
)
