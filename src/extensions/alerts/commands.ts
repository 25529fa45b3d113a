// Commands of alerts.
import { DELIVERY_KINDS } from '../../jobs/views.ts'
import type { Commands } from '../../operator/command.ts'
import { alertRules } from './rules.ts'

const OF_ACCOUNT = 'Of this account instead of the gateway.'
const RECEIVERS = 'Receivers=receivers|Nobody is told; alerts are in the console.'
const ALERT_RULES = [...Object.keys(alertRules.shape).map((name) => `${name}=rules.${name}|off`), RECEIVERS].join(', ')

export const ALERT_COMMANDS: Commands = {
  'GET /alerts': {
    usage: 'alerts list: Lists alerts with their deliveries, newest first.',
    columns:
      'TIME=at, ACCOUNT=account|the gateway, rule, level, title, read, SENT TO=deliveries.to, STATUS=deliveries.status',
    about: 'Without an account: those of the gateway and of all accounts.',
    empty: 'No alerts yet.',
    orAccount: OF_ACCOUNT,
  },
  'GET /alert-settings': {
    usage: 'alerts rules: Shows the rules of alerts, and who receives them.',
    columns: ALERT_RULES,
    orAccount: OF_ACCOUNT,
  },
  'PUT /alert-settings': [
    {
      usage: 'alerts change: Sets rules of alerts.',
      columns: ALERT_RULES,
      without: ['receivers'],
      merge: true,
      orAccount: OF_ACCOUNT,
    },
    {
      usage: 'alerts add <kind> <address>: Adds a receiver: webhook, Slack or mail.',
      about: `The kind is ${DELIVERY_KINDS.join(', ')}.`,
      columns: RECEIVERS,
      list: 'receivers',
      without: ['status'],
      orAccount: OF_ACCOUNT,
    },
    {
      usage: 'alerts remove <address>: Removes a receiver.',
      columns: RECEIVERS,
      list: 'receivers',
      missing: 'Nobody is told at "{to}". See: tollgate alerts rules',
      without: ['kind', 'status'],
      orAccount: OF_ACCOUNT,
    },
  ],
  'POST /alerts/test': {
    usage: 'alerts test: Sends a test alert to all receivers, at most once a minute.',
    words: 'On its way to {deliveries.kind|nobody: there are no receivers. The console shows it}.',
    orAccount: OF_ACCOUNT,
  },
}
