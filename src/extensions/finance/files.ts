// Files of usage in a bucket: calls as Parquet by the hour in which they were posted, or FOCUS by the day. A file is
// named by its first call, so a file that is written again after a crash overwrites itself.

import type { CoreParts } from '../../extension.ts'
import { DAY_MS } from '../../kernel/calendar.ts'
import { Fault } from '../../kernel/fault.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import { idAtTime, timeOfId } from '../../kernel/world.ts'
import { csvLine } from '../../reports/csv.ts'
import type { CreditWorth } from '../../reports/views.ts'
import { createS3Client } from '../s3/s3.ts'
import {
  FOCUS_COLUMNS,
  FOCUS_NAMES,
  type FocusNames,
  type FocusRow,
  type FocusSources,
  focusRows,
  readFocusNames,
} from './focus.ts'
import { type Problem, problemOf, type Receiver, type ReceiverDeps } from './receivers.ts'
import { quantitiesOf, readWithin, requestIdOf, type UsageRow } from './usage-rows.ts'
import type { ExportSettings } from './views.ts'

const HOUR_MS = 3_600_000
/** Rows of one file, which is held in memory while it is written. */
const FILE_ROWS = 20_000
const ANSWER_BYTES_MAX = 65_536

/** The data that FOCUS needs besides the calls. */
interface FocusSource {
  readonly worth: CreditWorth | null
  readonly names: (rows: readonly UsageRow[]) => Promise<FocusNames>
}

interface FileFormat {
  readonly everyMs: number
  readonly name: string
  readonly type: string
  write(rows: readonly UsageRow[]): Promise<Buffer>
}

export function fileReceiver(
  settings: ExportSettings<'s3'>,
  { upstream, world, secret }: ReceiverDeps,
  focus: FocusSource,
): Receiver {
  const { worth } = focus
  const [accessKeyId = '', ...rest] = secret.split(':')
  const credentials = { accessKeyId, secretAccessKey: rest.join(':'), region: settings.region }
  const { url: endpoint, bucket, virtualHost, prefix } = settings
  const send = createS3Client({ world, upstream, endpoint, bucket, virtualHost, credentials })
  const format = formatOf(settings.format, focus)

  async function put(key: string, type: string, body: Buffer): Promise<Problem | undefined> {
    try {
      const reply = await send('PUT', key, { headers: { 'content-type': type }, body: [body] })
      return problemOf({ status: reply.status, text: String(await reply.read(ANSWER_BYTES_MAX)) })
    } catch {
      return { final: false, status: null, message: 'The connection to the bucket failed.' }
    }
  }

  function missing(): Problem | undefined {
    const why = (message: string) => ({ final: true, status: null, message })
    if (rest.length === 0) return why('The credential of a bucket is "access key id:secret access key".')
    if (settings.format !== 'parquet' && !worth)
      return why('FOCUS needs money: set what a credit is worth (tollgate billing change).')
    return undefined
  }

  return {
    rowsMax: FILE_ROWS,
    everyMs: format.everyMs,
    // The test always writes the same file, which shows that the credential may write.
    test: async () => missing() ?? put(`${prefix}/tollgate-test.txt`, 'text/plain', Buffer.from('A test.\n')),
    async send(rows) {
      const problem = missing()
      if (problem) return { accepted: 0, problem }
      for (const [folder, some] of byFolder(rows, format.everyMs)) {
        const [first] = some
        const key = `${prefix}/${folder}/${format.name.replace('*', first?.id.replace('+', '-') ?? '')}`
        const refused = await put(key, format.type, await format.write(some))
        if (refused) return { accepted: 0, problem: refused }
      }
      return { accepted: rows.length }
    },
  }
}

/**
 * Groups rows by the day, or hour, in which they were posted. Rows are ordered by transaction, which is nearly but not
 * always the order of time.
 */
function byFolder(rows: readonly UsageRow[], everyMs: number): Map<string, UsageRow[]> {
  const folders = new Map<string, UsageRow[]>()
  for (const row of rows) {
    const at = row.at.toISOString()
    const folder = `date=${at.slice(0, 10)}${everyMs === HOUR_MS ? `/hour=${at.slice(11, 13)}` : ''}`
    const some = folders.get(folder)
    if (some) some.push(row)
    else folders.set(folder, [row])
  }
  return folders
}

const PARQUET_TYPE = 'application/vnd.apache.parquet'

function formatOf(format: ExportSettings<'s3'>['format'], { worth, names }: FocusSource): FileFormat {
  const charges = async (rows: readonly UsageRow[]) => (worth ? focusRows(rows, worth, await names(rows)) : [])
  switch (format) {
    case 'parquet':
      return { everyMs: HOUR_MS, name: 'usage-*.parquet', type: PARQUET_TYPE, write: usageParquet }
    case 'focus-csv':
      return {
        everyMs: DAY_MS,
        name: 'focus-*.csv',
        type: 'text/csv',
        write: async (rows) => Buffer.from(`${focusHeader()}${focusLines(await charges(rows))}`),
      }
    case 'focus-parquet':
      return {
        everyMs: DAY_MS,
        name: 'focus-*.parquet',
        type: PARQUET_TYPE,
        write: async (rows) => focusParquet(await charges(rows)),
      }
  }
}

