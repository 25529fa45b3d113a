// What the sandbox's image vendor paints. A PNG shows the prompt in large letters on a coloured ground, with size and
// seed; for edits, a tile for each reference that arrived.
import { type Box, type Canvas, drawText, fillRect, INK, newCanvas, PAPER, SHADE, SOFT, type Spot } from './canvas.ts'
import { ADVANCE, drawable, GLYPH_HEIGHT, LINE_ADVANCE, wrap } from './font.ts'
import { flatJpeg, flatWebp } from './media.ts'
import { encodePng } from './png.ts'
import { dice } from './seed.ts'

const MARGIN_UNITS = 8

interface Reference {
  readonly label: string
}

export interface PictureOrder {
  readonly prompt: string
  readonly model: string
  readonly width: number
  readonly height: number
  readonly format: 'png' | 'jpeg' | 'webp'
  readonly quality: string
  readonly seed: number
  readonly references: readonly Reference[]
  /** Such as "partial 1 of 2"; empty for the finished picture. */
  readonly note: string
}

export async function paint(order: PictureOrder): Promise<Buffer> {
  if (order.format === 'jpeg') return flatJpeg(order.width, order.height)
  return order.format === 'webp' ? flatWebp(order.width, order.height) : encodePng(draw(order))
}

function draw(order: PictureOrder): Canvas {
  const { width, height, references } = order
  const canvas = newCanvas(width, height, order.seed)
  drawDiscs(canvas, order.seed)
  const unit = Math.max(1, Math.round(Math.min(width, height) / 340))
  const margin = MARGIN_UNITS * unit
  const title = references.length > 0 ? 'SIMULATED EDIT' : 'SIMULATED IMAGE'
  label(canvas, order.note === '' ? title : `${title}: ${order.note}`, [margin, margin, 2 * unit], SOFT)

  const foot = [`${width}x${height} ${order.format}`, `quality ${order.quality}`, `seed ${order.seed}`, order.model]
  const footLines = wrap(foot.join(' | '), Math.floor((width - 2 * margin) / (ADVANCE * unit)))
  const footTop = height - margin - footLines.length * LINE_ADVANCE * unit
  footLines.forEach((line, i) => {
    label(canvas, line, [margin, footTop + i * LINE_ADVANCE * unit, unit], INK)
  })

  const top = margin + 2 * unit * LINE_ADVANCE + margin
  const room = footTop - margin - top
  const share = references.length === 0 ? 1 : 0.45
  const box: Box = [margin, top, width - 2 * margin, Math.floor(room * share)]
  const textBottom = writeFitting(canvas, order.prompt, box, unit)
  if (references.length > 0) drawTiles(canvas, references, [textBottom + margin, footTop - margin], unit)
  return canvas
}

/** Pale discs, whose colour is that of the ground further down, so that they seem to be of glass. */
function drawDiscs(canvas: Canvas, seed: number): void {
  const own = dice(seed)
  const { width, height, pixels } = canvas
  const least = Math.min(width, height)
  for (let count = 0; count < 4; count++) {
    const [x, y] = [own.roll(width), own.roll(height)]
    const radius = Math.floor(least / 8) + own.roll(Math.max(1, Math.floor(least / 4)))
    for (let row = Math.max(0, y - radius); row < Math.min(height, y + radius); row++) {
      const half = Math.floor(Math.sqrt(radius * radius - (row - y) ** 2))
      const colour = Math.min(239, (pixels[row * width] ?? 0) + 24)
      fillRect(canvas, [x - half, row, 2 * half, 1], colour)
    }
  }
}

function label(canvas: Canvas, text: string, [left, top, scale]: Spot, colour: number): void {
  drawText(canvas, drawable(text), [left + scale, top + scale, scale], SHADE)
  drawText(canvas, drawable(text), [left, top, scale], colour)
}

/** Writes the text as large as it fits, and cut off where even the smallest is too large. Answers where it ends. */
function writeFitting(canvas: Canvas, text: string, [left, top, width, height]: Box, unit: number): number {
  let scale = 6 * unit
  const words = text.slice(0, 2000)
  const fits = () => wrap(words, columns()).length * LINE_ADVANCE * scale <= height && longest() <= columns()
  const columns = () => Math.max(1, Math.floor(width / (ADVANCE * scale)))
  const longest = () =>
    Math.min(
      18,
      Math.max(
        ...drawable(words)
          .split(' ')
          .map((word) => word.length),
      ),
    )
  while (scale > unit && !fits()) scale--
  const lines = wrap(words, columns()).slice(0, Math.max(1, Math.floor(height / (LINE_ADVANCE * scale))))
  lines.forEach((line, i) => {
    label(canvas, line, [left, top + i * LINE_ADVANCE * scale, scale], INK)
  })
  return top + lines.length * LINE_ADVANCE * scale
}

/** One tile a reference, in as few rows as keep the labels readable. */
function drawTiles(
  canvas: Canvas,
  references: readonly Reference[],
  [top, bottom]: readonly [number, number],
  unit: number,
): void {
  const margin = MARGIN_UNITS * unit
  const columns = Math.max(1, Math.min(references.length, 4))
  const rows = Math.ceil(references.length / columns)
  const gap = 4 * unit
  const width = Math.floor((canvas.width - 2 * margin - (columns - 1) * gap) / columns)
  const height = Math.max((GLYPH_HEIGHT + 4) * unit, Math.floor((bottom - top - (rows - 1) * gap) / rows))
  references.forEach((reference, i) => {
    const left = margin + (i % columns) * (width + gap)
    const y = top + Math.floor(i / columns) * (height + gap)
    fillRect(canvas, [left, y, width, height], SHADE)
    fillRect(canvas, [left + unit, y + unit, width - 2 * unit, height - 2 * unit], PAPER)
    const lines = wrap(`#${i + 1} ${reference.label}`, Math.floor((width - 6 * unit) / (ADVANCE * unit)))
    lines.slice(0, Math.floor(height / (LINE_ADVANCE * unit))).forEach((line, k) => {
      drawText(canvas, line, [left + 3 * unit, y + 3 * unit + k * LINE_ADVANCE * unit, unit], SHADE)
    })
  })
}
