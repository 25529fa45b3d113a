// Commands of balances, statements, margins and what a credit is worth.
import type { Commands } from '../command.ts'

const BILLING = 'One credit is worth=worth.rate, Currency=worth.currency, Contact=contact'

export const FINANCE_COMMANDS: Commands = {
  'GET /accounts/{id}/balance':
    'balance show <account>: Shows the balance of an account, and which credits expire or are for some products only.',
  'GET /accounts/{id}/statements/{month}': {
    usage:
      'statements show <account> <month>: The statement of an account for a month such as 2026-10, also as PDF or CSV.',
    columns:
      'Customer=account.name, Month=month, Final=final, Opening balance=opening, Top-ups=topUps, Usage=usage, Corrections=corrections, Expired=expired, Paid out or written off=settlement, Closing balance=closing',
    tables: {
      products: 'product, KEY=keyName, calls, CREDITS=charged',
      'label.values': 'LABEL=value, calls, CREDITS=charged',
      movements: 'at, kind, note, CREDITS=moved',
    },
  },
  'GET /statements/{month}': {
    usage: 'statements all <month>: The statements of all customers for a month, in one ZIP.',
    file: 'application/zip',
  },
  'GET /margins': [
    {
      usage: 'margins show: Shows charges, costs and margins by model, customer, vendor, month or label.',
      columns:
        'group, name, calls, charged, WITH COST=chargedWithKnownCost, cost, margin, MARGIN %=marginPercent, unbilled',
      empty: 'No calls were charged in this time.',
    },
    {
      usage: 'margins totals: The sums of charges, costs and margins.',
      words:
        'Calls: {totals.calls}. Charged: {totals.charged}. Cost: {totals.cost|–}. Margin: {totals.margin|–}. Unbilled: {totals.unbilled}.',
    },
  ],
  'GET /margins/unbilled': {
    usage:
      'margins unbilled: Shows unbilled costs by day, vendor and model: what vendors billed for copies of calls, aborted calls and checks, which no caller pays.',
    columns: 'day, kind, vendor, MODEL=product, calls, inputTokens, outputTokens, cost',
    empty: 'Nothing was paid for in this time that no caller pays.',
  },
  'GET /billing': {
    usage: 'billing show: Shows what a credit is worth, and the contact for customers.',
    columns: BILLING,
  },
  'PATCH /billing': {
    usage: 'billing change: Sets what a credit is worth, and the contact for customers.',
    columns: BILLING,
  },
}
