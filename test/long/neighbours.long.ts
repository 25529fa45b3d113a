// One tenant attacks for as long as it likes while another works: in turns with quiet rounds, what the other one feels
// of it. Every call of the other one must succeed. How much longer its slow calls take is printed, and written to
// docs/reliability.md with WRITE=1. SECONDS=60 makes each round last a minute, ATTACK=locked runs that one alone.
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type GatewayProcess, makeDataDirectory, startProcess, storeOf } from '../chaos/gateway-process.ts'
import { today, writePart } from '../chaos/report.ts'
import { percentile } from '../chaos/traffic.ts'
import { after, assert, before, test } from '../kit.ts'

const SECONDS = Number(process.env.SECONDS ?? 15)
const ROUNDS = 3
const CALLS_PER_SECOND = 20
/** The other tenant's address; the attacker has another. */
const ADDRESS = '203.0.113.8'
const HELLO = { model: 'alpha-5.4', max_completion_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] }

interface Attack {
  readonly name: string
  readonly what: string
  readonly credits: string
  /** What somebody else does to the attacker's account for as long as the attack goes on. */
  readonly lock?: boolean
}
const ATTACKS: readonly Attack[] = [
  { name: 'bodies', what: '150 slow chunked bodies of a key without credits', credits: '0' },
  { name: 'bodies', what: '150 slow chunked bodies of a key with credits', credits: '1000' },
  { name: 'locked', what: '1,000 polite callers of an account that somebody has locked', credits: '1000', lock: true },
  { name: 'large', what: '20 callers with idempotency keys and large answers', credits: '1000000' },
  { name: 'waiting', what: '200 callers that wait for a film (`wait_for_video`)', credits: '1000' },
  { name: 'guesses', what: '100 guessed keys a second', credits: '0' },
  { name: 'registrations', what: '40 registrations of programs a second', credits: '0' },
]

let data: { path: string; remove(): Promise<void> }
let gateway: GatewayProcess
const rows: string[] = []

before(async () => {
  data = await makeDataDirectory()
  const env = { TOLLGATE_DATA: data.path, TOLLGATE_SANDBOX_SPEED: '100', TOLLGATE_TRUST_PROXY: '127.0.0.1' }
  gateway = await startProcess({ env })
})
after(async () => {
  gateway.kill('SIGTERM')
  await gateway.exited
  await data.remove()
  if (process.env.WRITE && rows.length === ATTACKS.length)
    await writePart(
      'neighbours',
      [
        `Last run: ${today()}, ${ROUNDS} rounds of ${SECONDS} s each way, in turns.\n`,
        '| Attack | Calls of the other tenant | Served | p99 beside it ÷ p99 in quiet |',
        '|---|---|---|---|',
        ...rows,
      ].join('\n'),
    )
})

