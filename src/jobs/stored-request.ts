// The request as a job's row stores it: the order until the vendor has accepted it, and permanently the facts that decide the price.
import type { World } from '../kernel/world.ts'
import type { VideoOrder, VideoRequest } from '../protocols/media/video-task/request.ts'

export interface StoredRequest {
  readonly seconds: number
  readonly resolution: string
  readonly hasVideos: boolean
  /** The endpoint for the usage row. Absent in rows of an earlier version. */
  readonly endpoint?: string
  /** The agent that sent the request, if known. */
  readonly client?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** The hold covers only the fee for the account's own key. `fallback`: the gateway's credential may be used too, at the price. */
  readonly byok?: { readonly fallback: boolean }
  /** Which of the catalog's routes it may take, by their numbers. Absent: all. */
  readonly routes?: readonly number[]
  /** Chosen by us when the caller gave none: it identifies the task in a search. */
  readonly seed?: number
  /** Absent: it is stored in its own table, or the vendor has accepted it. */
  readonly order?: VideoOrder
  /** The length of an order stored in its own table, known before it is read. */
  readonly apartChars?: number
}

/** Longer orders go to their own table, so that large pictures do not burden the reservation's statement. */
const INLINE_CHARS_MAX = 8_000

/** What a row stores of the call. */
export interface StoredCall extends Pick<StoredRequest, 'client' | 'labels'> {
  readonly endpoint: string
  readonly own?: { readonly fallback: boolean } | undefined
  /** Absent: all of the catalog's routes. */
  readonly allowedRoutes?: readonly number[] | undefined
}

/** The row's text, and the order to store first in its own table if it is large. */
export function storeRequest(
  request: VideoRequest,
  { endpoint, client, labels, own, allowedRoutes }: StoredCall,
  world: World,
): { text: string; apart?: string } {
  const { order } = request
  const facts: StoredRequest = {
    seconds: order.duration,
    resolution: order.resolution,
    hasVideos: order.content.some((part) => part.type === 'video_url'),
    endpoint,
    client,
    ...(labels ? { labels } : {}),
    ...(own ? { byok: { fallback: own.fallback } } : {}),
    ...(allowedRoutes ? { routes: allowedRoutes } : {}),
    ...(order.seed === undefined ? { seed: world.bytes(4).readUInt32BE() } : {}),
  }
  const apart = JSON.stringify(order)
  if (apart.length <= INLINE_CHARS_MAX) return { text: JSON.stringify({ ...facts, order }) }
  return { text: JSON.stringify({ ...facts, apartChars: apart.length }), apart }
}

export function readStoredRequest(text: string): StoredRequest {
  return JSON.parse(text) as StoredRequest
}

export function withoutOrder({ order: _, ...facts }: StoredRequest): string {
  return JSON.stringify(facts)
}

/** 19 digits with some 62 random bits: too large for a float, and not guessable. */
export function newJobId(world: World): string {
  const least = 1_000_000_000_000_000_000n
  return String(least + (world.bytes(8).readBigUInt64BE() % (9_000_000_000_000_000_000n - least)))
}
