// Branding in requests and answers of the API.
import * as z from 'zod'

/** What the product is called where no operator has named it. */
export const DEFAULT_NAME = 'Tollgate'

/**
 * One line that goes into pages, mail headers and PDFs: visible characters only, so that nothing can start a new header
 * or reverse the reading order.
 */
const line = (charsMax: number) =>
  z
    .string()
    .transform((value) => value.trim())
    .refine((value) => value.length > 0 && value.length <= charsMax, `must have 1 to ${charsMax} characters`)
    .refine(
      (value) => value.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(value),
      'must hold visible characters only',
    )

const color = z
  .string()
  .regex(/^#[0-9a-f]{6}$/i, 'must be a color such as #0e6e74')
  .transform((value) => value.toLowerCase())

/** An address that a mail program takes as one mailbox: no list, no comment, no quoted part. */
const mailAddress = z
  .string()
  .transform((value) => value.trim())
  .refine(
    (value) => value.length <= 254 && /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(value),
    'must be an email address',
  )

const link = z.strictObject({
  label: line(40),
  url: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).max(500),
})

export const brandingInput = z.strictObject({
  name: line(60).default(DEFAULT_NAME).describe('What the product is called'),
  color: color.nullable().default(null).describe('Of buttons and links on light pages, in mails and on invoices'),
  colorDark: color.nullable().default(null).describe('The same on dark pages; null: made from `color`'),
  support: mailAddress.nullable().default(null).describe('Where customers get help'),
  /** In the footer of pages and mails: imprint, privacy, status. */
  links: z.array(link).max(6).default([]),
  /** The sender of mails; null: TOLLGATE_MAIL_FROM. */
  sender: z
    .strictObject({
      name: line(60).meta({ description: 'The name of the sender', option: 'sender-name' }),
      address: mailAddress.meta({ description: 'The sender of mails', option: 'sender' }),
    })
    .nullable()
    .default(null),
})

export const brandingView = z.object({
  name: z.string(),
  color: z.string().nullable(),
  colorDark: z.string().nullable(),
  support: z.string().nullable(),
  links: z.array(z.object({ label: z.string(), url: z.string() })),
  sender: z.object({ name: z.string(), address: z.string() }).nullable(),
  logo: z
    .object({
      /** A path on this server; a new file gets a new path. */
      url: z.string(),
      type: z.enum(['png', 'jpeg']),
      width: z.number().int(),
      height: z.number().int(),
    })
    .nullable(),
})
export type BrandingView = z.infer<typeof brandingView>

/** The public part: everything except the sender. */
export const publicBranding = brandingView.omit({ sender: true })
export type PublicBranding = z.infer<typeof publicBranding>
