// Files that the gateway hosts, under signed addresses.

import type { Readable } from 'node:stream'
import { ASSET_TYPES, type AssetSigner, type AssetStore, readAssetName } from '../assets/store.ts'
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { rawQuery, type WebServer } from './server/server.ts'

export function mountAssets(app: WebServer, deps: { store: AssetStore; signer: AssetSigner; world: World }): void {
  app.get('/assets/{name}', async (request) => {
    const query = new URLSearchParams(rawQuery(request))
    const { headers, method, params } = request
    return serveAsset(deps, {
      method,
      name: params.name ?? '',
      range: headers.range,
      exp: query.get('exp') ?? undefined,
      sig: query.get('sig') ?? undefined,
      ifRange: headers['if-range']?.toString(),
      ifNoneMatch: headers['if-none-match'],
    })
  })
  app.crossSite('/assets/{name}')
}

// The response for an asset's URL, as a description that the HTTP server writes out.

export interface AssetRequest {
  readonly method: string
  /** The last segment of the path, decoded. */
  readonly name: string
  readonly exp: string | undefined
  readonly sig: string | undefined
  /** The request headers of the same names. */
  readonly range?: string | undefined
  readonly ifRange?: string | undefined
  readonly ifNoneMatch?: string | undefined
}

interface AssetResponse {
  readonly status: 200 | 206 | 304 | 416
  readonly headers: Readonly<Record<string, string>>
  /** Absent: there is no body. The receiver must read or destroy the stream. */
  readonly body?: Readable
}

/**
 * Throws not_found for a missing, unsigned or expired asset. The first two give the same message, so that names cannot
 * be probed.
 */
export async function serveAsset(
  deps: { readonly store: AssetStore; readonly signer: AssetSigner; readonly world: World },
  request: AssetRequest,
): Promise<AssetResponse> {
  const facts = readAssetName(request.name)
  if (!facts || !deps.signer.verify(request.name, request.exp, request.sig)) throw missing()
  const leftSeconds = Math.floor((facts.expiresMs - deps.world.nowMs()) / 1000)
  if (leftSeconds <= 0)
    throw new Fault('not_found', {
      message: 'This file has expired. Results are kept for a limited time; save them promptly.',
    })
  const asset = await deps.store.open(request.name)
  if (!asset) throw missing()

  const { bytes } = asset
  const etag = `"${request.name.slice(0, 42)}"`
  const headers: Record<string, string> = {
    'content-type': ASSET_TYPES[facts.extension],
    'content-disposition': 'inline',
    'x-content-type-options': 'nosniff',
    // If a browser ever renders the bytes as a page, that page can do nothing.
    'content-security-policy': "default-src 'none'; sandbox",
    'cross-origin-resource-policy': 'cross-origin',
    'access-control-allow-origin': '*',
    'cache-control': `private, max-age=${leftSeconds}`,
    'accept-ranges': 'bytes',
    etag,
  }
  if (matches(request.ifNoneMatch, etag)) {
    await asset.close()
    return { status: 304, headers }
  }
  const usable = request.ifRange === undefined || request.ifRange === etag
  const range = usable ? readRange(request.range, bytes) : undefined
  if (range === 'unsatisfiable') {
    await asset.close()
    return { status: 416, headers: { ...headers, 'content-range': `bytes */${bytes}`, 'content-length': '0' } }
  }
  const { start, end } = range ?? { start: 0, end: bytes - 1 }
  headers['content-length'] = String(end - start + 1)
  if (range) headers['content-range'] = `bytes ${start}-${end}/${bytes}`
  const status = range ? 206 : 200
  if (request.method === 'HEAD' || bytes === 0) {
    await asset.close()
    return { status, headers }
  }
  return { status, headers, body: asset.read(start, end) }
}

function missing(): Fault {
  return new Fault('not_found', { message: 'There is no file at this address.' })
}

function matches(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((entry) => entry.trim().replace(/^W\//, '') === etag || entry.trim() === '*') ?? false
}

/** Reads a single range. Several ranges, or an invalid header, count as none, and the whole file is sent. */
function readRange(
  header: string | undefined,
  bytes: number,
): { readonly start: number; readonly end: number } | 'unsatisfiable' | undefined {
  const [, from, to] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? []
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined
  if (from === '') {
    const last = Math.min(Number(to), bytes)
    return last === 0 ? 'unsatisfiable' : { start: bytes - last, end: bytes - 1 }
  }
  const start = Number(from)
  if (to !== '' && Number(to) < start) return undefined
  if (start >= bytes) return 'unsatisfiable'
  return { start, end: to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1) }
}
