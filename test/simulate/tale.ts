// What happens to one account in a story: who calls for it, what an operator does to it, and where it is moved.
import assert from 'node:assert/strict'
import type { Queryable } from '../../src/database/database.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { newId } from '../../src/kernel/world.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { Books } from './books.ts'
import { checkEnding } from './check.ts'
import type { Line } from './faulty-database.ts'
import { Mover } from './mover.ts'
import {
  buy,
  chargeBack,
  drawGifts,
  drawPlot,
  drawRefund,
  type Plot,
  STEADY_CALLS,
  STORY_MS,
  setLimits,
} from './plot.ts'
import { type Cell, CONTROL, type Process } from './process.ts'
import type { SimulatedTask } from './task-vendor.ts'
import { TextCalls } from './text-calls.ts'
import { VideoCalls } from './video-calls.ts'
import { Chance, type VirtualWorld } from './virtual-world.ts'

export interface Stage {
  readonly world: VirtualWorld
  readonly seed: number
  readonly lines: ReadonlyMap<string, Line>
  readonly processes: readonly Process[]
  /** One that lives. */
  readonly some: () => Process
  readonly wrong: (error: unknown) => void
  readonly fair: boolean
  readonly limited: true | undefined
}

const LIVES = `select 1 from account where id = $1 and ledger is null and frozen_until is distinct from 'infinity'`
const OPEN = `select 1 from account where id = $1 and ledger is null and frozen_until > now() is not true for update`
/** By its own id, so that it is made once however often it is tried, and wherever the account is then. */
const GIVE = `select moved from ledger_grant($1, $2, $3, 'simulated', 'simulated')`
const AGAIN_MS_MAX = 3_000

export class Tale {
  readonly account: string
  readonly books: Books
  readonly texts: TextCalls
  readonly videos: VideoCalls
  readonly mover: Mover
  readonly #stage: Stage
  readonly #plot: Plot
  readonly #refund: ReturnType<typeof drawRefund>
  readonly #gifts: ReturnType<typeof drawGifts>
  /** What was given by an id of its own, for good. */
  readonly #given: { readonly id: string; readonly amount: bigint }[] = []
  #giving = 0

  constructor(stage: Stage, number: number) {
    const { world, seed, lines, some, wrong, fair, limited } = stage
    this.#stage = stage
    this.account = `acc_${newId(world)}`
    this.books = new Books(world, this.account, fair)
    const plot = drawPlot(world.chance, this.account, { fair, limited })
    // Limits of the whole gateway are control's, which slices them among ledgers: extensions/ledgers/limits.test.ts.
    const limits = plot.limits.filter(({ scope }) => scope.kind !== 'system')
    this.#plot = lines.size > 1 ? { ...plot, limits } : plot
    // Drawn by themselves, so that the stories of before stay what they were.
    const apart = new Chance(seed + 2 ** 30 + number * 2 ** 20)
    this.#refund = drawRefund(apart)
    this.#gifts = lines.size > 1 ? drawGifts(apart, [...lines.keys()]) : { gifts: [], moves: [] }
    this.texts = new TextCalls(world, this.account, wrong)
    this.videos = new VideoCalls({ world, lines: [...lines.values()], account: this.account, some, wrong })
    this.mover = new Mover(world, lines, this.account)
  }

