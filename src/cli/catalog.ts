import { readFile, writeFile } from 'node:fs/promises'
import { describeChanges } from '../catalog/change-sentences.ts'
import { checkDocument, credentialsOf, isSandbox, parseDocument, readDocumentFile } from '../catalog/document.ts'
import { belowCostNotes } from '../catalog/margin.ts'
import { sectionReviews } from '../catalog/section.ts'
import type { Applied, CurrentView, PriceComparisonView } from '../catalog/views.ts'
import { CliError, type Command, flag, type Invocation, takes, text, told } from './command.ts'
import { list } from './table.ts'

async function readDocument(call: Invocation): Promise<unknown> {
  const file = call.args[0]!
  try {
    return file === '-' ? parseDocument(file, await call.input()) : await readDocumentFile(file)
  } catch (error) {
    throw new CliError((error as Error).message)
  }
}

const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`).join('\n')
const showChanges = (changes: readonly string[]) => (changes.length === 0 ? 'Nothing differs.' : indented(changes))

/** Vendors whose credential is not in this environment; it may still be stored in the gateway. */
function missingCredentials(call: Invocation, document: unknown): string[] {
  const checked = checkDocument(document)
  if (!checked.ok) return []
  return Object.entries(checked.document.vendors).flatMap(([name, vendor]) =>
    isSandbox(vendor.baseUrl)
      ? []
      : credentialsOf(vendor)
          .filter((one) => call.settings.credential(one.name) === undefined)
          .map(
            (one) =>
              `Vendor "${name}" needs the credential ${one.name}, which is not in this environment. Set it where the gateway runs, or store it: ${vendor.credentials ? `tollgate vendors credentials ${name} --set ${one.name} --key-stdin` : `tollgate vendors credential ${name}`}`,
          ),
  )
}

export const CATALOG_COMMANDS: readonly Command[] = [
  {
    name: 'catalog check',
    summary: 'Checks a catalog document. Needs no running gateway.',
    args: ['file'],
    about: 'Exits with 1 if the document is not valid. "-" reads standard input.',
    async run(call) {
      const document = await readDocument(call)
      const checked = checkDocument(document)
      const problems = checked.ok ? [] : checked.problems
      const notes = [...missingCredentials(call, document), ...(checked.ok ? belowCostNotes(checked.document) : [])]
      const answer = { ok: checked.ok, problems, notes }
      if (!checked.ok) return { answer, words: `The catalog is not valid:\n${indented(problems)}`, failed: true }
      const { vendors, models, endpoints } = checked.document
      const count = (map: object) => Object.keys(map).length
      const counts = `${count(vendors)} vendors, ${count(models)} models, ${count(endpoints)} endpoints`
      const words = [`The catalog is valid: ${counts}.`, ...notes.map((note) => `Note: ${note}`)].join('\n')
      return { answer, words }
    },
  },
  {
    name: 'catalog diff',
    summary: 'Shows what applying a document would change.',
    args: ['file'],
    async run(call) {
      const document = await readDocument(call)
      const current = await call.api.call<CurrentView>('GET', '/catalog')
      const changes = describeChanges(current.document, document, sectionReviews())
      return { answer: { changes }, words: showChanges(changes) }
    },
  },
  {
    name: 'catalog apply',
    summary: 'Makes a document the current catalog, as a new version.',
    args: ['file'],
    options: { note: takes('text', 'The reason; stored with the version.') },
    async run(call) {
      const document = await readDocument(call)
      const applied = call.api.call<Applied>('PUT', '/catalog', { document, note: text(call, 'note') })
      return told(applied, ({ version, changes }) => `Version ${version} is in force.\n${showChanges(changes)}`)
    },
  },
  {
    name: 'catalog export',
    summary: 'Writes the current document to a file, or to standard output.',
    args: ['[file]'],
    async run(call) {
      const { document } = await call.api.call<CurrentView>('GET', '/catalog')
      const content = JSON.stringify(document, null, 2)
      const [file] = call.args
      if (file !== undefined) await writeFile(file, `${content}\n`)
      call.say(file === undefined ? `${content}\n` : `Written to ${file}.\n`)
    },
  },
  {
    name: 'catalog formats',
    summary: 'Offers every client format (chat, Responses, Messages, Google’s) for every text model, or undoes that.',
    args: ['all|listed'],
    about: '"all": the SDKs of every format work with every text model. "listed": as the entry of each model says.',
    run(call) {
      const [which = ''] = call.args
      if (which !== 'all' && which !== 'listed') throw new CliError(`Say "all" or "listed", not "${which}".`, 2)
      return told(call.api.call<Applied>('PATCH', '/catalog', { allClientFormats: which === 'all' }), ({ version }) =>
        which === 'all'
          ? `Every text model is offered in every client format from version ${version} on.`
          : `Text models are offered in the formats that their entries list from version ${version} on.`,
      )
    },
  },
]

// List prices: comparing with a table, and applying chosen rows.

type ComparedPrice = PriceComparisonView['rows'][number]

const read = (file: string) =>
  readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(`${file} cannot be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}.`)
  })

async function sourceOf(call: Invocation): Promise<object> {
  const [file, url, key, sha256] = ['file', 'url', 'public-key', 'digest'].map((name) => text(call, name))
  if (file !== undefined && url !== undefined) throw new CliError('Give --file or --url, not both.', 2)
  const proof = {
    ...(key === undefined ? {} : { publicKey: await read(key) }),
    ...(sha256 === undefined ? {} : { sha256 }),
  }
  if (url !== undefined) return { url, ...proof }
  if (file === undefined) return {}
  const signature = sha256 === undefined ? { signature: (await read(`${file}.sig`)).trim() } : {}
  return { table: await read(file), ...signature, ...proof }
}

const shortPrice = (price: ComparedPrice['before']) =>
  price?.tiers
    .map((tier) =>
      Object.entries(tier)
        .filter(([name]) => name !== 'when' && name !== 'upTo')
        .map(([unit, rate]) => `${unit} ${rate}`)
        .join(', '),
    )
    .join(' | ') ?? '–'

const COLUMNS: Record<string, keyof ComparedPrice | ((row: ComparedPrice) => string)> = {
  ROW: 'id',
  WHAT: 'kind',
  'COST NOW': ({ before }: ComparedPrice) => shortPrice(before),
  'LIST PRICE': ({ after }: ComparedPrice) => shortPrice(after),
  NOTED: ({ noted }: ComparedPrice) => noted ?? '',
  APPLY: ({ preselected, selectable }: ComparedPrice) => (preselected ? 'yes' : selectable ? 'if chosen' : 'no'),
  NOTES: ({ notes }: ComparedPrice) => notes.join(' '),
}

export const PRICE_COMMANDS: readonly Command[] = [
  {
    name: 'prices update',
    summary:
      'Compares costs with the list prices of this release or of your own table, and applies the rows that you choose.',
    about:
      'Without --apply nothing changes, and the exit status is 1 if there are list prices to apply. Costs and prices that were set by hand stay unless you name their row. The applied rows are one version of the catalog: "tollgate catalog rollback" undoes it.',
    options: {
      file: takes('file', 'A table of list prices, with its signature in <file>.sig.'),
      url: takes('address', 'The same at a public https address.'),
      'public-key': takes('file', 'Your key, if the table is not of a release.'),
      digest: takes('sha256', 'The SHA-256 of the table, instead of a signature.'),
      apply: takes('rows', 'Rows with commas, or "list" for all that are marked with yes.'),
      'dry-run': flag('Shows the rows that --apply would apply.'),
    },
    async run(call) {
      const source = await sourceOf(call)
      const compared = await call.api.call<PriceComparisonView>('POST', '/prices/compare', source)
      const wanted = text(call, 'apply')
      const named = wanted === 'list' ? undefined : wanted?.split(',').map((one) => one.trim())
      const unknown = named?.find((id) => !compared.rows.some((row) => row.id === id && row.selectable))
      if (unknown !== undefined) throw new CliError(`"${unknown}" is nothing that the table would change.`)
      const rows =
        wanted === undefined
          ? compared.rows
          : compared.rows.filter(({ id, preselected }) => named?.includes(id) ?? preselected)
      if (wanted === undefined || call.values['dry-run'] === true || rows.length === 0) {
        const about = [`Table of ${compared.made}.`, ...compared.warnings.map((one) => `Note: ${one}`)].join('\n')
        const { words } = list(rows, COLUMNS, 'Nothing differs.')
        const failed = wanted === undefined && rows.some(({ preselected }) => preselected)
        return { answer: { ...compared, rows }, words: `${about}\n${words}`, failed }
      }
      const body = { ...source, rows: rows.map(({ id }) => id) }
      const applied = await call.api.call<Applied>('POST', '/prices', body)
      return {
        answer: applied,
        words: `Version ${applied.version} is in force.\n${applied.changes.map((one) => `  ${one}`).join('\n')}`,
      }
    },
  },
]
