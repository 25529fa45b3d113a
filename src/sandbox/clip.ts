// The film that the sandbox's video vendor delivers: the prompt on a coloured ground, and a bar that grows with the time.
import { ACCENT, type Canvas, drawText, fillRect, INK, newCanvas, SHADE } from './canvas.ts'
import { ADVANCE, LINE_ADVANCE, wrap } from './font.ts'
import { encodeH264 } from './h264.ts'
import { wrapMp4 } from './mp4.ts'

export interface ClipOrder {
  readonly prompt: string
  readonly ratio: string
  readonly resolution: string
  readonly seconds: number
  readonly seed: number
}

export const FRAMES_PER_SECOND = 24
/** The long side in pixels. The film stays small, whatever was ordered: thousands of them may be kept by tests. */
const LONG_SIDE = 192
const BAR_STEPS = 24

export function makeClip(order: ClipOrder): Buffer {
  return wrapMp4(encodeH264(frames(order)), FRAMES_PER_SECOND)
}

/** Width and height of the film, in even numbers. */
function clipSize(ratio: string): { width: number; height: number } {
  const [across = 16, down = 9] = ratio.split(':').map(Number)
  const scale = LONG_SIDE / Math.max(across, down)
  const even = (side: number) => Math.max(16, 2 * Math.round((side * scale) / 2))
  return { width: even(across || 16), height: even(down || 9) }
}

function* frames(order: ClipOrder): Generator<Canvas | 'same'> {
  const { width, height } = clipSize(order.ratio)
  const canvas = newCanvas(width, height, order.seed)
  const columns = Math.floor((width - 12) / ADVANCE)
  const lines = [
    'SIMULATED VIDEO',
    `${order.resolution} ${order.ratio} ${order.seconds}s`,
    '',
    ...wrap(order.prompt, columns),
  ].slice(0, Math.floor((height - 20) / LINE_ADVANCE))
  lines.forEach((line, i) => {
    drawText(canvas, line, 7, 7 + i * LINE_ADVANCE, 1, SHADE)
    drawText(canvas, line, 6, 6 + i * LINE_ADVANCE, 1, INK)
  })
  fillRect(canvas, 6, height - 10, width - 12, 5, SHADE)
  const count = order.seconds * FRAMES_PER_SECOND
  let drawn = 0
  for (let frame = 0; frame < count; frame++) {
    const step = Math.ceil(((frame + 1) * BAR_STEPS) / count)
    if (step === drawn) {
      yield 'same'
      continue
    }
    drawn = step
    fillRect(canvas, 6, height - 10, Math.round(((width - 12) * step) / BAR_STEPS), 5, ACCENT)
    yield canvas
  }
}

/** The last picture of the film, for vendors that return it by itself. */
export function lastFrame(order: ClipOrder): Canvas | undefined {
  let last: Canvas | undefined
  for (const frame of frames({ ...order, seconds: 1 })) if (frame !== 'same') last = frame
  return last
}
