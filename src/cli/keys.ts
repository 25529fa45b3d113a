import type { KeyView, NewKey } from '../admission/views.ts'
import { CliError, type Command, type Invocation, type Option, text } from './command.ts'
import { LIMIT_OPTIONS, limitsOf, showLimits } from './limit-options.ts'
import { listPages, PAGE_OPTIONS } from './pages.ts'
import { card, table } from './table.ts'

const RESTRICTIONS: Readonly<Record<string, Option>> = {
  models: { type: 'string', value: 'a,b', help: 'Only these models, socialapi or siteanalytics; "all" removes it.' },
  expires: { type: 'string', value: 'time', help: 'Until when, such as 2027-01-01T00:00:00Z; "never" removes it.' },
  'ip-ranges': {
    type: 'string',
    value: 'a,b',
    help: 'Only from these addresses, such as 10.0.0.0/8; "all" removes it.',
  },
  ...LIMIT_OPTIONS,
}

/** Only what was named: the rest stays as it is. */
function restrictionsOf(call: Invocation): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  const list = (value: string) => (value === 'all' ? null : value.split(',').map((part) => part.trim()))
  const [models, expires, ranges, limits] = [
    text(call, 'models'),
    text(call, 'expires'),
    text(call, 'ip-ranges'),
    limitsOf(call),
  ]
  if (models !== undefined) body.models = list(models)
  if (expires !== undefined) body.expiresAt = expires === 'never' ? null : expires
  if (ranges !== undefined) body.ipRanges = list(ranges)
  if (limits !== undefined) body.limits = limits
  return body
}

function show(call: Invocation, key: KeyView | NewKey): void {
  if (call.json) {
    call.say(JSON.stringify(key))
    return
  }
  const { key: value, prefix, last4, ...rest } = { key: undefined, ...key }
  call.say(
    card({
      ...rest,
      value: `${prefix}…${last4}`,
      models: key.models?.join(', ') ?? 'all',
      ipRanges: key.ipRanges?.join(', ') ?? 'all',
      limits: showLimits(key.limits),
    }),
  )
  if (value !== undefined) call.say(`\nThe key, shown this once:\n\n  ${value}\n`)
}

const keyPath = (call: Invocation, rest = '') => `/keys/${encodeURIComponent(call.args[0]!)}${rest}`

export const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'The keys of an account, newest first.',
    args: ['account'],
    options: PAGE_OPTIONS,
    async run(call) {
      const rows = await listPages<KeyView>(call, `/accounts/${encodeURIComponent(call.args[0]!)}/keys`)
      if (call.json) return call.say(JSON.stringify(rows))
      call.say(
        table(
          ['ID', 'NAME', 'VALUE', 'MODELS', 'EXPIRES', 'REVOKED', 'LAST USED'],
          rows.map((row) => [
            row.id,
            row.name,
            `${row.prefix}…${row.last4}`,
            row.models?.join(',') ?? 'all',
            row.expiresAt,
            row.revokedAt,
            row.lastUsedAt,
          ]),
        ),
      )
    },
  },
  {
    name: 'keys create',
    summary: 'A new key. Its value is shown once.',
    args: ['account', 'name'],
    options: RESTRICTIONS,
    async run(call) {
      const body = { name: call.args[1], ...restrictionsOf(call) }
      show(call, await call.api.call<NewKey>('POST', `/accounts/${encodeURIComponent(call.args[0]!)}/keys`, body))
    },
  },
  {
    name: 'keys change',
    summary: 'Changes the name, restrictions or limits of a key.',
    args: ['key'],
    options: { name: { type: 'string', value: 'text', help: 'A new name.' }, ...RESTRICTIONS },
    async run(call) {
      const name = text(call, 'name')
      const body = { ...(name === undefined ? {} : { name }), ...restrictionsOf(call) }
      if (Object.keys(body).length === 0)
        throw new CliError('Nothing to change was named. See: tollgate keys change --help', 2)
      show(call, await call.api.call<KeyView>('PATCH', keyPath(call), body))
    },
  },
  {
    name: 'keys revoke',
    summary: 'Ends a key: at once here, within two seconds in every process.',
    args: ['key'],
    async run(call) {
      show(call, await call.api.call<KeyView>('DELETE', keyPath(call)))
    },
  },
  {
    name: 'keys rotate',
    summary: 'A new key in place of an old one, which works on for a while.',
    args: ['key'],
    options: {
      overlap: { type: 'string', value: 'seconds', help: 'How long the old one works on; a day unless given.' },
    },
    async run(call) {
      const overlap = text(call, 'overlap')
      if (overlap !== undefined && !/^\d{1,9}$/.test(overlap)) throw new CliError('--overlap takes whole seconds.', 2)
      const body = overlap === undefined ? {} : { overlapSeconds: Number(overlap) }
      show(call, await call.api.call<NewKey>('POST', keyPath(call, '/rotate'), body))
    },
  },
]
