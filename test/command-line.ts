// The command line inside a test, asking a gateway.
import assert from 'node:assert/strict'
import type { Settings } from '../src/cli/command.ts'
import { runCli } from '../src/cli/run.ts'
import { realWorld, type World } from '../src/kernel/world.ts'
import { OPERATOR_TOKEN } from './gateway.ts'

/** Besides settings, of which those that are absent are as in a folder where nothing was set up. */
export interface Given extends Partial<Settings> {
  /** In its environment, and as credentials of vendors. */
  readonly secrets?: Readonly<Record<string, string>>
  /** All of its standard input. */
  readonly input?: string
  /** The person at the terminal; absent: nobody is there. */
  readonly ask?: ((question: string) => Promise<string>) | undefined
  /** Hears what goes to stderr while it runs. */
  readonly seen?: (text: string) => unknown
  readonly world?: World
}

export function commandLineOf(server: () => { readonly url: string }, always: Given = {}) {
  async function run(args: readonly string[], given: Given = {}) {
    const { secrets = {}, input = '', ask, seen, world = realWorld, ...settings } = { ...always, ...given }
    const said = { out: '', err: '', all: '' }
    const code = await runCli({
      args,
      world,
      otherVerbs: [['serve', 'Starts the gateway.']],
      settings: () => ({
        url: server().url,
        urlSource: 'from a test',
        token: OPERATOR_TOKEN,
        tokenSource: 'a test',
        apiKey: undefined,
        dataDirectory: '',
        databaseUrl: undefined,
        publicUrl: undefined,
        trustProxy: '',
        host: '127.0.0.1',
        codexHome: '',
        server: undefined,
        version: '0.0.0-test',
        credential: (name) => secrets[name],
        environment: (name) => secrets[name],
        ...settings,
      }),
      terminal: {
        out(text) {
          said.out += text
          said.all += text
        },
        err(text) {
          said.err += text
          said.all += text
          seen?.(text)
        },
        input: async () => input,
        ask,
      },
    })
    return { code, ...said }
  }

  async function json<T>(args: readonly string[], given: Given = {}): Promise<T> {
    const { code, out, err } = await run([...args, '--json'], given)
    assert.equal(code, 0, err)
    return JSON.parse(out)
  }

  return { run, json }
}
