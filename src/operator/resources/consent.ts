// The consent page of the console: a program wants to act for an account, and a person says what it may.
import type { IncomingMessage, ServerResponse } from 'node:http'
import * as z from 'zod'
import type { By } from '../../database/audit.ts'
import type { LimitsPatch } from '../../ledger/limits.ts'
import { limitsInput } from '../../ledger/views.ts'
import { id, text } from '../fields.ts'
import { type Resource, requireRole, resource } from '../resource.ts'
import { sessionOf } from './session.ts'

interface Http {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

interface Consent {
  readonly person: string
  readonly account: string
  readonly models: readonly string[] | null
  readonly limits: LimitsPatch
  readonly by: By
}

/** Each looks at the browser's cookie: whoever sends somebody else a link to their own request gets nothing by it. */
export interface Connections {
  look(http: Http, uid: string): Promise<z.infer<typeof consentView>>
  /** Answers where the browser goes on. */
  allow(http: Http, uid: string, consent: Consent): Promise<string>
  refuse(http: Http, uid: string): Promise<string>
}

const consentView = z.object({
  client: z.string(),
  /** The host that vouches for the name; null: nobody does. */
  vouchedBy: z.string().nullable(),
  redirectsTo: z.string(),
})
export type ConsentView = z.infer<typeof consentView>

const onward = z.object({ redirect: z.string() })

export function consentResources({ connections }: { readonly connections: Connections }): Resource[] {
  return [
    resource('GET /connect/{uid}/details', 'member', {
      answer: consentView,
      run: ({ params, http }) => connections.look(http, params.uid),
    }),
    resource('POST /connect/{uid}/allow', 'member', {
      body: z.strictObject({
        account: id,
        models: z.array(text(100)).min(1).max(500).nullable(),
        limits: limitsInput.default({}),
      }),
      answer: onward,
      async run({ params, body, actor, by, http }) {
        requireRole(actor, body.account, 'member')
        const { person } = sessionOf(actor)
        return { redirect: await connections.allow(http, params.uid, { ...body, person: person.id, by }) }
      },
    }),
    resource('POST /connect/{uid}/refuse', 'member', {
      answer: onward,
      run: async ({ params, http }) => ({ redirect: await connections.refuse(http, params.uid) }),
    }),
  ]
}
