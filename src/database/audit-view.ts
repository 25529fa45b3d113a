import * as z from 'zod'
import { count, time } from '../kernel/view.ts'

export const auditView = z.object({
  id: z.string(),
  at: time,
  actor: z.string(),
  action: z.string(),
  object: z.string(),
  ip: z.string().nullable(),
  requestId: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()),
})
export type AuditView = z.infer<typeof auditView>

export const auditCheck = z.object({ ok: z.boolean(), checked: count, problems: z.array(z.string()) })
export type AuditCheck = z.infer<typeof auditCheck>
