import type { LinkView, MemberView } from '../identity/views.ts'
import type { Page } from '../kernel/view.ts'
import { at, type Command, text, told } from './command.ts'
import { table } from './table.ts'

const linkOf = ({ link }: LinkView) => link

export const PEOPLE_COMMANDS: readonly Command[] = [
  {
    name: 'members list',
    summary: 'The people of an account.',
    args: ['account'],
    async run(call) {
      const { items } = await call.api.call<Page<MemberView>>('GET', at`/accounts/${call.args[0]}/members`)
      const columns = { ID: 'userId', 'E-MAIL': 'email', ROLE: 'role', 'LAST SEEN': 'lastSeenAt' } as const
      return { answer: items, words: table(items, columns) }
    },
  },
  {
    name: 'members invite',
    summary: 'Creates a link by which somebody joins an account. It is valid for a week.',
    args: ['account', 'email'],
    options: { role: { type: 'string', value: 'word', help: 'owner or member; member by default.' } },
    run(call) {
      const [account, email] = call.args
      const body = { email, role: text(call, 'role') ?? 'member' }
      return told(call.api.call<LinkView>('POST', at`/accounts/${account}/invites`, body), linkOf)
    },
  },
  {
    name: 'members remove',
    summary: 'Ends a membership at once.',
    args: ['account', 'user'],
    run(call) {
      const [account, user] = call.args
      return told(call.api.call('DELETE', at`/accounts/${account}/members/${user}`), () => 'Removed.')
    },
  },
  {
    name: 'setup-link',
    summary: 'Creates a new setup link for the console, while there is no operator.',
    run: (call) => told(call.api.call<LinkView>('POST', '/setup-link'), linkOf),
  },
  {
    name: 'password-link',
    summary: 'Creates a link to reset a forgotten password. It is valid for a day.',
    args: ['email'],
    run: (call) => told(call.api.call<LinkView>('POST', '/password-link', { email: call.args[0] }), linkOf),
  },
]
