import * as z from 'zod'
import { count, time } from '../../kernel/view.ts'

export const warehouseView = z.object({
  /** Its address and database; null: there is none. */
  place: z.string().nullable(),
  sent: count,
  /** Calls that wait to be sent; counted up to 20,000. */
  waiting: count,
  sentAt: time.nullable(),
  /** Failed attempts in a row. */
  failures: count,
  error: z.string().nullable(),
})
export type WarehouseView = z.infer<typeof warehouseView>
