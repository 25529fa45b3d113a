// What is sold; codes that grant credits: made, listed, ended.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { formatWhole, plural } from '../../format.ts'
import { CsvButton } from '../../pages/csv.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { useDialogInAddress } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { Confirm, FormDialog, Notice } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Badge, Badges, Page, When } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { CodeBatch, NewCodeBatch } from '../../wire.ts'
import { dayStart } from '../../zone.ts'
import { Offers } from './offers.tsx'

export function PlansPage() {
  const may = useMay()('plans:write')
  const plans = useQuery('plans', api.plans)
  const [creating, setCreating] = useDialogInAddress('codes')
  const [made, setMade] = useState<NewCodeBatch>()
  return (
    <Page
      title="Plans, packs and codes"
      lead="What is sold, and codes that grant credits."
      actions={
        may ? (
          <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
            New codes
          </Button>
        ) : null
      }
    >
      <Loaded query={plans}>{(data) => <Offers plans={data.plans} />}</Loaded>
      <Batches may={may} />
      {creating && may ? <NewCodes onMade={setMade} onClose={() => setCreating(false)} /> : null}
      {made ? <Made batch={made} onClose={() => setMade(undefined)} /> : null}
    </Page>
  )
}

const hasEnded = ({ endsAt }: CodeBatch) => endsAt !== null && Date.parse(endsAt) <= Date.now()

function Batches({ may }: { may: boolean }) {
  const list = useList('code-batches', (cursor, signal) => api.codeBatches(cursor, signal))
  const [ending, setEnding] = useState<CodeBatch>()
  return (
    <>
      <TableCard
        title="Codes"
        lead="In batches. The codes themselves are shown only when they are made."
        label="Codes"
        list={list}
        empty={
          <Empty icon="statement" title="No codes yet">
            <p>A code grants credits to the account that redeems it: for a trade fair, a voucher, a partner.</p>
          </Empty>
        }
        rowKey={({ id }) => id}
        dim={hasEnded}
        columns={[
          { head: 'Batch', main: true, cell: ({ name, createdBy }) => <Named name={name} sub={createdBy} /> },
          { head: 'Credits each', right: true, cell: ({ credits }) => formatCredits(credits) },
          {
            head: 'Redeemed',
            right: true,
            cell: ({ used, codes, usesMax }) => `${formatWhole(used)} of ${formatWhole(codes * usesMax)}`,
          },
          {
            head: 'Credits last',
            cell: ({ creditDays }) => (creditDays === null ? 'for ever' : plural(creditDays, 'day')),
          },
          {
            head: 'For',
            wideOnly: true,
            cell: ({ products }) => (products === null ? 'everything' : <Badges names={products} />),
          },
          { head: 'Made', tight: true, wideOnly: true, cell: ({ createdAt }) => <When at={createdAt} /> },
          {
            head: 'Codes end',
            tight: true,
            cell: (batch) =>
              hasEnded(batch) ? (
                <Badge>ended</Badge>
              ) : batch.endsAt === null ? (
                <span className="muted">never</span>
              ) : (
                <When at={batch.endsAt} />
              ),
          },
          may && {
            head: 'Actions',
            cell: (batch) =>
              hasEnded(batch) ? null : (
                <Button small onClick={() => setEnding(batch)}>
                  End
                </Button>
              ),
          },
        ]}
      />
      {ending ? (
        <Confirm
          title={`End “${ending.name}”`}
          action="End the codes"
          danger
          onClose={() => setEnding(undefined)}
          run={async () => {
            await api.endCodes(ending.id)
            toast('The codes have ended.')
            refresh('code-batches', 'session')
          }}
        >
          None of its codes can be redeemed any more. Credits that they granted stay.
        </Confirm>
      ) : null}
    </>
  )
}

function NewCodes({ onMade, onClose }: { onMade: (batch: NewCodeBatch) => void; onClose: () => void }) {
  return (
    <FormDialog
      title="New codes"
      action="Create codes"
      wide
      onClose={onClose}
      run={async (form) => {
        const text = (name: string) => String(form.get(name)).trim()
        const products = text('products')
          .split(/[\s,]+/)
          .filter(Boolean)
        const batch = await api.createCodes({
          name: text('name'),
          credits: text('credits'),
          codes: Number(text('codes')),
          usesMax: Number(text('uses')),
          ...(text('ends') ? { endsAt: dayStart(text('ends'), 1) } : {}),
          ...(text('days') ? { creditDays: Number(text('days')) } : {}),
          ...(products.length ? { products } : {}),
        })
        onMade(batch)
        refresh('code-batches', 'session')
      }}
    >
      <TextField name="name" label="Name" maxLength={100} required hint="Customers see it on their statement." />
      <div className="grid-3">
        <TextField name="credits" label="Credits of each code" inputMode="decimal" required />
        <TextField name="codes" label="How many codes" type="number" min={1} max={10_000} defaultValue="1" required />
        <TextField
          name="uses"
          label="Uses of each code"
          type="number"
          min={1}
          max={1_000_000}
          defaultValue="1"
          required
          hint="An account redeems a code once."
        />
        <TextField name="ends" label="Last day to redeem" type="date" hint="Leave empty for no end." />
        <TextField
          name="days"
          label="Days the credits last"
          type="number"
          min={1}
          max={3650}
          hint="From when they are granted. Leave empty for no end."
        />
        <TextField
          name="products"
          label="Only for"
          placeholder="siteanalytics/*"
          hint="Models and data endpoints. Leave empty for everything."
        />
      </div>
    </FormDialog>
  )
}

/** Shown once: the database has only their hashes. */
function Made({ batch, onClose }: { batch: NewCodeBatch; onClose: () => void }) {
  const csv = () => new Blob([`code\n${batch.list.join('\n')}\n`], { type: 'text/csv' })
  return (
    <Notice title={plural(batch.list.length, 'new code')} done="I have stored them" once onClose={onClose}>
      <p>They are not shown again.</p>
      <Code label={batch.name} text={batch.list.join('\n')} />
      <div className="row">
        <CsvButton fetchIt={async () => csv()} name={`codes-${batch.name}.csv`} />
      </div>
    </Notice>
  )
}
