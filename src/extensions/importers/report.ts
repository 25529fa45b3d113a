// Common to all imports: the report, and the planned accounts and keys.
import { hash } from 'node:crypto'
import { CREDITS_MAX, type Credits } from '../../kernel/credits.ts'
import type { LimitsInput } from '../../meter/limits.ts'

// One line of the report: whether a setting was taken, changed or left out, and why.

export interface ImportLine {
  /** The setting's place in the source. */
  readonly at: string
  readonly what: 'taken' | 'changed' | 'left'
  readonly words: string
}

export type Say = (at: string, what: ImportLine['what'], words: string) => void

export interface Report {
  readonly lines: ImportLine[]
  readonly say: Say
}

/** Ends an import because the source cannot be read. `isUsage`: the command named it wrongly. */
export class ImportProblem extends Error {
  readonly isUsage: boolean

  constructor(message: string, { isUsage = false } = {}) {
    super(message)
    this.isUsage = isUsage
  }
}

/** The report is for people, so a database with a million names does not flood the screen. */
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

/** Foreign text as one printable line, suitable for a screen and for a name. */
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

/** Null, zero, false, or an empty text, list or object: the values of a setting that was never set. */
export function isUnset(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === 0 || value === false) return true
  if (typeof value === 'string') return ['{}', '[]', 'null'].includes(value.trim())
  return typeof value === 'object' && Object.keys(value).length === 0
}

// The accounts and keys that an import plans to create; the reader of each source produces them.

export interface PlannedKey {
  readonly at: string
  readonly name: string
  readonly sha256: string
  readonly last4: string
  readonly models: readonly string[] | null
  readonly expiresAt: string | null
  readonly limits: LimitsInput
  readonly ipRanges: readonly string[] | null
}

export interface PlannedAccount {
  readonly at: string
  /** Identifies the account across repeated imports; used as the Idempotency-Key. */
  readonly reference: string
  readonly name: string
  readonly credits: Credits
  readonly note: string
  readonly limits: LimitsInput
  readonly keys: readonly PlannedKey[]
}

/** A hash of the parts, in the characters that an idempotency key may have. */
export function referenceOf(...parts: readonly string[]): string {
  return `import-${hash('sha256', JSON.stringify(parts), 'hex').slice(0, 40)}`
}

/** Converts dollars to credits; undefined if it is not a valid amount or is too large. */
export function creditsOf(dollars: unknown, perDollar: string): Credits | undefined {
  const value = typeof dollars === 'number' ? dollars * Number(perDollar) : Number.NaN
  if (!Number.isFinite(value) || Math.abs(value) > Number(CREDITS_MAX) / 1_000_000) return undefined
  return BigInt(Math.round(value * 1_000_000))
}

const KEY_CHARS_MIN = 20
const GUESSED = [...'0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_']

/**
 * Warns about a key that is too short. `value` is the key without its prefix; undefined if only its hash and last
 * characters are known.
 */
export function warnShort(at: string, key: Pick<PlannedKey, 'sha256' | 'last4'>, say: Say, value?: string): void {
  const isShort = value === undefined ? isGuessed(key) : value.length < KEY_CHARS_MIN
  if (isShort)
    say(
      `${at}.key`,
      'changed',
      `WARNING: ${value === undefined ? 'its value can be guessed from its last four characters' : `its value has only ${value.length} characters, and can be guessed`}. Give its holder a new key: tollgate keys rotate`,
    )
}

/**
 * Whether the key has at most two characters between the prefix and the known ones. Trying all takes 4,161 hashes, a
 * few milliseconds.
 */
function isGuessed({ sha256, last4 }: Pick<PlannedKey, 'sha256' | 'last4'>): boolean {
  const starts = ['', ...GUESSED, ...GUESSED.flatMap((first) => GUESSED.map((second) => first + second))]
  return starts.some((start) => hash('sha256', `sk-${start}${last4}`, 'hex') === sha256)
}
