// The command line: serve, sandbox, and the operator's verbs.
import cluster from 'node:cluster'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Settings } from './cli/command.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { VERSION } from './kernel/version.ts'
import { realWorld } from './kernel/world.ts'
import { watchForStop } from './process/stop.ts'

const OTHER_VERBS = [
  ['serve', 'Starts the gateway. This is what npm start does.'],
  ['sandbox', 'Starts only the simulated vendors, to test clients or another gateway with.'],
  [
    'backup',
    'Writes the whole database, with every ledger, into one file while the gateway runs: tollgate backup FILE',
  ],
  [
    'restore',
    'Reads such a file into an empty database, or one for each ledger, and verifies it: tollgate restore FILE',
  ],
  [
    'migrate',
    'Brings the database to this version, as the start of a gateway does; with --plan, only says what would be locked, and for how many rows.',
  ],
  ['version', 'Prints the version.'],
] as const

async function main(args: readonly string[]): Promise<number> {
  const [verb] = args
  if (verb === 'serve' && !asksForHelp(args)) {
    // Loaded only here: the other verbs are clients, and answer sooner without a server in memory.
    const { serve } = await import('./process/serve.ts')
    await serve(readSettings(), async (of) => (await import('./extensions/postgres/embedded.ts')).startEmbedded(of))
    return 0
  }
  if (verb === 'sandbox' && !asksForHelp(args)) return sandbox(args.slice(1))
  if ((verb === 'backup' || verb === 'restore') && !asksForHelp(args)) return archive(verb, args[1])
  if (verb === 'migrate' && !asksForHelp(args)) return upgrade(args.slice(1))
  if (verb === 'version' || verb === '--version') {
    process.stdout.write(`${VERSION}\n`)
    return 0
  }
  const other = OTHER_VERBS.find(([name]) => name === verb)
  if (other) {
    process.stdout.write(`tollgate ${other[0]}${verb === 'sandbox' ? ' [port]' : ''}\n\n${other[1]}\n`)
    return 0
  }
  const [{ runCli }, { painted }] = await Promise.all([import('./cli/run.ts'), import('./cli/paint.ts')])
  // NO_COLOR and the like are known to the stream.
  const isColored = process.stdout.isTTY && process.stdout.hasColors()
  return runCli({
    args,
    world: realWorld,
    otherVerbs: OTHER_VERBS,
    settings: () => settingsOf(readSettings()),
    terminal: {
      out: (text) => process.stdout.write(isColored ? painted(text) : text),
      err: (text) => process.stderr.write(text),
      input: readInput,
      ask: process.stdin.isTTY && process.stderr.isTTY ? askPerson : undefined,
    },
  })
}

function readSettings(): Config {
  const config = readConfig()
  // Once, and not by each of several processes.
  if (cluster.isPrimary) for (const warning of config.warnings) process.stderr.write(`tollgate: ${warning}\n`)
  return config
}

function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h')
}

async function archive(verb: 'backup' | 'restore', file: string | undefined): Promise<number> {
  if (file === undefined) {
    process.stderr.write(`tollgate: say which file: tollgate ${verb} FILE\n`)
    return 2
  }
  const run = (await import('./extensions/backup/commands.ts'))[verb]
  await run(readSettings(), file, (line) => process.stdout.write(`${line}\n`), watchForStop().signal)
  return 0
}

async function upgrade(options: readonly string[]): Promise<number> {
  const other = options.find((option) => option !== '--plan')
  if (other !== undefined) {
    process.stderr.write(`tollgate: migrate has one option, --plan, and not "${other}".\n`)
    return 2
  }
  const { upgradeStore } = await import('./extensions/postgres/upgrade.ts')
  const plan = options.includes('--plan')
  await upgradeStore(readSettings(), { plan }, (line) => process.stdout.write(`${line}\n`), watchForStop().signal)
  return 0
}

async function sandbox(args: readonly string[]): Promise<number> {
  const config = readSettings()
  const given = args[0] ?? config.environment('PORT') ?? '0'
  const port = Number(given)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    process.stderr.write(`tollgate: the port must be a number from 0 to 65535, not "${given}".\n`)
    return 2
  }
  const { startSandbox } = await import('../sandbox/server.ts')
  const running = await startSandbox({ world: realWorld, port, speed: config.TOLLGATE_SANDBOX_SPEED })
  process.stdout.write(`The simulated vendors listen at ${running.url}. Ctrl-C ends them.\n`)
  await watchForStop().asked
  await running.close()
  return 0
}

/** Where the gateway is and what its token is: from the environment, else from what it left in its data directory. */
async function settingsOf(config: Config): Promise<Settings> {
  const { dataDirectory } = config
  const { readServerFile } = await import('./process/data-directory.ts')
  const server = await readServerFile(dataDirectory)
  const [url, urlSource] = config.TOLLGATE_URL
    ? [config.TOLLGATE_URL, 'from TOLLGATE_URL']
    : server
      ? [server.url, `from ${join(dataDirectory, 'server.json')}`]
      : [`http://${config.HOST}:${config.PORT}`, 'from HOST and PORT']
  const tokenFile = join(dataDirectory, 'operator-token')
  const kept = await readFile(tokenFile, 'utf8').then(
    (text) => text.trim() || undefined,
    () => undefined,
  )
  return {
    url,
    urlSource,
    token: config.TOLLGATE_OPERATOR_TOKEN ?? kept,
    apiKey: config.TOLLGATE_KEY,
    tokenSource: config.TOLLGATE_OPERATOR_TOKEN ? 'TOLLGATE_OPERATOR_TOKEN' : tokenFile,
    dataDirectory,
    databaseUrl: config.DATABASE_URL,
    ledgers: config.TOLLGATE_LEDGERS,
    secret: config.TOLLGATE_SECRET,
    publicUrl: config.PUBLIC_URL,
    trustProxy: config.TOLLGATE_TRUST_PROXY,
    host: config.HOST,
    codexHome: config.codexHome,
    loginFile: config.loginFile,
    program: [process.execPath, ...process.argv.slice(1, 2)],
    server,
    credential: (name) => config.vendorKeys.get(name),
    environment: config.environment,
    version: VERSION,
  }
}

async function askPerson(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  // Whoever ends the input has not agreed.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  try {
    return await Promise.race([lines.question(question), ended])
  } finally {
    lines.close()
  }
}

async function readInput(): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of process.stdin) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}

// Whoever reads us through a pipe may have seen enough, or has closed the terminal; a gateway has work to do all the
// same.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error
  if (process.argv[2] !== 'serve') process.exit(0)
})

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  // What was expected to go wrong says so in a sentence; the rest shows where.
  const expected = error instanceof ConfigError || (error instanceof Error && error.name === 'Error')
  process.stderr.write(`tollgate: ${expected ? (error as Error).message : (error as Error).stack}\n`)
  // At once: a start that failed halfway has timers and connections open, which nobody is left to close.
  process.exit(1)
}
