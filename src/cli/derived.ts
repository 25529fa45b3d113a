// Commands that follow from the table of resources: src/operator/command.ts says how, commands.json is what follows.
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Page } from '../kernel/view.ts'
import { at, CliError, type Command, flag, type Invocation, type Option, type Told, takes, text } from './command.ts'
import derived from './commands.json' with { type: 'json' }
import { accountNames, type Collection, type Reference, resolveIn } from './names.ts'
import { type Columns, card, list, listPages, PAGE_OPTIONS, query, table } from './table.ts'

/** An argument or an option, and where its value goes. */
export interface DerivedField {
  readonly name: string
  readonly in: 'path' | 'query' | 'body'
  /** The members that lead to it. */
  readonly at: readonly string[]
  readonly kind:
    | 'text'
    | 'amount'
    | 'whole'
    | 'number'
    | 'flag'
    | 'switch'
    | 'list'
    | 'numbers'
    | 'pairs'
    | 'texts'
    | 'tree'
    | 'parts'
    | 'sealed'
    | 'input'
    | 'json'
    | 'base64'
    | 'file'
  readonly help?: string
  readonly value?: string
  readonly required?: boolean
  /** What a flag sends. */
  readonly sends?: boolean | string
  /** The word for null, and how many members lead to what becomes null. */
  readonly none?: string
  readonly noneAt?: number
  readonly allowed?: readonly string[]
  readonly refersTo?: Reference
  /** Where a name is looked up if the value is not an id. */
  readonly from?: Collection
  /** The members that stand with colons between them. */
  readonly parts?: readonly string[]
}

export interface DerivedCommand {
  readonly name: string
  /** The option with which this is what a command of several resources does. */
  readonly when?: string
  readonly summary: string
  readonly about?: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly args?: readonly DerivedField[]
  readonly options?: readonly DerivedField[]
  readonly columns?: Readonly<Record<string, string>>
  /** By the members that lead to the rows. */
  readonly tables?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** It failed if one of these is there. */
  readonly fails?: readonly string[]
  readonly empty?: string
  readonly words?: string
  readonly once?: string
  readonly set?: Readonly<Record<string, unknown>>
  /** The fields that are read and sent again. */
  readonly merge?: readonly string[]
  /** The list in which the fields are an element, and what is said where no such element can be taken out. */
  readonly list?: string
  readonly missing?: string
  readonly orAccount?: string
  readonly file?: string
  /** The types of files besides JSON. */
  readonly formats?: readonly string[]
  readonly isList?: boolean
  readonly isPaged?: boolean
  readonly isRepeatable?: boolean
}

// The generator made it of these types.
const ENTRIES = derived as readonly DerivedCommand[]
export const DERIVED_COMMANDS: readonly Command[] = [...Map.groupBy(ENTRIES, ({ name }) => name).values()].map(
  commandOf,
)

/** An answer of another command in the words of this one. */
export function wordsLike(name: string, answer: AnswerObject): string {
  const entry = ENTRIES.find((one) => one.name === name)
  if (!entry) throw new Error(`There is no command ${name}.`)
  return wordsOf(entry, answer)
}

const FILE_TYPES: Readonly<Record<string, string>> = { csv: 'text/csv', pdf: 'application/pdf', zip: 'application/zip' }

/** Of one resource, or of several, among which an option chooses. */
function commandOf(entries: readonly DerivedCommand[]): Command {
  const usual = entries.find(({ when }) => when === undefined) as DerivedCommand // The generator demands one.
  const { name, summary, about, args = [] } = usual
  const options = entries.flatMap((one) => one.options ?? [])
  return {
    name,
    summary,
    args: args.map((one) => (one.required ? one.name : `[${one.name}]`)),
    ...(about === undefined ? {} : { about }),
    options: { ...Object.fromEntries(options.map((one) => [one.name, optionOf(one)])), ...optionsOfAll(usual) },
    async run(call) {
      const chosen = entries.filter(({ when }) => when !== undefined && call.values[when] !== undefined)
      if (chosen.length > 1)
        throw new CliError(`--${chosen.map(({ when }) => when).join(' and --')} exclude each other.`, 2)
      return run(chosen[0] ?? usual, call)
    },
  }
}

