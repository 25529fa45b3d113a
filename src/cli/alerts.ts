// Who receives alerts: the commands change a list, which is stored whole.
import type { AlertSettings } from '../jobs/alerts/views.ts'
import { DELIVERY_KINDS } from '../jobs/views.ts'
import { at, CliError, type Command, type Invocation, type Option, takes, text, told } from './command.ts'
import { list } from './table.ts'

const ACCOUNT: Readonly<Record<string, Option>> = {
  account: takes('account', 'Alerts of this account instead of the gateway.', { refersTo: 'account' }),
}

const placeOf = (account: string | undefined, rest: string) =>
  account === undefined ? `/${rest}` : at`/accounts/${account}/` + rest
const settingsOf = (call: Invocation, account: string | undefined) =>
  call.api.call<AlertSettings>('GET', placeOf(account, 'alert-settings'))
const put = (call: Invocation, account: string | undefined, settings: Record<keyof AlertSettings, unknown>) =>
  call.api.call<AlertSettings>('PUT', placeOf(account, 'alert-settings'), settings)

const inWords = ({ receivers }: AlertSettings) =>
  list(receivers, { KIND: 'kind', TO: 'to', STATUS: 'status' }, 'Nobody is told; alerts are in the console.').words

export const ALERT_COMMANDS: readonly Command[] = [
  {
    name: 'alerts add',
    summary: 'Adds a receiver: webhook, Slack or mail.',
    args: ['kind', 'address'],
    about: `The kind is ${DELIVERY_KINDS.join(', ')}.`,
    options: ACCOUNT,
    async run(call) {
      const account = text(call, 'account')
      const [given, to = ''] = call.args
      const kind = DELIVERY_KINDS.find((one) => one === given)
      if (!kind) throw new CliError(`The kind is one of ${DELIVERY_KINDS.join(', ')}, not "${given}".`, 2)
      const settings = await settingsOf(call, account)
      const others = settings.receivers.filter((one) => one.kind !== kind || one.to !== to)
      return told(put(call, account, { ...settings, receivers: [...others, { kind, to }] }), inWords)
    },
  },
  {
    name: 'alerts remove',
    summary: 'Removes a receiver.',
    args: ['address'],
    options: ACCOUNT,
    async run(call) {
      const account = text(call, 'account')
      const settings = await settingsOf(call, account)
      const receivers = settings.receivers.filter(({ to }) => to !== call.args[0])
      if (receivers.length === settings.receivers.length)
        throw new CliError(
          `Nobody is told at "${call.args[0]}". See: tollgate alerts rules${account ? ` --account ${account}` : ''}`,
        )
      return told(put(call, account, { ...settings, receivers }), inWords)
    },
  },
]
