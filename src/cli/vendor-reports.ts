// Vendors' reports compared with what was recorded, on the command line.
import { readFile } from 'node:fs/promises'
import {
  type ComparedCall,
  type ComparedLine,
  type ComparedPage,
  type NamedCredential,
  type ReportView,
  VERDICTS,
} from '../exports/views.ts'
import type { Page } from '../kernel/view.ts'
import { at, CliError, type Command, type Invocation, text, told } from './command.ts'
import { type Columns, card, list, listPages, PAGE_OPTIONS, query } from './table.ts'

const COLUMNS: Columns<ReportView> = {
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
      return list(items, COLUMNS, 'No reports yet. Fetch one with: tollgate vendor-reports fetch')
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
      from: { type: 'string', value: 'day', help: 'The first day (UTC).' },
      to: { type: 'string', value: 'day', help: 'The last day.' },
      file: {
        type: 'string',
        value: 'file',
        help: 'A CSV file with day, model, credential, requests, input_tokens, output_tokens, cost.',
      },
      keys: { type: 'string', value: 'id=NAME,…', help: 'Our credential by the vendor’s id of the key.' },
      url: { type: 'string', value: 'address', help: 'Another address than the vendor’s own.' },
      credential: { type: 'string', value: 'NAME', help: 'Another admin credential than the usual one.' },
      currency: { type: 'string', value: 'code', help: 'Of the report; USD by default.' },
      'credits-per-unit': { type: 'string', value: 'n', help: 'How many credits one unit of the currency is.' },
    },
    run: async (call) => told(call.api.call<ReportView>('POST', '/vendor-reports', await bodyOf(call)), card),
  },
  {
    name: 'vendor-reports credential',
    summary: 'Stores the admin credential of a vendor, encrypted. Reads it from standard input.',
    args: ['source'],
    options: {
      url: { type: 'string', value: 'address', help: 'For which address, where it is not the vendor’s own.' },
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
    summary: 'What a report and the recorded calls say, by day, model and credential.',
    args: ['report'],
    options: {
      verdict: { type: 'string', value: 'word', allowed: VERDICTS, help: `One of ${VERDICTS.join(', ')}.` },
      ...PAGE_OPTIONS,
      tolerance: { type: 'string', value: 'percent', help: 'How far figures may be apart; 1 by default.' },
      csv: { type: 'boolean', help: 'Exports all lines as CSV to standard output.' },
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
