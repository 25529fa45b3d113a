// The kinds of fields that resources take: each refuses what the database cannot hold or a reader cannot see.
import * as z from 'zod'
import { DAY_MS, dayNumber, parseDay } from '../kernel/calendar.ts'
import { parseCredits } from '../kernel/credits.ts'

/** One line of visible text: no control characters, no halves of a surrogate pair. */
export const text = (charsMax: number, charsMin = 1) =>
  z
    .string()
    .transform((value) => value.trim())
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
    .refine((value) => !/\p{Cc}/u.test(value), 'must not hold control characters')
    .refine(
      (value) => value.length >= charsMin,
      charsMin === 1 ? 'must not be empty' : `must have at least ${charsMin} characters`,
    )
    .refine((value) => value.length <= charsMax, `must have at most ${charsMax} characters`)

/** A vendor's credential: it goes into a header as it is. */
export const secret = z
  .string()
  .regex(/^[\x21-\x7e]{1,4096}$/, 'must be 1 to 4096 visible ASCII characters without spaces')

/** What our own ids look like; anything else is not there. */
export const id = z.string().regex(/^[\w+-]{1,100}$/)

/** In lower case, as people are looked up by it. */
export const email = z
  .string()
  .transform((value) => value.trim().toLowerCase())
  .refine((value) => value.length <= 254, { error: 'must have at most 254 characters', abort: true })
  .refine(
    (value) => /^[^\s@\p{Cc}]+@[^\s@.\p{Cc}]+(?:\.[^\s@.\p{Cc}]+)+$/u.test(value) && value.isWellFormed(),
    'must be an e-mail address',
  )

/** Its rules are checked where it is chosen; here only that it can be hashed without effort. */
export const password = z.string().max(1000)

export const linkToken = z.string().regex(/^[\w-]{20,100}$/)

export const amount = z.union([z.string(), z.number()]).transform((value, context) => {
  const credits = parseCredits(value)
  if (credits !== undefined) return credits
  context.addIssue('must be an amount of credits such as "12.5", with at most six decimals')
  return z.NEVER
})

export const paging = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z
    .string()
    .regex(/^[\w+-]{1,100}$/, 'is not a cursor that a page gave as next')
    .optional(),
}

/** A moment in the future or null: `2027-01-01T00:00:00Z`. */
export const moment = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2027-01-01T00:00:00Z' })
  .transform((value) => Date.parse(value))

/** A day stands for its beginning, or as the end of a range for its end. */
const edge = (daysLater: number) =>
  z
    .string()
    .transform((value, context) => {
      const day = parseDay(value)
      if (day !== undefined) return (day + daysLater) * DAY_MS
      const parsed = moment.safeParse(value)
      if (parsed.success) return parsed.data
      context.addIssue('must be a day such as 2026-11-15 or a time such as 2026-11-15T08:00:00Z')
      return z.NEVER
    })
    .refine((ms) => ms >= EARLIEST_MS && ms < LATEST_MS, 'is out of range')
    .optional()

const EARLIEST_MS = 0
const LATEST_MS = dayNumber({ year: 3000, month: 1, day: 1 }) * DAY_MS

/** The rows of the account's test account instead of its own. */
export const test = z.enum(['true', 'false']).optional()

export const range = { from: edge(0), to: edge(1) }
