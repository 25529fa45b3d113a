// Where a credential belongs: the origins at which the catalog or a preset uses its name. Nobody sends it elsewhere without saying its value.
import { type CatalogInput, isSandbox } from './document.ts'
import type { Preset } from './preset.ts'
import { namedBy } from './vendor-credentials.ts'

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
    Object.values(vendors).some((vendor) => isNamed(vendor) && originOf(vendor.baseUrl) === origin) ||
    presets.some(({ vendor }) => vendor.credential === name && originPattern(vendor.baseUrl)?.test(origin))
  )
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