  /** The account, with what it begins with. */
  async begin(home: string): Promise<void> {
    const { world, lines } = this.#stage
    const line = lines.get(home)! // It is one of them.
    const refund = this.#refund
    await line.see('insert into account (id, name) values ($1, $1)', [this.account])
    const first = { id: newId(world), amount: this.#plot.granted }
    await line.see(GIVE, [first.id, this.account, first.amount])
    if (first.amount > 0n) this.#given.push(first)
    if (home !== CONTROL)
      await lines.get(CONTROL)!.see('insert into account (id, name, ledger) values ($1, $1, $2)', [this.account, home]) // It is there.
    if (refund) await line.arrange('buy', (tx) => buy(tx, this.account, refund.amount, newId(world)))
    await setLimits((name, work) => this.#arrange(name, work), this.#plot)
  }

  /** From now on. */
  play(): void {
    const { world, some, processes, wrong } = this.#stage
    const { chance } = world
    const { texts, videos } = this
    const plot = this.#plot
    for (let i = 0; i < plot.texts; i++) world.after(chance.below(STORY_MS), () => texts.begin(some()))
    for (let i = 0; i < plot.videos; i++) world.after(chance.below(STORY_MS / 2), () => videos.begin(some()))
    const oneOf = (place: number) => () => (processes[place]!.dead ? some() : processes[place]!) // There are as many.
    for (const { atMs, count: calls, forMs } of plot.bursts) {
      const one = oneOf(chance.below(processes.length))
      for (let i = 0; i < calls; i++) world.after(atMs + chance.below(forMs), () => texts.begin(one(), true))
    }
    const arrange = (name: string, work: (tx: Queryable) => Promise<unknown>) => this.#arrange(name, work)
    if (plot.limitsAgainMs !== undefined)
      world.after(plot.limitsAgainMs, () => void setLimits(arrange, plot).catch(wrong))
    const { takeback, steady } = plot
    for (const lot of plot.lots) world.after(lot.atMs, () => void this.#lot(lot).catch(() => undefined))
    if (takeback)
      world.after(takeback.atMs, () => void this.#grant({ amount: -takeback.amount }).catch(() => undefined))
    if (this.#refund) world.after(this.#refund.atMs, () => void this.#goBack().catch(wrong))
    for (const gift of this.#gifts.gifts) world.after(gift.atMs, () => void this.#give(gift.amount).catch(wrong))
    for (const { atMs, to, mayDie } of this.#gifts.moves)
      world.after(atMs, () => void this.mover.move(to, () => mayDie && chance.is(0.7)).catch(wrong))
    if (!steady) return
    for (let i = 0; i < STEADY_CALLS; i++)
      world.after(steady.atMs + i * steady.everyMs, () => texts.begin(oneOf(0)(), true))
    // Asked for by another process, as when an operator takes credits back.
    world.after(
      steady.atMs + steady.askedMs,
      () => void this.#grant({ amount: -1n }, processes[1]).catch(() => undefined),
    )
  }

  get over(): boolean {
    const { texts, bursts, steady, videos } = this.#plot
    const all = bursts.reduce((sum, { count }) => sum + count, texts + (steady ? STEADY_CALLS : 0))
    const made = this.texts.made.length === all && this.videos.made.length === videos
    return made && this.texts.over && this.videos.over && this.mover.busy + this.#giving === 0
  }

  async check(tasks: readonly SimulatedTask[]): Promise<void> {
    const { world, lines, fair } = this.#stage
    const homes: Line[] = []
    for (const line of lines.values()) if ((await line.see(LIVES, [this.account])).length > 0) homes.push(line)
    assert.equal(homes.length, 1, `${this.account} lives in ${homes.length} ledgers`)
    const [home] = homes
    for (const line of lines.values()) {
      if (line === home) continue
      // That a call whose end was unknown took nothing may be written where its account was.
      const left = await line.see('select id, kind from transfer where account_id = $1 and amount <> 0', [this.account])
      assert.deepEqual(left, [], `${this.account} left something behind`)
    }
    await checkEnding(
      { account: this.account, texts: this.texts.made, videos: this.videos.made, tasks, fair },
      home!,
      world,
    ) // There is one.
    const given = await home!.see<{ id: string; amount: bigint }>(
      // As above.
      `select id, amount from transfer where account_id = $1 and kind = 'grant' and amount > 0 order by id`,
      [this.account],
    )
    for (const { id, amount } of this.#given)
      assert.equal(given.find((one) => one.id === id)?.amount, amount, `${id} was acknowledged and is not given`)
    const others = given.length - this.#given.length
    assert.ok(others <= this.#plot.lots.length, `${this.account} was given more often than anybody tried`)
  }

  /** What an operator does where the account lives now. */
  async #arrange(name: string, work: (tx: Queryable) => Promise<unknown>): Promise<void> {
    for (const line of this.#stage.lines.values()) {
      const isDone = await line.arrange(name, async (tx) => {
        if ((await tx.query({ text: LIVES }, [this.account])).length === 0) return false
        await work(tx)
        return true
      })
      if (isDone) return
    }
  }

  /** More than is there cannot be taken, and whether it was is seen in the end. */
  async #grant(grant: Partial<Parameters<Ledger['grant']>[0]>, by = this.#stage.some()): Promise<void> {
    const { account } = this
    const about = { account, amount: 0n, note: 'simulated', actor: 'simulated', ...grant }
    const { ledger, path } = await by.cellOf(account)
    await (this.#stage.lines.size === 1 ? ledger.grant(about) : this.#open(path, (tx) => ledger.grant(about, tx)))
  }

  /** As changes of an account do it: not where it is about to leave, or has left. */
  #open<T>({ database }: Cell['path'], work: (tx: Queryable) => Promise<T>): Promise<T> {
    return database.transaction(async (tx) => {
      if ((await tx.query({ text: OPEN }, [this.account])).length === 0) throw new Fault('unavailable')
      return work(tx)
    })
  }

  /** Whether it was is seen in the end. */
  #lot({ amount, forMs, product }: Plot['lots'][number]): Promise<void> {
    const endsAt = forMs === undefined ? undefined : new Date(this.#stage.world.nowMs() + forMs)
    const products = product === undefined ? undefined : [product]
    return this.#grant({ amount, lot: { source: 'given', endsAt, products } })
  }

  /** A chargeback, which asks for leases first, as sales/apply.ts does. */
  async #goBack(): Promise<void> {
    const { some, world } = this.#stage
    await (async () => (await some().cellOf(this.account)).ledger.returned(this.account))().catch(() => undefined)
    await this.#arrange('grant', (tx) => chargeBack(tx, this.account, newId(world)))
  }

  /** Until somebody has said that it is done. */
  async #give(amount: bigint): Promise<void> {
    const { some, world } = this.#stage
    const id = newId(world)
    this.#giving += 1
    for (;;) {
      const by = some()
      const isDone = await Promise.race([
        this.#giveOnce(by, id, amount).then(
          () => true,
          (error: unknown) => String(error).includes('duplicate key'),
        ),
        // One that dies never answers.
        world.pause(10_000).then(() => false),
      ])
      if (isDone) break
      await world.pause(world.chance.below(AGAIN_MS_MAX))
    }
    this.#given.push({ id, amount })
    this.#giving -= 1
  }

  async #giveOnce(by: Process, id: string, amount: bigint): Promise<void> {
    const { path } = await by.cellOf(this.account)
    await this.#open(path, (tx) => tx.query({ name: 'grant_once', text: GIVE }, [id, this.account, amount]))
  }
}
