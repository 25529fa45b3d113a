// What an import says: of everything it found, whether it was taken, changed or left, and why.

export interface ImportLine {
  /** Where it stands there. */
  readonly at: string
  readonly what: 'taken' | 'changed' | 'left'
  readonly words: string
}

export type Say = (at: string, what: ImportLine['what'], words: string) => void

export interface Report {
  readonly lines: ImportLine[]
  readonly say: Say
}

/** Ends an import: the source cannot be read. `isUsage`: it was named wrongly. */
export class ImportProblem extends Error {
  readonly isUsage: boolean

  constructor(message: string, { isUsage = false } = {}) {
    super(message)
    this.isUsage = isUsage
  }
}

/** Lines are for people; whoever wrote a million names into a database gets no more of them on a screen. */
const LINES_MAX = 20_000

export function createReport(): Report {
  const lines: ImportLine[] = []
  return {
    lines,
    say(at, what, words) {
      if (lines.length < LINES_MAX) lines.push({ at, what, words })
      else if (lines.length === LINES_MAX) lines.push({ at: '…', what: 'left', words: 'More lines are not shown.' })
    },
  }
}

/** A stranger's text as one visible line: fit for a screen, and for a name here. */
export function plain(value: unknown, charsMax = 100): string {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  return [
    ...text
      .toWellFormed()
      .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
      .trim(),
  ]
    .slice(0, charsMax)
    .join('')
    .slice(0, charsMax)
    .toWellFormed()
    .trim()
}

/** Nothing, an empty text, list or object, zero or false: what a setting is that nobody has set. */
export function isUnset(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === 0 || value === false) return true
  if (typeof value === 'string') return ['{}', '[]', 'null'].includes(value.trim())
  return typeof value === 'object' && Object.keys(value).length === 0
}
