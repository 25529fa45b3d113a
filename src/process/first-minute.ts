// What `npm start` prints: the address, an account with credits, a key that is shown once, and a call that works.
import { isSandbox } from '../catalog/document.ts'
import type { Gateway } from '../compose.ts'
import type { Config } from '../config.ts'
import { statement } from '../database/database.ts'
import { setupLink } from '../identity/people.ts'
import type { DataDirectory } from './data-directory.ts'

/** Exactly one of several processes that start on an empty database creates the first account. */
const FIRST = statement(
  'first_account',
  `insert into setting (name, value) select 'first_account', 'made' where not exists (select 1 from account)
   on conflict (name) do nothing returning name`,
)
const FIRST_CREDITS = 1_000_000_000n

interface FirstMinuteOptions {
  readonly gateway: Gateway
  readonly config: Config
  readonly directory: DataDirectory
  readonly url: string
  readonly store: string
  readonly seconds: number
  readonly say: (line: string) => void
}

export async function firstMinute({ gateway, directory, url, store, seconds, say }: FirstMinuteOptions): Promise<void> {
  const { database, catalog } = gateway
  const simulated = Object.entries(catalog.current.document.vendors).filter(([, vendor]) => isSandbox(vendor.baseUrl))
  const [mine] = await database.query(FIRST)
  const first = mine ? await createFirstAccount(gateway) : undefined
  const setup = await gateway.office.people.openSetup()

  say('')
  say(`  Tollgate is ready after ${seconds.toFixed(1)} s.`)
  say('')
  say(`  API       ${url}`)
  say(`  Console   ${url}/console`)
  say(`  Docs      ${url}/docs`)
  say(`  Store     ${store}`)
  if (simulated.length > 0)
    say(
      `  Vendors   ${simulated.length} of ${Object.keys(catalog.current.document.vendors).length} are simulated (${simulated.map(([name]) => name).join(', ')}): no vendor key needed, answers are not real.`,
    )
  if (directory.tokenIsNew) {
    say('')
    say(`  Operator token, for /admin/v1 and the command line; kept in the data directory, shown once:`)
    say(`    ${directory.operatorToken}`)
  }
  if (setup !== undefined) {
    say('')
    say('  Your console login is made with this link, which works once:')
    say(`    ${setupLink(url, setup)}`)
  }
  if (first) {
    say('')
    say('  An account with 1000 credits was made for you. Its key, shown once:')
    say(`    ${first.key}`)
    say('')
    say('  Try it:')
    say(`    curl ${url}/v1/chat-completions \\`)
    say(`      -H "Authorization: Bearer ${first.key}" \\`)
    say(`      -H "Content-Type: application/json" \\`)
    say(`      -d '{"model":"alpha-5.4","messages":[{"role":"user","content":"Hello!"}]}'`)
  }
  if (simulated.length > 0) {
    say('')
    say(
      '  To connect a real vendor: npx tollgate connect openai --key-env OPENAI_API_KEY --markup 1.2, or “Add vendor” in the console.',
    )
  }
  say('')
}

async function createFirstAccount({ accounts, keys }: Gateway): Promise<{ key: string }> {
  const by = { actor: 'system', ip: null, requestId: null }
  const account = await accounts.create({ name: 'First account', credits: FIRST_CREDITS }, by)
  return keys.create(account, { name: 'First key' }, by)
}