function optionOf({ kind, value = 'text', help = '', allowed, refersTo }: DerivedField): Option {
  if (kind === 'flag' || kind === 'input') return flag(help)
  return takes(value, help, { ...(allowed ? { allowed } : {}), ...(refersTo ? { refersTo } : {}) })
}

/** Options that follow from what a resource can do. */
function optionsOfAll({ isPaged, isRepeatable, orAccount, formats = [], file }: DerivedCommand): Command['options'] {
  const files = formats.filter((one) => one !== 'rows')
  return {
    ...(isPaged ? PAGE_OPTIONS : {}),
    ...(orAccount === undefined ? {} : { account: takes('account', orAccount, { refersTo: 'account' }) }),
    ...(isRepeatable
      ? {
          key: takes(
            'text',
            'An Idempotency-Key, such as the number of an invoice: a repetition with it has no second effect.',
          ),
        }
      : {}),
    ...(formats.includes('rows') ? { csv: flag('Exports all matching rows as CSV to standard output.') } : {}),
    ...(files.length > 0
      ? { format: takes(files.join('|'), 'Writes a file of this format.', { allowed: files }) }
      : {}),
    ...(files.length > 0 || file
      ? { out: takes('file', 'The name of the file; by default the gateway names it.') }
      : {}),
  }
}

async function run(entry: DerivedCommand, call: Invocation): Promise<Told | undefined> {
  const { path, params, body } = await requestOf(entry, call)
  const type = entry.file ?? FILE_TYPES[text(call, 'format') ?? '']
  if (call.values.csv || type === 'rows') {
    await call.api.download(path + query(params), 'text/csv', call.say)
    return undefined
  }
  if (type) return save(call, path + query(params), type)
  const empty = entry.empty ?? 'There are none.'
  const named = (rows: readonly AnswerObject[]) => withNames(entry, call, rows)
  const columns = columnsOf(entry.columns)
  if (entry.isPaged) return listPages(call, path, { filter: params, columns, named, empty })
  const key = text(call, 'key')
  const headers = entry.isRepeatable && key !== undefined ? { 'idempotency-key': key } : {}
  const answer = await call.api.call<unknown>(entry.method, path + query(params), body, headers)
  if (entry.isList) {
    const rows = Array.isArray(answer) ? answer : (answer as Page<AnswerObject>).items // The generator looked at its schema.
    return list(await named(rows), columns, empty)
  }
  if (!isRow(answer)) return { answer, words: String(answer) }
  const [shown = answer] = await named([answer])
  const isThere = (spec: string) => !['0', undefined].includes(partOf(answer, spec))
  const failed = answer.ok === false || ['problems', ...(entry.fails ?? [])].some(isThere)
  return { answer, words: wordsOf(entry, shown, body), failed }
}

// The request: arguments and options become path, query and body.

interface Request {
  readonly path: string
  readonly params: Record<string, string>
  readonly body: unknown
}