const focusHeader = () => csvLine(FOCUS_NAMES)

const focusLines = (rows: readonly FocusRow[]) =>
  rows.map((row) => csvLine(FOCUS_NAMES.map((name) => row[name]))).join('')

/** Amounts in millionths of a credit, which are whole and exact. */
async function usageParquet(rows: readonly UsageRow[]): Promise<Buffer> {
  const counted = rows.map(quantitiesOf)
  const text = (name: string, of: (row: UsageRow) => string | null) => ({
    name,
    data: rows.map(of),
    type: 'STRING' as const,
  })
  const small = (name: string, of: (row: UsageRow) => number) => ({ name, data: rows.map(of), type: 'INT32' as const })
  const large = (name: string, data: readonly (bigint | null)[]) => ({ name, data, type: 'INT64' as const })
  const flag = (name: string, of: (row: UsageRow) => boolean) => ({
    name,
    data: rows.map(of),
    type: 'BOOLEAN' as const,
  })
  const time = (name: string, of: (row: UsageRow) => Date) => ({ name, data: rows.map(of), type: 'TIMESTAMP' as const })
  const { parquetWriteBuffer } = await import('hyparquet-writer')
  return Buffer.from(
    parquetWriteBuffer({
      createdBy: 'tollgate',
      columnData: [
        text('request_id', requestIdOf),
        text('account', (row) => row.account_id),
        text('key', (row) => row.key_id),
        text('product', (row) => row.product),
        text('endpoint', (row) => row.endpoint),
        text('vendor', (row) => row.vendor),
        text('credential', (row) => row.credential),
        text('client', (row) => row.client),
        text('outcome', (row) => row.outcome),
        small('status', (row) => row.status),
        time('started_at', (row) => new Date(timeOfId(row.id))),
        time('posted_at', (row) => row.at),
        small('duration_ms', (row) => row.duration_ms),
        small('first_byte_ms', (row) => row.first_byte_ms),
        flag('stream', (row) => row.stream),
        flag('estimated', (row) => row.estimated),
        small('catalog_version', (row) => row.catalog_version),
        large(
          'input_tokens',
          counted.map(({ inputTokens }) => BigInt(inputTokens)),
        ),
        large(
          'output_tokens',
          counted.map(({ outputTokens }) => BigInt(outputTokens)),
        ),
        { name: 'labels', data: rows.map(({ labels }) => labels ?? {}), type: 'JSON' },
        { name: 'units', data: counted.map(({ units }) => units), type: 'JSON' },
        large(
          'charged_microcredits',
          rows.map(({ charged }) => charged),
        ),
        large(
          'loss_microcredits',
          rows.map(({ loss }) => loss),
        ),
        large(
          'cost_microcredits',
          rows.map(({ cost }) => cost),
        ),
      ],
    }),
  )
}

async function focusParquet(rows: readonly FocusRow[]): Promise<Buffer> {
  const { parquetWriteBuffer } = await import('hyparquet-writer')
  const columnData = FOCUS_NAMES.map((name) => {
    const isNumber = FOCUS_COLUMNS[name] === 'number'
    const data = rows.map((row) => (isNumber && row[name] !== null ? Number(row[name]) : row[name]))
    return { name, data, type: isNumber ? ('DOUBLE' as const) : ('STRING' as const) }
  })
  return Buffer.from(parquetWriteBuffer({ createdBy: 'tollgate', columnData }))
}

// Downloads of FOCUS files, page by page, so that a month of any size needs the memory of one page.

const PAGE_ROWS = 5_000
/**
 * Calls are selected by their start, but count for the day in which they were posted. No call takes longer than this.
 */
const CALL_MS_MAX = 40 * 86_400_000

type FocusDeps = Pick<CoreParts, 'billing'> & FocusSources

/** The calls that were posted in a range of time. */
export async function* focusCsv(
  sources: FocusDeps,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): AsyncGenerator<string> {
  const { database, billing } = sources
  const { worth } = await billing.get()
  if (!worth) throw new Fault('conflict', { message: 'Set what a credit is worth first: tollgate billing change.' })
  yield focusHeader()
  let last = { id: '', account: '' }
  const range = { from: idAtTime(Math.max(0, fromMs - CALL_MS_MAX)), to: idAtTime(toMs + HOUR_MS) }
  for (;;) {
    const rows = await readWithin(database, { ...range, ...last }, PAGE_ROWS)
    const meant = rows.filter(
      ({ at, account_id: account }) => at.getTime() >= fromMs && at.getTime() < toMs && !isTestAccount(account),
    )
    if (meant.length > 0) yield focusLines(focusRows(meant, worth, await readFocusNames(sources, meant)))
    const end = rows.at(-1)
    if (!end || rows.length < PAGE_ROWS) return
    last = { id: end.id, account: end.account_id }
  }
}
