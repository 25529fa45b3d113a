// Invoices of many shapes, for the tests that judge what they look like: issuers, customers, rates, currencies, names,
// refunds and months.
import { crc32, deflateSync } from 'node:zlib'
import type { Database } from '../src/database/database.ts'
import type { BillingDetails, Issuer } from '../src/extensions/billing/invoices/views.ts'
import type { Invoices } from '../src/extensions/sales/invoices/invoices.ts'
import { newId, realWorld as world } from '../src/kernel/world.ts'

const BY = { actor: 'test', ip: null, requestId: null }

export const ISSUER: Issuer = {
  name: 'Gateway GmbH',
  street: 'Hauptstraße 1',
  postcode: '10115',
  city: 'Berlin',
  country: 'DE',
  vatId: 'DE123456789',
  taxNumber: null,
  registration: 'HRB 1',
  email: 'billing@gateway.example',
  series: 'INV',
  taxRate: '19',
  ratesAbroad: { AT: '20' },
  exemption: null,
  iban: null,
  bic: null,
  paymentDays: 14,
  footer: null,
}

const ISSUERS: readonly Issuer[] = [
  ISSUER,
  { ...ISSUER, series: 'SMALL', vatId: null, taxNumber: '12/345/67890', exemption: 'No VAT by § 19 UStG.' },
  {
    ...ISSUER,
    series: 'BANK',
    iban: 'DE89370400440532013000',
    bic: 'COBADEFFXXX',
    footer: 'Geschäftsführerin: Ł. Ωmega & <Söhne>',
  },
  {
    ...ISSUER,
    series: 'FR',
    name: 'Passerelle & Fils SARL',
    country: 'FR',
    vatId: 'FRXX123456789',
    taxRate: '20',
    ratesAbroad: { CH: '8.1', HU: '27' },
  },
  { ...ISSUER, series: 'US', country: 'US', vatId: null, registration: 'DE 123', taxRate: '0', postcode: '19801' },
  { ...ISSUER, series: 'CH', country: 'CH', vatId: 'CHE123456789', taxRate: '8.1', registration: null, email: null },
]

const NOBODY: BillingDetails = {
  company: null,
  name: null,
  street: 'Road 1',
  postcode: '12345',
  city: 'City',
  country: 'DE',
  vatId: null,
  email: null,
}
const CUSTOMERS: readonly BillingDetails[] = [
  { ...NOBODY, company: 'Kunde AG' },
  {
    ...NOBODY,
    company: 'Zażółć gęślą jaźń Sp. z o.o.',
    country: 'PL',
    city: 'Łódź',
    vatId: 'PL1234567890',
    email: 'a@b.example',
  },
  { ...NOBODY, name: 'Иван Иванович Щукин', city: 'София', country: 'BG' },
  { ...NOBODY, company: 'Ωμέγα Α.Ε.', name: 'Ελένη', city: 'Αθήνα', country: 'GR', vatId: 'EL123456789' },
  { ...NOBODY, name: 'Ada & "Bob" <Lovelace>', country: 'US', city: 'New York' },
  {
    ...NOBODY,
    company: 'A company with a name that does not end '.repeat(5).trim(),
    street: 'Long street name '.repeat(11).trim(),
  },
  { ...NOBODY, company: '株式会社 😀', country: 'JP', city: '東京' },
  { ...NOBODY, company: 'Alpen AG', country: 'CH', vatId: 'CHE987654321' },
  { ...NOBODY, company: 'Österreich GmbH', country: 'AT', vatId: 'ATU12345678' },
  { ...NOBODY, name: 'Franz', country: 'AT' },
  { ...NOBODY, company: 'Hong Kong Ltd', country: 'HK', postcode: null },
]
const CURRENCIES = ['EUR', 'USD', 'JPY', 'KWD', 'HUF', 'TND', 'KRW'] as const
const AMOUNTS = [1n, 99n, 100n, 1_235n, 2_000n, 4_999n, 123_456n, 99_999_999n, 7n, 10_001n] as const

const pick = <T>(from: readonly T[], at: number): T => from[at % from.length]! // never empty

/** Issues as many invoices and credit notes; answers their ids, and the account of each. */
export async function issueMany(database: Database, invoices: Invoices, count: number) {
  const issued: Array<{ id: string; account: string }> = []
  for (let at = 0; issued.length < count; at += 1) {
    await invoices.changeSettings({ issuer: pick(ISSUERS, at) }, BY)
    const account = `acc_${newId(world)}`
    await database.query({ text: 'insert into account (id, name) values ($1, $2)' }, [account, `Account ${at}`])
    await invoices.changeDetails(account, pick(CUSTOMERS, Math.floor(at / ISSUERS.length) + at), BY)
    const currency = pick(CURRENCIES, Math.floor(at / 5) + at)
    const amountMinor = pick(AMOUNTS, Math.floor(at / 3) + at)
    // A payment service that works out the VAT, now and then, by a rate of its own.
    const taxMinor = at % 11 === 3 ? amountMinor / 9n : at % 11 === 4 ? 0n : undefined
    const payment = { id: `pay_${newId(world)}`, currency, amountMinor, taxMinor, description: '2,200 credits (Large)' }
    const made = await database.transaction(async (tx) => [
      await invoices.issue(tx, { account, payment: { ...payment, paidAt: new Date(world.nowMs()) } }),
      ...(at % 4 === 0
        ? [await invoices.creditNote(tx, { account, payment: payment.id, refundedMinor: (amountMinor + 1n) / 2n })]
        : []),
      ...(at % 5 === 0
        ? [
            await invoices.issueMonth(tx, {
              account,
              firstDay: 20_000,
              lastDay: 20_029,
              credits: 5n,
              currency,
              netMinor: amountMinor,
              description: 'Usage in 2024-10: 1234.5 credits',
            }),
          ]
        : []),
    ])
    for (const one of made) if (one) issued.push({ id: one.id, account })
  }
  return issued.slice(0, count)
}

/**
 * A picture of 60 by 20 pixels with a transparent background, as logos are. Its lines are packed in one of the ways 0
 * to 4.
 */
export function logoPng(filter = 0): Buffer {
  const rows = Array.from({ length: 20 }, (_, y) =>
    Buffer.from([filter, ...Array.from({ length: 60 }, (_, x) => [200, 30, 90, (x + y) % 7 === 0 ? 0 : 255]).flat()]),
  )
  const chunk = (name: string, body: Buffer) => {
    const named = Buffer.concat([Buffer.from(name), body])
    const out = Buffer.alloc(8)
    out.writeUInt32BE(body.length, 0)
    out.writeUInt32BE(crc32(named), 4)
    return Buffer.concat([out.subarray(0, 4), named, out.subarray(4)])
  }
  const size = Buffer.from([0, 0, 0, 60, 0, 0, 0, 20, 8, 6, 0, 0, 0])
  const head = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([
    head,
    chunk('IHDR', size),
    chunk('IDAT', deflateSync(Buffer.concat(rows))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}
