// Coding agents set up for this gateway, as text to copy or as files of a project.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkDocument } from '../catalog/document.ts'
import { readDefaultCatalog } from '../compose.ts'
import { type AgentSetup, agentSetups, CODEX_HOME, limitsFor, modelFor } from '../http/agent-setup.ts'
import { mergeCodexConfig } from './codex-config.ts'
import { CliError, type Command, type Invocation, text, told } from './command.ts'

const PROGRAMS = agentSetups({ url: '', model: () => '', limits: () => ({}) }).map(({ name }) => name)

export const AGENT_SETUP_COMMAND: Command = {
  name: 'agent-setup',
  summary: 'The configuration of a coding agent: text models and tools.',
  about: `Programs: ${PROGRAMS.join(', ')}. The key stays in the environment variable TOLLGATE_KEY; no file holds it.`,
  args: ['program'],
  options: {
    model: { type: 'string', value: 'id', help: 'The text model; one of the shipped catalog without it.' },
    gateway: { type: 'string', value: 'address', help: 'Where agents reach the gateway, if not at PUBLIC_URL.' },
    write: {
      type: 'string',
      value: 'directory',
      help: "Writes the files there; none that exists is changed. Codex's goes to its home, and keeps what is there.",
    },
  },
  async run(call) {
    const setup = await find(call)
    const directory = text(call, 'write')
    const place = (path: string) =>
      path.startsWith(CODEX_HOME)
        ? join(call.settings.codexHome, path.slice(CODEX_HOME.length))
        : join(directory ?? '.', path)
    if (directory !== undefined) await write(setup, place)
    return told(setup, ({ files, note }) =>
      [...files.map((file) => (directory === undefined ? show(file) : `Wrote ${place(file.path)}`)), note, ''].join(
        '\n',
      ),
    )
  },
}

async function find(call: Invocation): Promise<AgentSetup> {
  const checked = checkDocument(await readDefaultCatalog())
  const models = checked.ok ? checked.document.models : {}
  const given = text(call, 'model')
  const { publicUrl, url } = call.settings
  const about = {
    url: (text(call, 'gateway') ?? publicUrl ?? url).replace(/\/$/, ''),
    model: given === undefined ? modelFor(models) : () => given,
    limits: limitsFor(models),
  }
  const setup = agentSetups(about).find(({ name }) => name === call.args[0])
  if (!setup) throw new CliError(`There is no setup for "${call.args[0]}"; there are ${PROGRAMS.join(', ')}.`, 2)
  return setup
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

/** It is a person's only configuration of that program: exchanged whole, so that a cut leaves the old one. */
async function merge(target: string, content: string): Promise<void> {
  const there = await readFile(target, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const made = `${target}.new`
  await writeFile(made, there === '' ? content : mergeCodexConfig(there, content), { mode: 0o600 })
  await rename(made, target)
}
