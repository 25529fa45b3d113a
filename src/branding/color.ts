// Colours of an operator's choice on the console's own backgrounds. Whatever they choose, text must stay readable: WCAG 2 wants a contrast of 4.5.

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
export function colorProblem(hex: string, theme: 'light' | 'dark'): string | undefined {
  const ground = theme === 'light' ? LIGHT_GROUND : DARK_GROUND
  const ratio = contrast(hex, ground)
  if (ratio >= CONTRAST_MIN) return undefined
  const way = theme === 'light' ? 'darker' : 'lighter'
  return `cannot be read on ${theme} pages: its contrast is ${ratio.toFixed(1)}, and must be at least ${CONTRAST_MIN}. Choose a ${way} one.`
}

/** The same hue, as much lighter as dark pages need. */
export function darkVariant(hex: string): string {
  for (let share = 0; share < 1; share += 0.05) {
    const lighter = mix(hex, '#ffffff', share)
    if (contrast(lighter, DARK_GROUND) >= CONTRAST_MIN + 1) return lighter
  }
  return '#ffffff'
}

/** The tokens of console/src/styles/tokens.css that follow the chosen colour. */
export function colorTokens(light: string, dark: string): string {
  const tokens = {
    accent: [light, dark],
    'accent-hover': [mix(light, '#000000', 0.15), mix(dark, '#ffffff', 0.25)],
    'accent-soft': [mix('#ffffff', light, 0.09), mix('#182125', dark, 0.14)],
    'on-accent': [textOn(light), textOn(dark)],
  } as const
  return Object.entries(tokens)
    .map(([name, [day, night]]) => `  --${name}: light-dark(${day}, ${night});`)
    .join('\n')
}
