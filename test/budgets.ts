// What the tests of budgets share: a model whose calls are counted, teams, budgets, and what was counted for whom.
import type { TeamView } from '../src/admission/views.ts'
import type { Page } from '../src/kernel/view.ts'
import type { BudgetValueView, BudgetView, UsageView } from '../src/ledger/views.ts'
import { faultModel, startVendor, usage, wholeAnswer } from './faults/chat-vendor.ts'
import { testGateway } from './gateway.ts'
import { started } from './started.ts'

/** Of 50 micro-credits. */
export const CALL = { model: 'mock', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 }

const TRIAL = { name: 'Trial', scope: 'user', unit: 'requests', span: 'week', max: 2 }

export function budgetGateway() {
  const vendor = started(() =>
    startVendor(({ response }) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('fine', usage(10, 20))),
    ),
  )
  const g = testGateway(() => ({
    catalog(document) {
      document.vendors.mock = { baseUrl: vendor.url }
      document.models.mock = faultModel(['mock'])
      const pricing = { unit: 'credits', tiers: [{ call: '0.0003' }] }
      document.models.keeps = { ...faultModel(['mock']), cache: { ttlSeconds: 60, pricing } }
    },
  }))
  return {
    g,
    ask: (key: string, more: object = {}, headers: Record<string, string> = {}) =>
      g.call('/v1/chat/completions', key, { ...CALL, ...more }, { headers }),
    /** By default two requests a week of each user. */
    tryBudget: (account: string, more: object) =>
      g.operator<BudgetView>('POST', `/accounts/${account}/budgets`, { ...TRIAL, ...more }),
    makeBudget: (account: string, more: object) =>
      g.ask<BudgetView>('POST', `/accounts/${account}/budgets`, { ...TRIAL, ...more }),
    makeTeam: (account: string, body: object) => g.ask<TeamView>('POST', `/accounts/${account}/teams`, body),
    /** What is counted of a budget, by its values. */
    async usedOf(account: string, { id }: BudgetView): Promise<Record<string, string>> {
      const { items } = await g.ask<Page<BudgetValueView>>('GET', `/accounts/${account}/budgets/${id}/values`)
      return Object.fromEntries(items.map(({ value, used, left }) => [value, `${used}, ${left} left`]))
    },
    /** Of the calls that were paid, in their order. */
    async labelsOf(account: string) {
      await g.settled()
      const { items } = await g.ask<Page<UsageView>>('GET', `/accounts/${account}/usage?outcome=settled`)
      return items.map(({ labels }) => labels).toReversed()
    },
  }
}
