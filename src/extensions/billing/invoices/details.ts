// Who issues invoices and whom they are made out to: what is given, and what is wrong with it.
import * as z from 'zod'
import { invalid } from '../../../kernel/fault.ts'
import { email, paging, range, text } from '../../../operator/resource.ts'
import type { InvoiceFilter } from './issuing.ts'
import { isCountry, isVatId, plainVatId } from './vat.ts'
import { type BillingDetails, type Issuer, invoiceKind } from './views.ts'

const line = (charsMax: number) =>
  text(charsMax, 0)
    .nullish()
    .transform((value) => value || null)
const country = z
  .string()
  .transform((value) => value.trim().toUpperCase())
  .refine((value) => /^[A-Z]{2}$/.test(value), 'must be a country code such as DE or US')
const rate = z.string().regex(/^\d{1,2}(\.\d{1,4})?$/, 'must be percent such as "19" or "8.1"')
/** The numbers of real invoices have no gap: they are not counted with those of payments without money. */
export const TEST_SERIES = 'TEST'
/** Without the spaces between its groups. */
const compact = (charsMax: number) =>
  line(charsMax).transform((value) => value?.replaceAll(/\s/g, '').toUpperCase() ?? null)

export const issuerInput = z.strictObject({
  name: text(200),
  street: text(200),
  postcode: line(20),
  city: text(100),
  country,
  vatId: compact(30),
  taxNumber: line(50),
  registration: line(100),
  email: email.nullish().transform((value) => value ?? null),
  series: z
    .string()
    .transform((value) => value.trim().toUpperCase())
    .refine((value) => /^[A-Z0-9]{1,10}$/.test(value), 'must be 1 to 10 letters and digits')
    .refine((value) => value !== TEST_SERIES, 'is that of test payments')
    .default('INV'),
  taxRate: rate,
  ratesAbroad: z.record(country, rate).default({}),
  exemption: line(200),
  iban: compact(50),
  bic: compact(20),
  paymentDays: z.number().int().min(0).max(365).default(14),
  footer: line(500),
})

export const detailsInput = z.strictObject({
  company: line(200).describe('The company that is billed'),
  name: line(200).describe('The person who gets the invoices'),
  street: line(200).describe('Street and number'),
  postcode: line(20).describe('The postal code'),
  city: line(100).describe('The city'),
  country: country
    .nullish()
    .transform((value) => value ?? null)
    .describe('A code such as DE'),
  vatId: line(30).describe('The VAT number, for reverse charge inside the EU'),
  email: email
    .nullish()
    .transform((value) => value ?? null)
    .describe('An email address for invoices'),
})

export const invoiceFilter = {
  ...paging,
  ...range,
  kind: invoiceKind.optional().describe('payment, month or credit_note'),
  q: text(100, 0).optional().describe('The beginning of a number, or a part of the customer’s name'),
}
export const asked = ({
  from,
  to,
  ...rest
}: { from?: number | undefined; to?: number | undefined } & InvoiceFilter) => ({ ...rest, fromMs: from, toMs: to })

export const NO_DETAILS: BillingDetails = {
  company: null,
  name: null,
  street: null,
  postcode: null,
  city: null,
  country: null,
  vatId: null,
  email: null,
}
/** Countries without postcodes, or where many addresses have none. */
const NO_POSTCODE = new Set(
  `AE AG AO AW BF BI BJ BO BS BW BZ CD CF CG CI CK CM DJ DM ER FJ GA GD GH GM GQ GY HK IE JM KI KM KN KP LC ML MO MR MW NR NU PA QA RW SB SC SL SR ST SY TD TF
   TG TK TL TO TT TV TZ UG VU YE ZW`.split(/\s+/),
)

/** The first field without which an invoice would not say to whom it is made out. */
export function missingOf(details: BillingDetails): keyof BillingDetails | null {
  if (details.company === null && details.name === null) return 'name'
  for (const field of ['street', 'city', 'country'] as const) if (details[field] === null) return field
  return details.postcode === null && !NO_POSTCODE.has(details.country ?? '') ? 'postcode' : null
}

/** As they are stored. */
export function checkedDetails(given: BillingDetails): BillingDetails {
  const details = { ...given, vatId: given.vatId === null ? null : plainVatId(given.vatId) }
  const { country, vatId } = details
  if (country !== null) checkCountry(country, 'country')
  if (vatId !== null && country === null) throw invalid('country: must be given with a VAT id.', 'country')
  if (vatId !== null && country !== null) checkVatId(vatId, country, 'vatId')
  return details
}

export function checkIssuer(issuer: Issuer): void {
  checkCountry(issuer.country, 'issuer')
  if (issuer.vatId !== null) checkVatId(issuer.vatId, issuer.country, 'issuer')
  for (const country of Object.keys(issuer.ratesAbroad)) checkCountry(country, 'issuer')
  // EN 16931 wants one by which an office or a register knows the issuer.
  if (issuer.vatId === null && issuer.registration === null && issuer.taxNumber === null)
    throw invalid('issuer.vatId: must be given, or taxNumber or registration.', 'issuer')
  if (issuer.iban !== null && !isIban(issuer.iban)) throw invalid('issuer.iban: is not an IBAN.', 'issuer')
}

function checkCountry(country: string, param: string): void {
  if (!isCountry(country)) throw invalid(`${param}: ${country} is not a country code such as DE or US.`, param)
}

function checkVatId(vatId: string, country: string, param: string): void {
  if (!isVatId(vatId, country))
    throw invalid(`${param}: ${vatId} does not look like a VAT id of ${country}, with its letters in front.`, param)
}

/**
 * By its check digits: the letters are numbers from 10 on, the first four characters go to the end, and 1 is left of a
 * division by 97.
 */
function isIban(iban: string): boolean {
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(iban)) return false
  const digits = [...iban.slice(4), ...iban.slice(0, 4)].map((char) => Number.parseInt(char, 36)).join('')
  return BigInt(digits) % 97n === 1n
}
