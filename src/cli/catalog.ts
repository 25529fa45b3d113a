import { writeFile } from 'node:fs/promises'
import { describeChanges } from '../catalog/change-sentences.ts'
import { checkDocument, credentialsOf, parseDocument, readDocumentFile } from '../catalog/document.ts'
import { belowCostNotes } from '../catalog/margin.ts'
import { sectionReviews } from '../catalog/section.ts'
import { isSandbox } from '../catalog/simulated.ts'
import type { Applied, CurrentView } from '../catalog/views.ts'
import { parseCredits } from '../kernel/credits.ts'
import { UNIT_NAMES } from '../meter/kind.ts'
import { CliError, type Command, type Invocation, takes, text, told } from './command.ts'

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

export const offerSimulated = (call: Invocation, simulated: boolean) =>
  call.api.call<Applied>('PATCH', '/catalog', { simulated })

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
  {
    name: 'catalog simulated',
    summary: 'Offers the models and data endpoints that only simulated vendors serve, or no longer.',
    args: ['on|off'],
    about: 'Their answers are made up, and charged like all others.',
    run(call) {
      const [which = ''] = call.args
      if (which !== 'on' && which !== 'off') throw new CliError(`Say "on" or "off", not "${which}".`, 2)
      return told(offerSimulated(call, which === 'on'), ({ version }) =>
        which === 'on'
          ? `What only simulated vendors serve is offered from version ${version} on.`
          : `Only what real vendors serve is offered from version ${version} on.`,
      )
    },
  },
]

/** The price that an option gives. */
export function priced(call: Invocation, option: string, as: string): Record<string, unknown> {
  if (text(call, option) === undefined) return {}
  const rates = pairs(call, option)
  for (const [unit, rate] of Object.entries(rates))
    if (!UNIT_NAMES.some((known) => known === unit) || (parseCredits(rate) ?? -1n) < 0n)
      throw new CliError(
        `--${option} takes ${UNIT_NAMES.join(', ')} with amounts of credits, such as input=100,output=300.`,
        2,
      )
  return { [as]: { unit: 'credits', tiers: [rates] } }
}

/** An option of names and values. */
export function pairs(call: Invocation, option: string): Record<string, string> {
  const entries = (text(call, option) ?? '').split(',').filter(Boolean)
  return Object.fromEntries(
    entries.map((entry) => {
      const at = entry.indexOf('=')
      if (at < 1) throw new CliError(`--${option} takes name=value, not "${entry}".`, 2)
      return [entry.slice(0, at), entry.slice(at + 1)]
    }),
  )
}
