// Where usage goes, on the command line.
import type { ExportCustomer, ExportTest, ExportView, NamedCredential } from '../exports/views.ts'
import { EXPORT_KINDS } from '../exports/views.ts'
import type { Page } from '../kernel/view.ts'
import { at, CliError, type Command, type Invocation, type Option, type Told, text, told } from './command.ts'
import { type Columns, card, list, listPages, PAGE_OPTIONS, query } from './table.ts'

const DAYS: Readonly<Record<string, Option>> = {
  from: { type: 'string', value: 'day', help: 'The first day, such as 2026-11-01.' },
  to: { type: 'string', value: 'day', help: 'The last day.' },
}

function days(call: Invocation): { from: string; to: string } {
  const [from, to] = [text(call, 'from'), text(call, 'to')]
  if (from === undefined || to === undefined) throw new CliError('--from and --to are needed.', 2)
  return { from, to }
}

/** `url=https://…`: what looks like a number or a truth value is one. */
function settingsOf(words: string | undefined): Record<string, unknown> {
  const pairs = (words ?? '').split(',').filter((pair) => pair !== '')
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf('=')
      if (equals < 1) throw new CliError(`--set takes name=value pairs, and "${pair}" is none.`, 2)
      const value = pair.slice(equals + 1)
      const read =
        value === 'true' || value === 'false' ? value === 'true' : /^\d{1,9}$/.test(value) ? Number(value) : value
      return [pair.slice(0, equals), read]
    }),
  )
}

const SET: Readonly<Record<string, Option>> = {
  set: {
    ...{ type: 'string', value: 'name=value,…' },
    help: 'Settings of its kind: url, source, batch, credential, code, event, value, bucket, region, prefix, format.',
  },
}

const COLUMNS: Columns<ExportView> = {
  EXPORT: 'id',
  ...({ NAME: 'name', KIND: 'kind', STATE: 'state', SENT: 'sent', WAITING: 'waiting' } as const),
  'LAST SENT': 'sentAt',
  ERROR: 'error',
}

function show({ settings, backfill, ...view }: ExportView): string {
  const range = backfill && `${backfill.from} to ${backfill.to}, ${backfill.sent} sent`
  return card({ ...view, ...settings, backfill: range })
}

/** By its name or its id. */
async function idOf(call: Invocation): Promise<string> {
  const [given = ''] = call.args
  const { items } = await call.api.call<Page<ExportView>>('GET', '/exports')
  const found = items.find(({ id, name }) => id === given || name === given)
  if (!found) throw new CliError(`There is no export "${given}". See: tollgate exports list`)
  return found.id
}

async function change(
  call: Invocation,
  method: 'POST' | 'PATCH' | 'DELETE',
  rest: string,
  body?: unknown,
): Promise<Told> {
  const id = await idOf(call)
  return told(call.api.call<ExportView>(method, at`/exports/${id}` + rest, body), show)
}

