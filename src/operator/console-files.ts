// The console's built and precompressed files, read at the first request, with a Content-Security-Policy that allows
// nothing else.
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import type { WebServer } from '../api/server/server.ts'
import { redirect, type WebAnswer, type WebRequest } from '../api/server/web.ts'
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
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

/** By content coding; `identity` is the file itself. */
interface File {
  readonly identity: Buffer
  readonly br?: Buffer
  readonly gzip?: Buffer
}

/** The suffixes of compressed files. */
const CODINGS = { br: '.br', gzip: '.gz' } as const

export interface ConsoleFiles {
  /** Call it after a build: the files are read again at the next request. */
  forget(): void
}

export function mountConsoleFiles(app: WebServer, options: { folder: string; https: boolean }): ConsoleFiles {
  let files = new Map<string, File>()
  let loading: Promise<void> | undefined
  const headers = options.https ? { ...HEADERS, 'strict-transport-security': 'max-age=31536000' } : HEADERS

  function answerOf(request: WebRequest, name: string): WebAnswer {
    const file = files.get(name)
    if (!file)
      throw new Fault('unavailable', {
        message: 'The console is still being built; reload in a few seconds.',
        retryAfterSeconds: 3,
      })
    const coding = codingOf(request.headers['accept-encoding'], file)
    // Names of built assets contain a hash of their content, so they can be cached forever; pages cannot.
    const forever = name.startsWith('assets/')
    return {
      headers: {
        ...headers,
        'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
        'cache-control': forever ? 'public, max-age=31536000, immutable' : 'no-store',
        vary: 'accept-encoding',
        ...(coding === 'identity' ? {} : { 'content-encoding': coding }),
      },
      body: file[coding] ?? file.identity,
    }
  }

  function loadOnce(): Promise<void> {
    loading ??= load().finally(() => {
      loading = undefined
    })
    return loading
  }

  app.get('/', () => redirect('/console'))
  for (const path of ['/console', '/console/*'])
    app.get(path, async (request) => {
      const name = request.params['*'] ?? ''
      // Another process may have built the console since.
      if (!files.has('index.html')) await loadOnce()
      if (files.has(name)) return answerOf(request, name)
      // Any other path is a page of the app. Paths of pages may contain dots, because names of models do.
      if (/^(api|assets)(\/|$)/.test(name)) throw new Fault('not_found')
      return answerOf(request, 'index.html')
    })

  async function load(): Promise<void> {
    const found = await readdir(options.folder, { recursive: true, withFileTypes: true }).catch(() => [])
    const bytes = new Map<string, Buffer>()
    for (const entry of found) {
      const path = join(entry.parentPath, entry.name)
      const name = relative(options.folder, path).split(sep).join('/')
      if (entry.isFile() && !name.startsWith('.')) bytes.set(name, await readFile(path))
    }
    const next = new Map<string, File>()
    for (const [name, identity] of bytes) {
      const [br, gzip] = [bytes.get(name + CODINGS.br), bytes.get(name + CODINGS.gzip)]
      next.set(name, { identity, ...(br ? { br } : {}), ...(gzip ? { gzip } : {}) })
    }
    files = next
  }

  return {
    forget() {
      files = new Map()
    },
  }
}

/** The smallest encoding that the browser accepts; `q=0` excludes one. */
function codingOf(accepted: string | undefined, file: File): keyof File {
  const taken = new Set(
    (accepted ?? '')
      .split(',')
      .map((part) => part.trim().toLowerCase())
      .filter((part) => !/;\s*q=0(\.0*)?$/.test(part))
      .map((part) => part.split(';')[0]),
  )
  return (['br', 'gzip'] as const).find((coding) => file[coding] && taken.has(coding)) ?? 'identity'
}
