// From another gateway's configuration to a catalogue: says line by line what becomes of it, and applies nothing unless asked.
import { readFile } from 'node:fs/promises'
import { checkDocument } from '../catalog/document.ts'
import { lossNotes } from '../catalog/margin.ts'
import { readPresets } from '../catalog/preset.ts'
import { listChanges } from '../catalog/store.ts'
import type { Applied, CurrentView } from '../catalog/views.ts'
import { parseCredits } from '../kernel/credits.ts'
import { CliError, type Command, type Invocation, type Told, text } from './command.ts'
import { type ImportLine, importLitellm } from './import-litellm.ts'

const FILE_BYTES_MAX = 4 * 1024 * 1024

export const IMPORT_COMMANDS: readonly Command[] = [
  {
    name: 'import litellm',
    summary: 'Takes over models, deployments and fallbacks from a configuration of LiteLLM’s proxy.',
    args: ['file'],
    options: {
      markup: { type: 'string', value: 'factor', help: 'Price = cost × this; 1 unless given.' },
      'credits-per-dollar': {
        type: 'string',
        value: 'number',
        help: 'For its costs and list prices; 100 unless given.',
      },
      apply: { type: 'boolean', help: 'Applies it; otherwise it is only shown.' },
    },
    about:
      'Says of every setting whether it was taken, changed or left. Keys that stand in the file are not copied: store them with "tollgate vendors credential".',
    run: importConfig,
  },
]

async function importConfig(call: Invocation): Promise<Told> {
  const config = await readYaml(call.args[0] ?? '')
  const { document: current } = await call.api.call<CurrentView>('GET', '/catalog')
  const { document, lines } = importLitellm(config, current, {
    presets: await readPresets(),
    markup: factor(call, 'markup', '1'),
    creditsPerDollar: factor(call, 'credits-per-dollar', '100'),
  })
  const checked = checkDocument(document)
  const problems = checked.ok ? [] : checked.problems
  const notes = checked.ok ? lossNotes(checked.document) : []
  const changes = listChanges(current, document)
  const answer = { lines, changes, problems, notes }
  const words = [...lines.map(inWords), ...notes.map((note) => `Note: ${note}`)].join('\n')
  if (problems.length > 0)
    return { answer, words: `${words}\nNothing was applied: ${problems.join('; ')}`, failed: true }
  if (!call.values.apply)
    return { answer, words: `${words}\n${changes.length} changes. Nothing was applied; add --apply to do so.` }
  const applied = await call.api.call<Applied>('PUT', '/catalog', { document, note: 'import from LiteLLM' })
  return { answer: { ...answer, ...applied }, words: `${words}\nVersion ${applied.version} is in force.` }
}

const inWords = ({ at, what, words }: ImportLine) => `${what.padEnd(7)}  ${at}: ${words}`

function factor(call: Invocation, option: string, usual: string): string {
  const value = text(call, option) ?? usual
  if ((parseCredits(value) ?? 0n) <= 0n) throw new CliError(`--${option} takes a positive decimal such as 1.2.`, 2)
  return value
}

async function readYaml(file: string): Promise<unknown> {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(`${file} cannot be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}.`)
  })
  if (content.length > FILE_BYTES_MAX) throw new CliError(`${file} is too large for a configuration.`)
  // Only who imports needs it.
  const { parse } = await import('yaml')
  try {
    // Few aliases, so that a small file cannot become a huge value.
    return parse(content, { maxAliasCount: 100 })
  } catch (error) {
    throw new CliError(`${file} is not YAML: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`)
  }
}
