import type { KeyView, NewKey } from '../admission/views.ts'
import { at, CliError, type Command, type Invocation, type Option, text, told } from './command.ts'
import { LIMIT_OPTIONS, limitsOf, showLimits } from './limit-options.ts'
import { listPages, PAGE_OPTIONS } from './pages.ts'
import { card } from './table.ts'

const RESTRICTIONS: Readonly<Record<string, Option>> = {
  models: {
    type: 'string',
    value: 'a,b',
    help: 'Only these models, socialapi or siteanalytics; "all" removes the restriction.',
  },
  expires: { type: 'string', value: 'time', help: 'Expiry, such as 2027-01-01T00:00:00Z; "never" removes it.' },
  'ip-ranges': {
    type: 'string',
    value: 'a,b',
    help: 'Only from these addresses, such as 10.0.0.0/8; "all" removes the restriction.',
  },
  'kept-answers': {
    type: 'string',
    value: 'on|off|model',
    help: 'Whether the response cache is used; "model": the default of each model.',
  },
  ...LIMIT_OPTIONS,
}

const KEPT_ANSWERS: Readonly<Record<string, boolean | null>> = { on: true, off: false, model: null }

/** Only what was named: the rest stays as it is. */
function restrictionsOf(call: Invocation): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  const list = (value: string) => (value === 'all' ? null : value.split(',').map((part) => part.trim()))
  const [models, expires, ranges, keeps, limits] = [
    text(call, 'models'),
    text(call, 'expires'),
    text(call, 'ip-ranges'),
    text(call, 'kept-answers'),
    limitsOf(call),
  ]
  if (models !== undefined) body.models = list(models)
  if (expires !== undefined) body.expiresAt = expires === 'never' ? null : expires
  if (ranges !== undefined) body.ipRanges = list(ranges)
  if (limits !== undefined) body.limits = limits
  if (keeps !== undefined) {
    if (!Object.hasOwn(KEPT_ANSWERS, keeps)) throw new CliError('--kept-answers takes on, off or model.', 2)
    body.keepsAnswers = KEPT_ANSWERS[keeps]
  }
  return body
}

function keptWord({ keepsAnswers }: KeyView): string | undefined {
  return Object.keys(KEPT_ANSWERS).find((word) => KEPT_ANSWERS[word] === keepsAnswers)
}

function show(key: KeyView | NewKey): string {
  const { key: value, prefix, last4, ...rest } = { key: undefined, ...key }
  const shown = card({
    ...rest,
    value: `${prefix}…${last4}`,
    models: key.models?.join(', ') ?? 'all',
    ipRanges: key.ipRanges?.join(', ') ?? 'all',
    keepsAnswers: keptWord(key),
    limits: showLimits(key.limits),
  })
  return value === undefined ? shown : `${shown}\n\nThe key, shown this once:\n\n  ${value}\n`
}

export const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'keys list',
    summary: 'The keys of an account, newest first.',
    args: ['account'],
    options: PAGE_OPTIONS,
    run: (call) =>
      listPages<KeyView>(call, at`/accounts/${call.args[0]}/keys`, {
        columns: {
          ID: 'id',
          NAME: 'name',
          VALUE: (row) => `${row.prefix}…${row.last4}`,
          MODELS: (row) => row.models?.join(',') ?? 'all',
          EXPIRES: 'expiresAt',
          REVOKED: 'revokedAt',
          'LAST USED': 'lastUsedAt',
        },
      }),
  },
  {
    name: 'keys create',
    summary: 'Creates a key. Its value is shown once.',
    args: ['account', 'name'],
    options: {
      test: { type: 'boolean', help: 'A test key: simulated vendors, and credits that cost nothing.' },
      ...RESTRICTIONS,
    },
    run(call) {
      const test = call.values.test === true ? { test: true } : {}
      const body = { name: call.args[1], ...test, ...restrictionsOf(call) }
      return told(call.api.call<NewKey>('POST', at`/accounts/${call.args[0]}/keys`, body), show)
    },
  },
  {
    name: 'keys change',
    summary: 'Changes the name, restrictions or limits of a key.',
    args: ['key'],
    options: { name: { type: 'string', value: 'text', help: 'A new name.' }, ...RESTRICTIONS },
    run(call) {
      const name = text(call, 'name')
      const body = { ...(name === undefined ? {} : { name }), ...restrictionsOf(call) }
      if (Object.keys(body).length === 0)
        throw new CliError('Nothing to change was named. See: tollgate keys change --help', 2)
      return told(call.api.call<KeyView>('PATCH', at`/keys/${call.args[0]}`, body), show)
    },
  },
  {
    name: 'keys revoke',
    summary: 'Revokes a key: at once in this process, within two seconds in all others.',
    args: ['key'],
    run: (call) => told(call.api.call<KeyView>('DELETE', at`/keys/${call.args[0]}`), show),
  },
  {
    name: 'keys rotate',
    summary: 'Replaces a key by a new one. The old one keeps working for a while.',
    args: ['key'],
    options: {
      overlap: { type: 'string', value: 'seconds', help: 'How long the old key keeps working; a day by default.' },
    },
    run(call) {
      const overlap = text(call, 'overlap')
      if (overlap !== undefined && !/^\d{1,9}$/.test(overlap)) throw new CliError('--overlap takes whole seconds.', 2)
      const body = overlap === undefined ? {} : { overlapSeconds: Number(overlap) }
      return told(call.api.call<NewKey>('POST', at`/keys/${call.args[0]}/rotate`, body), show)
    },
  },
]
