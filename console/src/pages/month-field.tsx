// A month of the platform's calendar (UTC), kept in the address.
import { monthName } from '../format.ts'
import { setQuery } from '../router.tsx'
import { SelectField } from '../ui/field.tsx'

const MONTHS_MAX = 36

const monthOf = (at: Date) => at.toISOString().slice(0, 7)

/** The newest first: from the one in which it began, or as many as are offered. */
export function monthsSince(createdAt?: string): string[] {
  const first = createdAt === undefined ? '' : createdAt.slice(0, 7)
  const now = new Date()
  const all = Array.from({ length: MONTHS_MAX }, (_, ago) =>
    monthOf(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago, 1))),
  )
  return all.filter((month) => month >= first)
}

export function MonthField({
  months,
  month,
  label = 'Month',
  name = 'month',
}: {
  months: readonly string[]
  month: string
  label?: string
  name?: string
}) {
  const shown = months.includes(month) || month === '' ? months : [month, ...months]
  return (
    <SelectField
      label={label}
      value={month}
      onText={(text) => setQuery({ [name]: text })}
      options={shown.map((one) => [one, monthName(one)] as const)}
    />
  )
}
