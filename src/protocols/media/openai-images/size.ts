// From what a caller may write (a ratio, a tier, pixels) to the pixels that a vendor draws.
import { invalid } from '../../../kernel/fault.ts'

export const RESOLUTIONS = ['1k', '2k', '4k'] as const
type Resolution = (typeof RESOLUTIONS)[number]

/** The contract's table; a missing cell is a combination that nobody should pay for. */
const TABLE: Readonly<Record<string, Readonly<Partial<Record<Resolution, string>>>>> = {
  '1:1': { '1k': '1024x1024', '2k': '2048x2048' },
  '3:2': { '1k': '1536x1024', '2k': '2048x1360' },
  '2:3': { '1k': '1024x1536', '2k': '1360x2048' },
  '4:3': { '1k': '1024x768', '2k': '2048x1536' },
  '3:4': { '1k': '768x1024', '2k': '1536x2048' },
  '16:9': { '1k': '1536x864', '2k': '2048x1152', '4k': '3840x2160' },
  '9:16': { '1k': '864x1536', '2k': '1152x2048', '4k': '2160x3840' },
  '21:9': { '1k': '2016x864', '2k': '2688x1152', '4k': '3840x1648' },
  '9:21': { '1k': '864x2016', '2k': '1152x2688', '4k': '1648x3840' },
}

const TIER_OF = new Map<string, Resolution>(
  Object.values(TABLE).flatMap((row) => RESOLUTIONS.flatMap((tier) => (row[tier] ? [[row[tier], tier] as const] : []))),
)

export const SIZES: readonly string[] = ['auto', ...Object.keys(TABLE), ...TIER_OF.keys()]

/** The largest that vendors choose by themselves. */
const AUTO_PIXELS = 1536 * 1024
const AUTO_RATIO = '1:1'

interface DrawnSize {
  /** `WxH`, or `auto` for the vendor's own choice. */
  readonly size: string
  /** What it is priced as. */
  readonly resolution: Resolution
  /** At most. */
  readonly pixels: number
}

/** Explicit pixels win over a tier; a ratio takes its pixels from the tier. */
export function drawnSize(size: string, resolution: Resolution | undefined): DrawnSize {
  const tier = TIER_OF.get(size)
  if (tier) return { size, resolution: tier, pixels: pixelsOf(size) }
  const asked = resolution ?? '1k'
  if (size === 'auto' && asked === '1k') return { size, resolution: '1k', pixels: AUTO_PIXELS }
  const ratio = size === 'auto' ? AUTO_RATIO : size
  const row = Object.hasOwn(TABLE, ratio) ? TABLE[ratio] : undefined
  if (!row) throw invalid(`"size" must be one of ${SIZES.join(', ')}.`, 'size')
  const found = row[asked]
  if (!found) {
    const ratios = Object.keys(TABLE).filter((other) => TABLE[other]![asked])
    const named = size === 'auto' ? 'without a ratio' : `with the ratio ${size}`
    throw invalid(
      `"resolution" ${asked} is not available ${named}; with ${asked}, "size" must be one of ${ratios.join(', ')}.`,
      'resolution',
    )
  }
  return { size: found, resolution: asked, pixels: pixelsOf(found) }
}

function pixelsOf(size: string): number {
  const [width = 0, height = 0] = size.split('x').map(Number)
  return width * height
}
