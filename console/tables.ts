// What the console takes from the tables of endpoints and faults: the build puts it in as constants.
import * as z from 'zod'
import { alertRules } from '../src/extensions/alerts/rules.ts'
import { snippetTables } from '../src/extensions/docs/reference.ts'
import { ADVICE, FAULTS } from '../src/kernel/fault.ts'

const { posts, calls } = snippetTables()

const faults = Object.entries(FAULTS).map(([name, { text }]) => [name, { text, advice: Reflect.get(ADVICE, name) }])

export const FROM_TABLE = {
  POST_ENDPOINTS: posts,
  CLIENT_CALLS: calls,
  ALERT_RULES: z.toJSONSchema(alertRules, { io: 'input' }).properties,
  FAULT_WORDS: Object.fromEntries(faults),
}
