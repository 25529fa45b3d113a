// The credentials of a vendor's entry, and the addresses at which they may be used.

import { type CatalogInput, credentialsOf } from './document.ts'
import type { Preset } from './preset.ts'
import { isSandbox } from './simulated.ts'

// Changes the credentials of a vendor's entry: one is a single field, several are a list.

type VendorInput = CatalogInput['vendors'][string]
type Named = { readonly name: string; readonly weight?: number | undefined }

/** The credentials of an entry, whether it names one or several. */
export function namedBy({ credential, credentials }: VendorInput): readonly Named[] {
  return credentialsOf({ credential, credentials: credentials?.map(({ name, weight = 1 }) => ({ name, weight })) })
}

function withNames({ credential: _, credentials: __, ...vendor }: VendorInput, all: readonly Named[]): VendorInput {
  const [only] = all
  if (only && all.length === 1) return { ...vendor, credential: only.name }
  return all.length === 0 ? vendor : { ...vendor, credentials: all.map(({ name, weight }) => ({ name, weight })) }
}

/** Adds a credential or changes its weight; without a weight it stays unchanged. */
export function withCredentialNamed(vendor: VendorInput, { name, weight }: Named): VendorInput {
  const all = namedBy(vendor)
  const known = all.find((one) => one.name === name)
  if (known && (weight === undefined || weight === known.weight)) return vendor
  if (!known) return withNames(vendor, [...all, { name, weight: weight ?? 1 }])
  return withNames(
    vendor,
    all.map((one) => (one === known ? { name, weight: weight ?? one.weight } : one)),
  )
}

export function withoutCredentialNamed(vendor: VendorInput, name: string): VendorInput {
  return withNames(
    vendor,
    namedBy(vendor).filter((one) => one.name !== name),
  )
}

// A credential belongs to the origins at which the catalog or a preset uses it. To send it to another origin, its value
// must be given.

/** A login sends the credential to the token endpoint too. */
export function addressesOf({ baseUrl, auth }: Pick<VendorInput, 'baseUrl' | 'auth'>): readonly string[] {
  // The address is not checked yet: that happens later, with the document.
  const tokenUrl = typeof auth === 'object' && 'oauth' in auth ? auth.oauth?.tokenUrl : undefined
  return tokenUrl === undefined ? [baseUrl] : [baseUrl, tokenUrl]
}

/** The distinct origins of a vendor's addresses. */
export function originsOf(vendor: Pick<VendorInput, 'baseUrl' | 'auth'>): string {
  return [...new Set(addressesOf(vendor).map((address) => originOf(address) ?? ''))].join(' ')
}

export function belongsTo(
  name: string,
  address: string,
  { vendors }: CatalogInput,
  presets: readonly Preset[],
): boolean {
  const origin = originOf(address)
  if (origin === undefined) return false
  const isNamed = (vendor: CatalogInput['vendors'][string]) => namedBy(vendor).some((one) => one.name === name)
  return (
    Object.values(vendors).some(
      (vendor) => isNamed(vendor) && addressesOf(vendor).some((one) => originOf(one) === origin),
    ) || presets.some((one) => addressesWith(name, one).some((address) => originPattern(address)?.test(origin)))
  )
}

/** The addresses to which a preset sends a credential of this name, with any of its logins. */
function addressesWith(name: string, { vendor, logins }: Preset): readonly string[] {
  return [vendor, ...Object.values(logins)]
    .filter(({ credential }) => credential === name)
    .flatMap(({ auth }) => addressesOf({ baseUrl: vendor.baseUrl, auth: auth as VendorInput['auth'] })) // The tests read it by its schema.
}

/** The origin of an address; for simulated vendors their name. */
export function originOf(address: string): string | undefined {
  return isSandbox(address) ? address : URL.parse(address)?.origin
}

/** A variable in a preset's address matches one part of a host name; undefined if the variable is the whole address. */
function originPattern(address: string): RegExp | undefined {
  const [origin] = /^https?:\/\/[^/]+/.exec(address) ?? []
  if (origin === undefined) return undefined
  const parts = origin.split(/\{\w+\}/).map((part) => part.replaceAll(/[^\w/:-]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('[a-z0-9-]{1,63}')}$`)
}
