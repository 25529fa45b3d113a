// One seed, one story: a few processes, a dozen calls, a bad line to the database, bad vendors, a crash or two. The
// code under it is the real one: ledger, admission, routing, relay and jobs, on a real Postgres. Throws when the ledger
// is wrong.
import assert from 'node:assert/strict'
import { newId } from '../../src/kernel/world.ts'
import type { HttpCall } from '../../src/upstream/call.ts'
import { Books } from './books.ts'
import { checkEnding } from './check.ts'
import { Line, type Sabotage, type Stage, type Weather } from './faulty-database.ts'
import type { Lane } from './lane.ts'
import { buy, chargeBack, drawPlot, drawRefund, STEADY_CALLS, STORY_MS, setLimits } from './plot.ts'
import { Process, type Surroundings } from './process.ts'
import { TaskVendor } from './task-vendor.ts'
import { TextCalls } from './text-calls.ts'
import { VideoCalls } from './video-calls.ts'
import { Chance, VirtualWorld } from './virtual-world.ts'

const PROCESSES = 3
const END_MS = 6 * 3_600_000

export interface Told {
  /** The same for the same seed and the same code. */
  readonly digest: string
  readonly events: number
  /** Calls that a lease covered. */
  readonly leased: number
}

export interface StoryOptions {
  /** Is given each line of the story as it happens. */
  readonly tell?: (line: string) => void
  readonly sabotage?: Sabotage
  readonly stage?: Stage | undefined
}

