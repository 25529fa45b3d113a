// List prices: comparing with a table, and applying chosen rows.
import { readFile } from 'node:fs/promises'
import type { Applied } from '../../catalog/views.ts'
import { CliError, type Command, flag, type Invocation, takes, text } from '../../cli/command.ts'
import { list } from '../../cli/table.ts'
import type { PriceComparisonView } from './views.ts'

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
