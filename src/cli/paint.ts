// Colours for a terminal: headings of tables, and words that say how something is. Text that goes elsewhere has none.
import { styleText } from 'node:util'

const HEADING = /^[A-Z%][A-Z0-9 %]*$/
/** In a cell of their own. */
const COLORS = {
  green: 'active paid healthy succeeded delivered ok yes',
  yellow: 'pending suspended refunded degraded expired paused',
  red: 'failed rejected revoked disputed quarantined unhealthy closed',
}
type Color = keyof typeof COLORS
const statesIn = (color: Color) => COLORS[color].split(' ').map((word) => [word, color] as const)
const STATES = new Map([...statesIn('green'), ...statesIn('yellow'), ...statesIn('red')])

const isHeadings = (line: string) => line.includes('  ') && HEADING.test(line)

export function painted(text: string): string {
  const lines = text.split('\n')
  return lines.some(isHeadings) ? lines.map(paintedLine).join('\n') : text
}

function paintedLine(line: string): string {
  if (isHeadings(line)) return styleText('bold', line, { validateStream: false })
  const cells = line.split(/( {2,})/)
  return cells
    .map((cell) => {
      const color = STATES.get(cell)
      return color ? styleText(color, cell, { validateStream: false }) : cell
    })
    .join('')
}
