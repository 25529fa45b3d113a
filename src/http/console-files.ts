// The console's files, from memory, under a policy that lets nothing else in.
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Fault } from '../kernel/fault.ts'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

export interface ConsoleFiles {
  /** Reads the built files anew. */
  load(): Promise<void>
}

export function mountConsoleFiles(app: FastifyInstance, options: { folder: string; https: boolean }): ConsoleFiles {
  let files = new Map<string, Buffer>()
  const headers = options.https ? { ...HEADERS, 'strict-transport-security': 'max-age=31536000' } : HEADERS

  function send(reply: FastifyReply, name: string): FastifyReply {
    const bytes = files.get(name)
    if (!bytes)
      throw new Fault('unavailable', {
        message: 'The console is still being built; reload in a few seconds.',
        retryAfterSeconds: 3,
      })
    // Built names carry a hash of their content; pages do not.
    const forever = name.startsWith('assets/')
    return reply
      .headers({ ...headers, 'cache-control': forever ? 'public, max-age=31536000, immutable' : 'no-store' })
      .type(TYPES[extname(name)] ?? 'application/octet-stream')
      .send(bytes)
  }

  /** A process that did not see the build reads it when somebody first asks. */
  async function page(_request: unknown, reply: FastifyReply): Promise<FastifyReply> {
    if (!files.has('index.html')) await load()
    return send(reply, 'index.html')
  }
  app.get('/', (_request, reply) => reply.redirect('/console'))
  app.get('/console', page)
  app.get('/console/*', async (request, reply) => {
    const name = (request.params as { '*': string })['*']
    if (files.size === 0) await load()
    if (files.has(name)) return send(reply, name)
    if (extname(name) !== '' || name.startsWith('api/')) throw new Fault('not_found')
    return page(request, reply)
  })

  async function load(): Promise<void> {
    const found = await readdir(options.folder, { recursive: true, withFileTypes: true }).catch(() => [])
    const next = new Map<string, Buffer>()
    for (const entry of found) {
      const path = join(entry.parentPath, entry.name)
      const name = relative(options.folder, path).split(sep).join('/')
      if (entry.isFile() && !name.startsWith('.')) next.set(name, await readFile(path))
    }
    files = next
  }
  return { load }
}
