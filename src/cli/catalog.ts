import { writeFile } from 'node:fs/promises'
import { describeChanges } from '../catalog/change-sentences.ts'
import { checkDocument, credentialsOf, isSandbox, parseDocument, readDocumentFile } from '../catalog/document.ts'
import { lossNotes } from '../catalog/margin.ts'
import type { Applied, CurrentView, VersionView } from '../catalog/views.ts'
import type { Page } from '../kernel/view.ts'
import { at, CliError, type Command, type Invocation, type Told, text, told } from './command.ts'
import { list } from './table.ts'

export async function readDocument(call: Invocation): Promise<unknown> {
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
      const notes = [...missingCredentials(call, document), ...(checked.ok ? lossNotes(checked.document) : [])]
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
      const changes = describeChanges(current.document, document)
      return { answer: { changes }, words: showChanges(changes) }
    },
  },
  {
    name: 'catalog apply',
    summary: 'Makes a document the current catalog, as a new version.',
    args: ['file'],
    options: { note: { type: 'string', value: 'text', help: 'The reason; stored with the version.' } },
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
    name: 'catalog versions',
    summary: 'Lists all versions, newest first.',
    async run(call) {
      const { items } = await call.api.call<Page<VersionView>>('GET', '/catalog/versions')
      const columns = { VERSION: 'version', SINCE: 'appliedAt', BY: 'actor', NOTE: 'note' } as const
      return list(items, columns, 'No versions yet. Apply a catalog with: tollgate catalog apply <file>')
    },
  },
  {
    name: 'catalog rollback',
    summary: 'Applies an earlier version again.',
    args: ['version'],
    run(call) {
      const version = Number(call.args[0])
      if (!Number.isInteger(version) || version < 1)
        throw new CliError('The version is a number; see: tollgate catalog versions', 2)
      return told(
        call.api.call<Applied>('POST', '/catalog/rollback', { version }),
        (applied) =>
          `Version ${applied.version} is in force; it is version ${version} again.\n${showChanges(applied.changes)}`,
      )
    },
  },
  {
    name: 'catalog formats',
    summary:
      'Opens every client format (chat, Responses, Messages, Google’s) for every text model, or takes that back.',
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
    name: 'catalog enable',
    summary: 'Enables a model or a data endpoint.',
    args: ['uid'],
    run: (call) => setEnabled(call, true),
  },
  {
    name: 'catalog disable',
    summary: 'Disables a model or a data endpoint.',
    args: ['uid'],
    run: (call) => setEnabled(call, false),
  },
]

function setEnabled(call: Invocation, enabled: boolean): Promise<Told> {
  const [uid] = call.args
  return told(
    call.api.call<Applied>('PATCH', at`/models/${uid}`, { enabled }),
    ({ version }) => `${uid} is ${enabled ? 'enabled' : 'disabled'} from version ${version} on.`,
  )
}
