/** There is one: to use the tools, as far as the consent goes. */
export const SCOPE = 'mcp'

/** What tokens are for. */
export const resourceOf = (issuer: string) => `${issuer}/mcp`

/**
 * Programs name what they were pointed at: any of the paths, with or without a slash. All of them are the one resource; anything else stays
 * what it is, and is refused.
 */
export function createResourceName(issuer: string, paths: readonly string[]) {
  const listed = new Set(paths.map((path) => issuer + path))
  return (asked: string | string[]): string | string[] =>
    [asked].flat().every((one) => listed.has(one.replace(/\/$/, ''))) ? resourceOf(issuer) : asked
}
