// Alerts, their rules and their receivers: those of the gateway, and those of accounts.
import * as z from 'zod'
import type { Audit } from '../../database/audit.ts'
import type { CoreParts } from '../../extension.ts'
import { shownTarget } from '../../jobs/delivery.ts'
import { id, paging, type Resource, resource } from '../../operator/resource.ts'
import type { Alerts } from './alerts.ts'
import { type AlertSettings, alertPage, alertSettings, alertSettingsInput, alertView } from './views.ts'

export interface AlertDeps extends Pick<CoreParts, 'audit' | 'database'> {
  readonly alerts: Alerts
}

/** The gateway's own. */
const GATEWAY = ''

const readBody = z.strictObject({ until: id })
const ofGateway = z.enum(['all', 'gateway']).default('all').describe('Only the gateway’s own')
const done = z.object({ ok: z.literal(true) })
const DONE = { ok: true } as const

/** Shows only the host of a webhook, because knowing the path can be enough to post to it. */
function shownSettings({ rules, receivers }: AlertSettings) {
  return { rules, receivers: receivers.map((one) => `${one.kind} ${shownTarget(one)}`) }
}

export function alertResources({ alerts, audit, database }: AlertDeps): Resource[] {
  async function change(
    scope: string,
    settings: z.output<typeof alertSettingsInput>,
    by: Parameters<Audit['write']>[1],
  ) {
    const before = shownSettings(await alerts.settings(scope))
    const changed = await alerts.change(scope, settings)
    const detail = { rules: changed.rules, receivers: changed.receivers.length }
    await database.transaction((tx) =>
      audit.write(tx, by, {
        action: 'alert.settings',
        object: scope || 'gateway',
        detail,
        before,
        after: shownSettings(changed),
      }),
    )
    return changed
  }

  return [
    resource('GET /alerts', 'alerts:read', {
      title: 'List the alerts of the gateway',
      query: z.strictObject({ ...paging, of: ofGateway }),
      answer: alertPage,
      run: ({ query }) => alerts.list(query.of === 'gateway' ? GATEWAY : null, query),
    }),
    resource('POST /alerts/read', 'alerts:write', {
      title: 'Mark the gateway’s alerts as read',
      body: readBody,
      answer: done,
      run: async ({ body }) => {
        await alerts.read(GATEWAY, body.until)
        return DONE
      },
    }),
    resource('POST /alerts/test', 'alert-settings:write', {
      title: 'Send a test alert of the gateway',
      answer: alertView,
      run: () => alerts.test(GATEWAY),
    }),
    resource('GET /alert-settings', 'alert-settings:read', {
      title: 'Show the alert rules of the gateway',
      answer: alertSettings,
      run: () => alerts.settings(GATEWAY),
    }),
    resource('PUT /alert-settings', 'alert-settings:write', {
      title: 'Set the alert rules of the gateway',
      body: alertSettingsInput,
      answer: alertSettings,
      run: ({ body, by }) => change(GATEWAY, body, by),
    }),
    resource('GET /accounts/{id}/alerts', 'alerts:read', {
      title: 'List the alerts of an account',
      query: z.strictObject(paging),
      answer: alertPage,
      run: ({ params, query }) => alerts.list(params.id, query),
    }),
    resource('POST /accounts/{id}/alerts/read', 'alerts:write', {
      title: 'Mark an account’s alerts as read',
      body: readBody,
      answer: done,
      run: async ({ params, body }) => {
        await alerts.read(params.id, body.until)
        return DONE
      },
    }),
    resource('POST /accounts/{id}/alerts/test', 'alert-settings:write', {
      title: 'Send a test alert of an account',
      answer: alertView,
      run: ({ params }) => alerts.test(params.id),
    }),
    resource('GET /accounts/{id}/alert-settings', 'alert-settings:read', {
      title: 'Show the alert rules of an account',
      answer: alertSettings,
      run: ({ params }) => alerts.settings(params.id),
    }),
    resource('PUT /accounts/{id}/alert-settings', 'alert-settings:write', {
      title: 'Set the alert rules of an account',
      body: alertSettingsInput,
      answer: alertSettings,
      run: ({ params, body, by }) => change(params.id, body, by),
    }),
  ]
}
