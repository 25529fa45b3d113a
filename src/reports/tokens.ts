// Tokens of a usage row, read in SQL.
import { UNIT_NAMES, unitRow } from '../meter/kind.ts'

/** The values that `TOKENS` takes. */
export const INPUT_UNITS = UNIT_NAMES.filter((unit) => unitRow(unit).side === 'input')
export const OUTPUT_UNITS = UNIT_NAMES.filter((unit) => unitRow(unit).side === 'output')

/** `t.input` and `t.output` of a row that is `u`: quantities that have a price, and those that have only a cost. */
export const TOKENS = (INPUT: string, OUTPUT: string) => `cross join lateral (
     select coalesce(sum(q.quantity) filter (where q.unit = any(${INPUT}::text[])), 0)::bigint as input,
       coalesce(sum(q.quantity) filter (where q.unit = any(${OUTPUT}::text[])), 0)::bigint as output
     from (select x ->> 0 as unit, (x ->> 1)::numeric as quantity from jsonb_array_elements(u.lines) x
       union all select b.key, b.value::numeric from jsonb_each_text(coalesce(u.cost_basis -> 'units', '{}')) b) q
   ) t`
