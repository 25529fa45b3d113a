// An invoice as PDF/A-3 with its XML inside (Factur-X, ZUGFeRD), on A4. The same document gives the same bytes: nothing
// here reads a clock. The library and the fonts are loaded when the first one is made.
import { inflateSync } from 'node:zlib'
import type PDFDocument from 'pdfkit'
import { dateName } from '../../../reports/balance-sentence.ts'
import { currencyDecimals, formatMoney } from '../money.ts'
import { addFonts, lettersOf } from '../pdf-fonts.ts'
import { taxIn } from './vat.ts'
import type { BillingDetails, InvoiceDocument, Issuer } from './views.ts'

const LEFT = 50
const RIGHT = 545
const WIDTH = RIGHT - LEFT
const GREY = '#666666'
const BLACK = '#111111'
const RULE = '#cccccc'
/** A logo has at most 2,000 pixels a side (branding/branding.ts), of at most 8 bytes. */
const PIXEL_BYTES_MAX = 2_000 * (2_000 * 8 + 1)
const XML_NAME = 'factur-x.xml'
const COUNTRIES = new Intl.DisplayNames('en', { type: 'region' })

export async function invoicePdf(invoice: InvoiceDocument, logo?: Buffer): Promise<Buffer> {
  const { default: Document } = await import('pdfkit')
  const made = new Date(`${invoice.issuedOn}T00:00:00Z`)
  const pdf = new Document({
    size: 'A4',
    margins: { top: 50, left: LEFT, right: 50, bottom: 0 },
    bufferPages: true,
    font: null,
    subset: 'PDF/A-3b',
    pdfVersion: '1.7',
    lang: 'en',
    info: {
      // Nothing that somebody typed: the library puts it into XML as it is.
      Title: `${titleOf(invoice)} ${invoice.number}`,
      Creator: 'Tollgate',
      Producer: 'Tollgate',
      CreationDate: made,
      ModDate: made,
    },
  })
  const chunks: Buffer[] = []
  const done = new Promise<void>((resolve, reject) => {
    pdf.on('data', (chunk) => chunks.push(chunk))
    pdf.on('end', () => resolve())
    pdf.on('error', reject)
  })
  await addFonts(pdf)
  draw(pdf, shownOf(pdf, invoice), logo)
  pdf.file(Buffer.from(facturX(invoice)), {
    name: XML_NAME,
    type: 'text/xml',
    relationship: 'Data',
    description: 'Invoice data (EN 16931)',
    creationDate: made,
    modifiedDate: made,
  })
  pdf.appendXML(FACTUR_X_METADATA)
  pdf.end()
  await done
  return Buffer.concat(chunks)
}

const titleOf = ({ kind }: InvoiceDocument) => (kind === 'credit_note' ? 'Credit note' : 'Invoice')

/** PDF/A forbids letters that a font does not have: these become question marks. The XML has them. */
function shownOf(pdf: PDFDocument, invoice: InvoiceDocument): InvoiceDocument {
  const shownIn = (value: unknown): unknown => {
    if (typeof value === 'string') return lettersOf(pdf, value)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, shownIn(field)]))
  }
  return shownIn(invoice) as InvoiceDocument // the same fields
}

/** The issuer's logo, or its name in its colour. Answers where the page goes on. */
function head(pdf: PDFDocument, { brand }: InvoiceDocument, logo: Buffer | undefined): number {
  if (logo && isPlain(logo)) {
    try {
      pdf.image(logo, LEFT, 40, { fit: [200, 36] })
      return 86
    } catch {
      // A picture that browsers show and the library does not read must not keep anybody from the invoice.
    }
  }
  if (!brand) return 50
  pdf
    .font('bold')
    .fontSize(16)
    .fillColor(brand.color ?? BLACK)
    .text(brand.name, LEFT, 44, { width: WIDTH, height: 24, ellipsis: true })
  return 76
}

