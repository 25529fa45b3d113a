// Exports of usage on the command line.

import { readFile } from 'node:fs/promises'
import {
  type ComparedCall,
  type ComparedLine,
  type ComparedPage,
  EXPORT_KINDS,
  type ExportCustomer,
  type ExportTest,
  type ExportView,
  type NamedCredential,
  type ReportView,
  VERDICTS,
} from '../exports/views.ts'
import type { AuditExportView } from '../jobs/views.ts'
import type { Page } from '../kernel/view.ts'
import {
  at,
  CliError,
  type Command,
  flag,
  type Invocation,
  type Option,
  type Told,
  takes,
  text,
  told,
} from './command.ts'
import { type Columns, card, list, listPages, PAGE_OPTIONS, query } from './table.ts'

const DAYS: Readonly<Record<string, Option>> = {
  from: takes('day', 'The first day, such as 2026-11-01.'),
  to: takes('day', 'The last day.'),
}

function days(call: Invocation): { from: string; to: string } {
  const [from, to] = [text(call, 'from'), text(call, 'to')]
  if (from === undefined || to === undefined) throw new CliError('--from and --to are needed.', 2)
  return { from, to }
}

/** Parses `url=https://…`; numbers, true and false become JSON values. */
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
    summary: 'Lists the destinations of usage, and how much each has received.',
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
    options: { ...SET, name: takes('name', 'Its new name.') },
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
    summary: 'Checks whether the receiver accepts usage, without changing its meters.',
    args: ['export'],
    async run(call) {
      const answer = await call.api.call<ExportTest>('POST', at`/exports/${await idOf(call)}/test`)
      if (!answer.ok) throw new CliError(answer.error ?? 'The receiver does not take it.')
      return { answer, words: 'The receiver takes it.' }
    },
  },
  {
    name: 'exports customers',
    summary: 'Lists the names that a destination uses for accounts.',
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
    summary: 'Shows the secret with which receivers verify the gateway’s own webhooks.',
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
    summary: 'Continues where the destination stopped, and tries at once.',
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
    summary: 'Sets the name that a destination uses for an account; without a name, removes it.',
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

// Vendors' reports compared with recorded calls, on the command line.

const REPORT_COLUMNS: Columns<ReportView> = {
  REPORT: 'id',
  ...({ VENDOR: 'vendor', SOURCE: 'source', FROM: 'from', TO: 'to', LINES: 'lines', AT: 'createdAt' } as const),
}

const LINES: Columns<ComparedLine> = {
  ...({ DAY: 'day', MODEL: 'model' } as const),
  CREDENTIAL: ({ credential }) => credential ?? 'all',
  VERDICT: ({ verdict, differing }) => [verdict, ...differing].join(' '),
  'THEIR TOKENS': ({ theirs }) => `${theirs?.inputTokens ?? '–'} / ${theirs?.outputTokens ?? '–'}`,
  'OUR TOKENS': ({ ours }) => `${ours?.inputTokens ?? '–'} / ${ours?.outputTokens ?? '–'}`,
  'THEIR COST': ({ theirs }) => theirs?.cost ?? '',
  'OUR COST': ({ ours }) => ours?.cost ?? '',
  DIFFERENCE: 'difference',
}

/** `key_1=OPENAI_A,key_2=OPENAI_B` */
function keysOf(words: string | undefined): Record<string, string> {
  const pairs = (words ?? '').split(',').filter((pair) => pair !== '')
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key, name] = pair.split('=')
      if (!key || !name)
        throw new CliError(`--keys takes pairs such as key_1=OPENAI_API_KEY, and "${pair}" is none.`, 2)
      return [key, name]
    }),
  )
}

async function bodyOf(call: Invocation): Promise<Record<string, unknown>> {
  const [vendor, source] = call.args
  const file = text(call, 'file')
  const csv = file === undefined ? {} : { csv: await readFile(file, 'utf8') }
  const named = Object.entries({ from: 'from', to: 'to', url: 'url', credential: 'credential', currency: 'currency' })
  const given = named.map(([name, field]) => [field, text(call, name)])
  return {
    ...{ vendor, source, ...csv, keys: keysOf(text(call, 'keys')), creditsPerUnit: text(call, 'credits-per-unit') },
    ...Object.fromEntries(given),
  }
}

