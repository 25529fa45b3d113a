// The credentials that a vendor's entry names, changed: one is named by itself, several in a list.
import { type CatalogInput, credentialsOf, isSandbox } from './document.ts'
import type { Preset } from './preset.ts'

type VendorInput = CatalogInput['vendors'][string]
type Named = { readonly name: string; readonly weight?: number | undefined }

/** All that its entry names, whether one or several. */
export function namedBy({ credential, credentials }: VendorInput): readonly Named[] {
  return credentialsOf({ credential, credentials: credentials?.map(({ name, weight = 1 }) => ({ name, weight })) })
}

function withNames({ credential: _, credentials: __, ...vendor }: VendorInput, all: readonly Named[]): VendorInput {
  const [only] = all
  if (only && all.length === 1) return { ...vendor, credential: only.name }
  return all.length === 0 ? vendor : { ...vendor, credentials: all.map(({ name, weight }) => ({ name, weight })) }
}

/** Added, or with another weight; without one it keeps its own. */
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

// Where a credential belongs: the origins at which the catalog or a preset uses its name. Nobody sends it elsewhere without saying its value.

/** A login sends it to the token endpoint too. */
export function addressesOf({ baseUrl, auth }: Pick<VendorInput, 'baseUrl' | 'auth'>): readonly string[] {
  // What somebody typed is checked with the document, after it was asked where it leads.
  const tokenUrl = typeof auth === 'object' && 'oauth' in auth ? auth.oauth?.tokenUrl : undefined
  return tokenUrl === undefined ? [baseUrl] : [baseUrl, tokenUrl]
}

/** The origins of all of its addresses, each once. A vendor at one origin has that of its base address. */
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

/** Where a preset sends a credential of this name, by any of its logins. */
function addressesWith(name: string, { vendor, logins }: Preset): readonly string[] {
  return [vendor, ...Object.values(logins)]
    .filter(({ credential }) => credential === name)
    .flatMap(({ auth }) => addressesOf({ baseUrl: vendor.baseUrl, auth: auth as VendorInput['auth'] })) // The tests read it by its schema.
}

/** Of the simulated vendors the name that they go by. */
export function originOf(address: string): string | undefined {
  return isSandbox(address) ? address : URL.parse(address)?.origin
}

/** A blank of a preset's address stands for a part of a host's name; one that is the whole address says nothing. */
function originPattern(address: string): RegExp | undefined {
  const [origin] = /^https?:\/\/[^/]+/.exec(address) ?? []
  if (origin === undefined) return undefined
  const parts = origin.split(/\{\w+\}/).map((part) => part.replaceAll(/[^\w/:-]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('[a-z0-9-]{1,63}')}$`)
}
