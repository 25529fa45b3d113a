// Commands of payments, codes, plans and invoices.
import type { Commands } from '../../operator/command.ts'

const CODES = {
  ...{ BATCH: 'id', NAME: 'name', CREDITS: 'credits', CODES: 'codes', USES: 'usesMax', USED: 'used', ENDS: 'endsAt' },
}

const INVOICES = {
  ...{ NUMBER: 'number', ISSUED: 'issuedAt', KIND: 'kind', CUSTOMER: 'customer', TOTAL: 'gross', VAT: 'tax' },
  ...{ CURRENCY: 'currency', ACCOUNT: 'account', ID: 'id' },
}

export const SALES_COMMANDS: Commands = {
  'GET /payments': {
    usage: 'payments list',
    summary: 'Payments of all accounts, newest first.',
    columns: {
      ...{ PAYMENT: 'id', AT: 'createdAt', ACCOUNT: 'account', KIND: 'kind', STATE: 'state', AMOUNT: 'amount' },
      ...{ CURRENCY: 'currency', REFUNDED: 'refunded', CREDITS: 'credits', WHY: 'reason' },
    },
    empty: 'There are no such payments.',
  },
  'GET /payments/{payment}': { usage: 'payments show <payment>', summary: 'Everything about a payment.' },
  'POST /payments/{payment}/refund': {
    usage: 'payments refund <payment>',
    summary: 'Refunds a payment, or a part of it, and takes back its credits.',
    about: 'If the gateway cannot refund at the payment provider, refund it there first; this command records it.',
  },
  'POST /payments/{payment}/accept': {
    usage: 'payments accept <payment> <account> <credits>',
    summary: 'Grants credits for a quarantined payment after all.',
  },
  'POST /payments/{payment}/dismiss': {
    usage: 'payments dismiss <payment>',
    summary: 'Dismisses a quarantined payment without granting credits.',
  },
  'GET /reconciliations': {
    usage: 'payments reconciliations',
    summary: 'Earlier comparisons with Stripe’s list, newest first.',
    columns: {
      ...{ STARTED: 'startedAt', FROM: 'from', UNTIL: 'until', CHECKED: 'checked' },
      ...{ DIFFERENCES: 'differences.length', FAILURE: 'failure' },
    },
    empty: 'Payments were not compared yet.',
  },
  'GET /payment-settings': { usage: 'payment-settings show', summary: 'Shows the payment settings.' },
  'PATCH /payment-settings': {
    usage: 'payment-settings change',
    summary: 'Changes the payment settings.',
    about: 'Secrets are read from environment variables, stored encrypted, and never shown again.',
  },
  'GET /code-batches': {
    ...{ usage: 'codes list', summary: 'Batches of codes, the newest first.', columns: CODES, empty: 'No codes yet.' },
  },
  'POST /code-batches': {
    usage: 'codes create <name> <credits>',
    summary: 'Makes codes that grant credits. They are shown once.',
    once: 'list',
  },
  'POST /code-batches/{batch}/end': {
    usage: 'codes end <batch>',
    summary: 'Ends a batch of codes. Credits that they granted stay.',
  },
  'POST /accounts/{id}/codes': {
    usage: 'codes redeem <account> <code>',
    summary: 'Redeems a code for an account.',
    words: '{credits} credits were added. They end: {endsAt|never}.',
  },
  'GET /plans': { usage: 'plans list', summary: 'The plans of the catalog, and how many accounts are on each.' },
  'GET /accounts/{id}/plan': {
    usage: 'plans show <account>',
    summary: 'The plan of an account, and what it can choose.',
  },
  'PUT /accounts/{id}/plan': [
    {
      usage: 'plans choose <account> <plan>',
      summary: 'Starts or changes the plan of an account: an upgrade now, a downgrade at the end of the period.',
      about:
        'The price is charged to the saved card. Without a saved card, the address of the payment page is printed.',
    },
    {
      usage: 'plans cancel <account>',
      summary: 'Ends the plan of an account at the end of its period.',
      set: { plan: null },
      without: ['checkout'],
    },
  ],
  'GET /invoices': [
    {
      usage: 'invoices list',
      summary: 'Invoices and credit notes, newest first.',
      columns: INVOICES,
      empty: 'There are no such invoices.',
    },
    { usage: 'invoices all', summary: 'The PDFs of all invoices, or of some, in one ZIP.', file: 'application/zip' },
  ],
  'GET /accounts/{id}/invoices/{invoice}': {
    usage: 'invoices get <account> <invoice>',
    summary: 'The PDF of an invoice, by its account and id.',
    file: 'application/pdf',
  },
  'GET /invoice-settings': {
    usage: 'invoices settings',
    summary: 'Shows the issuer of invoices, and whether there are monthly invoices.',
  },
  'PATCH /invoice-settings': [
    {
      usage: 'invoices issuer <file>',
      summary: 'Sets the issuer of invoices from a JSON file; "none" turns invoices off.',
      about: 'The fields are in the guide on invoices. "-" reads standard input.',
      without: ['monthly'],
    },
    { usage: 'invoices monthly <monthly>', summary: 'Turns monthly invoices on or off.', without: ['issuer'] },
  ],
  'GET /accounts/{id}/billing-details': {
    usage: 'billing-details show <account>',
    summary: 'Shows the billing details of an account, and what is missing for a purchase.',
  },
  'PUT /accounts/{id}/billing-details': {
    usage: 'billing-details change <account>',
    summary: 'Changes the billing details of an account, which its invoices show.',
    merge: true,
  },
}
