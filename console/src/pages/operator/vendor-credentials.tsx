// The credentials of one vendor: what each is doing, and what an operator can do about it.
import { useState } from 'react'
import { api } from '../../api.ts'
import { refresh } from '../../query.ts'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Ago, Badge, Note, When } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Vendor, VendorCredential } from '../../wire.ts'

const REASONS = {
  rejected: 'not accepted',
  out_of_funds: 'its account has no money',
  rate_limited: 'rate limited',
} as const

export function CredentialTable({ vendor }: { vendor: Vendor }) {
  const [asking, setAsking] = useState<{ what: 'change' | 'remove'; credential: VendorCredential }>()
  const onClose = () => setAsking(undefined)
  const several = vendor.credentials.length > 1
  return (
    <>
      <Table
        label={`Credentials of ${vendor.name}`}
        rows={vendor.credentials}
        rowKey={({ name }) => name}
        columns={[
          {
            head: 'Credential',
            main: true,
            cell: ({ name, last4 }) => (
              <>
                <b>{name}</b>
                {last4 ? <code className="cell-sub">…{last4}</code> : null}
              </>
            ),
          },
          { head: 'Weight', right: true, cell: ({ weight }) => weight },
          { head: 'State', cell: (one) => <CredentialState credential={one} /> },
          { head: 'Last success', cell: ({ lastSuccessAt }) => <Ago at={lastSuccessAt} none="None yet" /> },
          {
            head: 'Actions',
            cell: (credential) => (
              <Menu
                right="vendor-credentials:write"
                label={`Actions for ${credential.name}`}
                items={[
                  {
                    label: several ? 'Replace, or change its weight' : 'Replace',
                    icon: 'key',
                    run: () => setAsking({ what: 'change', credential }),
                  },
                  // One that only the environment has is removed there.
                  ...(several || credential.source === 'stored'
                    ? [
                        {
                          label: 'Remove',
                          icon: 'trash' as const,
                          danger: true,
                          run: () => setAsking({ what: 'remove', credential }),
                        },
                      ]
                    : []),
                ]}
              />
            ),
          },
        ]}
      />
      {asking?.what === 'change' ? (
        <CredentialDialog vendor={vendor} known={asking.credential} onClose={onClose} />
      ) : null}
      {asking?.what === 'remove' && !several ? <RemoveOnly vendor={vendor} onClose={onClose} /> : null}
      {asking?.what === 'remove' && several ? (
        <RemoveDialog vendor={vendor} credential={asking.credential} onClose={onClose} />
      ) : null}
    </>
  )
}

function CredentialState({
  credential: { present, source, disabledUntil, disabledReason, status },
}: {
  credential: VendorCredential
}) {
  if (!present) return <Badge tone="warn">Missing</Badge>
  if (disabledUntil && disabledReason)
    return (
      <>
        <Badge tone="warn">Disabled</Badge>{' '}
        <span className="small">
          {REASONS[disabledReason]} ({status}), until <When at={disabledUntil} />
        </span>
      </>
    )
  return <Badge tone="good">{source === 'env' ? 'In use, from the environment' : 'In use'}</Badge>
}

/** Adds one, or changes one that is known. */
export function CredentialDialog({
  vendor,
  known,
  onClose,
}: {
  vendor: Vendor
  known?: VendorCredential
  onClose: () => void
}) {
  const isShared = known !== undefined && known.sharedWith.length > 0
  return (
    <FormDialog
      title={known ? `Replace ${known.name} of ${vendor.name}` : `Another credential for ${vendor.name}`}
      action={known ? 'Save' : 'Add'}
      run={async (form) => {
        const value = String(form.get('value') ?? '').trim()
        const name = known?.name ?? String(form.get('name') ?? '').trim()
        const weight = Number(form.get('weight'))
        await api.putCredential(vendor.name, name, { ...(value ? { value } : {}), weight, shared: isShared })
        toast(known ? 'The credential was changed.' : 'The credential was added. Calls use it from now on.')
        refresh('vendors')
      }}
      onClose={onClose}
    >
      {isShared ? (
        <Note tone="warn">
          {known?.name} is the credential of {known?.sharedWith.join(' and ')} too: a new value is theirs as well.
        </Note>
      ) : null}
      {known ? null : (
        <TextField
          label="Name"
          name="name"
          mono
          required
          hint="Upper-case letters, digits and _; also the name of an environment variable, which takes precedence over the stored value."
        />
      )}
      <TextField
        label={known ? 'New value' : 'Value'}
        name="value"
        type="password"
        autoComplete="off"
        hint={
          known
            ? 'Left empty, it stays as it is.'
            : 'Stored encrypted, never shown again. Leave it empty where the environment has it.'
        }
      />
      <TextField
        label="Weight"
        name="weight"
        type="number"
        min={1}
        max={1000}
        defaultValue={known?.weight ?? 1}
        required
      />
    </FormDialog>
  )
}

function RemoveOnly({ vendor, onClose }: { vendor: Vendor; onClose: () => void }) {
  return (
    <Confirm
      title="Remove the stored credential?"
      action="Remove"
      danger
      run={async () => {
        await api.removeCredential(vendor.name)
        toast('The credential was removed.')
        refresh('vendors')
      }}
      onClose={onClose}
    >
      <p>
        Calls to <b>{vendor.name}</b> will fail unless the environment variable <code>{vendor.credential.name}</code> is
        set.
      </p>
    </Confirm>
  )
}

function RemoveDialog({
  vendor,
  credential,
  onClose,
}: {
  vendor: Vendor
  credential: VendorCredential
  onClose: () => void
}) {
  const [force, setForce] = useState(false)
  return (
    <Confirm
      title={`Remove ${credential.name}?`}
      action="Remove"
      danger
      run={async () => {
        await api.dropCredential(vendor.name, credential.name, force)
        toast('The credential was removed.')
        refresh('vendors')
      }}
      onClose={onClose}
    >
      <p>
        Calls to <b>{vendor.name}</b> use the others from now on. No other credential can read video jobs that it
        created.
      </p>
      <Checkbox label="Also if jobs of it are running" checked={force} onCheck={setForce} />
    </Confirm>
  )
}