/**
 * PDF/A wants colours that its profile knows: a JPEG for print (four components) is not drawn. Nor is a PNG whose
 * pixels cannot be unpacked: the library does that later, where nobody could catch it.
 */
function isPlain(logo: Buffer): boolean {
  if (logo.readUInt16BE(0) !== 0xffd8) return isWholePng(logo)
  for (let at = 2; at + 9 < logo.length && logo[at] === 0xff; at += 2 + logo.readUInt16BE(at + 2)) {
    const marker = logo[at + 1] ?? 0
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return logo[at + 9] !== 4
  }
  return false
}

/** How many numbers each type of PNG has for a pixel. */
const NUMBERS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }
const DEPTHS = [1, 2, 4, 8, 16]
/** Of an interlaced picture: the first column and line of each pass, and the steps to the next. */
const PASSES = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const
const ONE_PASS = [[0, 0, 1, 1]] as const
const FILTER_MAX = 4

function isWholePng(png: Buffer): boolean {
  const packed: Buffer[] = []
  try {
    for (let at = 8, name = ''; name !== 'IEND'; ) {
      const bytes = png.readUInt32BE(at)
      name = png.toString('latin1', at + 4, at + 8)
      if (name === 'IDAT') packed.push(png.subarray(at + 8, at + 8 + bytes))
      // The size is said once. The library does not skip transparency beside a channel for it, and would read a size in
      // it.
      if (name === 'IHDR' ? at > 8 || bytes !== 13 : name === 'tRNS' && png.readUInt8(25) > 3) return false
      at += 12 + bytes
    }
    return areWholeLines(inflateSync(Buffer.concat(packed), { maxOutputLength: PIXEL_BYTES_MAX }), png)
  } catch {
    return false
  }
}

/** Whether every line, as the library goes through them, begins with a filter that there is. */
function areWholeLines(pixels: Buffer, png: Buffer): boolean {
  const [width, height, depth] = [png.readUInt32BE(16), png.readUInt32BE(20), png.readUInt8(24)]
  const numbers = NUMBERS[png.readUInt8(25)]
  if (numbers === undefined || !DEPTHS.includes(depth)) return false
  let at = 0
  for (const [column, line, across, down] of png.readUInt8(28) === 1 ? PASSES : ONE_PASS) {
    const bytes = Math.ceil((Math.ceil((width - column) / across) * depth * numbers) / 8)
    for (let y = line; y < height && at < pixels.length; y += down, at += 1 + bytes)
      if (pixels.readUInt8(at) > FILTER_MAX) return false
  }
  return true
}

function draw(pdf: PDFDocument, invoice: InvoiceDocument, logo: Buffer | undefined): void {
  const { issuer, brand } = invoice
  const small = () => pdf.font('regular').fontSize(8).fillColor(GREY)
  const below = head(pdf, invoice, logo)
  small().text(senderOf(issuer), LEFT, below, { width: 270 })
  const top = Math.max(pdf.y + 16, 90)
  pdf.font('regular').fontSize(10).fillColor(BLACK)
  pdf.text(recipientOf(invoice).join('\n'), LEFT, top, { width: 250, lineGap: 2 })
  const left = pdf.y
  facts(pdf, invoice, top)
  pdf.y = Math.max(left, pdf.y) + 30
  pdf
    .font('bold')
    .fontSize(18)
    .fillColor(brand?.color ?? BLACK)
    .text(`${titleOf(invoice)} ${invoice.number}`, LEFT, pdf.y, { width: WIDTH })
  if (invoice.corrects)
    small().text(`For invoice ${invoice.corrects.number} of ${dateName(invoice.corrects.issuedOn)}`, LEFT, pdf.y + 4, {
      width: WIDTH,
    })
  pdf.y += 18
  sums(pdf, invoice)
  closing(pdf, invoice)
  small().text(footOf(issuer), LEFT, 770, { width: WIDTH, height: 50, ellipsis: true })
}

