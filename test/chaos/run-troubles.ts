// Brings about each trouble while callers of several accounts go on, and looks afterwards: nothing lost, nothing paid
// twice, nothing held, and nobody stopped by what befell another account.
import { cpus, loadavg } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseCredits } from '../../src/kernel/credits.ts'
import { assert, closing, until } from '../kit.ts'
import { checkBooks, noHolds } from './books.ts'
import { MIX } from './cluster.ts'
import { today, writePart } from './report.ts'
import { type Account, openScene, type Scene } from './scene.ts'
import { countBy, startTraffic, type Told, type Traffic } from './traffic.ts'
import { TROUBLES, type Trouble } from './troubles.ts'

export interface TroublesOptions {
  readonly seconds: number
  readonly perSecond: number
  readonly processes: number
  readonly only: readonly string[] | undefined
}

/** One account for which processes hold credits in advance, and one that calls too seldom for that. */
const STEADY_PER_SECOND = 15
const SELDOM_PER_SECOND = 3
const KEYED_EVERY_MS = 500
/** So long an account may wait because of another's trouble. */
const WAIT_MS_MAX = 2_000
const CALM_MS = 5_000

type TroubleReport = { readonly trouble: Trouble; readonly done: string; readonly said: string; readonly ok: boolean }

export async function runTroubles(options: TroublesOptions): Promise<number> {
  const chosen = TROUBLES.filter(({ name }) => options.only?.includes(name) ?? true)
  const rows: TroubleReport[] = []
  for (const standby of [false, true]) {
    const these = chosen.filter((trouble) => (trouble.standby ?? false) === standby)
    if (these.length === 0) continue
    await using scene = closing(
      await openScene({ processes: options.processes, standby: standby ? 'synchronous' : undefined }),
    )
    for (const trouble of these) {
      console.log(`${trouble.name}: ${trouble.fault}`)
      const failed = (error: Error): TroubleReport => ({
        trouble,
        done: '',
        said: `**Failed**: ${error.message}`,
        ok: false,
      })
      rows.push(await tryOne(trouble, scene, options).catch(failed))
      await writePart('troubles', report(rows, options))
      console.log(rows.at(-1)!.said)
    }
    for (const gateway of scene.gateways) assert.equal(await gateway.stop(), 0, gateway.output)
  }
  return rows.every(({ ok }) => ok) ? 0 : 1
}

async function tryOne(trouble: Trouble, scene: Scene, options: TroublesOptions): Promise<TroubleReport> {
  const [busy, steady, seldom, keyed] = [
    await scene.account(),
    await scene.account(),
    await scene.account(),
    await scene.account(),
  ]
  const urls = () => scene.listed.map(({ url }) => url)
  const start = ({ key }: Account, perSecond: number, kinds = MIX) => startTraffic({ urls, key, kinds, perSecond })
  const busyTraffic = start(busy, options.perSecond - STEADY_PER_SECOND - SELDOM_PER_SECOND)
  const quiet = [
    start(steady, STEADY_PER_SECOND, ['chat', 'data']),
    start(seldom, SELDOM_PER_SECOND, ['data', 'stream']),
  ]
  const repeated = startRepeated(urls, keyed)
  const all = [busyTraffic, ...quiet]
  // The first calls of a process read and compile what the later ones have.
  await until(() => all.every(({ told, running }) => told.length > 30 && running < told.length / 4))
  const lag = monitorEventLoopDelay({ resolution: 10 })
  lag.enable()
  const calmMs = performance.now()
  await new Promise((resolve) => setTimeout(resolve, CALM_MS))
  const fromMs = performance.now()
  let done = ''
  let failure: unknown
  try {
    done = await trouble.run(scene, busy, options.seconds * 1_000)
    await new Promise((resolve) => setTimeout(resolve, CALM_MS))
  } catch (error) {
    failure = error
  }
  const [repeats] = await Promise.all([repeated.stop(), ...all.map((traffic) => traffic.stop())])
  if (failure) throw failure
  lag.disable()
  const lagMs = lag.max / 1e6
  return judge({ trouble, done, scene, all, quiet, calmMs, fromMs, keyed, repeats, lagMs })
}

