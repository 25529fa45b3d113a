// Invoices: the issuer, billing details of customers, and the document that is fixed when an invoice is issued.
import * as z from 'zod'
import { page, time } from '../../../kernel/view.ts'

const line = z.string()
const maybe = line.nullable()
const country = z.string().regex(/^[A-Z]{2}$/)
const day = z.iso.date()
/** Percent: "19", "8.1". */
const rate = z.string().regex(/^\d{1,2}(\.\d{1,4})?$/)
/** In the currency's smallest unit. */
const minor = z.string().regex(/^\d+$/)

export const issuerView = z.object({
  name: line,
  street: line,
  postcode: maybe,
  city: line,
  country,
  vatId: maybe,
  /** Of a tax office, for issuers without a VAT id. */
  taxNumber: maybe,
  /** In the register of companies. */
  registration: maybe,
  email: maybe,
  /** The first part of each number. The numbers of a series have no gap within a year. */
  series: z.string().regex(/^[A-Z0-9]{1,10}$/),
  /** In the issuer's own country. */
  taxRate: rate,
  /** The rates for consumers in other countries, by country. */
  ratesAbroad: z.record(country, rate),
  /** Why no VAT is charged at all, such as the rule for small businesses. */
  exemption: maybe,
  iban: maybe,
  bic: maybe,
  /** Of an invoice for a month. */
  paymentDays: z.number().int().min(0).max(365),
  /** At the foot of each page. */
  footer: maybe,
})
export type Issuer = z.infer<typeof issuerView>

export const invoiceSettings = z.object({
  /** Null: no invoices are issued. */
  issuer: issuerView.nullable(),
  /** Whether unpaid credits are invoiced at the end of each month. */
  monthly: z.boolean(),
  /** The first day of the first invoiced month. */
  monthlySince: day.nullable(),
})
export type InvoiceSettings = z.infer<typeof invoiceSettings>

export const billingDetails = z.object({
  company: maybe,
  name: maybe,
  street: maybe,
  postcode: maybe,
  city: maybe,
  country: country.nullable(),
  vatId: maybe,
  email: maybe,
})
export type BillingDetails = z.infer<typeof billingDetails>

/** `missing`: the first field that must be filled in before a purchase; null: none, or no invoices are issued. */
export const billingDetailsView = billingDetails.extend({ missing: maybe })
export type BillingDetailsView = z.infer<typeof billingDetailsView>

/** Codes of EN 16931: standard, zero rated, exempt, reverse charge, export, not subject to VAT. */
const taxCategory = z.enum(['S', 'Z', 'E', 'AE', 'G', 'O'])

const invoiceTax = z.object({ category: taxCategory, rate, reason: maybe })
export type InvoiceTax = z.infer<typeof invoiceTax>

export const invoiceKind = z.enum(['payment', 'month', 'credit_note'])

/** Everything that stands on an invoice. */
const invoiceDocument = z.object({
  number: line,
  kind: invoiceKind,
  issuedOn: day,
  issuer: issuerView,
  customer: billingDetails,
  account: z.object({ id: line, name: line }),
  description: line,
  currency: z.string().regex(/^[A-Z]{3}$/),
  netMinor: minor,
  taxMinor: minor,
  grossMinor: minor,
  tax: invoiceTax,
  /** When it was paid or refunded; null: not paid yet. */
  paidOn: day.nullable(),
  dueOn: day.nullable(),
  /** The period of the supply: the day of the payment, or a month. */
  from: day,
  to: day,
  payment: maybe,
  corrects: z.object({ number: line, issuedOn: day }).nullable(),
  /** The branding at that time; absent: none. */
  brand: z.object({ name: line, color: maybe }).exactOptional(),
})
export type InvoiceDocument = z.infer<typeof invoiceDocument>

export const invoiceView = z.object({
  id: line,
  account: line,
  /** Of a customer of the account. */
  purse: maybe,
  number: line,
  kind: invoiceKind,
  customer: line,
  issuedAt: time,
  currency: line,
  /** With the currency's decimals; amounts of a credit note have no sign. */
  gross: line,
  tax: line,
  payment: maybe,
  /** Of a credit note: the id of the invoice that it corrects. */
  corrects: maybe,
  /** Of an invoice for a month: `2026-10`. */
  month: maybe,
})
export type InvoiceView = z.infer<typeof invoiceView>

export const invoicePage = page(invoiceView)