function senderOf({ name, street, postcode, city, country }: Issuer): string {
  return [name, street, [postcode, city].filter(Boolean).join(' '), COUNTRIES.of(country)].join(' · ')
}

function recipientOf({ customer, account, tax }: InvoiceDocument): string[] {
  const { company, name, street, postcode, city, country, vatId }: BillingDetails = customer
  const lines = [
    company,
    name ?? (company === null ? account.name : null),
    street,
    [postcode, city].filter(Boolean).join(' '),
    country === null ? null : COUNTRIES.of(country),
  ]
  const shown = lines.filter((one): one is string => Boolean(one))
  return vatId === null || tax.category === 'O' ? shown : [...shown, `VAT id ${vatId}`]
}

/** To the right of the recipient. */
function facts(pdf: PDFDocument, invoice: InvoiceDocument, top: number): void {
  const { number, issuedOn, from, to, paidOn, dueOn, payment, kind } = invoice
  const rows = [
    { name: 'Number', value: number },
    { name: 'Date', value: dateName(issuedOn) },
    from === to
      ? { name: 'Date of supply', value: dateName(to) }
      : { name: 'Period', value: `${dateName(from)} to ${dateName(to)}` },
    ...(paidOn === null ? [] : [{ name: kind === 'credit_note' ? 'Refunded' : 'Paid', value: dateName(paidOn) }]),
    ...(dueOn === null ? [] : [{ name: 'Due', value: dateName(dueOn) }]),
    ...(payment === null ? [] : [{ name: 'Payment', value: payment }]),
    { name: 'Customer', value: invoice.account.id },
  ]
  let y = top
  for (const { name, value } of rows) {
    pdf.font('regular').fontSize(8).fillColor(GREY).text(name, 310, y, { width: 64 })
    pdf.fillColor(BLACK).text(value, 374, y, { width: RIGHT - 374 })
    y = pdf.y + 4
  }
}

function sums(pdf: PDFDocument, invoice: InvoiceDocument): void {
  const { currency, tax, description, netMinor, taxMinor, grossMinor, kind, paidOn } = invoice
  const money = (minor: string) => `${grouped(formatMoney(BigInt(minor), currency))} ${currency}`
  const rule = () => {
    pdf
      .moveTo(LEFT, pdf.y)
      .lineTo(RIGHT, pdf.y)
      .lineWidth(0.5)
      .stroke(invoice.brand?.color ?? RULE)
    pdf.y += 8
  }
  const row = (name: string, value: string, font = 'regular') => {
    const { y } = pdf
    pdf
      .font(font)
      .fontSize(10)
      .fillColor(BLACK)
      .text(value, 385, y, { width: RIGHT - 385, align: 'right' })
    pdf.text(name, LEFT, y, { width: 325 })
    pdf.y += 6
  }
  rule()
  row(description, money(netMinor))
  rule()
  row('Net', money(netMinor))
  row(tax.category === 'S' || tax.category === 'Z' ? `VAT ${tax.rate} %` : 'VAT', money(taxMinor))
  row(kind === 'credit_note' ? 'Total refunded' : 'Total', money(grossMinor), 'bold')
  if (kind !== 'credit_note') row(paidOn === null ? 'To be paid' : 'Paid', money(grossMinor))
}

function closing(pdf: PDFDocument, { tax, kind, issuer, dueOn, number }: InvoiceDocument): void {
  const lines = [
    ...(tax.reason === null ? [] : [tax.reason]),
    ...(kind === 'month' && dueOn !== null
      ? [
          `Please pay by ${dateName(dueOn)} and name the number ${number}.${issuer.iban === null ? '' : ` IBAN ${issuer.iban}${issuer.bic === null ? '' : `, BIC ${issuer.bic}`}.`}`,
        ]
      : []),
  ]
  pdf.font('regular').fontSize(9).fillColor(BLACK)
  pdf.y += 14
  for (const line of lines) {
    pdf.text(line, LEFT, pdf.y, { width: WIDTH })
    pdf.y += 6
  }
}

