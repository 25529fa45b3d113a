// Vendors' reports of usage and cost, read from their admin APIs or from a CSV file, and converted to one form.
import * as z from 'zod'
import { DAY_MS, dayOfMs, formatDay, parseDay } from '../../kernel/calendar.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { NEVER } from '../../kernel/timers.ts'
import { bearer } from '../../upstream/call.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import type { ReportSource } from './views.ts'

export interface ReportLine {
  readonly day: string
  readonly model: string
  /** Null: of all credentials. */
  readonly credential: string | null
  readonly requests: number | null
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  /** A decimal in the report's currency. */
  readonly cost: string | null
}

interface FetchOptions {
  readonly upstream: Pick<GuardedFetch, 'send'>
  readonly source: Exclude<ReportSource, 'csv'>
  readonly url: string
  readonly secret: string
  readonly fromDay: number
  readonly toDay: number
  /** The name of our credential by the vendor's id of the key; for OpenRouter the hash of the key. */
  readonly keys: Readonly<Record<string, string>>
}

const LINES_MAX = 50_000
const PAGES_MAX = 400
const ANSWER_BYTES_MAX = 16 * 1_048_576
const DEADLINES = { connectMs: 5_000, firstByteMs: 60_000, idleMs: 30_000, totalMs: 120_000 }

/** Adds up a vendor's rows for the same day, model and credential. */
class Lines {
  readonly #sums = new Map<
    string,
    Record<'requests' | 'inputTokens' | 'outputTokens', number | null> & { cost: number | null } & Pick<
        ReportLine,
        'day' | 'model' | 'credential'
      >
  >()

