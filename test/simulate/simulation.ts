// One seed, one story: a few processes, a dozen calls, a bad line to the database, bad vendors, a crash or two. The
// code under it is the real one: ledger, admission, routing, relay and jobs, on a real Postgres. With several lanes
// each is a ledger with an account, and accounts move meanwhile. Throws when the ledger is wrong.
import assert from 'node:assert/strict'
import type { Value } from '../../src/database/database.ts'
import type { HttpCall } from '../../src/upstream/call.ts'
import { checkLane } from './check.ts'
import { Line, type Sabotage, type Stage, type Weather } from './faulty-database.ts'
import type { Lane } from './lane.ts'
import { STORY_MS } from './plot.ts'
import { CONTROL, Process, type Surroundings } from './process.ts'
import { Tale } from './tale.ts'
import { TaskVendor } from './task-vendor.ts'
import { TextCalls } from './text-calls.ts'
import { Chance, VirtualWorld } from './virtual-world.ts'

const PROCESSES = 3
const END_MS = 6 * 3_600_000
const LEDGERS = [CONTROL, 'east', 'west']

export interface Told {
  /** The same for the same seed and the same code. */
  readonly digest: string
  readonly events: number
  /** Calls that a lease covered. */
  readonly leased: number
  /** Accounts that came to another ledger. */
  readonly moved: number
}

export interface StoryOptions {
  /** Is given each line of the story as it happens. */
  readonly tell?: (line: string) => void
  readonly sabotage?: Sabotage
  readonly stage?: Stage | undefined
}