function footOf(issuer: Issuer): string {
  const facts = [
    issuer.name,
    ...(issuer.vatId === null ? [] : [`VAT id ${issuer.vatId}`]),
    ...(issuer.taxNumber === null ? [] : [`Tax number ${issuer.taxNumber}`]),
    ...[issuer.registration, issuer.email].filter((one) => one !== null),
  ]
  return [facts.join(' · '), ...(issuer.footer === null ? [] : [issuer.footer])].join('\n')
}

/** "1,234.50" */
function grouped(decimal: string): string {
  return decimal.replace(/^\d+/, (whole) => BigInt(whole).toLocaleString('en'))
}

/** What a reader of Factur-X looks for, and, because PDF/A knows no such properties, what they are. */
const FACTUR_X_METADATA = `
<rdf:Description rdf:about="" xmlns:fx="urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#">
  <fx:DocumentType>INVOICE</fx:DocumentType><fx:DocumentFileName>${XML_NAME}</fx:DocumentFileName><fx:Version>1.0</fx:Version><fx:ConformanceLevel>EN 16931</fx:ConformanceLevel>
</rdf:Description>
<rdf:Description rdf:about="" xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/" xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#" xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#">
  <pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType="Resource">
    <pdfaSchema:schema>Factur-X PDFA Extension Schema</pdfaSchema:schema>
    <pdfaSchema:namespaceURI>urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#</pdfaSchema:namespaceURI>
    <pdfaSchema:prefix>fx</pdfaSchema:prefix>
    <pdfaSchema:property><rdf:Seq>
${[
  ['DocumentFileName', 'name of the embedded XML invoice file'],
  ['DocumentType', 'INVOICE'],
  ['Version', 'The actual version of the Factur-X XML schema'],
  ['ConformanceLevel', 'The conformance level of the embedded Factur-X data'],
]
  .map(
    ([name, description]) =>
      `      <rdf:li rdf:parseType="Resource"><pdfaProperty:name>${name}</pdfaProperty:name><pdfaProperty:valueType>Text</pdfaProperty:valueType><pdfaProperty:category>external</pdfaProperty:category><pdfaProperty:description>${description}</pdfaProperty:description></rdf:li>`,
  )
  .join('\n')}
    </rdf:Seq></pdfaSchema:property>
  </rdf:li></rdf:Bag></pdfaExtension:schemas>
</rdf:Description>
`

// An invoice as the XML of EN 16931, in the syntax of the United Nations (CII) and the profile that Factur-X and
// ZUGFeRD call EN 16931.

/** The order of elements is the schema's: a reader refuses any other. */
export function facturX(invoice: InvoiceDocument): string {
  const { issuer, customer } = invoice
  return `<?xml version="1.0" encoding="UTF-8"?>
<rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100" xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100" xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100">
  <rsm:ExchangedDocumentContext>
    <ram:GuidelineSpecifiedDocumentContextParameter><ram:ID>urn:cen.eu:en16931:2017</ram:ID></ram:GuidelineSpecifiedDocumentContextParameter>
  </rsm:ExchangedDocumentContext>
  <rsm:ExchangedDocument>
    <ram:ID>${escaped(invoice.number)}</ram:ID>
    <ram:TypeCode>${invoice.kind === 'credit_note' ? '381' : '380'}</ram:TypeCode>
    <ram:IssueDateTime>${dateOf(invoice.issuedOn)}</ram:IssueDateTime>
${notesOf(invoice)
  .map((text) => `    <ram:IncludedNote><ram:Content>${escaped(text)}</ram:Content></ram:IncludedNote>\n`)
  .join('')}  </rsm:ExchangedDocument>
  <rsm:SupplyChainTradeTransaction>
${lineOf(invoice)}
    <ram:ApplicableHeaderTradeAgreement>
      <ram:SellerTradeParty>
${sellerOf(issuer, invoice.tax.category === 'O')}
      </ram:SellerTradeParty>
      <ram:BuyerTradeParty>
${buyerOf(customer, invoice)}
      </ram:BuyerTradeParty>
    </ram:ApplicableHeaderTradeAgreement>
    <ram:ApplicableHeaderTradeDelivery>
      <ram:ActualDeliverySupplyChainEvent>${`<ram:OccurrenceDateTime>${dateOf(invoice.to)}</ram:OccurrenceDateTime>`}</ram:ActualDeliverySupplyChainEvent>
    </ram:ApplicableHeaderTradeDelivery>
${settlementOf(invoice)}
  </rsm:SupplyChainTradeTransaction>
</rsm:CrossIndustryInvoice>
`
}

