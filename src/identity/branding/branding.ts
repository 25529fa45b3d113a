// How a reseller's gateway presents itself: name, logo, colours, support address, links and mail sender. Console,
// mails, documentation and invoices read it here. It is kept in memory, and read again when a process changes it.
import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { By } from '../../database/audit.ts'
import { defineSetting, type KeptParts } from '../../database/setting.ts'
import { invalid } from '../../kernel/fault.ts'
import { readImageFacts } from '../../kernel/parsers/image-file.ts'
import { type BrandingView, brandingInput } from './views.ts'

interface Logo {
  readonly type: 'png' | 'jpeg'
  readonly bytes: Buffer
}

export interface Branding {
  get(): BrandingView
  logo(): Logo | undefined
  /** Style sheet for the console and the documentation; empty where nobody chose a colour. */
  css(): string
  /** Replaces all but the logo. */
  change(input: z.output<typeof brandingInput>, by: By): Promise<BrandingView>
  /** Null removes it. */
  changeLogo(bytes: Buffer | null, by: By): Promise<BrandingView>
}

/** Every page and mail carries it. */
export const LOGO_BYTES_MAX = 200_000
const LOGO_SIDE_MAX = 2_000

/** The bytes of the logo in base64. */
const stored = brandingInput.extend({ logo: z.string().nullable().default(null) })

const BRANDING = defineSetting({
  name: 'branding',
  schema: stored,
  defaults: stored.parse({}),
  topic: 'branding',
  action: 'system.branding',
  object: 'system',
  noted: viewOf,
})

export async function openBranding(parts: KeptParts): Promise<Branding> {
  const kept = await BRANDING.keep(parts, (value) => ({ view: viewOf(value), logo: readLogo(value.logo) }))
  return {
    get: () => kept().view,
    logo: () => kept().logo,
    css() {
      const { color, colorDark } = kept().view
      if (color === null) return ''
      // Twice the root, to win over the tokens in whichever order the two style sheets stand.
      return `:root:root {\n${colorTokens(color, colorDark)}\n}\n`
    },
    async change(input, by) {
      checkColors(input)
      return viewOf(await BRANDING.change(parts, by, ({ logo }) => ({ ...input, logo })))
    },
    async changeLogo(bytes, by) {
      if (bytes) checkLogo(bytes)
      return viewOf(await BRANDING.change(parts, by, (was) => ({ ...was, logo: bytes?.toString('base64') ?? null })))
    },
  }
}

export function checkColors({ color, colorDark }: Pick<BrandingView, 'color' | 'colorDark'>): void {
  if (colorDark !== null && color === null) throw invalid('colorDark: is set together with color.', 'colorDark')
  const light = color === null ? undefined : colorProblem(color, 'light')
  if (light) throw invalid(`color: ${light}`, 'color')
  const dark = colorDark === null ? undefined : colorProblem(colorDark, 'dark')
  if (dark) throw invalid(`colorDark: ${dark}`, 'colorDark')
}

/** PNG and JPEG only: every mail program and the PDF library read them, and neither can hold a script as SVG can. */
export function checkLogo(bytes: Buffer) {
  if (bytes.length > LOGO_BYTES_MAX)
    throw invalid(`data: the logo may have at most ${LOGO_BYTES_MAX / 1000} kB.`, 'data')
  const facts = readImageFacts([bytes])
  if (facts?.type !== 'png' && facts?.type !== 'jpeg') throw invalid('data: the logo must be a PNG or JPEG.', 'data')
  if (facts.width > LOGO_SIDE_MAX || facts.height > LOGO_SIDE_MAX)
    throw invalid(`data: the logo may be at most ${LOGO_SIDE_MAX} pixels wide and high.`, 'data')
  return { ...facts, type: facts.type, bytes }
}

const readLogo = (stored: string | null) => (stored === null ? undefined : checkLogo(Buffer.from(stored, 'base64')))

/** Another file has another address, so that caches do not show the old one. */
function logoUrl(bytes: Buffer): string {
  return `/branding/logo?v=${createHash('sha256').update(bytes).digest('hex').slice(0, 12)}`
}

function viewOf({ logo: bytes, ...fields }: z.output<typeof stored>): BrandingView {
  const logo = readLogo(bytes)
  if (!logo) return { ...fields, logo: null }
  return { ...fields, logo: { url: logoUrl(logo.bytes), type: logo.type, width: logo.width, height: logo.height } }
}

// Colours of an operator's choice on the console's own backgrounds. Whatever they choose, text must stay readable: WCAG
// 2 wants a contrast of 4.5.

/** The darkest of the light backgrounds and the lightest of the dark ones on which coloured text stands. */
const LIGHT_GROUND = '#e6edef'
const DARK_GROUND = '#2b363b'
const CONTRAST_MIN = 4.5

type Rgb = readonly [number, number, number]

const rgbOf = (hex: string): Rgb => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb // Three numbers.
const hexOf = (rgb: Rgb) => `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`

function luminance(hex: string): number {
  const [red, green, blue] = rgbOf(hex).map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as unknown as Rgb // As many as came in.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

/** `share` of the second colour in the first. */
function mix(one: string, other: string, share: number): string {
  const [from, to] = [rgbOf(one), rgbOf(other)]
  return hexOf(from.map((part, index) => part + ((to[index] ?? part) - part) * share) as unknown as Rgb) // As many as came in.
}

/** Black or white, whichever can be read better on it. */
export const textOn = (hex: string) => (contrast(hex, '#ffffff') >= contrast(hex, '#101418') ? '#ffffff' : '#101418')

/** What is wrong with a colour for light pages or for dark ones; undefined: it can be read there. */
function colorProblem(hex: string, theme: 'light' | 'dark'): string | undefined {
  const ground = theme === 'light' ? LIGHT_GROUND : DARK_GROUND
  const ratio = contrast(hex, ground)
  if (ratio >= CONTRAST_MIN) return undefined
  const way = theme === 'light' ? 'darker' : 'lighter'
  return `cannot be read on ${theme} pages: its contrast is ${ratio.toFixed(1)}, and must be at least ${CONTRAST_MIN}. Choose a ${way} one.`
}

/** The same hue, as much lighter as dark pages need. */
function darkVariant(hex: string): string {
  for (let share = 0; share < 1; share += 0.05) {
    const lighter = mix(hex, '#ffffff', share)
    if (contrast(lighter, DARK_GROUND) >= CONTRAST_MIN + 1) return lighter
  }
  return '#ffffff'
}

/** The tokens of console/src/styles/tokens.css that follow the chosen colour, on light and on dark pages. */
export function colorsOf(light: string, chosenDark: string | null) {
  const dark = chosenDark ?? darkVariant(light)
  return {
    accent: [light, dark],
    'accent-hover': [mix(light, '#000000', 0.15), mix(dark, '#ffffff', 0.25)],
    'accent-soft': [mix('#ffffff', light, 0.09), mix('#182125', dark, 0.14)],
    'on-accent': [textOn(light), textOn(dark)],
  } as const
}

function colorTokens(light: string, dark: string | null): string {
  return Object.entries(colorsOf(light, dark))
    .map(([name, [day, night]]) => `  --${name}: light-dark(${day}, ${night});`)
    .join('\n')
}
