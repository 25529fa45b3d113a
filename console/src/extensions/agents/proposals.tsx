// What agents proposed for budgets: a person answers here, after proving that it is them.
import { useState } from 'react'
import { refresh, useQuery } from '../../query.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { Card, Name, When } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Budget, BudgetProposal } from '../../wire.ts'
import { agentsApi } from './api.ts'

export function Proposals({ account, budgets, may }: { account: string; budgets: readonly Budget[]; may: boolean }) {
  const proposals = useQuery(`budget-proposals/${account}`, (signal) => agentsApi.proposals(account, signal))
  const [confirming, setConfirming] = useState<BudgetProposal>()
  const items = proposals.data?.items ?? []
  if (items.length === 0) return null
  const nameOf = ({ budgetId }: BudgetProposal) => budgets.find(({ id }) => id === budgetId)?.name ?? budgetId
  const answered = (words: string) => {
    toast(words)
    refresh(`budget-proposals/${account}`)
    refresh(`budgets/${account}`)
  }
  const actions = (row: BudgetProposal): MenuItem[] => [
    { label: 'Confirm', icon: 'edit', run: () => setConfirming(row) },
    {
      label: 'Dismiss',
      icon: 'trash',
      danger: true,
      run: () => void agentsApi.dismiss(account, row.id).then(() => answered('The proposal was dismissed.')),
    },
  ]
  return (
    <Card title="Proposed by agents" flush>
      <Table
        label="Proposals"
        rows={items}
        rowKey={({ id }) => id}
        columns={[
          { head: 'Budget', main: true, cell: (row) => <b>{nameOf(row)}</b> },
          { head: 'Maximum', cell: ({ was, max }) => `${was} → ${max}` },
          { head: 'Why', cell: ({ reason }) => <Name text={reason} /> },
          { head: 'By', cell: ({ proposedBy }) => <Name text={proposedBy} /> },
          { head: 'At', cell: ({ createdAt }) => <When at={createdAt} /> },
          may && { head: 'Actions', cell: (row) => <Menu label={`Answer for ${nameOf(row)}`} items={actions(row)} /> },
        ]}
      />
      {confirming ? (
        <Confirm
          title="Change this budget?"
          action="Confirm"
          run={async () => {
            await agentsApi.confirm(account, confirming.id)
            answered(`The budget ${nameOf(confirming)} allows ${confirming.max} now.`)
          }}
          onClose={() => setConfirming(undefined)}
        >
          <p>
            An agent of <b>{confirming.proposedBy}</b> proposes that <b>{nameOf(confirming)}</b> allows {confirming.max}{' '}
            instead of {confirming.was}: {confirming.reason}
          </p>
        </Confirm>
      ) : null}
    </Card>
  )
}
