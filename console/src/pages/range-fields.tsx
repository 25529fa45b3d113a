// The first and the last day of a list, kept in the address.
import { setQuery } from '../router.tsx'
import { TextField } from '../ui/field.tsx'

export function RangeFields({ from = '', to = '' }: { from?: string | undefined; to?: string | undefined }) {
  return (
    <>
      <TextField label="From" type="date" value={from} max={to} onText={(text) => setQuery({ from: text })} />
      <TextField label="To" type="date" value={to} min={from} onText={(text) => setQuery({ to: text })} />
    </>
  )
}
