import * as z from 'zod'
import { credentialName, credentialsOf, isSandbox, type Vendor } from '../../catalog/document.ts'
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
import { findVendor, isoOf, showCredentials, type VendorCredentialDeps } from './vendor-credentials.ts'

export interface VendorDeps extends VendorCredentialDeps {
  /** Where the simulated vendors listen. */
  readonly sandboxUrl: () => string | undefined
  readonly probe: ConnectDeps['probe']
}

export function vendorResources(deps: VendorDeps): Resource[] {
  const { catalog, credentials, vendorHealth } = deps
  const find = (name: string) => findVendor(catalog, name)

  /** The only one. */
  function credentialOf(name: string): string {
    const [first, ...others] = credentialsOf(find(name))
    if (first === undefined)
      throw new Fault('conflict', {
        message: `The catalogue names no credential for the vendor "${name}". Add "credential" to its entry first.`,
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

  function show(name: string, vendor: Vendor, health: VendorHealth | undefined): VendorView {
    const all = showCredentials(name, vendor, deps)
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
      query: z.strictObject({ credential: credentialName.optional() }),
      answer: vendorTest,
      run({ params: { name }, query }) {
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