async function requestOf(entry: DerivedCommand, call: Invocation): Promise<Request> {
  const { args = [], options = [], set = {} } = entry
  const given: [DerivedField, string | boolean][] = []
  for (const [index, one] of args.entries()) if (call.args[index] !== undefined) given.push([one, call.args[index]])
  for (const one of options) {
    const value = call.values[one.name]
    if (value !== undefined) given.push([one, value])
    else if (one.kind === 'input' && entry.when && call.settings.credential(`${call.values[entry.when]}`))
      given.push([one, `${call.values[entry.when]}`])
    else if (one.required && one.kind === 'sealed') given.push([one, '-'])
    else if (one.required) throw new CliError(`Missing --${one.name}. See: tollgate ${entry.name} --help`, 2)
  }
  const made: Record<DerivedField['in'], Record<string, unknown>> = { path: {}, query: {}, body: {} }
  const account = entry.orAccount === undefined ? undefined : text(call, 'account')
  const prefix = account === undefined ? '' : at`/accounts/${account}`
  for (const [index, [field, value]] of given.entries()) {
    const other = given.slice(0, index).find(([one]) => value === true && one.at.join() === field.at.join())
    if (other) throw new CliError(`--${other[0].name} and --${field.name} exclude each other.`, 2)
    const read = await readValue(prefixed(field, prefix), value, { call, made: made.path })
    if (read === null && field.noneAt !== undefined) put(made[field.in], field.at.slice(0, field.noneAt), null)
    else if (field.at.length === 0) Object.assign(made.body, read)
    else put(made[field.in], field.at, read)
  }
  checkChange(entry, made, options)
  const path = prefix + filled(entry.path, made.path)
  const fixed = Object.entries(set).map(([name, value]) => [name, withMembers(value, made.body)])
  const before = entry.merge ? await stored(call, path, entry.merge) : {}
  const changed = entry.list ? { ...before, [entry.list]: relisted(entry, before[entry.list], made.body) } : undefined
  const body = changed ?? { ...merged(before, made.body), ...Object.fromEntries(fixed) }
  const isBare = entry.method === 'GET' || Object.keys(body).length === 0
  // Strings, as the query has nothing else.
  return { path, params: made.query as Record<string, string>, body: isBare ? undefined : body }
}

/** With --account, names are those of the account too. */
const prefixed = ({ from, ...field }: DerivedField, prefix: string): DerivedField =>
  from ? { ...field, from: { ...from, path: prefix + from.path } } : field

/** A change without a value is a slip. */
function checkChange(
  entry: DerivedCommand,
  { body }: { readonly body: object },
  options: readonly DerivedField[],
): void {
  const isChange = (entry.method === 'PATCH' || entry.merge) && options.some((one) => one.in === 'body')
  if (isChange && Object.keys({ ...body, ...entry.set }).length === 0)
    throw new CliError(`Nothing to change was named. See: tollgate ${entry.name} --help`, 2)
}

async function stored(call: Invocation, path: string, members: readonly string[]): Promise<AnswerObject> {
  const before = await call.api.call<AnswerObject>('GET', path)
  return Object.fromEntries(members.filter((name) => before[name] !== undefined).map((name) => [name, before[name]]))
}

/** The list with the element, or without those that are as it says. */
function relisted({ missing }: DerivedCommand, list: unknown, element: AnswerObject): unknown[] {
  const rows = Array.isArray(list) ? list.filter(isRow) : []
  const others = rows.filter((one) => Object.entries(element).some(([name, value]) => one[name] !== value))
  if (missing === undefined) return [...others, element]
  if (others.length < rows.length) return others
  throw new CliError(sentenceOf(element, missing))
}

/** Of an object too, what is not named stays. */
const merged = (before: AnswerObject, given: AnswerObject): AnswerObject => ({
  ...before,
  ...Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const was = before[name]
      return [name, isRow(was) && isRow(value) ? { ...was, ...value } : value]
    }),
  ),
})

const filled = (path: string, params: Readonly<Record<string, unknown>>) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name] ?? '')))

const withMembers = (value: unknown, members: AnswerObject) =>
  typeof value === 'string' ? value.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(members[name] ?? '')) : value

function put(object: Record<string, unknown>, [name = '', ...below]: readonly string[], value: unknown): void {
  if (below.length === 0) object[name] = isRow(object[name]) && isRow(value) ? { ...object[name], ...value } : value
  else {
    if (!Object.hasOwn(object, name) || !isRow(object[name])) object[name] = {}
    put(object[name] as Record<string, unknown>, below, value) // It was made one.
  }
}

