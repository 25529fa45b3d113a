// The "test" button: whether a vendor can be reached, and whether it knows our credential, without using a model.
import type { CatalogDocument } from '../catalog/document.ts'
import { asFault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { modelsAddress } from '../protocols/text/text.ts'
import { vendorCall } from '../protocols/vendor-call.ts'
import type { Upstream } from '../upstream/call.ts'
import { type RouteSources, targetOf } from './route.ts'
import type { VendorTest } from './views.ts'

const DEADLINES = { connectMs: 5_000, firstByteMs: 10_000, idleMs: 5_000, totalMs: 15_000 }

export async function probeVendor(
  name: string,
  document: CatalogDocument,
  deps: { upstream: Upstream; world: World; routes: RouteSources },
): Promise<VendorTest> {
  const { upstream, world, routes } = deps
  const vendor = document.vendors[name]!
  const products = [...Object.values(document.models), ...Object.values(document.endpoints)]
  const route = products.flatMap((product) => product.routes).find((entry) => entry.vendor === name)
  if (!route)
    return { ok: false, status: null, latencyMs: 0, message: 'No model or endpoint has a route to this vendor.' }
  const target = targetOf(route, vendor, '', routes)
  if (vendor.credential !== undefined && target.secret === undefined)
    return { ok: false, status: null, latencyMs: 0, message: `Its credential ${vendor.credential} is not set.` }
  const startedMs = world.elapsedMs()
  try {
    const reply = await upstream.send(vendorCall({ method: 'GET', url: modelsAddress(target), headers: {} }, target), {
      deadlines: DEADLINES,
      signal: AbortSignal.timeout(DEADLINES.totalMs),
    })
    const latencyMs = Math.round(world.elapsedMs() - startedMs)
    reply.abort()
    const refused = reply.status === 401 || reply.status === 403
    if (refused)
      return { ok: false, status: reply.status, latencyMs, message: 'It answers, but does not accept the credential.' }
    if (reply.status >= 500)
      return { ok: false, status: reply.status, latencyMs, message: 'It answers with a server error.' }
    return { ok: true, status: reply.status, latencyMs, message: 'It answers.' }
  } catch (error) {
    const fault = asFault(error)
    const timedOut = fault.kind === 'upstream_timeout'
    return {
      ok: false,
      status: null,
      latencyMs: Math.round(world.elapsedMs() - startedMs),
      message: timedOut ? 'It does not answer in time.' : 'It cannot be reached.',
    }
  }
}
