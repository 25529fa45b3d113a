// What video models have in common; what differs from model to model are their traits in the catalog.
import type { VideoTraits } from '../../../catalog/traits.ts'

export const RATIOS = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9', 'adaptive'] as const
export const SECONDS_DEFAULT = 5
export const RESOLUTION_DEFAULT = '720p'

/** The widest of all: for a body whose model is unknown, so that its other mistakes can be told first. */
export const ANY_MODEL: VideoTraits = {
  secondsMin: 1,
  secondsMax: 3600,
  resolutions: ['480p', '720p', '1080p', '2k', '4k'],
  imagesMax: 30,
  videosMax: 10,
  audiosMax: 10,
}

/** The most pixels of a frame, over all ratios. */
const PIXELS_MAX: Readonly<Record<string, number>> = {
  '480p': 480 * 1120,
  '720p': 720 * 1680,
  '1080p': 1080 * 2520,
  '2k': 1440 * 3360,
  '4k': 2160 * 5040,
}
const FRAMES_PER_SECOND = 24
const PIXELS_PER_TOKEN = 1024
/** Reference videos count as well: together at most as long as this. */
const REFERENCE_SECONDS_MAX = 30

/** The most tokens that a vendor can report: it counts the pixels of all frames, in and out, and one frame more. */
export function worstTokens(seconds: number, resolution: string, hasVideos: boolean): number {
  const pixels = PIXELS_MAX[resolution] ?? PIXELS_MAX['4k']!
  const frames = (seconds + (hasVideos ? REFERENCE_SECONDS_MAX : 0)) * FRAMES_PER_SECOND + 1
  return Math.ceil((pixels * frames) / PIXELS_PER_TOKEN)
}
