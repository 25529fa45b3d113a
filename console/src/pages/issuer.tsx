// Who issues invoices, for the gateway's own and for those of an account to its customers.
import { useState } from 'react'
import { Allowed } from '../session.tsx'
import { useAction, useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { CountryOrText, TextArea, TextField } from '../ui/field.tsx'
import { Card } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import { toast } from '../ui/toast.tsx'
import type { Issuer, Permission } from '../wire.ts'

type IssuerField = Exclude<keyof Issuer, 'ratesAbroad' | 'paymentDays'>
const FIELDS: readonly (readonly [field: IssuerField, label: string, hint?: string])[] = [
  ['name', 'Name of the company'],
  ['street', 'Street and number'],
  ['postcode', 'Postcode'],
  ['city', 'City'],
  ['country', 'Country'],
  ['email', 'Email'],
  ['vatId', 'VAT id', 'With the letters of the country.'],
  ['taxNumber', 'Tax number', 'If there is no VAT id.'],
  ['registration', 'Registration number'],
  ['series', 'Series', 'The first part of each number: INV.'],
  ['taxRate', 'VAT in percent', 'In the issuer’s own country.'],
  ['exemption', 'Exemption', 'The reason why no VAT is charged. Leave empty to charge VAT.'],
  ['iban', 'IBAN', 'On invoices for months.'],
  ['bic', 'BIC'],
]
const REQUIRED: readonly string[] = ['name', 'street', 'city', 'country', 'taxRate']

interface IssuerProps {
  readonly issuer: Issuer | null
  readonly right: Permission
  /** Its customers; absent: the gateway's own, which may also be invoiced for months. */
  readonly account?: string
  readonly save: (issuer: Readonly<Record<string, unknown>> | null) => Promise<void>
}

/** Who issues invoices: without one there are none. */
export function IssuerCard({ issuer, right, account, save }: IssuerProps) {
  const fields = account === undefined ? FIELDS : FIELDS.filter(([field]) => field !== 'iban' && field !== 'bic')
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(FIELDS.map(([field]) => [field, issuer?.[field] ?? (field === 'series' ? 'INV' : '')])),
  )
  const [rates, setRates] = useState(
    Object.entries(issuer?.ratesAbroad ?? {})
      .map(([country, rate]) => `${country} ${rate}`)
      .join('\n'),
  )
  const [footer, setFooter] = useState(issuer?.footer ?? '')
  const [days, setDays] = useState(String(issuer?.paymentDays ?? 14))
  const { busy, error, onSubmit } = useSubmit(async () => {
    await save({
      ...Object.fromEntries(FIELDS.map(([field]) => [field, values[field]?.trim() || null])),
      ratesAbroad: ratesOf(rates),
      footer: footer.trim() || null,
      paymentDays: Number(days),
    })
    toast('The issuer was saved.')
  })
  const off = useAction(async () => {
    await save(null)
    toast('No invoices are issued any more.')
  })
  return (
    <Card
      right={right}
      {...(account === undefined ? {} : { account })}
      title="Issuer of invoices"
      lead={issuer ? 'Invoices that were issued stay as they are.' : 'No invoices are issued before this is filled in.'}
    >
      <form className="stack" onSubmit={onSubmit}>
        <div className="grid-3">
          {fields.map(([field, label, hint]) => (
            <CountryOrText
              key={field}
              name={field}
              label={label}
              hint={hint}
              maxLength={200}
              required={REQUIRED.includes(field)}
              value={values[field] ?? ''}
              onText={(text) => setValues((before) => ({ ...before, [field]: text }))}
            />
          ))}
          {account === undefined ? (
            <TextField label="Days to pay" type="number" min={0} max={365} value={days} onText={setDays} required />
          ) : null}
        </div>
        <TextArea
          label="VAT of consumers abroad"
          hint="A line for each country: AT 20"
          rows={3}
          value={rates}
          onText={setRates}
        />
        <TextField label="Text at the foot of each page" value={footer} maxLength={500} onText={setFooter} />
        {error ? <Fault error={error} /> : null}
        {off.error ? <Fault error={off.error} /> : null}
        <Allowed right={right} {...(account === undefined ? {} : { account })}>
          <div className="row">
            <Button type="submit" look="primary" busy={busy}>
              {account === undefined ? 'Save issuer' : issuer ? 'Change issuer' : 'Issue invoices'}
            </Button>
            {issuer ? (
              <Button busy={off.busy} onClick={() => void off.go()}>
                Issue no more invoices
              </Button>
            ) : null}
          </div>
        </Allowed>
      </form>
    </Card>
  )
}

function ratesOf(lines: string): Record<string, string> {
  const rows = lines
    .split('\n')
    .map((line) => line.trim().split(/[\s:=]+/))
    .filter(([country]) => country)
  return Object.fromEntries(rows.map(([country = '', rate = '']) => [country.toUpperCase(), rate.replace(/%$/, '')]))
}