export const EXPORT_COMMANDS: readonly Command[] = [
  {
    name: 'exports list',
    summary: 'Lists where usage is sent, and how far each destination is.',
    async run(call) {
      const { items } = await call.api.call<Page<ExportView>>('GET', '/exports')
      return list(items, COLUMNS, 'Usage goes nowhere yet. Add a destination with: tollgate exports create')
    },
  },
  {
    name: 'exports show',
    summary: 'Shows one destination.',
    args: ['export'],
    run: async (call) => told(call.api.call<ExportView>('GET', at`/exports/${await idOf(call)}`), show),
  },
  {
    name: 'exports create',
    summary: 'Sends usage to a webhook, OpenMeter, Lago, Stripe or a bucket from now on.',
    args: ['name', 'kind'],
    about: `Kinds: ${EXPORT_KINDS.join(', ')}. Secrets are stored with: tollgate exports credential`,
    options: SET,
    run(call) {
      const [name, kind] = call.args
      const body = { name, kind, settings: settingsOf(text(call, 'set')) }
      return told(call.api.call<ExportView>('POST', '/exports', body), show)
    },
  },
  {
    name: 'exports change',
    summary: 'Changes the name or the settings of a destination; those that are not named stay.',
    args: ['export'],
    options: { ...SET, name: { type: 'string', value: 'name', help: 'Its new name.' } },
    async run(call) {
      const id = await idOf(call)
      const { settings } = await call.api.call<ExportView>('GET', at`/exports/${id}`)
      const body = { name: text(call, 'name'), settings: { ...settings, ...settingsOf(text(call, 'set')) } }
      return told(call.api.call<ExportView>('PATCH', at`/exports/${id}`, body), show)
    },
  },
  {
    name: 'exports credential',
    summary: 'Stores the credential of a destination, encrypted. Reads it from standard input.',
    args: ['export'],
    async run(call) {
      const value = (await call.input()).trim()
      if (!value) throw new CliError('Give the credential on standard input.', 2)
      const id = await idOf(call)
      const stored = call.api.call<NamedCredential>('PUT', at`/exports/${id}/credential`, { value })
      return told(stored, ({ name }) => `Stored as ${name}.`)
    },
  },
  {
    name: 'exports test',
    summary: 'Asks the receiver whether it would take usage; nothing is counted there.',
    args: ['export'],
    async run(call) {
      const answer = await call.api.call<ExportTest>('POST', at`/exports/${await idOf(call)}/test`)
      if (!answer.ok) throw new CliError(answer.error ?? 'The receiver does not take it.')
      return { answer, words: 'The receiver takes it.' }
    },
  },
  {
    name: 'exports customers',
    summary: 'Lists by which names a destination knows accounts.',
    args: ['export'],
    options: PAGE_OPTIONS,
    run: async (call) =>
      listPages<ExportCustomer>(call, at`/exports/${await idOf(call)}/customers`, {
        filter: {},
        columns: { ACCOUNT: 'account', CUSTOMER: 'customer' },
        empty: 'It knows accounts by their ids. Name one with: tollgate exports customer',
      }),
  },
  {
    name: 'exports webhook-secret',
    summary: 'Shows the secret by which receivers check the gateway’s own webhooks.',
    run: (call) => told(call.api.call<{ secret: string }>('GET', '/webhook-secret'), ({ secret }) => secret),
  },
  {
    name: 'exports pause',
    summary: 'Stops sending; nothing is lost.',
    args: ['export'],
    run: (call) => change(call, 'POST', '/pause'),
  },
  {
    name: 'exports resume',
    summary: 'Goes on where the destination was, and tries at once.',
    args: ['export'],
    run: (call) => change(call, 'POST', '/resume'),
  },
  {
    name: 'exports backfill',
    summary: 'Sends the calls of a range of days, again or for the first time.',
    args: ['export'],
    options: DAYS,
    run: (call) => change(call, 'POST', '/backfill', days(call)),
  },
  {
    name: 'exports customer',
    summary: 'Says by which name a destination knows an account; without one, takes it away.',
    args: ['export', 'account', '[customer]'],
    async run(call) {
      const [, account, customer = null] = call.args
      const id = await idOf(call)
      const named = call.api.call<Page<ExportCustomer>>('PUT', at`/exports/${id}/customers`, { account, customer })
      return told(named, () => (customer === null ? 'Taken away.' : `${account} is ${customer} there.`))
    },
  },
  {
    name: 'exports remove',
    summary: 'Removes a destination; its receiver keeps what it has.',
    args: ['export'],
    run: (call) => change(call, 'DELETE', ''),
  },
  {
    name: 'focus download',
    summary: 'Usage of a range of days in the columns of FOCUS, as CSV on standard output.',
    options: DAYS,
    async run(call) {
      await call.api.download(`/focus${query(days(call))}`, 'text/csv', call.say)
      return undefined
    },
  },
]