/**
 * Sums of an invoice with the two decimals that EN 16931 allows at most. Only of currencies with three decimals do they
 * differ from what was paid.
 */
function sumsOf({ currency, grossMinor, taxMinor, tax }: InvoiceDocument) {
  const decimals = currencyDecimals(currency)
  const [gross, vat] = [BigInt(grossMinor), BigInt(taxMinor)]
  if (decimals < 3) {
    const shown = (minor: bigint) => formatMoney(minor, currency)
    return { net: shown(gross - vat), tax: shown(vat), gross: shown(gross), isRounded: false }
  }
  const roundedGross = (gross + 5n) / 10n
  const roundedTax =
    vat === 0n ? 0n : vat % 10n === 0n && gross % 10n === 0n ? vat / 10n : taxIn(roundedGross, tax.rate)
  const shown = (hundredths: bigint) => formatMoney(hundredths, 'EUR')
  return {
    net: shown(roundedGross - roundedTax),
    tax: shown(roundedTax),
    gross: shown(roundedGross),
    isRounded: roundedGross * 10n !== gross || roundedTax * 10n !== vat,
  }
}

function notesOf(invoice: InvoiceDocument): string[] {
  const { currency, grossMinor, taxMinor, tax, issuer } = invoice
  const exact = (minor: string) => `${formatMoney(BigInt(minor), currency)} ${currency}`
  return [
    ...(issuer.footer === null ? [] : [issuer.footer]),
    ...(tax.reason === null ? [] : [tax.reason]),
    ...(sumsOf(invoice).isRounded
      ? [`Exact total: ${exact(grossMinor)}, of which VAT: ${exact(taxMinor)}. EN 16931 allows two decimals.`]
      : []),
  ]
}

function lineOf(invoice: InvoiceDocument): string {
  const { net } = sumsOf(invoice)
  const { category, rate } = invoice.tax
  return `    <ram:IncludedSupplyChainTradeLineItem>
      <ram:AssociatedDocumentLineDocument><ram:LineID>1</ram:LineID></ram:AssociatedDocumentLineDocument>
      <ram:SpecifiedTradeProduct><ram:Name>${escaped(invoice.description)}</ram:Name></ram:SpecifiedTradeProduct>
      <ram:SpecifiedLineTradeAgreement>
        <ram:NetPriceProductTradePrice><ram:ChargeAmount>${net}</ram:ChargeAmount></ram:NetPriceProductTradePrice>
      </ram:SpecifiedLineTradeAgreement>
      <ram:SpecifiedLineTradeDelivery><ram:BilledQuantity unitCode="C62">1</ram:BilledQuantity></ram:SpecifiedLineTradeDelivery>
      <ram:SpecifiedLineTradeSettlement>
        <ram:ApplicableTradeTax><ram:TypeCode>VAT</ram:TypeCode><ram:CategoryCode>${category}</ram:CategoryCode>${category === 'O' ? '' : `<ram:RateApplicablePercent>${rate}</ram:RateApplicablePercent>`}</ram:ApplicableTradeTax>
        <ram:SpecifiedTradeSettlementLineMonetarySummation><ram:LineTotalAmount>${net}</ram:LineTotalAmount></ram:SpecifiedTradeSettlementLineMonetarySummation>
      </ram:SpecifiedLineTradeSettlement>
    </ram:IncludedSupplyChainTradeLineItem>`
}