async function readValue(
  field: DerivedField,
  given: string | boolean,
  { call, made }: { readonly call: Invocation; readonly made: AnswerObject },
): Promise<unknown> {
  if (field.kind === 'input') return secretOf(call, given === true ? '-' : String(given))
  if (typeof given === 'boolean') return field.sends
  if (given === field.none) return field.noneAt === undefined ? (field.kind === 'texts' ? {} : []) : null
  const name = field.in === 'path' || call.values[field.name] === undefined ? `The ${field.name}` : `--${field.name}`
  const wrong = (what: string) => new CliError(`${name} ${what}, not "${given}".`, 2)
  if (field.allowed?.includes(given) === false) throw wrong(`is one of ${field.allowed.join(', ')}`)
  switch (field.kind) {
    case 'whole':
      if (!/^\d{1,12}$/.test(given)) throw wrong(`takes a whole number${field.none ? ` or "${field.none}"` : ''}`)
      return field.in === 'body' ? Number(given) : given
    case 'number':
      if (!/^\d+(\.\d+)?$/.test(given)) throw wrong('takes a number')
      return field.in === 'body' ? Number(given) : given
    case 'amount':
      if (!/^\d+(\.\d+)?$/.test(given)) throw wrong('must be a number such as 12.5')
      return given
    case 'switch':
      if (given !== 'on' && given !== 'off') throw wrong('is on or off')
      return given === 'on'
    case 'list': {
      const whole = given.startsWith('@') ? String(await contentOf(call, 'file', given.slice(1))) : given
      const parts = whole.split(given === whole ? ',' : /[\s,]+/).map((part) => part.trim())
      return Promise.all(parts.filter(Boolean).map((part) => named(field, part, { call, made })))
    }
    case 'numbers':
      if (!/^\d{1,9}(,\d{1,9})*$/.test(given)) throw wrong('takes whole numbers with commas')
      return given.split(',').map(Number)
    case 'pairs':
      return pairsOf(given, scalarOf, wrong)
    case 'texts':
      return pairsOf(given, (value) => value, wrong)
    case 'tree':
      return treeOf(pairsOf(given, scalarOf, wrong))
    case 'parts': {
      const parts = given.split(':')
      if (parts.length !== field.parts?.length || parts.includes('')) throw wrong(`takes ${field.value}`)
      return Object.fromEntries(parts.map((part, index) => [field.parts?.[index], scalarOf(part)]))
    }
    case 'sealed':
      return secretOf(call, given)
    case 'json':
    case 'file':
    case 'base64':
      return contentOf(call, field.kind, given)
    default:
      return named(field, given, { call, made })
  }
}

const named = (
  field: DerivedField,
  given: string,
  { call, made }: { readonly call: Invocation; readonly made: AnswerObject },
) => (field.from ? resolveIn(call.api, { ...field.from, path: filled(field.from.path, made) }, given) : given)

function pairsOf(
  given: string,
  read: (value: string) => unknown,
  wrong: (what: string) => CliError,
): Record<string, unknown> {
  const pairs = given.split(',').map((part) => part.split('='))
  if (pairs.some(([name, ...rest]) => !name || rest.length === 0)) throw wrong('takes name=value pairs')
  return Object.fromEntries(pairs.map(([name = '', ...rest]) => [name.trim(), read(rest.join('=').trim())]))
}

/** Numbers, true, false and null become JSON values. */
const scalarOf = (value: string) => (/^(?:true|false|null|\d{1,9})$/.test(value) ? JSON.parse(value) : value)

/** `timeouts.connectMs` is a member of a member. */
function treeOf(pairs: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const tree: Record<string, unknown> = {}
  for (const [path, value] of Object.entries(pairs)) put(tree, path.split('.'), value)
  return tree
}

/** Secrets are not options, because other users can read command lines. */
async function secretOf(call: Invocation, from: string): Promise<string> {
  const { environment, credential } = call.settings
  const value = from === '-' ? (await call.input()).trim() : (environment?.(from) ?? credential(from))
  if (value) return value
  throw new CliError(
    from === '-' ? 'Give the credential on standard input.' : `There is no value in the environment variable ${from}.`,
    2,
  )
}

/** A file; "-" is standard input. */
async function contentOf(call: Invocation, kind: 'json' | 'file' | 'base64', file: string): Promise<unknown> {
  const bytes =
    file === '-'
      ? Buffer.from(await call.input())
      : await readFile(file).catch((error: NodeJS.ErrnoException) => {
          throw new CliError(
            `${file} could not be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}.`,
          )
        })
  if (kind !== 'json') return bytes.toString(kind === 'file' ? 'utf8' : 'base64')
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (isRow(value)) return value
  } catch {
    throw new CliError(`${file} is not JSON.`)
  }
  throw new CliError(`${file} is not a JSON object.`)
}

