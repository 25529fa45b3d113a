// Mails to people, such as links to sign in, in the queue of deliveries.
import type { Queryable } from '../database/database.ts'
import type { PersonMail } from '../identity/person-mails.ts'
import { newId, type World } from '../kernel/world.ts'
import type { Deliveries } from './deliveries.ts'

/** Mails to people go through the queue of deliveries, as the gateway's own. */
export function createPersonMails({ deliveries, world }: { deliveries: Deliveries; world: World }) {
  return {
    add: (tx: Queryable, { to, event, about, subject, text, html }: PersonMail) =>
      deliveries.add(tx, [
        {
          id: `msg_${newId(world)}`,
          account: '',
          kind: 'email',
          event,
          subject: about,
          to,
          title: subject,
          body: text,
          html,
        },
      ]),
    forget: deliveries.forgetMails,
    wake: deliveries.wake,
  }
}
