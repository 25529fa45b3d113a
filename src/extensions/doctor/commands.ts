// Checks the configuration and what can be reached, and says in sentences what to do.
import { access, constants, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError, type Command, type Invocation, type Settings } from '../../cli/command.ts'
import type { Page } from '../../kernel/view.ts'
import type { AccountView } from '../../ledger/views.ts'
import type { SystemView, VendorView } from '../../operator/views.ts'
import { isAlive } from '../postgres/cluster.ts'

type Verdict = 'ok' | 'note' | 'problem'

interface Finding {
  readonly verdict: Verdict
  readonly about: string
  readonly text: string
}

/** What the extension with the analytics store says of it. */
interface AnalyticsStore {
  readonly place: string | null
  readonly sent: number
  readonly waiting: number
  readonly error: string | null
}

const MARKS: Record<Verdict, string> = { ok: '✓', note: '•', problem: '✗' }

export const DOCTOR_COMMAND: Command = {
  name: 'doctor',
  summary: 'Checks the configuration and connections, and says what is missing.',
  about: 'Exits with 1 if something must be fixed before calls can be served.',
  async run(call) {
    const findings = [
      ...(await examineFiles(call.settings)),
      ...examineAddress(call.settings),
      ...(await examineGateway(call)),
    ]
    const broken = findings.some(({ verdict }) => verdict === 'problem')
    const lines = findings.map(({ verdict, about, text }) => `${MARKS[verdict]} ${about.padEnd(10)} ${text}`)
    const last = broken ? 'Lines marked with ✗ need your attention.' : 'No problems found.'
    return { answer: { ok: !broken, findings }, words: [...lines, '', last].join('\n'), failed: broken }
  },
}

async function examineFiles(settings: Settings): Promise<Finding[]> {
  const findings: Finding[] = []
  const { dataDirectory } = settings
  const found = await stat(dataDirectory).catch(() => undefined)
  if (!found)
    findings.push({
      verdict: settings.databaseUrl === undefined && settings.server === undefined ? 'note' : 'ok',
      about: 'data',
      text: `${dataDirectory} does not exist yet; the first start makes it.`,
    })
  else if (!(await writable(dataDirectory)))
    findings.push({
      verdict: 'problem',
      about: 'data',
      text: `${dataDirectory} cannot be written to. Give it to the user who runs the gateway.`,
    })
  else findings.push({ verdict: 'ok', about: 'data', text: `${dataDirectory} exists and is writable.` })
  for (const name of ['operator-token', 'secret']) {
    const file = await stat(join(dataDirectory, name)).catch(() => undefined)
    if (file && process.platform !== 'win32' && (file.mode & 0o077) !== 0)
      findings.push({
        verdict: 'problem',
        about: 'data',
        text: `${join(dataDirectory, name)} can be read by others. Run: chmod 600 ${join(dataDirectory, name)}`,
      })
  }
  findings.push(
    settings.databaseUrl === undefined
      ? {
          verdict: 'ok',
          about: 'store',
          text: 'No DATABASE_URL: the gateway runs a Postgres of its own in the data directory. Good for one machine; back it up.',
        }
      : {
          verdict: 'ok',
          about: 'store',
          text: 'DATABASE_URL names a Postgres server; every process with the same TOLLGATE_SECRET may share it.',
        },
  )
  return findings
}

async function writable(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  )
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[?::1\]?)$/

function examineAddress({ publicUrl, trustProxy, host }: Settings): Finding[] {
  const open = !LOOPBACK.test(host)
  if (publicUrl === undefined)
    return open
      ? [
          {
            verdict: 'problem',
            about: 'address',
            text: `HOST is ${host}, which others can reach, but PUBLIC_URL is not set. Put TLS in front and set PUBLIC_URL to its https address: the console’s login works only over https or on this machine.`,
          },
        ]
      : [{ verdict: 'ok', about: 'address', text: `It listens on ${host}, which only this machine can reach.` }]
  const url = new URL(publicUrl)
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    return [
      {
        verdict: 'problem',
        about: 'address',
        text: `PUBLIC_URL is plain http. Browsers keep the console’s session cookie only for https or this machine, so nobody could log in; and keys would travel in the clear. Put TLS in front.`,
      },
    ]
  const callers: Finding = { verdict: 'ok', about: 'address', text: `Callers use ${publicUrl}.` }
  if (url.protocol === 'http:') return [callers]
  // The gateway has no TLS itself, so a proxy must be in front of it.
  const proxy: Finding = trustProxy
    ? { verdict: 'ok', about: 'address', text: `The X-Forwarded-For of ${trustProxy} is trusted.` }
    : {
        verdict: 'note',
        about: 'address',
        text: 'TOLLGATE_TRUST_PROXY is not set, so everybody seems to come from the proxy in front: tries to log in are counted together, and address ranges of keys judge the proxy. Set it to the proxy’s address.',
      }
  return [callers, proxy]
}

