// What a job's row remembers of what was asked: the order for the vendor until the vendor has it, and for ever what the
// price was made of.
import type { World } from '../kernel/world.ts'
import type { VideoOrder, VideoRequest } from '../protocols/media/video-task/request.ts'

export interface StoredRequest {
  readonly seconds: number
  readonly resolution: string
  readonly hasVideos: boolean
  /** What its usage row says was called. Absent: rows of before this was kept. */
  readonly endpoint?: string
  /** Which agent asked, if one did. */
  readonly client?: string | undefined
  /** It was held for at the fee of the account's own key; and whether it may also go by the gateway's, at the price. */
  readonly byok?: { readonly fallback: boolean }
  /** Drawn by us when the caller chose none: a task can be recognised by it. */
  readonly seed?: number
  /** Absent: it is stored apart, or the vendor has it already. */
  readonly order?: VideoOrder
  /** How long the order is that is stored apart: known before it is read. */
  readonly apartChars?: number
}

/** Beyond this the order is stored apart, so that large pictures do not travel with the reservation. */
const INLINE_CHARS_MAX = 8_000

interface Asked {
  readonly endpoint: string
  readonly own?: { readonly fallback: boolean } | undefined
}

/** The row's text, and what must be stored apart first. */
export function storeRequest(
  request: VideoRequest,
  { endpoint, client, own }: Pick<StoredRequest, 'client'> & Asked,
  world: World,
): { text: string; apart?: string } {
  const { order } = request
  const facts: StoredRequest = {
    seconds: order.duration,
    resolution: order.resolution,
    hasVideos: order.content.some((part) => part.type === 'video_url'),
    endpoint,
    client,
    ...(own ? { byok: { fallback: own.fallback } } : {}),
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

/** 19 digits of which 62 bits are random: beyond what a float holds, and beyond guessing. */
export function newJobId(world: World): string {
  const least = 1_000_000_000_000_000_000n
  return String(least + (world.bytes(8).readBigUInt64BE() % (9_000_000_000_000_000_000n - least)))
}
