// Whom invoices are made out to: an account, or a customer of one.
import { useState } from 'react'
import { useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { CountryOrText } from '../ui/field.tsx'
import { Card } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import type { BillingDetails } from '../wire.ts'

const FIELDS = [
  ['company', 'Company'],
  ['name', 'Name'],
  ['street', 'Street and number'],
  ['postcode', 'Postcode'],
  ['city', 'City'],
  ['country', 'Country'],
  ['vatId', 'VAT id'],
  ['email', 'Email'],
] as const
/** As the form names it. */
export const detailName = (field: string) =>
  field === 'name' ? 'Company or name' : (FIELDS.find(([name]) => name === field)?.[1] ?? field)
const HINTS: Partial<Record<(typeof FIELDS)[number][0], string>> = {
  name: 'Of a person; a company may leave it out.',
  vatId: 'With the letters of the country, such as DE123456789.',
}

interface BillingDetailsProps {
  readonly details: Omit<BillingDetails, 'missing'>
  readonly missing?: string | null
  readonly lead: string
  readonly mayChange: boolean
  readonly save: (details: Record<string, string | null>) => Promise<void>
}

export function BillingDetailsCard({ details, missing = null, lead, mayChange, save }: BillingDetailsProps) {
  const [values, setValues] = useState(() => Object.fromEntries(FIELDS.map(([field]) => [field, details[field] ?? ''])))
  const { busy, error, onSubmit } = useSubmit(async () => {
    await save(Object.fromEntries(FIELDS.map(([field]) => [field, values[field]?.trim() || null])))
    toast('The billing details were saved.')
  })
  return (
    <Card title="Billing details" lead={lead}>
      <form className="stack" onSubmit={onSubmit}>
        <div className="grid-3">
          {FIELDS.map(([field, label]) => (
            <CountryOrText
              key={field}
              name={field}
              label={label}
              hint={HINTS[field]}
              type={field === 'email' ? 'email' : 'text'}
              value={values[field] ?? ''}
              maxLength={200}
              disabled={!mayChange}
              said={missing === field ? 'This is missing.' : undefined}
              onText={(text) => setValues((before) => ({ ...before, [field]: text }))}
            />
          ))}
        </div>
        {error ? <Fault error={error} /> : null}
        {mayChange ? (
          <div className="row">
            <Button type="submit" look="primary" busy={busy}>
              Save
            </Button>
          </div>
        ) : null}
      </form>
    </Card>
  )
}
