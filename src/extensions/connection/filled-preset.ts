// A preset as it is chosen: by its name, with one of its logins, and with its variables filled in.
import { type Preset, readPresets } from '../../catalog/preset.ts'

export async function findPreset(name: string): Promise<Preset | undefined> {
  return (await readPresets()).find((one) => one.name === name)
}

/** The preset with another of its logins; undefined: it has none of this name. */
export function withLogin(preset: Preset, name: string | undefined): Preset | undefined {
  if (name === undefined) return preset
  const login = Object.hasOwn(preset.logins, name) ? preset.logins[name] : undefined
  if (!login) return undefined
  const { auth, credential, variables } = login
  const { auth: _, credential: __, ...vendor } = preset.vendor
  const named = { ...(auth === undefined ? {} : { auth }), ...(credential === undefined ? {} : { credential }) }
  return { ...preset, vendor: { ...vendor, ...named }, variables: { ...preset.variables, ...variables } }
}

/** Every text within it, with its variables replaced. */
export function filledIn(value: unknown, given: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string')
    return value.replaceAll(/\{(\w+)\}/g, (all, name: string) => given[name]?.trim() ?? all)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filledIn(one, given)]))
}

/** The address with its variables replaced, or the names of the variables that are missing. */
export function filledAddress(
  { vendor, variables }: Preset,
  given: Readonly<Record<string, string>>,
): string | string[] {
  const missing = Object.keys(variables).filter((name) => !given[name]?.trim())
  if (missing.length > 0) return missing
  return Object.keys(variables).reduce(
    (address, name) => address.replaceAll(`{${name}}`, given[name]?.trim() ?? ''),
    vendor.baseUrl,
  )
}