// Files.

/** An existing file is overwritten only if it was named. */
async function save(call: Invocation, path: string, accept: string): Promise<Told> {
  const named = text(call, 'out')
  let name = named ?? ''
  let file: FileHandle | undefined
  try {
    await call.api.save(path, accept, async (chunk, given) => {
      name ||= basename(given)
      try {
        file ??= await open(name, named === undefined ? 'wx' : 'w')
        await file.appendFile(chunk)
      } catch (error) {
        throw unwritten(name, error as NodeJS.ErrnoException) // The file system throws nothing else.
      }
    })
  } finally {
    await file?.close()
  }
  return { answer: { file: name }, words: `Wrote ${name}.` }
}

function unwritten(name: string, { code, message }: NodeJS.ErrnoException): CliError {
  if (code === 'EEXIST') return new CliError(`${name} exists already; remove it or choose another with --out`)
  return new CliError(`${name} cannot be written: ${message}`)
}

// The answer in words.

type AnswerObject = Readonly<Record<string, unknown>>
const isRow = (value: unknown): value is AnswerObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const columnsOf = (columns: Readonly<Record<string, string>> = {}): Columns<AnswerObject> =>
  Object.fromEntries(
    Object.entries(columns).map(([heading, spec]) => [heading, (row: AnswerObject) => cellOf(row, spec)]),
  )

/** Rows whose accounts have their names, if they are shown. */
async function withNames(
  { columns = {} }: DerivedCommand,
  call: Invocation,
  rows: readonly AnswerObject[],
): Promise<readonly AnswerObject[]> {
  if (call.values.json || !Object.values(columns).some((spec) => /^account\b/.test(spec))) return rows
  const accountOf = ({ account }: AnswerObject) => (typeof account === 'string' ? account : null)
  const names = await accountNames(call.api, rows.map(accountOf))
  return rows.map((row) => ({ ...row, account: names.get(accountOf(row)) ?? row.account }))
}

/** Rows inside an answer, with a column for each of their members. */
function tableOf(rows: readonly AnswerObject[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const heading = (name: string) => name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toUpperCase()
  return table(rows, columnsOf(Object.fromEntries(names.map((name) => [heading(name), name]))))
}

const isRows = (value: unknown): value is AnswerObject[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRow)

/** `name`, `models|all`, or `{prefix}…{last4}`. */
function cellOf(row: AnswerObject, spec: string): string | undefined {
  return spec.includes('{') ? sentenceOf(row, spec) : partOf(row, spec)
}

/** `[steps:{method} {address}]` is said of each, which has the members of what is around it too. */
const SAID = /\[(\w+):((?:[^[\]]|\[[^[\]]*\])*)\]|\{([^{}]*)\}/g

function sentenceOf(row: AnswerObject, words: string): string {
  return words.replaceAll(SAID, (_, list: string | undefined, each: string, one: string) => {
    if (list === undefined) return partOf(row, one) ?? ''
    const inner = row[list]
    return Array.isArray(inner) ? inner.map((item) => sentenceOf({ ...row, item, ...item }, each)).join('') : ''
  })
}

/** `tools.state#changed+gone` is how many of them are one of these. */
function partOf(row: AnswerObject, spec: string): string | undefined {
  const [path = '', otherwise] = spec.split('|')
  const [members = '', counted] = path.split('#')
  const value = memberAt(row, members.split('.'))
  if (counted !== undefined) return String([value].flat().filter((one) => counted.split('+').includes(`${one}`)).length)
  return inline(value) ?? otherwise
}

function memberAt(value: unknown, [name, ...below]: readonly string[]): unknown {
  if (name === undefined) return value
  if (Array.isArray(value) && name !== 'length') return value.map((one) => memberAt(one, [name, ...below]))
  return memberAt((value as AnswerObject | null | undefined)?.[name], below) // Absent in whatever has no such member.
}

/** A value on one line. */
function inline(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value))
    return (
      value
        .map((one) => inline(one))
        .filter(Boolean)
        .join(', ') || undefined
    )
  if (typeof value !== 'object') return String(value)
  const parts = Object.entries(value).flatMap(([name, one]) => {
    const shown = inline(one)
    return shown === undefined ? [] : [`${name} ${shown}`]
  })
  return parts.join(', ') || undefined
}