/** `lanes`: control first, which may be the only one. */
export async function simulate(seed: number, lanes: readonly Lane[], options: StoryOptions = {}): Promise<Told> {
  for (const lane of lanes) await lane.clear()
  const { stage } = options
  const world = new VirtualWorld(new Chance(seed), options.tell)
  const { chance } = world
  const fair = chance.is(0.1) || stage?.fair === true
  const bad = fair ? 0 : chance.next() * 0.12
  const faults = fair ? 0 : chance.next() * 0.25
  const weather: Weather = { slow: bad, lostBefore: bad / 2, lostAfter: bad / 2, zombie: bad / 3 }
  const lines = new Map(lanes.map((lane, at) => [LEDGERS[at]!, new Line(lane, world, weather, options.sabotage)])) // At most three.
  const vendor = new TaskVendor(world, faults)
  let failure: { readonly error: unknown } | undefined
  const wrong = (error: unknown) => {
    failure ??= { error }
  }
  const processes: Process[] = []
  const alive = () => processes.filter(({ dead }) => !dead)
  const some = () => chance.pick(alive())
  const scene = { world, seed, lines, processes, some, wrong, fair, limited: stage?.limited }
  const tales = lanes.map((_, at) => new Tale(scene, at))
  for (const line of lines.values()) {
    line.onWrong = wrong
    line.look = async (statement, on) => {
      const found: string[] = []
      for (const { books } of tales) found.push(...(await books.look(statement, on)))
      return found
    }
  }

  const around: Surroundings = {
    world,
    lines,
    booksOf: (account) => tales.find((tale) => tale.account === account)!.books, // Nobody else calls.
    faults: () => (isCalm(lines) ? 0 : faults),
    onCall,
    onWebhook: (body) => videosOf((JSON.parse(body) as { data: { id: string } }).data.id).webhook(body),
    stage,
  }
  const videosOf = (job: string) => (tales.find(({ videos }) => videos.has(job)) ?? tales[0]!).videos // There is one.

  async function onCall(call: HttpCall) {
    const video = TaskVendor.serves(call)
    const token = TaskVendor.tokenOf(call)
    if (video && token === undefined) return vendor.answer(call)
    const id = video ? videosOf(token!).holdOf(token!) : TextCalls.holdOf(call) // A submission has one.
    const { books, texts } = tales.find((tale) => (video ? tale.videos.has(token!) : tale.texts.has(id)))! // As above.
    for (const line of lines.values()) {
      const looking = { query: <R>({ text }: { text: string }, values?: readonly Value[]) => line.see<R>(text, values) }
      const heard = await books.heard(id, looking)
      for (const what of heard ?? []) wrong(new Error(what))
      if (heard) break
    }
    return video ? vendor.answer(call) : texts.heard(call)
  }

  let open = { holds: 1n, jobs: 1n }
  async function count(): Promise<void> {
    // A statement that is still on its way may make what is not seen here.
    const sure = zombiesOf(lines) === 0
    const rows = await Promise.all(Array.from(lines.values(), (line) => line.see<typeof open>(OPEN)))
    const sum = (name: keyof typeof open) => rows.flat().reduce((all, row) => all + row[name], 0n)
    open = sure ? { holds: sum('holds'), jobs: sum('jobs') } : { holds: 1n, jobs: 1n }
  }
  const raise = () => {
    if (failure) throw failure.error
    return false
  }
  /** Runs it to its end. */
  async function through(run: () => Promise<void>, untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    let done = false
    run().then(() => {
      done = true
    }, wrong)
    await world.runUntil(() => raise() || done, untilMs)
  }

  await through(async () => {
    for (const [at, name] of [...lines.keys()].entries()) await tales[at]!.begin(name) // One each.
  }, END_MS)
  for (let i = 0; i < PROCESSES; i++) processes.push(new Process(around))
  for (const tale of tales) tale.play()
  if (!fair) plotMishaps(world, processes, () => new Process(around), stage)
  const over = () => tales.every((tale) => tale.over) && world.elapsedMs() > STORY_MS
  await world.runUntil(() => raise() || over(), END_MS)
  // The weather clears up, and everything that is owed must come to its end.
  vendor.calm = true
  for (const line of lines.values()) line.calm = true
  const busy = new Set(alive())
  for (const process of busy)
    void Promise.all(Array.from(process.cells.values(), ({ ledger }) => ledger.idle())).then(() => busy.delete(process))
  // One that is to die at one of its next steps may do so now.
  const idle = () => [...busy].every(({ dead }) => dead)
  const look = () =>
    void count().then(() => {
      world.after(5_000, look)
    }, wrong)
  look()
  const ended = () => idle() && zombiesOf(lines) === 0 && open.holds === 0n && open.jobs === 0n
  await world.runUntil(() => raise() || ended(), world.elapsedMs() + 1_200_000)

  await through(async () => {
    for (const tale of tales) await tale.check(vendor.tasks.filter(({ token }) => videosOf(token) === tale.videos))
    for (const lane of lanes) await checkLane(lane, world)
  })
  assert.equal(zombiesOf(lines), 0)
  const sum = (read: (tale: Tale) => number) => tales.reduce((all, tale) => all + read(tale), 0)
  return {
    digest: world.digest(),
    events: world.events,
    leased: sum(({ books }) => books.leasedCalls),
    moved: sum(({ mover }) => mover.moved),
  }
}

const OPEN = `select (select count(*) from held) + (select count(*) from journal) as holds,
  (select count(*) from job where open) + (select count(*) from delivery where open) as jobs`
type Lines = ReadonlyMap<string, Line>
const isCalm = (lines: Lines) => [...lines.values()].every(({ calm }) => calm)
const zombiesOf = (lines: Lines) => lines.values().reduce((sum, { zombies }) => sum + zombies, 0)

/** Deaths at a moment and deaths at a step, each followed by a new process; and one that is stopped for a while. */
function plotMishaps(
  world: VirtualWorld,
  processes: Process[],
  start: () => Process,
  stage: StoryOptions['stage'],
): void {
  const { chance } = world
  const [first, second, third] = processes as [Process, Process, Process] // There are as many.
  const replace = () => void world.after(chance.below(3_000), () => processes.push(start()))
  if (chance.is(0.4))
    world.after(chance.below(STORY_MS), () => {
      first.dieAfter(Number.POSITIVE_INFINITY, replace)
      first.crash()
    })
  if (chance.is(0.6)) second.dieAfter(1 + chance.below(250), replace)
  if (stage?.diesBefore) second.dieAfter(Number.MAX_SAFE_INTEGER, replace)
  if (chance.is(0.2)) world.after(chance.below(STORY_MS), () => third.sleep(25_000 + chance.below(30_000)))
  if (chance.is(0.7)) for (const process of processes) process.dozeOnce()
}