async function examineGateway(call: Invocation): Promise<Finding[]> {
  const { settings, api } = call
  try {
    const health = await api.probe('/healthz')
    if (health.status !== 200)
      return [
        {
          verdict: 'problem',
          about: 'gateway',
          text: `What answers at ${settings.url} is not a healthy Tollgate: /healthz says ${health.status}.`,
        },
      ]
  } catch (error) {
    const dead = settings.server && !isAlive(settings.server.pid)
    const hint = dead ? ` The gateway that last ran here (pid ${settings.server?.pid}) has ended.` : ''
    return [{ verdict: 'problem', about: 'gateway', text: `${(error as Error).message}${hint}` }]
  }
  const findings: Finding[] = [
    { verdict: 'ok', about: 'gateway', text: `It answers at ${settings.url} (${settings.urlSource}).` },
  ]
  const ready = await api.probe('/readyz').catch(() => undefined)
  if (ready?.status !== 200)
    findings.push({
      verdict: 'problem',
      about: 'gateway',
      text: 'It is not ready: its database does not answer, or it is shutting down.',
    })
  try {
    findings.push({ verdict: 'ok', about: 'token', text: `The operator token is known from ${settings.tokenSource}.` })
    findings.push(...describeSystem(await api.call<SystemView>('GET', '/system'), settings))
    findings.push(...describeVendors((await api.call<Page<VendorView>>('GET', '/vendors')).items))
    findings.push(...(await describeUse(call)))
    findings.push(...describeWarehouse(await api.call<AnalyticsStore>('GET', '/warehouse').catch(() => undefined)))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    findings.pop()
    findings.push({ verdict: 'problem', about: 'token', text: error.message })
  }
  return findings
}

function describeSystem(system: SystemView, settings: Settings): Finding[] {
  const size = `${(system.store.sizeBytes / 1_000_000).toFixed(0)} MB`
  const findings: Finding[] = [
    {
      verdict: 'ok',
      about: 'version',
      text: `Tollgate ${system.version} on ${system.runtime}, ${system.processes.length} process${system.processes.length === 1 ? '' : 'es'}, catalog version ${system.catalogVersion}.`,
    },
    {
      verdict: 'ok',
      about: 'database',
      text: `Postgres ${system.store.version}, ${size}, migration ${system.migrations.applied} of ${system.migrations.latest}.`,
    },
  ]
  for (const { name, answers } of system.ledgers ?? [])
    if (!answers) findings.push({ verdict: 'problem', about: 'ledger', text: `The ledger ${name} does not answer.` })
  if (system.version !== settings.version)
    findings.push({
      verdict: 'note',
      about: 'version',
      text: `This command line is ${settings.version}; the gateway that runs is ${system.version}. Restart it after an upgrade.`,
    })
  return findings
}

function describeWarehouse(store: AnalyticsStore | undefined): Finding[] {
  if (!store?.place) return []
  const { place, sent, waiting, error } = store
  const text = `${place} has ${sent} calls; ${waiting} wait to be sent.${error ? ` ${error}` : ''}`
  return [{ verdict: error ? 'problem' : 'ok', about: 'analytics', text }]
}

function describeVendors(vendors: readonly VendorView[]): Finding[] {
  const findings: Finding[] = []
  const simulated = vendors.filter((vendor) => vendor.simulated)
  if (simulated.length > 0)
    findings.push({
      verdict: 'note',
      about: 'vendors',
      text: `${simulated.length} of ${vendors.length} vendors are simulated (${simulated.map(({ name }) => name).join(', ')}): their answers are not real. To connect real ones: tollgate connect, or Vendors, Add vendor in the console.`,
    })
  for (const { name, baseUrl, credential, breaker, reason, probe } of vendors.filter((vendor) => !vendor.simulated)) {
    if (credential.unreadable)
      findings.push({
        verdict: 'problem',
        about: 'vendors',
        text: `The stored credential ${credential.name} of "${name}" was encrypted under another TOLLGATE_SECRET. Start the gateway with that secret, or store it again: tollgate vendors credential ${name}`,
      })
    else if (credential.name !== null && !credential.present)
      findings.push({
        verdict: 'problem',
        about: 'vendors',
        text: `"${name}" has no credential. Set ${credential.name} where the gateway runs, or store it: tollgate vendors credential ${name}`,
      })
    else if (breaker === 'open')
      findings.push({
        verdict: 'problem',
        about: 'vendors',
        text: `"${name}" at ${baseUrl} is failing and gets no calls for the moment: ${reason}`,
      })
    else if (probe?.state === 'rejected')
      findings.push({ verdict: 'problem', about: 'vendors', text: `"${name}" at ${baseUrl}: ${probe.message}` })
    else
      findings.push({
        verdict: 'ok',
        about: 'vendors',
        text: `"${name}" at ${baseUrl}${credential.name ? `, credential from ${credential.source === 'env' ? 'the environment' : 'the store'}` : ''}. To try it: tollgate vendors test ${name}`,
      })
  }
  return findings
}

async function describeUse({ api }: Invocation): Promise<Finding[]> {
  const { items } = await api.call<Page<AccountView>>('GET', '/accounts?limit=1')
  const findings: Finding[] = [
    items.length > 0
      ? { verdict: 'ok', about: 'accounts', text: 'There is at least one account.' }
      : {
          verdict: 'note',
          about: 'accounts',
          text: 'There is no account yet. Make one: tollgate accounts create "My team" --credits 100',
        },
  ]
  const setup = await api.probe('/console/api/setup')
  if (setup.status === 200 && (JSON.parse(setup.text) as { data?: { open?: boolean } }).data?.open)
    findings.push({
      verdict: 'note',
      about: 'console',
      text: 'The console has no operator yet. For a link that makes one: tollgate setup-link',
    })
  return findings
}