/** What a change of the catalog does, or would do. */
function changeOf({ changes, problems, version }: AnswerObject): string | undefined {
  if (!Array.isArray(changes)) return undefined
  if (!Array.isArray(problems))
    return version === undefined ? undefined : 'Version {version} is in force.[changes:\n  {item}]'
  if (problems.length > 0) return 'It would not be valid:[problems:\n  {item}]'
  return `[notes:Note: {item}\n]${changes.length > 0 ? '[changes:  {item}\n]Nothing was applied.' : 'Nothing would change.'}`
}

function wordsOf(entry: DerivedCommand, answer: AnswerObject, given?: unknown): string {
  const tables = Object.entries(entry.tables ?? {}).flatMap(([path, columns]) => {
    const rows = memberAt(answer, path.split('.'))
    return isRows(rows) ? [table(rows, columnsOf(columns))] : []
  })
  const words = entry.words ?? changeOf(answer)
  // Keeps line breaks; other control characters move the terminal's cursor.
  if (words !== undefined)
    return [
      sentenceOf({ ...answer, given }, words)
        .replaceAll(/(?!\n|\t)\p{Cc}/gu, ' ')
        .trimEnd(),
      ...tables,
    ].join('\n\n')
  if (Object.keys(answer).length === 0) return entry.empty ?? 'There is nothing.'
  const { [entry.once ?? '']: secret, ...rest } = answer
  // Null is said by the word that sets it.
  const nulls = new Map(entry.options?.flatMap(({ at: [name = ''], none }) => (none ? [[name, none]] : [])))
  // Beside what is shown this once, only what was set.
  const isShown = (one: unknown) => !isRows(one) && (secret === undefined || inline(one) !== undefined)
  const members = Object.entries(rest).filter(([, one]) => isShown(one))
  const columns = Object.entries(entry.columns ?? {}).filter(([, spec]) => !isRows(rest[spec.split('|')[0] ?? '']))
  const facts = entry.columns
    ? columns.map(([name, spec]) => [name, cellOf(answer, spec)])
    : members.map(([name, one]) => [name, inline(one) ?? nulls.get(name)])
  const isMeant = (name: string) =>
    !entry.columns || Object.values(entry.columns).some((one) => one.split('|')[0] === name)
  const others = Object.entries(rest).flatMap(([name, one]) => (isRows(one) && isMeant(name) ? [tableOf(one)] : []))
  const cards = facts.length > 0 ? [card(Object.fromEntries(facts))] : []
  const shown = [...cards, ...(entry.tables ? tables : others)].join('\n\n')
  return secret === undefined ? shown : `The ${entry.once}, shown this once:\n\n  ${String(secret)}\n\n${shown}`
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Every resource, also those without a command of their own. */
export const API_COMMAND: Command = {
  name: 'api',
  summary: 'Sends any request of the operator API, and prints the answer as JSON.',
  args: ['method', 'path'],
  about: 'The path is below /admin/v1, as in the reference of the operator API: tollgate api GET /accounts',
  options: { data: takes('json|file|-', 'The body: JSON, the name of a file with JSON, or - for standard input.') },
  async run(call) {
    const [given = '', path = ''] = call.args
    const method = METHODS.find((one) => one === given.toUpperCase())
    if (!method) throw new CliError(`The method is one of ${METHODS.join(', ')}, not "${given}".`, 2)
    if (!path.startsWith('/')) throw new CliError(`The path begins with a slash, such as /accounts, not "${path}".`, 2)
    const answer = await call.api.call(method, path, await dataOf(call))
    return { answer, words: JSON.stringify(answer, null, 2) }
  },
}

async function dataOf(call: Invocation): Promise<unknown> {
  const data = text(call, 'data')
  if (data === undefined) return undefined
  if (!data.trimStart().startsWith('{')) return contentOf(call, 'json', data)
  try {
    return JSON.parse(data)
  } catch {
    throw new CliError('--data is not JSON.', 2)
  }
}
