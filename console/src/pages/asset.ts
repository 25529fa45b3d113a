// Where a result can be shown from. The page's policy lets it load only from its own origin; the gateway hosts results
// under /assets/, perhaps by another name of the same server, so the path is what counts.

interface AssetSource {
  href: string | undefined
  inline: boolean
}

export function assetSource(text: string): AssetSource {
  if (/^data:image\/(png|jpeg|webp|gif);base64,/.test(text)) return { href: text, inline: true }
  let url: URL
  try {
    url = new URL(text, window.location.origin)
  } catch {
    return { href: undefined, inline: false }
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return { href: undefined, inline: false }
  if (url.pathname.startsWith('/assets/') || url.pathname.startsWith('/v1/assets/'))
    return { href: url.pathname + url.search, inline: true }
  return { href: url.href, inline: url.origin === window.location.origin }
}
