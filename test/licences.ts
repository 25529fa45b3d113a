// `npm run licences`: the licence of every installed package. Fails on one that nobody has looked at.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')

/** Licences that may be used and passed on with Apache-2.0 code, by their SPDX names. */
const KNOWN = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'MPL-2.0',
  // Fonts: may be embedded and passed on, not be sold by themselves.
  'OFL-1.1',
  'PostgreSQL',
  'Unlicense',
])

/** Packages that do not name their licence, and what the file in them says. */
const UNNAMED: Readonly<Record<string, string>> = { 'png-js@2.0.0': 'MIT' }

type LockedPackage = { readonly version: string; readonly license?: string }

export interface Licence {
  readonly name: string
  readonly version: string
  readonly licence: string
  readonly known: boolean
}

/** From the lock file, and from the package itself where the lock file does not say. */
export async function listLicences(): Promise<Licence[]> {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  const found: Licence[] = []
  for (const [path, locked] of Object.entries(lock.packages)) {
    if (path === '') continue
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const licence = locked.license ?? (await licenceOf(path)) ?? UNNAMED[`${name}@${locked.version}`] ?? 'unknown'
    // Where a package offers several, one that is known is enough.
    const offers = licence.replaceAll(/[()]/g, '').split(' OR ')
    found.push({ name, version: locked.version, licence, known: offers.some((offer) => KNOWN.has(offer)) })
  }
  return found
}

async function licenceOf(path: string): Promise<string | undefined> {
  const file = join(ROOT, path, 'package.json')
  if (!existsSync(file)) return undefined
  return (JSON.parse(await readFile(file, 'utf8')) as { license?: string }).license
}

if (import.meta.main) {
  const all = await listLicences()
  for (const { licence, name, version } of all.toSorted((a, b) => a.licence.localeCompare(b.licence)))
    console.log(`${licence.padEnd(24)} ${name} ${version}`)
  const unknown = all.filter(({ known }) => !known)
  if (unknown.length > 0) {
    console.error(`\nNobody has looked at: ${unknown.map(({ name, licence }) => `${name} (${licence})`).join(', ')}`)
    process.exit(1)
  }
}
