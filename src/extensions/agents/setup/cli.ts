// Configuration of coding agents for this gateway, as text to copy or as project files.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkDocument } from '../../../catalog/document.ts'
import { CliError, type Command, type Invocation, type Told, takes, text, told } from '../../../cli/command.ts'
import { readDefaultCatalog } from '../../../compose.ts'
import { type AgentSetup, agentSetups, CODEX_HOME, modelsFor, type OfferedModel, offeredModels } from './programs.ts'

export const PROGRAMS: readonly string[] = agentSetups({ url: '', model: () => '', limits: () => ({}) }).map(
  ({ name }) => name,
)

export const AGENT_SETUP_COMMAND: Command = {
  name: 'agent-setup',
  summary: 'Prints the configuration of a coding agent: text models and tools.',
  about: `Programs: ${PROGRAMS.join(', ')}. The key stays in the environment variable TOLLGATE_KEY; it is not written to a file.`,
  args: ['program'],
  options: {
    model: takes('id', 'The text model; by default one of the shipped catalog.'),
    gateway: takes('address', 'The address of the gateway for agents, if it is not PUBLIC_URL.'),
    write: takes(
      'directory',
      "Writes the files there; existing files are not changed. Codex's file is in its home and keeps its other settings.",
    ),
  },
  run: (call) => setUpAgent(call, { gateway: text(call, 'gateway'), directory: text(call, 'write') }),
}

interface Setting {
  /** A command that prints a token; absent: the key in the environment. */
  readonly helper?: readonly string[]
  readonly gateway?: string | undefined
  /** Those of the gateway, and the chosen ones. Absent: those of the shipped catalog. */
  readonly models?: ReturnType<typeof modelsFor>
  /** Absent: the files are shown. */
  readonly directory?: string | undefined
}

export async function setUpAgent(call: Invocation, setting: Setting): Promise<Told> {
  const { directory } = setting
  const setup = await find(call, setting)
  const place = (path: string) =>
    path.startsWith(CODEX_HOME)
      ? join(call.settings.codexHome, path.slice(CODEX_HOME.length))
      : join(directory ?? '.', path)
  if (directory !== undefined) await write(setup, place)
  return told(setup, ({ files, note }) =>
    [...files.map((file) => (directory === undefined ? show(file) : `Wrote ${place(file.path)}`)), note, ''].join('\n'),
  )
}

async function find(call: Invocation, { helper, gateway, models }: Setting): Promise<AgentSetup> {
  const known = models ?? modelsFor(await shippedModels())
  const given = text(call, 'model')
  const { publicUrl, url } = call.settings
  const about = {
    ...known,
    ...(given === undefined ? {} : { model: () => given }),
    url: (gateway ?? publicUrl ?? url).replace(/\/$/, ''),
    helper,
  }
  const setup = agentSetups(about).find(({ name }) => name === call.args[0])
  if (!setup) throw new CliError(`There is no setup for "${call.args[0]}"; there are ${PROGRAMS.join(', ')}.`, 2)
  return setup
}

async function shippedModels(): Promise<OfferedModel[]> {
  const checked = checkDocument(await readDefaultCatalog())
  return checked.ok ? offeredModels(checked.document.models) : []
}

function show({ path, text: content }: AgentSetup['files'][number]): string {
  return `# ${path}\n${content}`
}

async function write({ files }: AgentSetup, place: (path: string) => string): Promise<void> {
  for (const { path, text: content } of files) {
    const target = place(path)
    await mkdir(dirname(target), { recursive: true })
    if (path.startsWith(CODEX_HOME)) await merge(target, content)
    else await create(target, content)
  }
}

async function create(target: string, content: string): Promise<void> {
  try {
    await writeFile(target, content, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error // What writeFile throws has a code.
    throw new CliError(
      `${target} exists, and is not changed. Run the command without --write and copy what is missing.`,
    )
  }
}

/**
 * The file is the person's only configuration of that program, so it is replaced atomically: an interruption leaves the
 * old one.
 */
async function merge(target: string, content: string): Promise<void> {
  const there = await readFile(target, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const made = `${target}.new`
  await writeFile(made, there === '' ? content : mergeCodexConfig(there, content), { mode: 0o600 })
  await rename(made, target)
}

// Adds this gateway to Codex's configuration. Other settings stay unchanged; settings that conflict are commented out.

interface Section {
  /** Undefined: the part before the first table. */
  readonly table: string | undefined
  lines: string[]
}

const KEY = /^\s*([\w-]+|"[^"]*")\s*=/
const ONE_LINE = /^\s*[\w-]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w.+-]+)\s*(?:#.*)?$/
/** Tables in another notation than a heading could define ours a second time, which Codex would reject. */
const INLINE = /^\s*(?:model_providers|mcp_servers)\s*[.=]/

function mergeCodexConfig(there: string, ours: string): string {
  const wanted = sectionsOf(ours)
  const sections = sectionsOf(there).filter(({ table }) => !wanted.some((own) => table && own.table === table))
  const [top = { table: undefined, lines: [] }, ...tables] = sections
  const [ownTop, ...ownTables] = wanted
  return [
    ...(ownTop ? [...ownTop.lines.filter((line) => line !== ''), ...yielding(top.lines, ownTop.lines)] : top.lines),
    ...tables.flatMap(({ lines }) => lines),
    ...separated(tables.at(-1)?.lines ?? top.lines),
    ...ownTables.flatMap(({ lines }) => lines),
  ].join('\n')
}

const separated = (before: readonly string[]): string[] => (before.at(-1) === '' || before.length === 0 ? [] : [''])

/** The lines, with those commented out whose key we set. */
function yielding(lines: readonly string[], ours: readonly string[]): string[] {
  const set = new Map(ours.map((line) => [KEY.exec(line)?.[1], line]))
  return lines.flatMap((line) => {
    if (INLINE.test(line)) throw unreadable(line)
    const key = KEY.exec(line)?.[1]
    const own = key === undefined ? undefined : set.get(key)
    if (own === undefined) return [line]
    if (!ONE_LINE.test(line)) throw unreadable(line)
    return line.trim() === own ? [] : [`# before Tollgate: ${line.trim()}`]
  })
}

function unreadable(line: string): CliError {
  return new CliError(
    `The line "${line.trim().slice(0, 60)}" of the configuration of Codex cannot be changed safely. Run the command without --write and copy what is missing.`,
  )
}

/** Splits by headings; a line inside a multi-line string is not a heading. */
function sectionsOf(text: string): Section[] {
  const sections: Section[] = [{ table: undefined, lines: [] }]
  let quote: string | undefined
  for (const line of text.split(/\r?\n/)) {
    const heading = quote === undefined ? /^\s*\[([^[\]]+)\]\s*(?:#.*)?$/.exec(line)?.[1] : undefined
    const isList = quote === undefined && /^\s*\[\[/.test(line)
    if (heading !== undefined || isList) sections.push({ table: heading?.replaceAll(/[\s"']/g, '') ?? line, lines: [] })
    for (const [found] of line.matchAll(/"""|'''/g))
      quote = quote === undefined ? found : quote === found ? undefined : quote
    sections.at(-1)?.lines.push(line)
  }
  return sections
}
