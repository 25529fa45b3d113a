// The deletion of one's own login.
import * as z from 'zod'
import { endedView } from '../../../identity/views.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { email, NO_SESSION, type Resource, resource, WithHeaders } from '../../../operator/resource.ts'
import type { OwnDeletion } from './own-deletion.ts'

/** For people who are signed in, about themselves. */
export function ownDeletionResources({ ownDeletion }: { readonly ownDeletion: OwnDeletion }): Resource[] {
  return [
    resource('POST /me/delete', 'self', {
      // Needs a recent confirmation, so that a stolen session is not enough, and the typed address, so that it does not
      // happen by mistake.
      fresh: true,
      body: z.strictObject({ email, forfeit: z.boolean().default(false) }),
      answer: z.object({ signedIn: z.boolean(), ended: endedView }),
      async run({ actor, body, by }) {
        if (!actor.session) throw new Fault('key_unknown', { message: 'You are not signed in.' })
        const { person } = actor.session
        if (body.email !== person.email) throw invalid('email: type the address of your own login.', 'email')
        const ended = await ownDeletion.delete(person, body.forfeit, by)
        return new WithHeaders({ signedIn: false, ended }, NO_SESSION)
      },
    }),
  ]
}