interface Outcome {
  readonly trouble: Trouble
  readonly done: string
  readonly scene: Scene
  readonly all: readonly Traffic[]
  readonly quiet: readonly Traffic[]
  readonly calmMs: number
  readonly fromMs: number
  readonly keyed: Account
  readonly repeats: Repeats
  /** For so long the callers themselves, who share the machine, could not run. */
  readonly lagMs: number
}

async function judge({
  trouble,
  done,
  scene,
  all,
  quiet,
  calmMs,
  fromMs,
  keyed,
  repeats,
  lagMs,
}: Outcome): Promise<TroubleReport> {
  const told = all.flatMap((traffic) => traffic.told)
  const untroubled = quiet.flatMap((traffic) => traffic.told)
  // Whoever called the stopped process itself was troubled by it.
  const aside = trouble.name === 'stopped' ? scene.gateways[0]!.url : undefined
  const during = untroubled.filter(({ sentMs, ms, url }) => sentMs + ms >= fromMs && url !== aside)
  // Who had waited before it began did not wait for it.
  const waits = during.map(({ sentMs, ms }) => ({ sentMs, ms: sentMs + ms - Math.max(sentMs, fromMs) }))
  const [slow] = waits.sort((a, b) => b.ms - a.ms)
  const slowestMs = slow?.ms ?? 0
  const late = waits.filter(({ ms }) => ms > WAIT_MS_MAX)
  const wrong: string[] = []
  const check = (ok: boolean, text: string) => void (ok || wrong.push(text))
  const odd = told.filter((one) => one.sentMs > calmMs && !isExpected(one, trouble, aside))
  check(odd.length === 0, `unexpected answers: ${text(countBy(odd))} ${odd[0]?.text ?? ''}`)
  if (!trouble.everybody) {
    const bad = during.filter(({ status }) => status !== 200)
    check(bad.length === 0, `untroubled accounts were told ${text(countBy(bad))}`)
    check(slowestMs <= WAIT_MS_MAX, `an untroubled account waited for ${Math.round(slowestMs)} ms`)
  }
  const holdsMs = await noHolds(scene.direct, 150_000)
  const books = await checkBooks(
    scene.direct,
    all.flatMap((traffic) => traffic.acknowledged()),
  )
  check((await chargedThoughRefused(scene, told)) === 0, 'somebody was refused and charged')
  const paid = await chargedOf(scene, keyed)
  check(repeats.failed.length === 0, `keys that never succeeded: ${repeats.failed.slice(0, 3)}`)
  const due = repeats.price * BigInt(repeats.keys)
  check(paid === due, `${repeats.keys} keys at ${repeats.price} were charged ${paid}`)
  const calm = slowest(untroubled.filter(({ sentMs, ms }) => sentMs > calmMs && sentMs + ms < fromMs))
  const said = [
    `${wrong.length === 0 ? 'Passed' : `**Failed**: ${wrong.join('; ')}`}.`,
    `${told.length} calls: ${text(countBy(told))}.`,
    `${books.acknowledged} acknowledged charges, 0 lost, 0 doubled; ${repeats.keys} Idempotency-Keys, tried ${repeats.tries} times, each paid once.`,
    `No hold and no lease ${Math.round(holdsMs)} ms after the end.`,
    `Accounts beside it: longest wait of ${during.length} since it began ${Math.round(slowestMs)} ms, ${late.length} above 2 s (slowest in the ${CALM_MS / 1000} s before: ${Math.round(calm)} ms; the callers themselves were held up for ${Math.round(lagMs)} ms at most)${trouble.everybody ? '; the bound of 2 s cannot hold, it concerns everybody' : ''}.`,
  ].join(' ')
  return { trouble, done, said, ok: wrong.length === 0 }
}

