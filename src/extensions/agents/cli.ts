// What a person types on the machine where an agent runs: sign in, and set the agent up, so that no key is copied or
// stored.
import { hostname } from 'node:os'
import { CliError, type Command, type Invocation, takes, text, told } from '../../cli/command.ts'
import { PROGRAMS, setUpAgent } from './setup/cli.ts'
import { freshToken, isSignedIn, ownModels, signIn, signOut } from './sign-in.ts'

const GATEWAY = takes('address', 'The gateway; by default the one of the latest sign-in.')

const addressOf = (given: string) => {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url && /^https?:$/.test(url.protocol)) return url.origin
  throw new CliError(`"${given}" is not the address of a gateway, such as https://gateway.example.com.`, 2)
}

const gatewayOf = (call: Invocation) => {
  const given = text(call, 'gateway')
  return given === undefined ? undefined : addressOf(given)
}

const own = ({ settings: { publicUrl, url } }: Invocation) => addressOf(publicUrl ?? url)

export const SIGN_IN_COMMANDS: readonly Command[] = [
  {
    name: 'login',
    summary: 'Signs you in at a gateway: shows a link and a code that you check in your browser, on any machine.',
    about: 'No key is made. The tokens are kept in your home, for you only, and renewed by "tollgate token".',
    args: ['[address]'],
    async run(call) {
      const [given] = call.args
      const gateway = given === undefined ? own(call) : addressOf(given)
      await signIn(call, gateway, `Tollgate on ${hostname()}`)
      return told({ gateway }, () => `You are signed in at ${gateway}.`)
    },
  },
  {
    name: 'token',
    summary:
      'Prints an access token of your sign-in, good for at least 15 minutes. Agents run this instead of storing a key.',
    options: { gateway: GATEWAY },
    run: async (call) => told({ token: await freshToken(call, gatewayOf(call)) }, ({ token }) => token),
  },
  {
    name: 'logout',
    summary: 'Ends your sign-in, here and at the gateway.',
    options: { gateway: GATEWAY },
    run: async (call) =>
      told({ gateway: await signOut(call, gatewayOf(call)) }, ({ gateway }) => `You are signed out at ${gateway}.`),
  },
  {
    name: 'agent',
    summary: 'Sets up a coding agent with your sign-in, and signs you in first if need be. No key is stored.',
    about: `Programs: ${PROGRAMS.join(', ')}. Existing files are not changed, except that Codex's keeps its other settings.`,
    args: ['program'],
    options: {
      model: takes('id', 'The text model; by default one of the shipped catalog.'),
      gateway: takes('address', 'The gateway; by default PUBLIC_URL, or the one of this machine.'),
      write: takes('directory', 'Where the files are written; the current directory by default.'),
    },
    async run(call) {
      const gateway = gatewayOf(call) ?? own(call)
      const [program = ''] = call.args
      if (!PROGRAMS.includes(program)) return setUpAgent(call, {})
      if (!(await isSignedIn(call, gateway))) await signIn(call, gateway, `Tollgate on ${hostname()}`)
      const models = await ownModels(call, gateway)
      const helper = [...(call.settings.program ?? ['npx', 'tollgate']), 'token', '--gateway', gateway]
      return setUpAgent(call, { helper, gateway, models, directory: text(call, 'write') ?? '.' })
    },
  },
]
