// The credentials that a vendor's entry names, changed: one is named by itself, several in a list.
import { type CatalogInput, credentialsOf } from './document.ts'

type VendorInput = CatalogInput['vendors'][string]
type Named = { readonly name: string; readonly weight?: number | undefined }

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
