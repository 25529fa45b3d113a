// An invoice as the XML of EN 16931, in the syntax of the United Nations (CII) and the profile that Factur-X and ZUGFeRD call EN 16931.
import { currencyDecimals, formatMoney } from '../kernel/money.ts'
import { taxIn } from './vat.ts'
import type { BillingDetails, InvoiceDocument, Issuer } from './views.ts'

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

/** Sums of an invoice with the two decimals that EN 16931 allows at most. Only of currencies with three decimals do they differ from what was paid. */
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
    ...{ net: shown(roundedGross - roundedTax), tax: shown(roundedTax), gross: shown(roundedGross) },
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

/** How it is or was paid: a payment came through a payment service, a month is to be paid to the issuer's bank account. */
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

const escaped = (text: string) => text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char)