export async function simulate(seed: number, lane: Lane, options: StoryOptions = {}): Promise<Told> {
  await lane.clear()
  const world = new VirtualWorld(new Chance(seed), options.tell)
  const { chance } = world
  const fair = chance.is(0.1) || options.stage?.fair === true
  const bad = fair ? 0 : chance.next() * 0.12
  const faults = fair ? 0 : chance.next() * 0.25
  const weather: Weather = { slow: bad, lostBefore: bad / 2, lostAfter: bad / 2, zombie: bad / 3 }
  const line = new Line(lane, world, weather, options.sabotage)
  const vendor = new TaskVendor(world, faults)
  const account = `acc_${newId(world)}`
  const books = new Books(world, fair)
  line.books = books
  const plot = drawPlot(chance, account, { fair, limited: options.stage?.limited })
  // Drawn by itself, so that the stories of before stay what they were.
  const refund = drawRefund(new Chance(seed + 2 ** 30))
  let failure: { readonly error: unknown } | undefined
  const wrong = (error: unknown) => {
    failure ??= { error }
  }
  line.onWrong = wrong
  const texts = new TextCalls(world, account, wrong)
  const processes: Process[] = []
  const alive = () => processes.filter(({ dead }) => !dead)
  const some = () => chance.pick(alive())
  const videos = new VideoCalls(world, line, account, some, wrong)

  const around: Surroundings = {
    world,
    line,
    books,
    faults: () => (line.calm ? 0 : faults),
    onCall,
    onWebhook: (body) => videos.webhook(body),
    stage: options.stage,
  }

  async function onCall(call: HttpCall) {
    const video = TaskVendor.serves(call)
    const token = TaskVendor.tokenOf(call)
    if (video && token === undefined) return vendor.answer(call)
    const id = video ? videos.made.find(({ jobId }) => jobId === token)!.holdId : TextCalls.holdOf(call)
    const looking = { query: <R>({ text }: { text: string }) => line.see<R>(text) }
    for (const what of await books.heard(id, looking)) wrong(new Error(what))
    return video ? vendor.answer(call) : texts.heard(call)
  }

  let open = { holds: 1n, jobs: 1n }
  async function count(): Promise<void> {
    // A statement that is still on its way may make what is not seen here.
    const sure = line.zombies === 0
    const [row] = await line.see<{ holds: bigint; jobs: bigint }>(
      `select (select count(*) from held) + (select count(*) from journal) as holds,
         (select count(*) from job where open) + (select count(*) from delivery where open) as jobs`,
    )
    open = sure ? row! : { holds: 1n, jobs: 1n }
  }
  const raise = () => {
    if (failure) throw failure.error
    return false
  }
  const over = () =>
    texts.made.length === textsMax &&
    videos.made.length === plot.videos &&
    texts.over &&
    videos.over &&
    world.elapsedMs() > STORY_MS

  const textsMax = plot.bursts.reduce((sum, { count }) => sum + count, plot.texts + (plot.steady ? STEADY_CALLS : 0))
  let set = false
  line
    .see('insert into account (id, name) values ($1, $1)', [account])
    .then(() =>
      line.see(`select ledger_grant($1, $2, $3, 'simulated', 'simulated')`, [newId(world), account, plot.granted]),
    )
    .then(() => refund && line.arrange('buy', (tx) => buy(tx, account, refund.amount, newId(world))))
    .then(() => setLimits(line, plot))
    .then(() => {
      set = true
    }, wrong)
  await world.runUntil(() => raise() || set, END_MS)

  for (let i = 0; i < PROCESSES; i++) processes.push(new Process(around))
  for (let i = 0; i < plot.texts; i++) world.after(chance.below(STORY_MS), () => texts.begin(some()))
  for (let i = 0; i < plot.videos; i++) world.after(chance.below(STORY_MS / 2), () => videos.begin(some()))
  for (const { atMs, count: calls, forMs } of plot.bursts) {
    const place = chance.below(PROCESSES)
    const one = () => (processes[place]!.dead ? some() : processes[place]!)
    for (let i = 0; i < calls; i++) world.after(atMs + chance.below(forMs), () => texts.begin(one(), true))
  }
  if (plot.limitsAgainMs !== undefined) world.after(plot.limitsAgainMs, () => void setLimits(line, plot).catch(wrong))
  const { takeback, steady } = plot
  for (const lot of plot.lots) world.after(lot.atMs, () => void give(lot))
  if (takeback) world.after(takeback.atMs, () => void takeBack(takeback.amount))
  if (refund) world.after(refund.atMs, () => void goBack().catch(wrong))
  if (steady) {
    const one = () => (processes[0]!.dead ? some() : processes[0]!)
    for (let i = 0; i < STEADY_CALLS; i++) world.after(steady.atMs + i * steady.everyMs, () => texts.begin(one(), true))
    // Asked for by another process, as when an operator takes credits back.
    world.after(steady.atMs + steady.askedMs, () => void takeBack(1n, processes[1]))
  }
  if (!fair) plotMishaps()

  /** Deaths at a moment and deaths at a step, each followed by a new process; and one that is stopped for a while. */
  function plotMishaps(): void {
    const replace = () => void world.after(chance.below(3_000), () => processes.push(new Process(around)))
    if (chance.is(0.4))
      world.after(chance.below(STORY_MS), () => {
        processes[0]!.dieAfter(Number.POSITIVE_INFINITY, replace)
        processes[0]!.crash()
      })
    if (chance.is(0.6)) processes[1]!.dieAfter(1 + chance.below(250), replace)
    if (options.stage?.diesBefore) processes[1]!.dieAfter(Number.MAX_SAFE_INTEGER, replace)
    if (chance.is(0.2)) world.after(chance.below(STORY_MS), () => processes[2]!.sleep(25_000 + chance.below(30_000)))
    if (chance.is(0.7)) for (const process of processes) process.dozeOnce()
  }

  /** More than is there cannot be taken, and whether it was is seen in the end. */
  async function takeBack(amount: bigint, by = some()): Promise<void> {
    await by.ledger.grant({ account, amount: -amount, note: 'simulated', actor: 'simulated' }).catch(() => undefined)
  }

  /** A chargeback, which asks for leases first, as sales/apply.ts does. */
  async function goBack(): Promise<void> {
    await some()
      .ledger.returned(account)
      .catch(() => undefined)
    await line.arrange('grant', (tx) => chargeBack(tx, account, newId(world)))
  }

  /** Whether it was is seen in the end. */
  async function give({ amount, forMs, product }: (typeof plot.lots)[number]): Promise<void> {
    const lot = {
      source: 'given' as const,
      endsAt: forMs === undefined ? undefined : new Date(world.nowMs() + forMs),
      products: product === undefined ? undefined : [product],
    }
    await some()
      .ledger.grant({ account, amount, note: 'simulated', actor: 'simulated', lot })
      .catch(() => undefined)
  }

  await world.runUntil(() => raise() || over(), END_MS)
  // The weather clears up, and everything that is owed must come to its end.
  line.calm = vendor.calm = true
  const busy = new Set(alive())
  for (const process of busy) void process.ledger.idle().then(() => busy.delete(process))
  // One that is to die at one of its next steps may do so now.
  const idle = () => [...busy].every(({ dead }) => dead)
  const look = () =>
    void count().then(() => {
      world.after(5_000, look)
    }, wrong)
  look()
  const ended = () => idle() && line.zombies === 0 && open.holds === 0n && open.jobs === 0n
  await world.runUntil(() => raise() || ended(), world.elapsedMs() + 1_200_000)

  let checked = false
  const ending = { account, texts: texts.made, videos: videos.made, tasks: vendor.tasks, fair }
  checkEnding(ending, line, lane, world).then(() => {
    checked = true
  }, wrong)
  await world.runUntil(() => raise() || checked, Number.POSITIVE_INFINITY)
  assert.equal(line.zombies, 0)
  return { digest: world.digest(), events: world.events, leased: books.leasedCalls }
}
