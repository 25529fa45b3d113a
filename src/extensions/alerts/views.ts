// Alerts: their rules, their receivers and their history.
import * as z from 'zod'
import { DELIVERY_KINDS, deliveryView } from '../../jobs/views.ts'
import { readStored } from '../../kernel/stored.ts'
import { count, page, time } from '../../kernel/view.ts'
import { ALERT_KINDS, alertRules } from './rules.ts'

const receiver = z.strictObject({
  kind: z.enum(DELIVERY_KINDS),
  to: z.string().min(3).max(500).meta({ description: 'A web address or an email address', option: 'address' }),
})
export type Receiver = z.infer<typeof receiver>

/** An email address of nobody who belongs here waits until its owner confirms it by a link. */
const status = z.enum(['active', 'waiting', 'unsubscribed'])

export const alertSettings = z.strictObject({
  rules: alertRules,
  receivers: z.array(receiver.extend({ status })).max(10),
})
export type AlertSettings = z.infer<typeof alertSettings>

/** Stored ones: rules and receivers that only another version knows are left out. */
export const readAlertSettings = (stored: unknown) =>
  readStored(stored, {
    schema: z.strictObject({ rules: alertRules, receivers: z.array(receiver).max(10) }),
    parts: ['rules.*', 'receivers.*'],
    inWords: ({ message }) => message,
  })

export const alertSettingsInput = z.strictObject({
  rules: alertRules.default(alertRules.parse({})),
  /** `status` is ignored, so that what was answered can be sent back. */
  receivers: z
    .array(receiver.extend({ status: status.optional() }))
    .max(10)
    .default([]),
})
export type AlertSettingsInput = z.infer<typeof alertSettingsInput>

export const alertView = z.object({
  id: z.string(),
  at: time,
  /** Null: the alert concerns the gateway. */
  account: z.string().nullable(),
  rule: z.enum([...ALERT_KINDS, 'test']),
  /**
   * The id of the account, limit, key, job, vendor, verification run, export or payment that it is about; or a label
   * and its value.
   */
  subject: z.string(),
  level: z.string(),
  title: z.string(),
  message: z.string(),
  read: z.boolean(),
  deliveries: z.array(deliveryView),
})
export type AlertView = z.infer<typeof alertView>

/** Unread alerts are counted up to this number; beyond it the exact number does not matter. */
export const UNREAD_MAX = 100

export const alertPage = page(alertView).extend({ unread: count.max(UNREAD_MAX) })
export type AlertPage = z.infer<typeof alertPage>