/**
 * Callers of a locked account, of a database that is away, and of the process that was stopped are told to come again;
 * one whose request lay unread in the meantime by 408.
 */
function isExpected({ kind, status, url }: Told, { everybody, name }: Trouble, aside: string | undefined): boolean {
  if (status === 200 || (kind === 'fail' && status === 502)) return true
  if (status === 503) return kind === 'fail' || everybody === true || name === 'locked' || url === aside
  return status === 408 && url === aside
}

function slowest(told: readonly Told[]): number {
  return told.reduce((most, { ms }) => Math.max(most, ms), 0)
}

async function chargedThoughRefused({ direct }: Scene, told: readonly Told[]): Promise<number> {
  const ids = told.flatMap(({ status, requestId }) =>
    status >= 400 && requestId ? [requestId.slice('req_'.length)] : [],
  )
  const rows = await direct.query({ text: 'select 1 from usage where id = any($1) and charged > 0' }, [ids])
  return rows.length
}

async function chargedOf({ direct }: Scene, { id }: Account): Promise<bigint> {
  const [row] = await direct.query<{ sum: bigint }>(
    { text: `select coalesce(sum(amount), 0)::bigint as sum from transfer where account_id = $1 and kind = 'settled'` },
    [id],
  )
  return row!.sum
}

interface Repeats {
  readonly keys: number
  readonly tries: number
  /** Of one call; all are the same. */
  readonly price: bigint
  readonly failed: string[]
}

/**
 * Callers who send each call with an Idempotency-Key, give up after 3 s, and try again elsewhere until it is answered.
 */
function startRepeated(urls: () => readonly string[], { key }: Account): { stop(): Promise<Repeats> } {
  const running = new Set<Promise<void>>()
  const failed: string[] = []
  let [keys, tries, price] = [0, 0, 0n]

  async function once(url: string, name: string): Promise<bigint | string> {
    const answer = await fetch(`${url}/v1/chat-completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': name },
      body: JSON.stringify({ model: 'alpha-5.4', messages: [{ role: 'user', content: 'a few words' }] }),
      signal: AbortSignal.timeout(3_000),
    })
    const body = await answer.text()
    // Who hears an answer again is told no charge.
    if (answer.status === 200) return parseCredits(answer.headers.get('x-tollgate-charge') ?? '0') ?? 0n
    return `${answer.status} ${body}`
  }

  async function insist(name: string, first: number): Promise<void> {
    let last = ''
    for (let i = 0; i < 120; i++) {
      const open = urls()
      tries += 1
      const told = await once(open[(first + i) % open.length]!, name).catch(String)
      if (typeof told === 'bigint') {
        if (told > price) price = told
        return
      }
      last = told
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    failed.push(last)
  }

  const timer = setInterval(() => {
    const going = insist(crypto.randomUUID(), keys++).finally(() => running.delete(going))
    running.add(going)
  }, KEYED_EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(running)
      return { keys, tries, price, failed }
    },
  }
}

const text = (counts: Record<string, number>) =>
  Object.entries(counts)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ')

function report(rows: readonly TroubleReport[], { perSecond, processes, seconds }: TroublesOptions): string {
  const load = loadavg()[0]!.toFixed(0)
  return `
Last run: ${today()}. ${processes} processes, one Postgres (a primary and its synchronous standby for the promotion), ${perSecond} calls a second, each trouble for about ${seconds} s, on ${process.platform} with ${cpus().length} cores shared by load, gateways, vendors and Postgres; load average at the end ${load}.

| Trouble | What was done | What happened |
|---|---|---|
${rows.map(({ trouble, done, said }) => `| ${trouble.fault} | ${done} | ${said.replaceAll('|', '/')} |`).join('\n')}
`
}