export const VENDOR_REPORT_COMMANDS: readonly Command[] = [
  {
    name: 'vendor-reports list',
    summary: 'Lists vendors’ reports that were compared with recorded calls.',
    async run(call) {
      const { items } = await call.api.call<Page<ReportView>>('GET', '/vendor-reports')
      return list(items, REPORT_COLUMNS, 'No reports yet. Fetch one with: tollgate vendor-reports fetch')
    },
  },
  {
    name: 'vendor-reports show',
    summary: 'Shows one report, and how many of its lines match.',
    args: ['report'],
    async run(call) {
      const path = at`/vendor-reports/${call.args[0]}`
      const report = await call.api.call<ReportView>('GET', path)
      const { counts } = await call.api.call<ComparedPage>('GET', `${path}/lines${query({ limit: '1' })}`)
      return { answer: { ...report, counts }, words: card({ ...report, ...counts }) }
    },
  },
  {
    name: 'vendor-reports fetch',
    summary: 'Fetches a vendor’s report of usage and costs, or reads it from a CSV file.',
    args: ['vendor', 'source'],
    about: 'Sources: openai, anthropic, openrouter, csv. The vendor is named as in the catalog.',
    options: {
      from: takes('day', 'The first day (UTC).'),
      to: takes('day', 'The last day.'),
      file: takes('file', 'A CSV file with day, model, credential, requests, input_tokens, output_tokens, cost.'),
      keys: takes('id=NAME,…', 'Maps the vendor’s id of a key to the name of our credential.'),
      url: takes('address', 'Another address than the vendor’s own.'),
      credential: takes('NAME', 'Another admin credential than the usual one.'),
      currency: takes('code', 'Of the report; USD by default.'),
      'credits-per-unit': takes('n', 'How many credits one unit of the currency is.'),
    },
    run: async (call) => told(call.api.call<ReportView>('POST', '/vendor-reports', await bodyOf(call)), card),
  },
  {
    name: 'vendor-reports credential',
    summary: 'Stores the admin credential of a vendor, encrypted. Reads it from standard input.',
    args: ['source'],
    options: {
      url: takes('address', 'The address, if it is not the vendor’s own.'),
    },
    async run(call) {
      const value = (await call.input()).trim()
      if (!value) throw new CliError('Give the credential on standard input.', 2)
      const body = { source: call.args[0], url: text(call, 'url'), value }
      return told(
        call.api.call<NamedCredential>('PUT', '/vendor-reports/credential', body),
        ({ name }) => `Stored as ${name}.`,
      )
    },
  },
  {
    name: 'vendor-reports compare',
    summary: 'Compares a report with the recorded calls, by day, model and credential.',
    args: ['report'],
    options: {
      verdict: takes('word', `One of ${VERDICTS.join(', ')}.`, { allowed: VERDICTS }),
      ...PAGE_OPTIONS,
      tolerance: takes('percent', 'How far figures may be apart; 1 by default.'),
      csv: flag('Exports all lines as CSV to standard output.'),
    },
    async run(call) {
      const filter = { verdict: text(call, 'verdict'), tolerance: text(call, 'tolerance') }
      const path = at`/vendor-reports/${call.args[0]}/lines`
      if (call.values.csv) {
        await call.api.download(path + query(filter), 'text/csv', call.say)
        return undefined
      }
      return listPages<ComparedLine>(call, path, { filter, columns: LINES, empty: 'No lines.' })
    },
  },
  {
    name: 'vendor-reports calls',
    summary: 'The recorded calls behind a line of a report.',
    args: ['report', 'day', 'model', '[credential]'],
    options: PAGE_OPTIONS,
    run(call) {
      const [report, day, model, credential] = call.args
      const columns: Columns<ComparedCall> = {
        ...({ CALL: 'id', TIME: 'at', ACCOUNT: 'account', MODEL: 'product', CREDENTIAL: 'credential' } as const),
        ...({ INPUT: 'inputTokens', OUTPUT: 'outputTokens', COST: 'cost' } as const),
      }
      return listPages<ComparedCall>(call, at`/vendor-reports/${report}/calls`, {
        filter: { day, model, credential },
        ...{ columns, empty: 'No calls were recorded.' },
      })
    },
  },
  {
    name: 'vendor-reports remove',
    summary: 'Removes a report.',
    args: ['report'],
    run: (call) => told(call.api.call<ReportView>('DELETE', at`/vendor-reports/${call.args[0]}`), () => 'Removed.'),
  },
]

