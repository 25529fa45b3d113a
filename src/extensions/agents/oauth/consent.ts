// The OAuth consent pages of the console: a person decides what a program may do for an account.
import * as z from 'zod'
import type { Teams } from '../../../admission/teams.ts'
import type { By } from '../../../database/audit.ts'
import { limitsInput } from '../../../meter/limits.ts'
import { type Actor, id, type Resource, requireRight, resource, sessionOf, text } from '../../../operator/resource.ts'
import { consentView, deviceView } from '../views.ts'
import type { Connections, Consent } from './connections.ts'
import type { DeviceSignIns } from './device.ts'

const onward = z.object({ redirect: z.string() })
const answered = z.object({ allowed: z.boolean() })
const terms = z.strictObject({
  account: id,
  models: z.array(text(100)).min(1).max(500).nullable(),
  limits: limitsInput.default({}),
})
const userCode = z.strictObject({ code: text(40) })

interface Deps {
  readonly connections: Connections
  readonly device: DeviceSignIns
  readonly teams: Pick<Teams, 'placeOf'>
}

export function consentResources({ connections, device, teams }: Deps): Resource[] {
  async function consentOf(actor: Actor, given: z.output<typeof terms>, by: By): Promise<Consent> {
    requireRight(actor, 'keys:write', given.account)
    const { person } = sessionOf(actor)
    return { ...given, person: person.id, place: await teams.placeOf(given.account, person.id), by }
  }
  return [
    resource('GET /connect/{uid}/details', 'self', {
      answer: consentView,
      run: ({ params, http }) => connections.look(http, params.uid),
    }),
    resource('POST /connect/{uid}/allow', 'self', {
      body: terms,
      answer: onward,
      run: async ({ params, body, actor, by, http }) => ({
        redirect: await connections.allow(http, params.uid, await consentOf(actor, body, by)),
      }),
    }),
    resource('POST /connect/{uid}/refuse', 'self', {
      answer: onward,
      run: async ({ params, http }) => ({ redirect: await connections.refuse(http, params.uid) }),
    }),
    resource('POST /device', 'self', {
      body: userCode,
      answer: deviceView,
      run: ({ actor, body, visit }) => device.look(askerOf(actor, visit), body.code),
    }),
    resource('POST /device/allow', 'self', {
      body: userCode.extend(terms.shape),
      answer: answered,
      async run({ actor, body: { code, ...given }, visit, by }) {
        await device.allow(askerOf(actor, visit), code, await consentOf(actor, given, by))
        return { allowed: true }
      },
    }),
    resource('POST /device/refuse', 'self', {
      body: userCode,
      answer: answered,
      async run({ actor, body, visit }) {
        await device.refuse(askerOf(actor, visit), body.code)
        return { allowed: false }
      },
    }),
  ]
}

const askerOf = (actor: Actor, { ip }: { ip: string }) => ({ person: sessionOf(actor).person.id, ip })