/** Where something is not subject to VAT, EN 16931 forbids the VAT ids of both. */
function sellerOf(issuer: Issuer, isOutside: boolean): string {
  const { registration, taxNumber } = issuer
  const vatId = isOutside ? null : issuer.vatId
  // Whoever charges VAT or a sales tax is registered somewhere.
  const taxed = taxNumber ?? (vatId === null && !isOutside ? registration : null)
  return [
    ...(vatId === null && registration === null ? [`<ram:ID>${escaped(taxNumber ?? issuer.name)}</ram:ID>`] : []),
    `<ram:Name>${escaped(issuer.name)}</ram:Name>`,
    ...(registration === null
      ? []
      : [`<ram:SpecifiedLegalOrganization><ram:ID>${escaped(registration)}</ram:ID></ram:SpecifiedLegalOrganization>`]),
    addressOf(issuer),
    ...electronicOf(issuer.email),
    ...(taxed === null ? [] : [registrationOf('FC', taxed)]),
    ...(vatId === null ? [] : [registrationOf('VA', vatId)]),
  ].join('\n')
}

function buyerOf(customer: BillingDetails, { account, tax }: InvoiceDocument): string {
  const { company, name, vatId, email } = customer
  return [
    `<ram:ID>${escaped(account.id)}</ram:ID>`,
    `<ram:Name>${escaped(company ?? name ?? account.name)}</ram:Name>`,
    ...(company !== null && name !== null
      ? [`<ram:DefinedTradeContact><ram:PersonName>${escaped(name)}</ram:PersonName></ram:DefinedTradeContact>`]
      : []),
    addressOf(customer),
    ...electronicOf(email),
    ...(vatId === null || tax.category === 'O' ? [] : [registrationOf('VA', vatId)]),
  ].join('\n')
}

function addressOf({
  postcode,
  street,
  city,
  country,
}: Pick<BillingDetails, 'postcode' | 'street' | 'city' | 'country'>): string {
  const part = (name: string, value: string | null) =>
    value === null ? '' : `<ram:${name}>${escaped(value)}</ram:${name}>`
  return `<ram:PostalTradeAddress>${part('PostcodeCode', postcode)}${part('LineOne', street)}${part('CityName', city)}${part('CountryID', country)}</ram:PostalTradeAddress>`
}

const electronicOf = (email: string | null) =>
  email === null
    ? []
    : [
        `<ram:URIUniversalCommunication><ram:URIID schemeID="EM">${escaped(email)}</ram:URIID></ram:URIUniversalCommunication>`,
      ]

const registrationOf = (scheme: 'FC' | 'VA', id: string) =>
  `<ram:SpecifiedTaxRegistration><ram:ID schemeID="${scheme}">${escaped(id)}</ram:ID></ram:SpecifiedTaxRegistration>`

/**
 * How it is or was paid: a payment came through a payment service, a month is to be paid to the issuer's bank account.
 */
function meansOf({ kind, issuer }: InvoiceDocument): string {
  if (kind !== 'month') return '<ram:TypeCode>68</ram:TypeCode>'
  if (issuer.iban === null) return '<ram:TypeCode>1</ram:TypeCode>'
  const bank =
    issuer.bic === null
      ? ''
      : `<ram:PayeeSpecifiedCreditorFinancialInstitution><ram:BICID>${escaped(issuer.bic)}</ram:BICID></ram:PayeeSpecifiedCreditorFinancialInstitution>`
  return `<ram:TypeCode>58</ram:TypeCode><ram:PayeePartyCreditorFinancialAccount><ram:IBANID>${escaped(issuer.iban)}</ram:IBANID></ram:PayeePartyCreditorFinancialAccount>${bank}`
}