async function operator<T>(path: string, body: object): Promise<T> {
  const token = (await readFile(join(data.path, 'operator-token'), 'utf8')).trim()
  const answer = await fetch(`${gateway.url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  assert.equal(answer.status, 200, await answer.clone().text())
  return ((await answer.json()) as { data: T }).data
}

async function account(credits: string): Promise<{ id: string; key: string }> {
  const { id } = await operator<{ id: string }>('/accounts', { name: 'Somebody', credits })
  const { key } = await operator<{ key: string }>(`/accounts/${id}/keys`, { name: 'Key' })
  return { id, key }
}

/** The kinds of calls by turns; each is whole when it resolves, with its status. */
function callsOf(key: string): Array<() => Promise<number>> {
  const post = async (path: string, body: object, init: RequestInit = {}) => {
    const answer = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-forwarded-for': ADDRESS },
      body: JSON.stringify(body),
      ...init,
    })
    const text = await answer.text()
    return answer.status === 200 && text.length === 0 ? 0 : answer.status
  }
  const chunked = (body: object) => ({ body: new Blob([JSON.stringify(body)]).stream(), duplex: 'half' }) as RequestInit // Node wants `duplex`; its types do not know it.
  const long = { ...HELLO, messages: [{ role: 'user', content: 'x'.repeat(100_000) }] }
  let made = 0
  return [
    () => post('/v1/chat/completions', HELLO),
    () => post('/v1/chat/completions', { ...HELLO, stream: true }),
    () => post('/v1/chat/completions', HELLO, chunked(long)),
    () => post('/v1/images/generations', { model: 'alpha-image-2', prompt: 'A house' }),
    () =>
      post('/v1/chat/completions', HELLO, {
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'x-forwarded-for': ADDRESS,
          'idempotency-key': `other-${made++}`,
        },
      }),
  ]
}

type Felt = { readonly ms: number[]; readonly statuses: Record<string, number> }

/** Calls at a steady pace, whether or not the ones before have been answered. */
async function work(key: string, seconds: number): Promise<Felt> {
  const calls = callsOf(key)
  const felt: Felt = { ms: [], statuses: {} }
  const all: Array<Promise<void>> = []
  const beganMs = performance.now()
  for (let made = 0; made < seconds * CALLS_PER_SECOND; made += 1) {
    await sleep(Math.max(0, beganMs + (made * 1_000) / CALLS_PER_SECOND - performance.now()))
    const fromMs = performance.now()
    const called = calls[made % calls.length]!().catch((error: Error) => String(error.cause ?? error))
    all.push(
      called.then((status) => {
        felt.ms.push(performance.now() - fromMs)
        felt.statuses[status] = (felt.statuses[status] ?? 0) + 1
      }),
    )
  }
  await Promise.all(all)
  return felt
}

async function lockAccount(id: string): Promise<pg.Client> {
  const { host, port } = await storeOf(data.path)
  const client = new pg.Client({ host, port, user: 'tollgate', database: 'tollgate' })
  await client.connect()
  await client.query('begin')
  await client.query('select 1 from account where id = $1 for update', [id])
  return client
}

/** Begins the attack; what it answers ends it. */
async function begin({ name, credits, lock }: Attack): Promise<() => Promise<void>> {
  const { id, key } = await account(credits)
  const locked = lock ? await lockAccount(id) : undefined
  const attacker = spawn(process.execPath, [join(import.meta.dirname, 'attacker.ts'), name, gateway.url, key], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => attacker.once('exit', () => resolve()))
  // Until it is under way: the first of its callers have been there.
  await sleep(3_000)
  assert.equal(attacker.exitCode, null, 'the attacker has ended')
  return async () => {
    attacker.kill('SIGKILL')
    await ended
    await locked?.end()
    await sleep(1_000)
  }
}

for (const attack of ATTACKS.filter(({ name }) => name.includes(process.env.ATTACK ?? '')))
  test(`${attack.what}: every call of another tenant is served`, { timeout: 3_000_000 }, async () => {
    const { key } = await account('100000')
    await work(key, 5)
    const ratios: number[] = []
    const statuses: Record<string, number> = {}
    for (let round = 0; round < ROUNDS; round += 1) {
      const quiet = await work(key, SECONDS)
      const end = await begin(attack)
      const beside = await work(key, SECONDS).finally(end)
      ratios.push(percentile(beside.ms, 0.99) / percentile(quiet.ms, 0.99))
      for (const [status, count] of Object.entries(beside.statuses)) statuses[status] = (statuses[status] ?? 0) + count
    }
    const calls = ROUNDS * SECONDS * CALLS_PER_SECOND
    const ratio = percentile(ratios, 0.5).toFixed(2)
    console.log(
      `${attack.what}: ${JSON.stringify(statuses)}, p99 × ${ratio} (${ratios.map((one) => one.toFixed(2)).join(', ')})`,
    )
    assert.deepEqual(statuses, { 200: calls })
    rows.push(`| ${attack.what} | ${calls} | 100 % | ${ratio} |`)
  })
