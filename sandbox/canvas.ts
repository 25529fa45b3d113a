// A picture of at most 256 colours: cheap to draw and to encode, however many pixels it has.
import { ADVANCE, GLYPH_HEIGHT, GLYPH_WIDTH, glyphOf } from './font.ts'
import { hash } from './seed.ts'

type Rgb = readonly [red: number, green: number, blue: number]

/** Colours 0 to 239 are the gradient from top to bottom; these come after it. */
export const INK = 240
export const SHADE = 241
export const PAPER = 242
export const SOFT = 243
const GRADIENT_STEPS = 240

export interface Canvas {
  readonly width: number
  readonly height: number
  /** One colour number a pixel, row by row. */
  readonly pixels: Uint8Array
  /** 256 colours. */
  readonly palette: readonly Rgb[]
}

/** A new picture, filled with a gradient whose colours the seed decides. */
export function newCanvas(width: number, height: number, seed: number): Canvas {
  const pixels = new Uint8Array(width * height)
  for (let y = 0; y < height; y++) {
    pixels.fill(Math.floor((y * GRADIENT_STEPS) / height), y * width, (y + 1) * width)
  }
  const hue = hash(String(seed)) % 360
  const palette = Array.from({ length: 256 }, (_, i): Rgb => {
    const share = Math.min(i, GRADIENT_STEPS - 1) / (GRADIENT_STEPS - 1)
    return fromHsl(hue + share * 60, 0.45, 0.26 + share * 0.26)
  })
  palette[INK] = [255, 255, 255]
  palette[SHADE] = fromHsl(hue, 0.6, 0.16)
  palette[PAPER] = [250, 248, 240]
  palette[SOFT] = fromHsl(hue + 20, 0.4, 0.8)
  return { width, height, pixels, palette }
}

export type Box = readonly [left: number, top: number, width: number, height: number]

export function fillRect(canvas: Canvas, [left, top, width, height]: Box, colour: number): void {
  const from = Math.max(0, left)
  const to = Math.min(canvas.width, left + width)
  if (to <= from) return
  for (let y = Math.max(0, top); y < Math.min(canvas.height, top + height); y++) {
    canvas.pixels.fill(colour, y * canvas.width + from, y * canvas.width + to)
  }
}

export type Spot = readonly [left: number, top: number, scale: number]

/** One line; each dot of the face becomes a square of `scale` pixels. */
export function drawText(canvas: Canvas, text: string, [left, top, scale]: Spot, colour: number): void {
  let x = left
  for (const char of text) {
    const rows = glyphOf(char)
    for (let row = 0; row < GLYPH_HEIGHT; row++) {
      for (let column = 0; column < GLYPH_WIDTH; column++) {
        if (((rows[row] ?? 0) >> (GLYPH_WIDTH - 1 - column)) & 1) {
          fillRect(canvas, [x + column * scale, top + row * scale, scale, scale], colour)
        }
      }
    }
    x += ADVANCE * scale
  }
}

function fromHsl(hue: number, saturation: number, lightness: number): Rgb {
  const chroma = saturation * Math.min(lightness, 1 - lightness)
  const channel = (offset: number): number => {
    const k = (offset + (((hue % 360) + 360) % 360) / 30) % 12
    return Math.round(255 * (lightness - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1))))
  }
  return [channel(0), channel(8), channel(4)]
}
