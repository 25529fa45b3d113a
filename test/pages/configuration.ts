// The settings, from the schema over the environment.
import type { CatalogDocument } from '../../src/catalog/document.ts'
import { SETTINGS } from '../../src/config.ts'
import { code, page, table } from './markdown.ts'

function rowOf(name: string): string[] {
  const setting = SETTINGS[name]!
  if (!setting.description) throw new Error(`${name} has no description in src/config.ts.`)
  const { data } = setting.safeParse(undefined)
  const fallback = data instanceof Map ? [...data] : data
  const shown = typeof fallback === 'boolean' ? String(Number(fallback)) : String(fallback ?? '')
  return [code(name), shown === '' ? '' : code(shown), setting.description]
}

function settingsTable(): string {
  return table(['Variable', 'Default', 'Meaning'], Object.keys(SETTINGS).map(rowOf))
}

export function configurationPage(catalog: CatalogDocument): string {
  const credentials = Object.entries(catalog.vendors)
    .filter(([, vendor]) => vendor.credential !== undefined)
    .map(([name, vendor]) => [code(vendor.credential ?? ''), code(name)])
  return page(
    'Configuration',
    'Settings come from the environment. All problems are reported at once, and then the process ends with code 1; a variable that begins with `TOLLGATE_` and is not in this list is ignored with a warning, which suggests the nearest name (`TOLLGATE_KEY`, which callers export, has none). The sample values of `secret.example.yaml` are rejected. An empty variable counts as not set. Flags take 1, true, 0 or false.',
    settingsTable(),
    '## Credentials of vendors',
    'The catalog names for each vendor the variable that holds its key. A credential that was stored through the operator API (encrypted) is used where the variable is not set. In the shipped catalog the names are these; a simulated vendor needs none.',
    table(['Variable', 'Vendor'], credentials),
  )
}
