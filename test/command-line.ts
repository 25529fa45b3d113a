// The command line inside a test, asking an operator server.
import assert from 'node:assert/strict'
import { runCli } from '../src/cli/run.ts'
import { realWorld } from '../src/kernel/world.ts'
import { OPERATOR_TOKEN, type OperatorServer } from './operator-server.ts'

export function commandLineOf(
  server: () => Pick<OperatorServer, 'url'> & { readonly token?: string },
  secrets: Readonly<Record<string, string>> = {},
) {
  async function run(args: string[]) {
    const said = { out: '', err: '' }
    const code = await runCli({
      args,
      world: realWorld,
      otherVerbs: [],
      settings: () => ({
        url: server().url,
        urlSource: 'from a test',
        token: server().token ?? OPERATOR_TOKEN,
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
      }),
      terminal: {
        out(text) {
          said.out += text
        },
        err(text) {
          said.err += text
        },
        input: async () => '',
      },
    })
    return { code, ...said }
  }

  async function json<T>(args: string[]): Promise<T> {
    const { code, out, err } = await run([...args, '--json'])
    assert.equal(code, 0, err)
    return JSON.parse(out)
  }

  return { run, json }
}
