// How a vendor is, in one word that is true: only one that answered lately is called healthy.
import { formatPercent } from '../../format.ts'
import type { Vendor, VendorTest } from '../../wire.ts'

interface VendorState {
  label: string
  tone: 'good' | 'bad' | 'warn' | 'calm'
  /** The higher, the sooner somebody should look. */
  worry: number
}

/** Fewer failures than this may be chance. */
const DEGRADED_SHARE = 0.05
const DEGRADED_ERRORS = 2

type Facts = Pick<
  Vendor,
  'breaker' | 'probe' | 'credential' | 'simulated' | 'requests' | 'recent' | 'lastAt' | 'lastTest'
>

/** A test tells how the vendor is until calls tell better. */
function testOf({ recent, lastAt, lastTest }: Facts): { ok: boolean } | undefined {
  if (!lastTest) return undefined
  const answeredSince = recent.requests > recent.errors && lastAt !== null && lastAt > lastTest.at
  return lastTest.ok || !answeredSince ? lastTest : undefined
}

export function vendorState(vendor: Facts, fresh?: Pick<VendorTest, 'ok'>): VendorState {
  const { breaker, credential, simulated, requests, recent, probe } = vendor
  const test = fresh ?? testOf(vendor)
  const share = recent.requests ? recent.errors / recent.requests : 0
  const lately = `${formatPercent(share)} failed in ${recent.minutes} min`
  if (probe?.state === 'rejected') return { label: 'Credential rejected', tone: 'bad', worry: 6 }
  if (breaker === 'open' && probe?.state === 'failing') return { label: 'Probes fail', tone: 'bad', worry: 6 }
  if (breaker === 'open') return { label: `Circuit open, ${lately}`, tone: 'bad', worry: 6 }
  if (credential.unreadable) return { label: 'Credential cannot be read', tone: 'bad', worry: 5 }
  if (credential.name && !credential.present && !simulated) return { label: 'No credential', tone: 'bad', worry: 5 }
  if (test && !test.ok) return { label: 'Last test failed', tone: 'bad', worry: 4 }
  if (breaker === 'half-open') return { label: 'Circuit half-open', tone: 'warn', worry: 3 }
  if (share >= DEGRADED_SHARE && recent.errors >= DEGRADED_ERRORS)
    return { label: `Degraded: ${lately}`, tone: 'warn', worry: 2 }
  if (probe?.state === 'failing') return { label: 'Probes begin to fail', tone: 'warn', worry: 2 }
  if (probe?.state === 'answering') return { label: 'Healthy', tone: 'good', worry: 0 }
  if (requests === 0) return { label: test?.ok ? 'Tested, never called' : 'Never called', tone: 'calm', worry: 1 }
  return { label: recent.requests ? 'Healthy' : 'No recent calls', tone: recent.requests ? 'good' : 'calm', worry: 0 }
}

export const worstFirst = <V extends Facts & { name: string }>(vendors: readonly V[]): V[] =>
  vendors.toSorted((a, b) => vendorState(b).worry - vendorState(a).worry || a.name.localeCompare(b.name))