function settlementOf(invoice: InvoiceDocument): string {
  const { currency, tax, corrects, dueOn, paidOn } = invoice
  const sums = sumsOf(invoice)
  const reason = tax.reason === null ? '' : `<ram:ExemptionReason>${escaped(tax.reason)}</ram:ExemptionReason>`
  const rate = tax.category === 'O' ? '' : `<ram:RateApplicablePercent>${tax.rate}</ram:RateApplicablePercent>`
  const zero = formatMoney(0n, currencyDecimals(currency) === 3 ? 'EUR' : currency)
  return `    <ram:ApplicableHeaderTradeSettlement>
      ${invoice.payment === null ? '' : `<ram:PaymentReference>${escaped(invoice.payment)}</ram:PaymentReference>`}
      <ram:InvoiceCurrencyCode>${currency}</ram:InvoiceCurrencyCode>
      <ram:SpecifiedTradeSettlementPaymentMeans>${meansOf(invoice)}</ram:SpecifiedTradeSettlementPaymentMeans>
      <ram:ApplicableTradeTax><ram:CalculatedAmount>${sums.tax}</ram:CalculatedAmount><ram:TypeCode>VAT</ram:TypeCode>${reason}<ram:BasisAmount>${sums.net}</ram:BasisAmount><ram:CategoryCode>${tax.category}</ram:CategoryCode>${rate}</ram:ApplicableTradeTax>
      <ram:BillingSpecifiedPeriod><ram:StartDateTime>${dateOf(invoice.from)}</ram:StartDateTime><ram:EndDateTime>${dateOf(invoice.to)}</ram:EndDateTime></ram:BillingSpecifiedPeriod>
      ${dueOn === null ? '' : `<ram:SpecifiedTradePaymentTerms><ram:DueDateDateTime>${dateOf(dueOn)}</ram:DueDateDateTime></ram:SpecifiedTradePaymentTerms>`}
      <ram:SpecifiedTradeSettlementHeaderMonetarySummation>
        <ram:LineTotalAmount>${sums.net}</ram:LineTotalAmount>
        <ram:TaxBasisTotalAmount>${sums.net}</ram:TaxBasisTotalAmount>
        <ram:TaxTotalAmount currencyID="${currency}">${sums.tax}</ram:TaxTotalAmount>
        <ram:GrandTotalAmount>${sums.gross}</ram:GrandTotalAmount>
        <ram:TotalPrepaidAmount>${paidOn === null ? zero : sums.gross}</ram:TotalPrepaidAmount>
        <ram:DuePayableAmount>${paidOn === null ? sums.gross : zero}</ram:DuePayableAmount>
      </ram:SpecifiedTradeSettlementHeaderMonetarySummation>
      ${
        corrects === null
          ? ''
          : `<ram:InvoiceReferencedDocument><ram:IssuerAssignedID>${escaped(corrects.number)}</ram:IssuerAssignedID><ram:FormattedIssueDateTime><qdt:DateTimeString xmlns:qdt="urn:un:unece:uncefact:data:standard:QualifiedDataType:100" format="102">${corrects.issuedOn.replaceAll('-', '')}</qdt:DateTimeString></ram:FormattedIssueDateTime></ram:InvoiceReferencedDocument>`
      }
    </ram:ApplicableHeaderTradeSettlement>`
}

const dateOf = (day: string) => `<udt:DateTimeString format="102">${day.replaceAll('-', '')}</udt:DateTimeString>`

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** XML has no way to write some characters, such as U+FFFF: one of them, and nobody reads the invoice. */
const NOT_IN_XML = /[^\t\n\r\x20-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu
const escaped = (text: string) =>
  text.replaceAll(NOT_IN_XML, '\ufffd').replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char)
