// Which VAT an invoice bears, and what a VAT id looks like. The form is checked, not whether an office has given the id
// out.
import type { BillingDetails, InvoiceTax, Issuer } from './views.ts'

/** ISO 3166-1. */
const COUNTRIES = new Set(
  `AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR
   CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU
   ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ
   MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI
   SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`.split(
    /\s+/,
  ),
)

export const isCountry = (code: string) => COUNTRIES.has(code)

/**
 * What follows the country's letters, by the country. The members of the European Union, and neighbours whose ids are
 * common on invoices.
 */
const VAT_FORMS: Readonly<Record<string, RegExp>> = {
  AT: /^ATU\d{8}$/,
  BE: /^BE[01]\d{9}$/,
  BG: /^BG\d{9,10}$/,
  CY: /^CY\d{8}[A-Z]$/,
  CZ: /^CZ\d{8,10}$/,
  DE: /^DE\d{9}$/,
  DK: /^DK\d{8}$/,
  EE: /^EE\d{9}$/,
  ES: /^ES[A-Z0-9]\d{7}[A-Z0-9]$/,
  FI: /^FI\d{8}$/,
  FR: /^FR[A-HJ-NP-Z0-9]{2}\d{9}$/,
  GR: /^EL\d{9}$/,
  HR: /^HR\d{11}$/,
  HU: /^HU\d{8}$/,
  IE: /^IE(\d{7}[A-W][A-I]?|\d[A-Z+*]\d{5}[A-W])$/,
  IT: /^IT\d{11}$/,
  LT: /^LT(\d{9}|\d{12})$/,
  LU: /^LU\d{8}$/,
  LV: /^LV\d{11}$/,
  MT: /^MT\d{8}$/,
  NL: /^NL\d{9}B\d{2}$/,
  PL: /^PL\d{10}$/,
  PT: /^PT\d{9}$/,
  RO: /^RO\d{2,10}$/,
  SE: /^SE\d{10}01$/,
  SI: /^SI\d{8}$/,
  SK: /^SK\d{10}$/,
  CH: /^CHE\d{9}$/,
  GB: /^GB(\d{9}|\d{12}|GD\d{3}|HA\d{3})$/,
  NO: /^NO\d{9}MVA$/,
}
const NOT_EU = new Set(['CH', 'GB', 'NO'])
/** An id of any other country still begins with the country's letters: EN 16931 wants that. */
const OTHER_FORM = /^[A-Z]{2}[A-Z0-9]{2,18}$/

const isEu = (country: string) => country in VAT_FORMS && !NOT_EU.has(country)

/** Without the spaces, points and hyphens that people write between its parts. */
export const plainVatId = (given: string) => given.toUpperCase().replaceAll(/[\s.\-/]/g, '')

export function isVatId(vatId: string, country: string): boolean {
  const form = VAT_FORMS[country]
  return form ? form.test(vatId) : OTHER_FORM.test(vatId) && vatId.startsWith(country)
}

const REVERSE_CHARGE = 'Reverse charge: the recipient owes the VAT (Article 196 of Directive 2006/112/EC).'
const ABROAD = 'The place of supply is outside of the issuer’s country: no VAT is charged.'
const NO_VAT = 'The issuer is not subject to VAT.'

/**
 * By the two countries and the customer's VAT id. A consumer elsewhere in the European Union pays the rate that the
 * operator named for their country, and the issuer's own where none is named.
 */
export function taxOf(issuer: Issuer, customer: Pick<BillingDetails, 'country' | 'vatId'>): InvoiceTax {
  const { country, vatId } = customer
  const own = issuer.country === country
  if (issuer.vatId === null && issuer.taxNumber === null) return { category: 'O', rate: '0', reason: NO_VAT }
  if (issuer.exemption !== null) return { category: 'E', rate: '0', reason: issuer.exemption }
  const rated = (rate: string): InvoiceTax => ({ category: Number(rate) === 0 ? 'Z' : 'S', rate, reason: null })
  if (own || country === null) return rated(issuer.taxRate)
  const isInside = isEu(issuer.country) && isEu(country)
  if (isInside && vatId !== null) return { category: 'AE', rate: '0', reason: REVERSE_CHARGE }
  const named = issuer.ratesAbroad[country]
  if (named !== undefined) return rated(named)
  if (isInside) return rated(issuer.taxRate)
  return { category: issuer.vatId === null ? 'O' : 'G', rate: '0', reason: ABROAD }
}

/** A rate of percent as millionths: "19" is 190,000. */
function millionths(rate: string): bigint {
  const [whole = '0', fraction = ''] = rate.split('.')
  return BigInt(whole + fraction.padEnd(4, '0').slice(0, 4))
}

/** What of an amount that includes VAT is VAT: the net amount is rounded once, half up. */
export function taxIn(gross: bigint, rate: string): bigint {
  const parts = 1_000_000n + millionths(rate)
  return gross - (gross * 1_000_000n + parts / 2n) / parts
}

/** The VAT on a net amount, rounded half up. */
export function taxOn(net: bigint, rate: string): bigint {
  return (net * millionths(rate) + 500_000n) / 1_000_000n
}

/** The shortest rate by which an amount includes this VAT: for a tax that somebody else worked out. */
export function rateOf(gross: bigint, tax: bigint): string {
  if (tax === 0n) return '0'
  const net = gross - tax
  for (const decimals of [0, 1, 2, 3, 4]) {
    const scale = 10n ** BigInt(decimals)
    const rate = (tax * 100n * scale + net / 2n) / net
    const text = decimals === 0 ? `${rate}` : `${rate / scale}.${`${rate % scale}`.padStart(decimals, '0')}`
    if (taxIn(gross, text) === tax || decimals === 4) return text
  }
  return '0'
}
