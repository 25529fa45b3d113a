import { writeFile } from 'node:fs/promises'
import { checkDocument, isSandbox } from '../catalog/document.ts'
import { parseDocument, readDocumentFile } from '../catalog/document-file.ts'
import { listChanges } from '../catalog/store.ts'
import type { Applied, CurrentView, VersionView } from '../catalog/views.ts'
import type { Page } from '../kernel/view.ts'
import { CliError, type Command, type Invocation, text } from './command.ts'
import { table } from './table.ts'

async function readDocument(call: Invocation): Promise<unknown> {
  const file = call.args[0]!
  try {
    return file === '-' ? parseDocument(file, await call.input()) : await readDocumentFile(file)
  } catch (error) {
    throw new CliError((error as Error).message)
  }
}

function sayChanges(call: Invocation, changes: readonly string[]): void {
  call.say(changes.length === 0 ? 'Nothing differs.' : changes.map((change) => `  ${change}`).join('\n'))
}

/** Vendors whose credential is not in this environment; it may still be stored in the gateway. */
function missingCredentials(call: Invocation, document: unknown): string[] {
  const checked = checkDocument(document)
  if (!checked.ok) return []
  return Object.entries(checked.document.vendors).flatMap(([name, { credential, baseUrl }]) =>
    credential !== undefined && !isSandbox(baseUrl) && call.settings.credential(credential) === undefined
      ? [
          `Vendor "${name}" needs the credential ${credential}, which is not in this environment. Set it where the gateway runs, or store it: tollgate vendors credential ${name}`,
        ]
      : [],
  )
}

export const CATALOG_COMMANDS: readonly Command[] = [
  {
    name: 'catalog check',
    summary: 'Says what is wrong with a catalogue document. Needs no running gateway.',
    args: ['file'],
    about: 'Exits with 1 when the document would be refused. "-" reads standard input.',
    async run(call) {
      const document = await readDocument(call)
      const checked = checkDocument(document)
      const problems = checked.ok ? [] : checked.problems
      const notes = missingCredentials(call, document)
      if (call.json) call.say(JSON.stringify({ ok: checked.ok, problems, notes }))
      else if (checked.ok) {
        const { vendors, models, endpoints } = checked.document
        const count = (map: object) => Object.keys(map).length
        call.say(
          `The catalogue is valid: ${count(vendors)} vendors, ${count(models)} models, ${count(endpoints)} endpoints.`,
        )
        for (const note of notes) call.say(`Note: ${note}`)
      } else call.say(`The catalogue is not valid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
      return checked.ok ? 0 : 1
    },
  },
  {
    name: 'catalog diff',
    summary: 'What applying a document would change.',
    args: ['file'],
    async run(call) {
      const document = await readDocument(call)
      const current = await call.api.call<CurrentView>('GET', '/catalog')
      const changes = listChanges(current.document, document)
      if (call.json) call.say(JSON.stringify({ changes }))
      else sayChanges(call, changes)
    },
  },
  {
    name: 'catalog apply',
    summary: 'Makes a document the current catalogue, as a new version.',
    args: ['file'],
    options: { note: { type: 'string', value: 'text', help: 'Why; it stays with the version.' } },
    async run(call) {
      const document = await readDocument(call)
      const applied = await call.api.call<Applied>('PUT', '/catalog', {
        document,
        note: text(call, 'note'),
      })
      if (call.json) return call.say(JSON.stringify(applied))
      call.say(`Version ${applied.version} is in force.`)
      sayChanges(call, applied.changes)
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
      if (file === undefined) return call.say(content)
      await writeFile(file, `${content}\n`)
      call.say(`Written to ${file}.`)
    },
  },
  {
    name: 'catalog versions',
    summary: 'The versions that there were, newest first.',
    async run(call) {
      const { items } = await call.api.call<Page<VersionView>>('GET', '/catalog/versions')
      if (call.json) return call.say(JSON.stringify(items))
      call.say(
        table(
          ['VERSION', 'SINCE', 'BY', 'NOTE'],
          items.map((row) => [row.version, row.appliedAt, row.actor, row.note]),
        ),
      )
    },
  },
  {
    name: 'catalog rollback',
    summary: 'Applies an earlier version anew.',
    args: ['version'],
    async run(call) {
      const version = Number(call.args[0])
      if (!Number.isInteger(version) || version < 1)
        throw new CliError('The version is a number; see: tollgate catalog versions', 2)
      const applied = await call.api.call<Applied>('POST', '/catalog/rollback', {
        version,
      })
      if (call.json) return call.say(JSON.stringify(applied))
      call.say(`Version ${applied.version} is in force; it is version ${version} again.`)
      sayChanges(call, applied.changes)
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

async function setEnabled(call: Invocation, enabled: boolean): Promise<void> {
  const uid = call.args[0]!
  const applied = await call.api.call<Applied>('PATCH', `/models/${encodeURIComponent(uid)}`, { enabled })
  if (call.json) return call.say(JSON.stringify(applied))
  call.say(`${uid} is ${enabled ? 'enabled' : 'disabled'} from version ${applied.version} on.`)
}
