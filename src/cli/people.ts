import type { LinkView, MemberView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import { type Command, text } from './command.ts'
import { table } from './table.ts'

const membersPath = (account: string, rest: string) => `/accounts/${encodeURIComponent(account)}/${rest}`

export const PEOPLE_COMMANDS: readonly Command[] = [
  {
    name: 'members list',
    summary: 'Who belongs to an account.',
    args: ['account'],
    async run(call) {
      const { items } = await call.api.call<Page<MemberView>>('GET', membersPath(call.args[0]!, 'members'))
      if (call.json) return call.say(JSON.stringify(items))
      call.say(
        table(
          ['ID', 'E-MAIL', 'ROLE', 'LAST SEEN'],
          items.map((row) => [row.userId, row.email, row.role, row.lastSeenAt]),
        ),
      )
    },
  },
  {
    name: 'members invite',
    summary: 'A link by which somebody joins an account. It holds for a week.',
    args: ['account', 'email'],
    options: { role: { type: 'string', value: 'word', help: 'owner or member; member unless given.' } },
    async run(call) {
      const [account, email] = call.args
      const body = { email, role: text(call, 'role') ?? 'member' }
      const made = await call.api.call<LinkView>('POST', membersPath(account!, 'invites'), body)
      call.say(call.json ? JSON.stringify(made) : made.link)
    },
  },
  {
    name: 'members remove',
    summary: 'Ends a membership, at once.',
    args: ['account', 'user'],
    async run(call) {
      const [account, user] = call.args
      const removed = await call.api.call('DELETE', membersPath(account!, `members/${encodeURIComponent(user!)}`))
      call.say(call.json ? JSON.stringify(removed) : 'Removed.')
    },
  },
  {
    name: 'setup-link',
    summary: 'A new set-up link for the console, while there is no operator.',
    async run(call) {
      const made = await call.api.call<LinkView>('POST', '/setup-link')
      call.say(call.json ? JSON.stringify(made) : made.link)
    },
  },
  {
    name: 'password-link',
    summary: 'A link by which somebody who forgot their password chooses another. It holds for a day.',
    args: ['email'],
    async run(call) {
      const made = await call.api.call<LinkView>('POST', '/password-link', { email: call.args[0] })
      call.say(call.json ? JSON.stringify(made) : made.link)
    },
  },
]
