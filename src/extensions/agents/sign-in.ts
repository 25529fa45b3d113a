// Sign-ins of this machine's person at gateways, as the command line keeps them: one file, which only that person may
// read. A fresh token is printed for agents that run a command for it. Refresh tokens are good once, so processes take
// turns.
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Api, createApi } from '../../cli/api.ts'
import { CliError, type Invocation } from '../../cli/command.ts'
import { sleep } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import { modelsFor } from './setup/programs.ts'
import { type OwnSettings, SETTINGS_PATH } from './views.ts'

interface SignIn {
  readonly clientId: string
  readonly accessToken: string
  readonly refreshToken: string
  readonly gotMs: number
  readonly endsMs: number
}

interface Kept {
  /** The gateway of the latest sign-in. */
  readonly last?: string | undefined
  readonly gateways: Readonly<Record<string, SignIn>>
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const SCOPE = 'api mcp offline_access'
const POLL_SECONDS = 5
/** A program that is given a token may use it for this long. */
const LEFT_MS_MIN = 15 * 60_000
/** Whoever holds the lock for longer is not coming back, even if a process has its number. */
const LOCK_MS_MAX = 30_000
const LOCK_WAIT_MS = 50

type Call = Pick<Invocation, 'settings' | 'world' | 'note'>

/** Shows a code and a link, waits for the person's consent, and keeps the tokens. */
export async function signIn(call: Call, gateway: string, program: string): Promise<void> {
  await asking(call, gateway, async (api) => {
    const kept = await read(fileOf(call))
    const known = kept.gateways[gateway]?.clientId
    let clientId = known ?? (await register(api, program))
    let begun = await api.form('/oauth/device', { client_id: clientId, scope: SCOPE })
    if (known !== undefined && begun.status === 401) {
      clientId = await register(api, program)
      begun = await api.form('/oauth/device', { client_id: clientId, scope: SCOPE })
    }
    const code = textIn(begun, 'device_code')
    call.note(
      `Open ${textIn(begun, 'verification_uri_complete')}\nand check that it shows the code ${textIn(begun, 'user_code')}.\n`,
    )
    const signedIn = signInOf(await poll(api, call.world, clientId, code), clientId, call.world)
    await locked(call, async (file) => {
      const { gateways } = await read(file)
      await write(file, { last: gateway, gateways: { ...gateways, [gateway]: signedIn } })
    })
  })
}

/** A token that lives for a while yet. */
export async function freshToken(call: Call, gateway?: string): Promise<string> {
  const known = await find(call, gateway)
  if (isFresh(known.signIn, call.world)) return known.signIn.accessToken
  return locked(call, async (file) => {
    // Another process may have been quicker.
    const { signIn: now, at, kept } = await find(call, known.at)
    if (isFresh(now, call.world)) return now.accessToken
    const fields = { grant_type: 'refresh_token', refresh_token: now.refreshToken, client_id: now.clientId }
    const answer = await asking(call, at, (api) => api.form('/oauth/token', fields))
    if (answer.status === 400 || answer.status === 401) {
      const { [at]: _, ...gateways } = kept.gateways
      await write(file, { last: kept.last === at ? undefined : kept.last, gateways })
      throw new CliError(`The sign-in at ${at} has ended. Sign in again: tollgate login ${at}`)
    }
    const next = signInOf(answer, now.clientId, call.world)
    await write(file, { ...kept, gateways: { ...kept.gateways, [at]: next } })
    return next.accessToken
  })
}

export async function isSignedIn(call: Call, gateway: string): Promise<boolean> {
  return freshToken(call, gateway).then(
    () => true,
    (error: unknown) => {
      if (error instanceof CliError) return false
      throw error
    },
  )
}

/** What the person's agents may use, as their team has set it. */
export async function ownModels(call: Call, gateway: string): Promise<ReturnType<typeof modelsFor>> {
  const key = await freshToken(call, gateway)
  const { value } = await asking(call, gateway, (api) => api.ask('GET', SETTINGS_PATH, { key }))
  const { models, defaultModel, smallModel } = (value as { data: OwnSettings }).data // As settings.ts writes it.
  return modelsFor(models, { model: defaultModel, small: smallModel })
}

export async function signOut(call: Call, gateway?: string): Promise<string> {
  return locked(call, async (file) => {
    const { signIn: known, at, kept } = await find(call, gateway)
    const fields = { token: known.refreshToken, client_id: known.clientId }
    await asking(call, at, (api) => api.form('/oauth/revoke', fields))
    const { [at]: _, ...gateways } = kept.gateways
    await write(file, { last: kept.last === at ? undefined : kept.last, gateways })
    return at
  })
}

async function register(api: Api, program: string): Promise<string> {
  const grants = { grant_types: [DEVICE_GRANT, 'refresh_token'], response_types: [], redirect_uris: [] }
  const answer = await api.post('/oauth/register', { client_name: program, ...grants })
  return textIn(answer, 'client_id')
}

async function poll(api: Api, world: World, clientId: string, code: string): Promise<Answer> {
  let seconds = POLL_SECONDS
  for (;;) {
    await sleep(world, seconds * 1000)
    const answer = await api.form('/oauth/token', { grant_type: DEVICE_GRANT, device_code: code, client_id: clientId })
    const { error } = answer.value
    if (error === 'slow_down' || answer.status === 429) seconds += POLL_SECONDS
    else if (error === 'access_denied') throw new CliError('The sign-in was denied in the console.')
    else if (error === 'expired_token' || error === 'invalid_grant')
      throw new CliError('The code has expired. Run the command again.')
    else if (error !== 'authorization_pending') return answer
  }
}

type Answer = Awaited<ReturnType<Api['form']>>

function signInOf(answer: Answer, clientId: string, world: World): SignIn {
  const gotMs = world.nowMs()
  const seconds = Number(answer.value.expires_in)
  const tokens = { accessToken: textIn(answer, 'access_token'), refreshToken: textIn(answer, 'refresh_token') }
  return { clientId, ...tokens, gotMs, endsMs: gotMs + (Number.isFinite(seconds) ? seconds * 1000 : 0) }
}

function textIn({ status, value }: Answer, name: string): string {
  const found = value[name]
  if (status < 300 && typeof found === 'string') return found
  const said = value.error_description ?? value.message
  throw new CliError(typeof said === 'string' ? said : `The gateway answered ${status}.`)
}

/** A clock that was put back must not make an old token look new. */
const isFresh = ({ gotMs, endsMs }: SignIn, world: World) =>
  world.nowMs() >= gotMs && endsMs - world.nowMs() > LEFT_MS_MIN

async function find(call: Call, gateway?: string) {
  const kept = await read(fileOf(call))
  const at = gateway ?? kept.last
  const found = at === undefined ? undefined : kept.gateways[at]
  if (at !== undefined && found) return { signIn: found, at, kept }
  throw new CliError(`You are not signed in${at ? ` at ${at}` : ''}. Sign in: tollgate login ${at ?? '<address>'}`)
}

async function asking<T>({ settings, world }: Call, gateway: string, run: (api: Api) => Promise<T>): Promise<T> {
  const api = createApi({ ...settings, url: gateway, urlSource: 'the address of the sign-in' }, world)
  try {
    return await run(api)
  } finally {
    await api.close()
  }
}

function fileOf({ settings: { loginFile } }: Call): string {
  if (loginFile === undefined) throw new CliError('There is no home directory to keep a sign-in in.')
  return loginFile
}

async function read(file: string): Promise<Kept> {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  if (content === '') return { gateways: {} }
  try {
    return JSON.parse(content) as Kept // Written below, by this program.
  } catch {
    throw new CliError(`${file} cannot be read. Remove it, and sign in again: tollgate login <address>`)
  }
}

/** Replaced as a whole: an interruption leaves the old one. */
async function write(file: string, kept: Kept): Promise<void> {
  await writeFile(`${file}.new`, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
}

async function locked<T>(call: Call, run: (file: string) => Promise<T>): Promise<T> {
  const file = fileOf(call)
  const lock = `${file}.lock`
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const untilMs = call.world.elapsedMs() + LOCK_MS_MAX
  while (!(await take(lock))) {
    const holder = await readFile(lock, 'utf8').catch(() => undefined)
    if (holder !== undefined && (isDead(holder) || call.world.elapsedMs() > untilMs)) await rm(lock, { force: true })
    else await sleep(call.world, LOCK_WAIT_MS)
  }
  try {
    return await run(file)
  } finally {
    await rm(lock, { force: true })
  }
}

async function take(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false // What writeFile throws has a code.
    throw error
  }
}

function isDead(holder: string): boolean {
  if (holder === '') return false
  try {
    process.kill(Number(holder), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EPERM' // What kill throws has a code.
  }
}
