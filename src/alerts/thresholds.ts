// How alerts compare: the thresholds of all rules as rows of a statement, and what is made of a row that crosses one.
import { IS_TEST } from '../kernel/test-account.ts'
import type { AlertView } from './views.ts'

export interface AlertFact {
  /** An account's id; empty for the gateway. */
  readonly scope: string
  readonly rule: AlertView['rule']
  readonly subject: string
  /** How severe it is, as text; `rank` orders the levels. */
  readonly level: string
  readonly rank: number
  readonly title: string
  readonly message: string
}

/** A column of the thresholds, one for each rule that compares a figure. */
type Threshold = 'below' | 'days' | 'share' | 'percent' | 'calls' | 'key_days' | 'job'
export const OWN = (COLUMN: string) => `not ${IS_TEST(COLUMN)}`
export const RULES = `with own as materialized (
     select * from jsonb_to_recordset($1::jsonb) as x(scope text, below bigint, days numeric, share numeric, percent numeric, calls bigint,
       key_days float8, job boolean)
   ), usual as (select * from own where scope is null)`
export const RULED = (account: string) => `cross join usual left join own on own.scope = ${account}`
export const RULE = (name: Threshold) => `case when own.scope is null then usual.${name} else own.${name} end`

export function fact(
  scope: string,
  rule: AlertFact['rule'],
  subject: string,
  about: { title: string; message: string; level?: string; rank?: number },
): AlertFact {
  return { scope, rule, subject, level: 'on', rank: 1, ...about }
}
