// The version of this program, from the one place that names it.
import manifest from '../../package.json' with { type: 'json' }

export const VERSION: string = manifest.version

/** Whether a version such as 0.10.2 comes after another. */
export function isNewer(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split(/[.-]/, 3).map(Number)) as [number[], number[]]
  const at = a.findIndex((part, i) => part !== b[i])
  return at >= 0 && a[at]! > (b[at] ?? -1)
}
