// Addresses of pages, without anything of the browser.

/** `match('/a/:account/keys', path)` → the parameters, or undefined. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/').filter(Boolean)
  const given = path.split('/').filter(Boolean)
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? ''
    if (part.startsWith(':')) {
      try {
        params[part.slice(1)] = decodeURIComponent(value)
      } catch {
        return undefined
      }
    } else if (part !== value) return undefined
  }
  return params
}

/** Only places inside the console: an address from a link must not lead elsewhere. */
export function safeNext(next: string | null): string {
  return next && /^\/(?!\/)[\w\-./?=&%:,+]*$/.test(next) && !next.startsWith('/login') ? next : '/'
}
