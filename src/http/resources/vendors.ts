import * as z from 'zod'
import type { Credentials } from '../../admission/credentials.ts'
import { isSandbox, type Vendor } from '../../catalog/document.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { probedRoute } from '../../routing/probe-target.ts'
import { targetOf } from '../../routing/route.ts'
import type { VendorHealth } from '../../routing/vendor.ts'
import { vendorTest } from '../../routing/views.ts'
import { secret } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'
import { credentialView, type VendorView, vendorView } from '../views.ts'
import type { ConnectDeps } from './connect.ts'

export interface VendorDeps {
  readonly catalog: CatalogStore
  readonly credentials: Credentials
  readonly vendorHealth: () => readonly VendorHealth[]
  /** Where the simulated vendors listen. */
  readonly sandboxUrl: () => string | undefined
  readonly probe: ConnectDeps['probe']
}

export function vendorResources(deps: VendorDeps): Resource[] {
  const { catalog, credentials, vendorHealth } = deps
  function find(name: string): Vendor {
    const { vendors } = catalog.current.document
    const vendor = Object.hasOwn(vendors, name) ? vendors[name] : undefined
    if (!vendor) throw new Fault('not_found', { message: `The catalogue has no vendor "${name}".` })
    return vendor
  }

  function credentialOf(name: string): string {
    const { credential } = find(name)
    if (credential === undefined)
      throw new Fault('conflict', {
        message: `The catalogue names no credential for the vendor "${name}". Add "credential" to its entry first.`,
      })
    return credential
  }

  /** Stored under another TOLLGATE_SECRET, and not in the environment. */
  function unreadable(credential: string | undefined): boolean {
    return (
      credential !== undefined &&
      credentials.source(credential) === 'none' &&
      credentials.unreadable.includes(credential)
    )
  }

  function show(name: string, vendor: Vendor, health: VendorHealth | undefined): VendorView {
    const source = vendor.credential === undefined ? 'none' : credentials.source(vendor.credential)
    return {
      name,
      baseUrl: vendor.baseUrl,
      simulated: isSandbox(vendor.baseUrl),
      credential: {
        name: vendor.credential ?? null,
        present: source !== 'none',
        source,
        ...(unreadable(vendor.credential) ? { unreadable: true } : {}),
      },
      breaker: health?.breaker ?? 'closed',
      inFlight: health?.inFlight ?? 0,
      requests: health?.requests ?? 0,
      errors: health?.errors ?? 0,
      latencyMsP50: health?.latencyMsP50 ?? null,
      latencyMsP95: health?.latencyMsP95 ?? null,
      recent: health?.recent ?? { minutes: 0, requests: 0, errors: 0 },
      lastError: health?.lastError ?? null,
      lastAt: health?.lastAtMs === undefined || health.lastAtMs === null ? null : isoOf(health.lastAtMs),
    }
  }

  return [
    resource('GET /vendors', 'operator', {
      answer: page(vendorView),
      run() {
        const health = new Map(vendorHealth().map((entry) => [entry.name, entry]))
        const vendors = Object.entries(catalog.current.document.vendors)
        return { items: vendors.map(([name, vendor]) => show(name, vendor, health.get(name))), next: null }
      },
    }),
    resource('POST /vendors/{name}/test', 'operator', {
      answer: vendorTest,
      run({ params: { name } }) {
        const vendor = find(name)
        const probed = probedRoute(name, catalog.current.document)
        if (!probed)
          throw new Fault('conflict', {
            message: `No model or endpoint has a route to the vendor "${name}": give it one.`,
          })
        const { sandboxUrl } = deps
        const target = targetOf(probed.route, vendor, probed.uid, { sandboxUrl, credential: credentials.get })
        if (vendor.credential !== undefined && target.secret === undefined)
          throw new Fault('conflict', {
            message: `Its credential ${vendor.credential} is neither stored nor in the gateway's environment.`,
          })
        return deps.probe(target, probed.facts)
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

function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}
