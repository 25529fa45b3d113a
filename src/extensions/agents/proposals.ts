// Proposals of agents to change a budget. An agent can only propose: a person with the right confirms it in the
// console, who has just proved that it is them.
import * as z from 'zod'
import { type BudgetsOptions, createBudgets } from '../../admission/budgets.ts'
import { type Queryable, sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { asView, page } from '../../kernel/view.ts'
import { newId } from '../../kernel/world.ts'
import { budgetView } from '../../ledger/views.ts'
import { readBudgetMax } from '../../meter/limits.ts'
import { id, type Resource, resource, sessionOf, text } from '../../operator/resource.ts'
import { type BudgetProposal, budgetProposal } from './views.ts'

/** Of an account that wait. */
const WAITING_MAX = 20

interface ProposalRow {
  budget_id: string
  was: string
  max: string
  proposer: string
}

export function proposalResources(deps: BudgetsOptions): Resource[] {
  const { database, world, audit } = deps
  const budgets = createBudgets(deps)
  const unknown = () => new Fault('not_found', { message: 'No proposal with this id waits.' })
  const budgetOf = async (account: string, budget: string) =>
    (await budgets.list(account)).find((one) => one.id === budget)
  const found = async (on: Queryable, account: string, proposal: string) => {
    const [row] = await on.query<ProposalRow>(FIND, [account, proposal])
    if (!row) throw unknown()
    return row
  }
  return [
    resource('GET /accounts/{id}/budget-proposals', 'budgets:read', {
      title: 'List proposals to change budgets',
      answer: page(budgetProposal),
      async run({ params }) {
        const rows = await database.query<ProposalRow>(LIST, [params.id])
        return { items: rows.map(viewProposal), next: null }
      },
    }),
    resource('POST /accounts/{id}/budget-proposals', 'budgets:read', {
      title: 'Propose another maximum for a budget',
      body: z.strictObject({ budgetId: id, max: text(40), reason: text(200) }),
      answer: budgetProposal,
      async run({ params, body: { budgetId, max, reason }, by }) {
        const budget = await budgetOf(params.id, budgetId)
        if (!budget) throw new Fault('not_found', { message: 'There is no budget with this id.' })
        const read = readBudgetMax(budget.unit, max)
        if ('problem' in read) throw invalid(`max: ${read.problem}.`, 'max')
        return database.transaction(async (tx) => {
          const given = [params.id, `prp_${newId(world)}`, budgetId, budget.max, max, reason, by.actor, WAITING_MAX]
          const [row] = await tx.query<ProposalRow>(INSERT, given)
          if (!row)
            throw new Fault('conflict', {
              message: `${WAITING_MAX} proposals wait already. Answer them in the console.`,
            })
          const detail = { account: params.id, max, reason }
          await audit.write(tx, by, { action: 'budget.propose', object: budgetId, detail, before: {}, after: {} })
          return viewProposal(row)
        })
      },
    }),
    resource('POST /accounts/{id}/budget-proposals/{proposalId}/confirm', 'budgets:write', {
      title: 'Confirm a proposal',
      fresh: true,
      answer: budgetView,
      async run({ params, actor, by }) {
        // The second step is a person's: no token confirms what a token proposed.
        sessionOf(actor)
        const { budget_id: budget, was, max } = await found(database, params.id, params.proposalId)
        if ((await budgetOf(params.id, budget))?.max !== was)
          throw new Fault('conflict', { message: 'The budget was changed after this was proposed.' })
        // Of two answers one finds it.
        if (!(await database.query(REMOVE, [params.id, params.proposalId]))[0]) throw unknown()
        return budgets.change(params.id, budget, { max }, by)
      },
    }),
    resource('DELETE /accounts/{id}/budget-proposals/{proposalId}', 'budgets:write', {
      title: 'Dismiss a proposal',
      answer: budgetProposal,
      async run({ params }) {
        const [row] = await database.query<ProposalRow>(REMOVE, [params.id, params.proposalId])
        if (!row) throw unknown()
        return viewProposal(row)
      },
    }),
  ]
}

const viewProposal = (row: ProposalRow): BudgetProposal => ({
  ...asView(budgetProposal, row),
  proposedBy: row.proposer,
})

export const pruneProposals = (database: BudgetsOptions['database']): Promise<number> => pruneAll(database, PRUNE)

const WAITS = `created_at > now() - interval '7 days'`
const LIST = sql('budget_proposal_list')`select * from budget_proposal where account_id = $1 and ${WAITS} order by id`
const FIND = sql('budget_proposal_find')`select * from budget_proposal where account_id = $1 and id = $2 and ${WAITS}`
const INSERT = sql('budget_proposal_insert')`
  insert into budget_proposal (account_id, id, budget_id, was, max, reason, proposer)
   select $1, $2, $3, $4, $5, $6, $7
   where (select count(*) from budget_proposal where account_id = $1 and ${WAITS}) < $8::int returning *`
const REMOVE = sql('budget_proposal_remove')`
  delete from budget_proposal where account_id = $1 and id = $2 and ${WAITS} returning *`
const PRUNE = sql('budget_proposal_prune')`
  with gone as (delete from budget_proposal where not ${WAITS} returning 1) select count(*)::int as count from gone`
