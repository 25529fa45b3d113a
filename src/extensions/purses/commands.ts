// Commands of purses.
import type { Commands } from '../../operator/command.ts'

export const PURSE_COMMANDS: Commands = {
  'GET /accounts/{id}/purses': {
    usage: 'purses list <account>',
    columns: 'PURSE=id, name, status, balance, held, low, LAST CHANGE=movedAt',
    empty: 'There are no such purses. Create one with: tollgate purses create <account> <id>',
  },
  'POST /accounts/{id}/purses': {
    usage: 'purses create <account> <id>: Creates a purse for a customer.',
    about: 'The id is your own name of the customer. Creating it again changes nothing.',
  },
  'GET /accounts/{id}/purses/{purse}': { usage: 'purses show <account> <purse>' },
  'PATCH /accounts/{id}/purses/{purse}': {
    usage: 'purses change <account> <purse>: Renames, freezes, reopens or closes a purse.',
  },
  'POST /accounts/{id}/purses/{purse}/grants': [
    {
      usage: 'purses grant <account> <purse> <credits>: Puts credits into a purse.',
      words: 'It has {balance} credits.',
    },
    {
      usage: 'purses take <account> <purse> <credits>: Takes credits of a purse back, and no more than no call holds.',
      words: 'It has {balance} credits.',
      set: { credits: '-{credits}' },
      without: ['kind'],
    },
  ],
  'GET /accounts/{id}/purses/{purse}/movements': {
    usage: 'purses movements <account> <purse>',
    columns:
      'at, kind, moved, BALANCE=balanceAfter, ACCOUNT PAID=charged, MODEL=product, list, reference, note, BY=actor',
    empty: 'Nothing has moved yet.',
  },
  'GET /accounts/{id}/purses/{purse}/statement': { usage: 'purses statement <account> <purse>' },
  'POST /accounts/{id}/purses/{purse}/sessions': {
    usage: 'purses session <account> <purse>: Creates a session token for a customer’s app or page.',
    once: 'token',
  },
  'GET /accounts/{id}/purses/{purse}/sessions': {
    usage: 'purses sessions <account> <purse>',
    columns: 'id, TOKEN=prefix, callMax|any, expiresAt, revokedAt',
    empty: 'There are no session tokens that have not expired.',
  },
  'DELETE /accounts/{id}/purses/{purse}/sessions/{session}': {
    usage: 'purses revoke <account> <purse> <session>: Revokes a session token.',
    words: 'Revoked.',
  },
  'POST /accounts/{id}/purses/{purse}/page': {
    usage: 'purses page <account> <purse>: Creates a link to the page on which a customer sees a purse and tops it up.',
    once: 'url',
  },
  'POST /accounts/{id}/purses/{purse}/topups': {
    usage: 'purses top-up <account> <purse> <amount>: Begins a top-up, and prints where the customer pays.',
    words: '{credits} credits can be paid at {url}',
  },
  'GET /accounts/{id}/purses/{purse}/topups/{topup}': { usage: 'purses top-up-state <account> <purse> <topup>' },
  'GET /accounts/{id}/purse-topups': {
    usage: 'purses top-ups <account>',
    columns: 'TOP-UP=id, AT=createdAt, purse, state, amount, currency, refunded, credits, WHY=reason',
    empty: 'There are no such top-ups.',
  },
  'POST /accounts/{id}/purse-topups/{topup}/refund': {
    usage: 'purses refund <account> <topup>: Refunds a top-up, or a part of it, and takes its credits back.',
  },
  'GET /accounts/{id}/purse-invoices': [
    {
      usage: 'purses invoices <account>: Invoices and credit notes of customers, newest first.',
      columns: 'number, ISSUED=issuedAt, kind, purse, customer, TOTAL=gross, VAT=tax, currency, id',
      empty: 'There are no such invoices. They are issued once purses sell names an issuer.',
    },
    { usage: 'purses all-invoices <account>: Their PDFs, in one ZIP.', file: 'application/zip' },
  ],
  'GET /accounts/{id}/purses/{purse}/invoices/{invoice}': {
    usage: 'purses invoice <account> <purse> <invoice>: The PDF of an invoice, by its id.',
    file: 'application/pdf',
  },
  'PUT /accounts/{id}/purses/{purse}/billing-details': {
    usage: 'purses billing <account> <purse>: Changes the billing details of a purse, which its invoices show.',
    merge: true,
  },
  'GET /accounts/{id}/purse-reconciliations': {
    usage: 'purses reconciliations <account>: Earlier comparisons with Stripe’s list, newest first.',
    columns: 'STARTED=startedAt, from, until, checked, DIFFERENCES=differences.length, failure',
    empty: 'Nothing was compared yet.',
  },
  'POST /accounts/{id}/purse-reconciliations': {
    usage: 'purses reconcile <account>: Compares top-ups with Stripe’s own list now, and names every difference.',
    about: 'It runs every night too. Exits with 1 if a difference is left.',
    words: '{checked} payments compared. {differences.problem|None differs.}\n{failure}',
    fails: ['failure', 'differences.corrected#false'],
  },
  'GET /accounts/{id}/purse-payments': { usage: 'purses payments <account>', without: ['salt'] },
  'PATCH /accounts/{id}/purse-payments': {
    usage:
      'purses sell <account>: Connects a payment provider, and sets what a credit costs and how the page for customers looks.',
    about: 'Secrets are read from environment variables, stored encrypted, and never shown again.',
  },
  'GET /accounts/{id}/purse-prices': { usage: 'purses prices <account>' },
  'GET /accounts/{id}/purse-margins': { usage: 'purses margins <account>' },
  'PUT /accounts/{id}/purse-events': {
    usage: 'purses events <account>: Sets where an account is told of its purses.',
    words: 'Told at {url|no address}.',
  },
}
