// Commands of payments, codes, plans and invoices.
import type { Commands } from '../../operator/command.ts'

const SIGN_UP =
  'Sign-up=mode, Domains=domains, Blocked domains=blockedDomains.length, Starting credits=credits, Limits=limits, Terms=terms, Mails per network and hour=perNetworkPerHour, Sign-ups per domain and day=perDomainPerDay, Challenge=challengeUrl, Region=region'

export const SALES_COMMANDS: Commands = {
  'GET /payments': {
    usage: 'payments list',
    columns: 'AT=createdAt, account, AMOUNT={amount} {currency}, REFUNDED=refunded, credits, state, WHY=reason, id',
    empty: 'There are no such payments.',
  },
  'GET /payments/{payment}': 'payments show <payment>',
  'POST /payments/{payment}/refund': {
    usage: 'payments refund <payment>: Refunds a payment, or a part of it, and takes back its credits.',
    about: 'If the gateway cannot refund at the payment provider, refund it there first; this command records it.',
  },
  'POST /payments/{payment}/accept':
    'payments accept <payment> <account> <credits>: Grants credits for a quarantined payment after all.',
  'POST /payments/{payment}/dismiss':
    'payments dismiss <payment>: Dismisses a quarantined payment without granting credits.',
  'GET /reconciliations': {
    usage: 'payments reconciliations: Earlier comparisons with Stripe’s list, newest first.',
    columns: 'STARTED=startedAt, from, until, checked, DIFFERENCES=differences.length, failure',
    empty: 'Payments were not compared yet.',
  },
  'POST /reconciliations': {
    usage: 'payments reconcile: Compares payments with Stripe’s own list now, and names every difference.',
    about: 'It runs every night too. Exits with 1 if a difference is left.',
    words: '{checked} payments compared. {differences.problem|None differs.}\n{failure}',
    tables: { differences: 'payment, account, AT THE PROVIDER=providerId, problem, corrected' },
    fails: ['failure', 'differences.corrected#false'],
  },
  'GET /payment-settings': 'payment-settings show',
  'PATCH /payment-settings': {
    usage: 'payment-settings change',
    about: 'Secrets are read from environment variables, stored encrypted, and never shown again.',
  },
  'GET /code-batches': {
    usage: 'codes list',
    columns: 'BATCH=id, name, credits, codes, USES=usesMax, used, ENDS=endsAt',
    empty: 'No codes yet.',
  },
  'POST /code-batches': {
    usage: 'codes create <name> <credits>: Makes codes that grant credits. They are shown once.',
    once: 'list',
  },
  'POST /code-batches/{batch}/end': 'codes end <batch>: Ends a batch of codes. Credits that they granted stay.',
  'POST /accounts/{id}/codes': {
    usage: 'codes redeem <account> <code>',
    words: '{credits} credits were added. They end: {endsAt|never}.',
  },
  'GET /plans': 'plans list: The plans of the catalog, and how many accounts are on each.',
  'GET /accounts/{id}/plan': 'plans show <account>: The plan of an account, and what it can choose.',
  'PUT /accounts/{id}/plan': [
    {
      usage:
        'plans choose <account> <plan>: Starts or changes the plan of an account: an upgrade now, a downgrade at the end of the period.',
      about:
        'The price is charged to the saved card. Without a saved card, the address of the payment page is printed.',
    },
    {
      usage: 'plans cancel <account>: Ends the plan of an account at the end of its period.',
      set: { plan: null },
      without: ['checkout'],
    },
  ],
  'GET /invoices': [
    {
      usage: 'invoices list: Invoices and credit notes, newest first.',
      columns: 'number, ISSUED=issuedAt, kind, customer, TOTAL=gross, VAT=tax, currency, account, id',
      empty: 'There are no such invoices.',
    },
    { usage: 'invoices all: The PDFs of all invoices, or of some, in one ZIP.', file: 'application/zip' },
  ],
  'GET /accounts/{id}/invoices/{invoice}': {
    usage: 'invoices get <account> <invoice>: The PDF of an invoice, by its account and id.',
    file: 'application/pdf',
  },
  'GET /invoice-settings': 'invoices settings',
  'PATCH /invoice-settings': [
    {
      usage: 'invoices issuer <file>: Sets the issuer of invoices from a JSON file; "none" turns invoices off.',
      about: 'The fields are in the guide on invoices. "-" reads standard input.',
      without: ['monthly'],
    },
    { usage: 'invoices monthly <monthly>: Turns monthly invoices on or off.', without: ['issuer'] },
  ],
  'GET /accounts/{id}/billing-details':
    'billing-details show <account>: Shows the billing details of an account, and what is missing for a purchase.',
  'PUT /accounts/{id}/billing-details': {
    usage: 'billing-details change <account>: Changes the billing details of an account, which its invoices show.',
    merge: true,
  },
  'GET /sign-up': {
    usage: 'sign-up show: Shows who may sign up, and the credits and limits of new accounts.',
    columns: SIGN_UP,
  },
  'PUT /sign-up': {
    usage: 'sign-up change: Sets who may sign up, and the credits, limits and terms of new accounts.',
    columns: SIGN_UP,
    merge: true,
  },
  'POST /sign-up/invites': {
    usage: 'sign-up invite <email>: Invites somebody to open an account, and prints the link.',
    words: '{link}',
  },
  'GET /sign-up/invites': {
    usage: 'sign-up invites',
    columns: 'id, email, ENDS=expiresAt',
    empty: 'There are no pending invitations.',
  },
  'DELETE /sign-up/invites/{inviteId}': {
    usage: 'sign-up withdraw <invite>: Withdraws an invitation, by its id or its email address.',
    words: 'The link does not work any more.',
  },
  'GET /branding': 'branding show',
  'PUT /branding': {
    usage: 'branding change: Sets the name, colors, support address and mail sender.',
    about: 'Links are set in the console or with the operator API.',
    without: ['links'],
    merge: true,
  },
  'PUT /branding/logo': 'branding logo <file>: Sets the logo: a PNG or JPEG.',
  'DELETE /branding/logo': 'branding remove-logo',
}
