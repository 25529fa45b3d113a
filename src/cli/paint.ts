// Colours for a terminal: headings of tables, and words that say how something is. Text that goes elsewhere has none.
import { styleText } from 'node:util'

const HEADINGS = /^[A-Z%][A-Z0-9 %]*(?: {2,}[A-Z%][A-Z0-9 %]*)+$/
/** In a cell of their own. */
const STATES = [
  ['green', 'active|paid|healthy|succeeded|delivered|ok|yes'],
  ['yellow', 'pending|suspended|refunded|degraded|expired|paused'],
  ['red', 'failed|rejected|revoked|disputed|quarantined|unhealthy|closed'],
] as const
const CELLS = STATES.map(([color, words]) => [color, new RegExp(`(?<=(?:^|  ))(?:${words})(?=(?:  |$))`, 'g')] as const)

export function painted(text: string): string {
  const lines = text.split('\n')
  if (!lines.some((line) => HEADINGS.test(line))) return text
  return lines
    .map((line) =>
      HEADINGS.test(line)
        ? styleText('bold', line, { validateStream: false })
        : CELLS.reduce(
            (shown, [color, cell]) => shown.replace(cell, (word) => styleText(color, word, { validateStream: false })),
            line,
          ),
    )
    .join('\n')
}