// The export of the audit log on the command line.

const COMMON: Readonly<Record<string, Option>> = {
  wait: takes(
    'seconds',
    'How long a row may wait for others to be sent with it: 0 for a webhook, 3600 for S3 by default.',
  ),
  from: takes(
    'start|now',
    'The whole log, or only new rows. By default an existing export continues, and a new one sends the whole log.',
    { allowed: ['start', 'now'] },
  ),
}

function showTarget({ target, ...rest }: AuditExportView): string {
  if (!target) return 'The audit log is not exported.'
  return card({ ...target, ...rest })
}

function commonOf(call: Invocation): { waitSeconds?: number; from?: string } {
  const [wait, from] = [text(call, 'wait'), text(call, 'from')]
  return { ...(wait === undefined ? {} : { waitSeconds: Number(wait) }), ...(from === undefined ? {} : { from }) }
}

const put = (call: Invocation, body: object) =>
  told(call.api.call<AuditExportView>('PUT', '/audit-export', { ...body, ...commonOf(call) }), showTarget)

export const AUDIT_EXPORT_COMMANDS: readonly Command[] = [
  {
    name: 'audit-export show',
    summary: 'Shows the destination of the audit log, how much was exported, and why the last attempt failed.',
    run: (call) => told(call.api.call<AuditExportView>('GET', '/audit-export'), showTarget),
  },
  {
    name: 'audit-export webhook',
    summary: 'Exports the audit log as JSON lines to a webhook.',
    args: ['url'],
    about: 'It replaces what was set before. The answer has the secret by which the receiver checks signatures.',
    options: COMMON,
    run: (call) => put(call, { kind: 'webhook', url: call.args[0] }),
  },
  {
    name: 'audit-export s3',
    summary: 'Exports the audit log as JSON lines to a bucket of S3 or of an S3-compatible store.',
    args: ['endpoint', 'bucket'],
    options: {
      ...COMMON,
      region: takes('name', 'The region; us-east-1 by default.'),
      prefix: takes('path', 'The prefix of object names; audit by default.'),
      'access-key': takes('id', 'The access key id.'),
      'secret-env': takes(
        'name',
        'The environment variable with the secret access key; - reads it from the standard input. Without it, a stored one stays.',
      ),
      'virtual-host': flag('Puts the bucket into the host name instead of the path.'),
    },
    async run(call) {
      const [endpoint, bucket] = call.args
      const name = text(call, 'secret-env')
      const secret = name === '-' ? (await call.input()).trim() : name && call.settings.credential(name)
      if (name !== undefined && !secret) throw new CliError(`There is no value for the secret access key in ${name}.`)
      const given = {
        region: text(call, 'region'),
        prefix: text(call, 'prefix'),
        accessKeyId: text(call, 'access-key'),
      }
      return put(call, {
        ...{ kind: 's3', endpoint, bucket, ...given, virtualHost: call.values['virtual-host'] === true },
        ...(secret ? { secretAccessKey: secret } : {}),
      })
    },
  },
  {
    name: 'audit-export off',
    summary: 'Ends the export. The log itself stays.',
    run: (call) => told(call.api.call<AuditExportView>('DELETE', '/audit-export'), () => 'The export has ended.'),
  },
]
