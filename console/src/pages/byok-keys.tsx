// Keys at vendors that this account has brought itself. Shown where the catalog takes any.
import { useState } from 'react'
import { api } from '../api.ts'
import { refresh, useQuery } from '../query.ts'
import { useMay } from '../session.tsx'
import { Confirm, FormDialog } from '../ui/dialog.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Menu, type MenuItem } from '../ui/menu.tsx'
import { Ago, Badge, Card } from '../ui/page.tsx'
import { Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { ByokKey } from '../wire.ts'

type Ask = { about: 'store' | 'fallback' | 'remove'; key: ByokKey }

export function ByokKeysCard({ account }: { account: string }) {
  const owner = useMay()('byok-keys:write', account)
  const keys = useQuery(`byok-keys/${account}`, (signal) => api.byokKeys(account, signal))
  const [ask, setAsk] = useState<Ask>()
  const items = keys.data?.items ?? []
  if (items.length === 0) return null
  const about = { account, onClose: () => setAsk(undefined) }
  return (
    <Card
      title="Your BYOK keys"
      lead="Calls use your key: you pay the vendor directly, and a fee here instead of the price."
    >
      <Table
        label="BYOK keys"
        rows={items}
        rowKey={({ vendor }) => vendor}
        columns={[
          { head: 'Vendor', main: true, cell: ({ vendor }) => <b>{vendor}</b> },
          {
            head: 'Key',
            cell: ({ stored, last4, allowed, addressChanged }) =>
              stored ? (
                <>
                  <Badge tone={allowed && !addressChanged ? 'good' : 'warn'}>
                    {addressChanged
                      ? 'The vendor’s address has changed: enter it again'
                      : allowed
                        ? 'In use'
                        : 'No longer accepted'}
                  </Badge>{' '}
                  {last4 ? <code>…{last4}</code> : null}
                </>
              ) : (
                'None'
              ),
          },
          { head: 'If it fails', cell: ({ stored, fallback }) => (stored ? failing(fallback) : '–') },
          { head: 'Fee', cell: ({ fee }) => feeInWords(fee) },
          { head: 'Changed', cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
          owner && {
            head: '',
            cell: (key) => <Menu label={`Actions for ${key.vendor}`} items={actionsOf(key, setAsk)} />,
          },
        ]}
      />
      {ask?.about === 'store' ? <StoreDialog own={ask.key} {...about} /> : null}
      {ask?.about === 'fallback' ? <FallbackDialog own={ask.key} {...about} /> : null}
      {ask?.about === 'remove' ? <RemoveDialog own={ask.key} {...about} /> : null}
    </Card>
  )
}

const failing = (fallback: boolean) => (fallback ? 'The gateway’s credential, at the price' : 'The call fails')

function feeInWords(fee: ByokKey['fee']): string {
  if (fee === null) return 'by model'
  const share = fee.share === undefined ? undefined : `${Number(fee.share) * 100} % of the price`
  const call = fee.call === undefined ? undefined : `${fee.call} credits a call`
  return [call, share].filter((part) => part !== undefined).join(' + ')
}

function actionsOf(key: ByokKey, onAsk: (ask: Ask) => void): MenuItem[] {
  const items: MenuItem[] = []
  if (key.allowed)
    items.push({
      label: key.stored ? 'Replace the key' : 'Store a key',
      icon: 'key',
      run: () => onAsk({ about: 'store', key }),
    })
  if (key.stored) {
    items.push({ label: 'What happens if it fails', icon: 'sliders', run: () => onAsk({ about: 'fallback', key }) })
    items.push({ label: 'Remove', icon: 'trash', danger: true, run: () => onAsk({ about: 'remove', key }) })
  }
  return items
}

interface DialogProps {
  account: string
  own: ByokKey
  onClose: () => void
}

function StoreDialog({ account, own, onClose }: DialogProps) {
  const [fallback, setFallback] = useState(own.fallback)
  return (
    <FormDialog
      title={`Your key for ${own.vendor}`}
      action="Test and store"
      run={async (form) => {
        const value = String(form.get('value') ?? '').trim()
        const { test } = await api.putByokKey(account, own.vendor, { value, fallback })
        toast(test?.message ?? 'The key is stored.')
        refresh(`byok-keys/${account}`)
      }}
      onClose={onClose}
    >
      <TextField
        label="Key"
        name="value"
        type="password"
        autoComplete="off"
        required
        hint="Tested with the smallest real call, stored encrypted, never shown again."
      />
      <FallbackBox fallback={fallback} onCheck={setFallback} />
    </FormDialog>
  )
}

function FallbackDialog({ account, own, onClose }: DialogProps) {
  const [fallback, setFallback] = useState(own.fallback)
  return (
    <FormDialog
      title={`If your key for ${own.vendor} fails`}
      action="Save"
      run={async () => {
        await api.putByokKey(account, own.vendor, { fallback })
        toast('Saved.')
        refresh(`byok-keys/${account}`)
      }}
      onClose={onClose}
    >
      <FallbackBox fallback={fallback} onCheck={setFallback} />
    </FormDialog>
  )
}

function FallbackBox({ fallback, onCheck }: { fallback: boolean; onCheck: (on: boolean) => void }) {
  return (
    <Checkbox
      label="Use the gateway’s credential if it fails"
      hint="Such calls cost the full price, and that much is held for every call."
      checked={fallback}
      onCheck={onCheck}
    />
  )
}

function RemoveDialog({ account, own, onClose }: DialogProps) {
  return (
    <Confirm
      title={`Remove your key for ${own.vendor}?`}
      action="Remove"
      danger
      run={async () => {
        await api.dropByokKey(account, own.vendor)
        toast('The key was removed.')
        refresh(`byok-keys/${account}`)
      }}
      onClose={onClose}
    >
      <p>Calls cost the price again. Jobs that use the key can no longer be read and are refunded.</p>
    </Confirm>
  )
}
