// How the gateway presents itself to visitors.
import type { WebServer } from '../../api/server/server.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import { publicBranding } from '../../identity/branding/views.ts'
import { Fault } from '../../kernel/fault.ts'
import { type Resource, resource } from '../resource.ts'

export interface BrandingDeps {
  readonly branding: Branding
}

export function brandingResources({ branding }: BrandingDeps): Resource[] {
  return [
    resource('GET /public/branding', 'visitor', {
      answer: publicBranding,
      run() {
        const { sender: _, ...shown } = branding.get()
        return shown
      },
    }),
  ]
}

const FILE_HEADERS = {
  // Opened directly, an image is a document of its own, so its policy must forbid everything.
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'cross-origin',
}

/** The logo and colours for pages and mails. */
export function mountBranding(app: WebServer, branding: Branding): void {
  app.get('/branding/logo', () => {
    const logo = branding.logo()
    if (!logo) throw new Fault('not_found')
    const headers = { 'content-type': `image/${logo.type}`, 'cache-control': 'public, max-age=3600' }
    return { headers: { ...FILE_HEADERS, ...headers }, body: logo.bytes }
  })
  app.get('/branding/style.css', () => ({
    headers: { ...FILE_HEADERS, 'content-type': 'text/css; charset=utf-8', 'cache-control': 'no-cache' },
    body: branding.css(),
  }))
}