  add(
    of: Pick<ReportLine, 'day' | 'model' | 'credential'>,
    figures: Partial<Record<'requests' | 'inputTokens' | 'outputTokens' | 'cost', number>>,
  ): void {
    const key = JSON.stringify([of.day, of.model, of.credential])
    let sum = this.#sums.get(key)
    if (!sum) {
      if (this.#sums.size >= LINES_MAX)
        throw new Fault('conflict', { message: `The report has more than ${LINES_MAX} lines. Ask for fewer days.` })
      sum = { ...of, requests: null, inputTokens: null, outputTokens: null, cost: null }
      this.#sums.set(key, sum)
    }
    for (const [name, value] of Object.entries(figures) as [keyof typeof figures, number][]) // its own names
      sum[name] = (sum[name] ?? 0) + value
  }

  all(): ReportLine[] {
    return [...this.#sums.values()].map((sum) => ({ ...sum, cost: sum.cost === null ? null : decimal(sum.cost) }))
  }
}

/** Vendors report money as floating-point dollars; it is rounded to nine decimals. */
const decimal = (value: number) =>
  value
    .toFixed(9)
    .replace(/(?<!0)0+$/, '')
    .replace(/\.$/, '') || '0'

export function fetchReport(options: FetchOptions): Promise<ReportLine[]> {
  switch (options.source) {
    case 'openai':
      return fromOpenAi(options)
    case 'anthropic':
      return fromAnthropic(options)
    case 'openrouter':
      return fromOpenRouter(options)
  }
}

async function get<T extends z.ZodType>(
  { upstream }: FetchOptions,
  url: string,
  headers: Record<string, string>,
  shape: T,
): Promise<z.output<T>> {
  let status = 0
  let text = ''
  try {
    const reply = await upstream.send({ method: 'GET', url, headers }, { deadlines: DEADLINES, signal: NEVER })
    status = reply.status
    text = String(await reply.read(ANSWER_BYTES_MAX))
  } catch (cause) {
    throw new Fault('upstream_failed', { message: 'The vendor’s report could not be fetched: no answer.', cause })
  }
  if (status !== 200)
    throw new Fault('conflict', {
      message: `The vendor rejected the request for its report with status ${status}. Check the address and the admin credential.`,
    })
  const parsed = shape.safeParse(jsonOf(text))
  if (!parsed.success) throw new Fault('conflict', { message: 'The vendor’s report is not in the expected format.' })
  return parsed.data
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const amount = z
  .number()
  .nullish()
  .transform((value) => value ?? 0)
const paged = <T extends z.ZodType>(bucket: T) =>
  z.object({ data: z.array(bucket), has_more: z.boolean().nullish(), next_page: z.string().nullish() })

async function* pagesOf<T>(
  read: (
    page: string | undefined,
  ) => Promise<{ data: T[]; has_more?: boolean | null | undefined; next_page?: string | null | undefined }>,
): AsyncGenerator<T> {
  let page: string | undefined
  for (let count = 0; count < PAGES_MAX; count++) {
    const { data, has_more: more, next_page: next } = await read(page)
    yield* data
    if (!more || !next) return
    page = next
  }
  throw new Fault('conflict', { message: 'The vendor’s report has too many pages. Ask for fewer days.' })
}

const base = (url: string) => url.replace(/(?<!\/)\/+$/, '').replace(/\/v1$/, '')

const openAiUsage = paged(
  z.object({
    start_time: z.number(),
    results: z.array(
      z.object({
        model: z.string().nullish(),
        api_key_id: z.string().nullish(),
        input_tokens: amount,
        output_tokens: amount,
        num_model_requests: amount,
      }),
    ),
  }),
)
const openAiCosts = paged(
  z.object({
    start_time: z.number(),
    results: z.array(
      z.object({
        line_item: z.string().nullish(),
        amount: z.object({ value: z.coerce.number(), currency: z.string().nullish() }),
      }),
    ),
  }),
)

async function fromOpenAi(options: FetchOptions): Promise<ReportLine[]> {
  const { url, secret, fromDay, toDay, keys } = options
  const headers = { authorization: bearer(secret) }
  const lines = new Lines()
  const range = {
    start_time: String((fromDay * DAY_MS) / 1000),
    end_time: String(((toDay + 1) * DAY_MS) / 1000),
    bucket_width: '1d',
    limit: '31',
  }
  const ask = (path: string, groups: readonly string[], page: string | undefined) => {
    const query = new URLSearchParams({ ...range, ...(page ? { page } : {}) })
    for (const group of groups) query.append('group_by', group)
    return `${base(url)}/v1/organization/${path}?${query}`
  }
  const usage = pagesOf((page) =>
    get(options, ask('usage/completions', ['model', 'api_key_id'], page), headers, openAiUsage),
  )
  for await (const { start_time: at, results } of usage)
    for (const {
      model,
      api_key_id: key,
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      num_model_requests: requests,
    } of results)
      if (model)
        lines.add(
          { day: dayAt(at * 1000), model, credential: key ? (keys[key] ?? key) : null },
          { requests, inputTokens, outputTokens },
        )
  const costs = pagesOf((page) => get(options, ask('costs', ['line_item'], page), headers, openAiCosts))
  // "gpt-4o-2024-08-06, input": the model and the kind of tokens.
  for await (const { start_time: at, results } of costs)
    for (const {
      line_item: item,
      amount: { value },
    } of results)
      if (item)
        lines.add(
          { day: dayAt(at * 1000), model: item.split(',')[0]?.trim() ?? item, credential: null },
          { cost: value },
        )
  return lines.all()
}

const anthropicUsage = paged(
  z.object({
    starting_at: z.string(),
    results: z.array(
      z.object({
        model: z.string().nullish(),
        api_key_id: z.string().nullish(),
        uncached_input_tokens: amount,
        cache_read_input_tokens: amount,
        cache_creation: z.object({ ephemeral_1h_input_tokens: amount, ephemeral_5m_input_tokens: amount }).nullish(),
        output_tokens: amount,
      }),
    ),
  }),
)
const anthropicCosts = paged(
  z.object({
    starting_at: z.string(),
    results: z.array(
      z.object({ model: z.string().nullish(), description: z.string().nullish(), amount: z.coerce.number() }),
    ),
  }),
)

async function fromAnthropic(options: FetchOptions): Promise<ReportLine[]> {
  const { url, secret, fromDay, toDay, keys } = options
  const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
  const lines = new Lines()
  const at = (day: number) => `${formatDay(day)}T00:00:00Z`
  const ask = (path: string, groups: readonly string[], page: string | undefined) => {
    const query = new URLSearchParams({
      starting_at: at(fromDay),
      ending_at: at(toDay + 1),
      bucket_width: '1d',
      limit: '31',
      ...(page ? { page } : {}),
    })
    for (const group of groups) query.append('group_by[]', group)
    return `${base(url)}/v1/organizations/${path}?${query}`
  }
  const usage = pagesOf((page) =>
    get(options, ask('usage_report/messages', ['model', 'api_key_id'], page), headers, anthropicUsage),
  )
  for await (const bucket of usage)
    for (const one of bucket.results) {
      if (!one.model) continue
      const { ephemeral_1h_input_tokens: hour = 0, ephemeral_5m_input_tokens: minutes = 0 } = one.cache_creation ?? {}
      const credential = one.api_key_id ? (keys[one.api_key_id] ?? one.api_key_id) : null
      const inputTokens = one.uncached_input_tokens + one.cache_read_input_tokens + hour + minutes
      lines.add(
        { day: dayAt(Date.parse(bucket.starting_at)), model: one.model, credential },
        { inputTokens, outputTokens: one.output_tokens },
      )
    }
  const costs = pagesOf((page) => get(options, ask('cost_report', ['description'], page), headers, anthropicCosts))
  // Amounts are cents.
  for await (const bucket of costs)
    for (const { model, description, amount: cents } of bucket.results)
      lines.add(
        { day: dayAt(Date.parse(bucket.starting_at)), model: model ?? description ?? 'other', credential: null },
        { cost: cents / 100 },
      )
  return lines.all()
}

const openRouterActivity = z.object({
  data: z.array(
    z.object({
      date: z.string(),
      model: z.string(),
      usage: z.number(),
      requests: amount,
      prompt_tokens: amount,
      completion_tokens: amount,
    }),
  ),
})

async function fromOpenRouter(options: FetchOptions): Promise<ReportLine[]> {
  const { url, secret, fromDay, toDay, keys } = options
  const headers = { authorization: bearer(secret) }
  const lines = new Lines()
  // By credential only if the request maps the hashes of keys to credentials.
  const named = Object.entries(keys)
  const asked: readonly (readonly [hash: string | undefined, credential: string | null])[] =
    named.length > 0 ? named : [[undefined, null]]
  for (const [hash, credential] of asked)
    for (let day = fromDay; day <= toDay; day++) {
      const query = new URLSearchParams({ date: formatDay(day), ...(hash ? { api_key_hash: hash } : {}) })
      const { data } = await get(
        options,
        `${url.replace(/(?<!\/)\/+$/, '')}/activity?${query}`,
        headers,
        openRouterActivity,
      )
      for (const { model, usage: cost, requests, prompt_tokens: inputTokens, completion_tokens: outputTokens } of data)
        lines.add({ day: formatDay(day), model, credential }, { cost, requests, inputTokens, outputTokens })
    }
  return lines.all()
}

const dayAt = (ms: number) => formatDay(dayOfMs(ms))

const COLUMNS = ['day', 'model', 'credential', 'requests', 'input_tokens', 'output_tokens', 'cost'] as const

/** Parses CSV with a header; the columns `day`, `model` and one figure are required. Errors name the line. */
export function readCsvReport(text: string): ReportLine[] {
  const rows = text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .filter((row) => row.trim() !== '')
  const header = cellsOf(rows[0] ?? '').map((name) => name.trim().toLowerCase())
  const known = new Set<string>(COLUMNS)
  const unknown = header.filter((name) => !known.has(name))
  if (unknown.length > 0 || !header.includes('day') || !header.includes('model'))
    throw invalid(`csv: the first line must name columns of ${COLUMNS.join(', ')}; day and model are needed.`, 'csv')
  if (rows.length - 1 > LINES_MAX) throw invalid(`csv: has more than ${LINES_MAX} lines.`, 'csv')
  const lines = new Lines()
  rows.slice(1).forEach((row, at) => {
    const cells = cellsOf(row)
    const cell = (name: (typeof COLUMNS)[number]) => cells[header.indexOf(name)]?.trim() ?? ''
    const wrong = (what: string) => invalid(`csv: line ${at + 2}: ${what}.`, 'csv')
    const day = cell('day')
    if (parseDay(day) === undefined) throw wrong('day must be such as 2026-11-15')
    const model = cell('model')
    if (model === '' || model.length > 200) throw wrong('model is missing or too long')
    const figures: Partial<Record<'requests' | 'inputTokens' | 'outputTokens' | 'cost', number>> = {}
    const read = (name: (typeof COLUMNS)[number], to: keyof typeof figures, form: RegExp) => {
      const given = cell(name)
      if (given === '') return
      if (!form.test(given)) throw wrong(`${name} must be a number`)
      figures[to] = Number(given)
    }
    read('requests', 'requests', /^\d{1,15}$/)
    read('input_tokens', 'inputTokens', /^\d{1,15}$/)
    read('output_tokens', 'outputTokens', /^\d{1,15}$/)
    read('cost', 'cost', /^\d{1,12}(\.\d{1,12})?$/)
    if (Object.keys(figures).length === 0) throw wrong('it has no figure')
    lines.add({ day, model, credential: cell('credential').slice(0, 200) || null }, figures)
  })
  return lines.all()
}

/** Quotes as in RFC 4180, but without line breaks inside quotes. */
function cellsOf(row: string): string[] {
  return [...row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'),
  )
}
