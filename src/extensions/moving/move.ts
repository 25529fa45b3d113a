// Moves an account to another database. Its history is copied while it is in use; then it is closed for calls until
// those that run have ended, the rest is copied, both ends are compared, the source says that it is gone, and the
// target opens it. The account is open at one end at most at every moment, whenever this is killed, and doing it again
// goes on from there.
import { createAudit } from '../../database/audit.ts'
import { createChanges } from '../../database/changes.ts'
import { type Database, PATIENT, type Queryable } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import { putSetting } from '../../database/setting.ts'
import { DAY_MS, dayOfMs } from '../../kernel/calendar.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { silentLog } from '../../kernel/log.ts'
import { isTestAccount, testAccountOf } from '../../kernel/test-account.ts'
import { every, sleep } from '../../kernel/timers.ts'
import { idAtTime, newId, type World } from '../../kernel/world.ts'
import { CALLS_ARRIVED } from '../../ledger/retention.ts'
import { OVER_AFTER_MS, summedUntilMs, sumUsage } from '../../ledger/usage-sums.ts'
import * as copy from './rows.ts'
import * as steps from './steps.ts'

export interface MoveOptions {
  readonly account: string
  readonly source: Database
  readonly target: Database
  /** What the two are called, without passwords. */
  readonly from: string
  readonly to: string
  readonly world: World
  /** How long calls that run may take to end, with the account closed for new ones. */
  readonly waitMs: number
  readonly say: (line: string) => void
  readonly within?: Within
}

/** Both databases are of one installation. */
export interface Within {
  /** What says where each account is. */
  readonly control: Database
  /** What the target is called there; null: it is the control database. */
  readonly ledger: string | null
  /** In which every process learns that the account is about to change its place. */
  readonly noticeMs: number
}

/** Processes ask once a second. */
export const NOTICE_MS = 2_500

export interface Moved {
  readonly account: string
  readonly to: string
  /** By table. */
  readonly rows: Readonly<Record<string, number>>
  readonly balance: string
  /** How long it took no calls; 0 when an earlier try had closed it. */
  readonly closedMs: number
}

/** Says in a sentence why an account stays where it is. */
export class MoveRefused extends Error {}

/** A mover that is killed keeps an account closed for no longer than this. */
const FROZEN_SECONDS = 60
const FREEZE_EVERY_MS = 10_000
const DRIVEN_EVERY_MS = 10_000
const LOOK_EVERY_MS = 20
const ROUND_EVERY_MS = 100
/** The account is closed when a round of copying takes no longer than this and nothing is leased, or after a while. */
const ROUND_MS = 200
const ROUNDS_MS = 10_000
/** Of calls older than this no row is written any more: settlements are tried for a day, jobs live 26 hours. */
const SETTLED_MS = 3 * 24 * 3_600_000
const MINUTE_MS = 60_000
const TRIES = 3
const BY = { actor: 'command line', ip: null, requestId: null }

export async function moveAccount(options: MoveOptions): Promise<Moved> {
  const { account, source, world } = options
  if (isTestAccount(account) && !options.within)
    throw new MoveRefused('A test account is not moved. Make new test keys where its owner is.')
  await checkSchemas(options)
  const [left] = await source.query<MoveRow>(steps.STATE, [account])
  if (left?.state === 'gone') return driven(options, left.move_id, () => finish(options, left))
  await refuseJobs(source, account)
  const move = newId(world)
  const [now] = await source.query<{ now: Date }>(steps.LEAVE, [account, move, options.to])
  if (!now) throw new MoveRefused(`There is no account ${account} in ${options.from} that could be moved.`)
  return driven(options, move, () => moveFrom(options, move, now.now))
}

/** As long as it runs, no gateway takes the move for one that nobody drives any more: see abandoned.ts. */
async function driven<T>({ account, source, world }: MoveOptions, move: string, run: () => Promise<T>): Promise<T> {
  const stop = every(world, DRIVEN_EVERY_MS, () => source.query(steps.DRIVEN, [account, move]), silentLog)
  return run().finally(stop)
}

async function moveFrom(options: MoveOptions, move: string, now: Date): Promise<Moved> {
  const { account, source, target } = options
  await arrive(options, move)
  await sumUsage(source)
  const over = new Date(dayOfMs(Math.min(now.getTime() - OVER_AFTER_MS, await summedUntilMs(source))) * DAY_MS)
  const began = await steps.one<copy.Moment>(source, steps.MOMENT, [account])
  const isWithin = options.within !== undefined
  const step: Step = {
    options,
    move,
    over,
    settled: idAtTime(now.getTime() - SETTLED_MS),
    versions: new Map(),
    rest: await copy.restOf(source, isWithin),
    sent: new Map(),
    ends: { account, source, target, from: options.from, isWithin },
    fenced: (write) =>
      target.transaction(async (tx) => {
        await mustArrive(tx, account, move)
        await write(tx)
      }, PATIENT),
  }
  const compared = await copyHistory(step, began)
  const closedMs = await close(step, compared)
  await copyLate(options, move, began.at)
  await clear(options, move)
  return { ...(await count(options)), closedMs }
}

/** A move under way. */
interface Step {
  readonly options: MoveOptions
  readonly move: string
  readonly ends: copy.Ends
  readonly versions: copy.Versions
  /** Sums of before this moment change no more; and the first id that can still be written. */
  readonly over: Date
  readonly settled: string
  readonly rest: copy.Rest
  readonly sent: copy.Sent
  readonly fenced: (write: (tx: Queryable) => Promise<void>) => Promise<void>
}

/** With the account in use. Answers up to when it was compared. */
async function copyHistory(step: Step, began: copy.Moment): Promise<copy.Moment> {
  const { options, ends, versions, over, settled, fenced } = step
  const { account, source, say } = options
  const copied = await copy.copyAll(ends, versions, '', fenced)
  await copy.copyDated(ends, over, fenced)
  // That may have taken hours.
  const until = await steps.one<copy.Moment>(source, steps.MOMENT, [account])
  await fenced((tx) => copy.copyRecent({ ...ends, target: tx }, versions, { from: began, to: until.moved, settled }))
  await compare(options, (end) => copy.tallyHistory(end, account, until, over))
  say(`Copied and compared ${copied} rows of its history.`)
  return until
}

async function compare({ source, target, ...options }: MoveOptions, tally: (tx: Queryable) => Promise<Tallies>) {
  const [here, there] = await Promise.all([source, target].map((end) => end.transaction(tally, PATIENT)))
  const difference = differenceOf(here!, there!, options) // Of two.
  if (difference) throw new MoveRefused(difference)
}

/**
 * Copies what came since a moment, and compares it, again and again, while processes learn that the account is about to
 * change its place and give back what they have leased: little is left to do when it is closed.
 */
async function approach(step: Step, from: copy.Moment): Promise<copy.Moment> {
  const { options, over } = step
  const { account, source, world, within } = options
  const noticeMs = within?.noticeMs ?? 0
  const startedMs = world.elapsedMs()
  for (let last = from; ; ) {
    const roundMs = world.elapsedMs()
    const { moved } = last
    try {
      const next = await steps.one<copy.Moment>(source, steps.MOMENT, [account])
      await copyRound(step, { from: { ...from, moved }, to: next.moved }, over)
      await compare(options, (end) => copy.tallyRecent(end, account, moved, next.moved))
      last = next
    } catch (error) {
      // What a ledger tells control of an account that is in use there may come at the same time as a call.
      if (!(error instanceof Fault) || world.elapsedMs() - startedMs > noticeMs + ROUNDS_MS) throw error
      step.sent.clear()
    }
    const { leases } = await steps.one<Still>(source, steps.STILL_HELD, [account])
    const waitedMs = world.elapsedMs() - startedMs
    const isQuick = world.elapsedMs() - roundMs <= ROUND_MS && step.sent.size > 0
    if ((isQuick && leases === 0 && waitedMs >= noticeMs) || waitedMs >= noticeMs + ROUNDS_MS) return last
    await sleep(world, ROUND_EVERY_MS)
  }
}

async function copyRound(
  { options, ends, versions, settled, rest, sent, fenced }: Step,
  stretch: { readonly from: copy.Moment; readonly to: string },
  since: Date,
): Promise<void> {
  await fenced(async (tx) => {
    const to = { ...ends, target: tx }
    await copy.copyRecent(to, versions, { ...stretch, settled })
    await copy.copyChanging(to, versions, { rest, since, sent })
    const row = await steps.one<AccountText>(options.source, steps.ACCOUNT, [options.account])
    await tx.query(steps.PUT_ACCOUNT, [row.account, row.posted])
  })
}

/** Until the target has opened the account: answers for how many milliseconds it was closed. */
async function close(step: Step, compared: copy.Moment): Promise<number> {
  const { options, move, ends, versions, over, settled, sent, fenced } = step
  const { account, source, world, say } = options
  const parts = { drained: 0, copied: 0, compared: 0, opened: 0 }
  let [startedMs, lastMs] = [0, 0]
  const lap = (part: keyof typeof parts) => {
    parts[part] += Math.round(world.elapsedMs() - lastMs)
    lastMs = world.elapsedMs()
  }
  try {
    await announce(options, true)
    const last = await approach(step, compared)
    say('The account is closed for calls now.')
    lastMs = startedMs = world.elapsedMs()
    const keep = keeper(options, move)
    await drain(options, keep)
    lap('drained')
    for (let left = TRIES; ; left--) {
      const isFirst = left === TRIES
      // Sums may have been folded meanwhile, or something is there that nobody expected: the next try copies them all.
      if (!isFirst) {
        sent.clear()
        await copy.copyAll(ends, versions, settled, fenced)
      }
      await copyRound(
        step,
        { from: { ...compared, moved: last.moved }, to: copy.EVER_MOVED },
        isFirst ? over : new Date(0),
      )
      lap('copied')
      await keep()
      const difference = await leave(step, last.moved, compared.at)
      lap('compared')
      if (difference === undefined) break
      if (left <= 1) throw new MoveRefused(difference)
    }
  } catch (error) {
    await source.query(steps.THAW, [account, move, testAccountOf(account)]).catch(() => undefined)
    await announce(options, false).catch(() => undefined)
    throw error
  }
  await open(options, move)
  lap('opened')
  const closedMs = Math.round(world.elapsedMs() - startedMs)
  say(
    `It was closed for ${closedMs} ms: ${parts.drained} until calls had ended, ${parts.copied} to copy the rest, ${parts.compared} to compare, ${parts.opened} to open.`,
  )
  return closedMs
}

/** An earlier try closed the source for good: only the target can open it. */
async function finish(options: MoveOptions, left: MoveRow): Promise<Moved> {
  const { account, target } = options
  const [there] = await target.query<MoveRow>(steps.STATE, [account])
  if (there?.move_id !== left.move_id)
    throw new MoveRefused(`Account ${account} is not in ${options.from} any more: it has moved to ${left.other}.`)
  if (there.state === 'arriving') await open(options, left.move_id)
  await copyLate(options, left.move_id, new Date(0))
  await clear(options, left.move_id)
  return { ...(await count(options)), closedMs: 0 }
}

/** From now on every process asks with each call where the account is, and leases nothing of it; or no longer. */
async function announce({ account, source, within, world }: MoveOptions, isMoving: boolean): Promise<void> {
  await within?.control.transaction(async (tx) => {
    await tx.query(steps.PASS, [account, isMoving])
    await createChanges(within.control, world).bump(tx, 'homes')
  })
  await source.query(steps.UNLEASE, [account, testAccountOf(account), isMoving])
}

/** What was refused while the account was closed. It may have moved on since it arrived. */
async function copyLate(options: MoveOptions, move: string, began: Date): Promise<void> {
  const { account, source, target, from, within } = options
  const ends: copy.Ends = { account, source, target, from, isWithin: within !== undefined }
  await copy.copyListed(ends, new Map(), new Date(began.getTime() - MINUTE_MS), (write) =>
    target.transaction(async (tx) => {
      const [there] = await tx.query<MoveRow>(steps.LOCK_ARRIVAL, [account])
      if (there?.state === 'arrived' && there.move_id === move) await write(tx)
    }, PATIENT),
  )
}

/** What the source keeps of an account that is gone. Another gateway's source keeps its history. */
async function clear(options: MoveOptions, move: string): Promise<void> {
  const { account, source, world, within, waitMs, say } = options
  await pruneAll(source, copy.REMOVE_CONTENT, [account])
  if (!within) return void (await source.query(copy.REMOVE_SIGN_INS, [account]))
  await sumUsage(source)
  const startedMs = world.elapsedMs()
  while ((await source.query(steps.UNSENT, [account])).length > 0) {
    if (world.elapsedMs() - startedMs > waitMs)
      return say('Exports have not sent all of its calls yet. Until this is repeated, its history is in both ledgers.')
    await sleep(world, LOOK_EVERY_MS)
  }
  await source.transaction(async (tx) => {
    await tx.query(steps.LOCK, [account])
    const [there] = await tx.query<MoveRow>(steps.STATE, [account])
    if (there?.state !== 'gone' || there.move_id !== move) return
    await copy.removeRows(tx, account, true)
    await tx.query(steps.EMPTY_SHELL, [account])
    await tx.query(steps.PRUNE_ACCOUNT, [account])
    await tx.query(steps.ENDED, [account, testAccountOf(account)])
  }, PATIENT)
}

/** Takes back an unfinished move: the source opens, and the target forgets what it was given. */
export async function cancelMove(options: MoveOptions): Promise<void> {
  const { account, source, target } = options
  await checkSchemas(options)
  const [left] = await source.query<MoveRow>(steps.STATE, [account])
  if (left?.state !== 'leaving')
    throw new MoveRefused(
      left?.state === 'gone'
        ? `Account ${account} has moved to ${left.other}; a move that has ended cannot be cancelled. Move it back from there.`
        : `Account ${account} is not being moved.`,
    )
  // From here on whoever still moves it finds that the move is no longer its own.
  const cancelled = newId(options.world)
  const [row] = await source.query(steps.CANCEL, [account, cancelled, left.move_id, testAccountOf(account)])
  if (!row) throw new MoveRefused(`Another move of account ${account} began just now.`)
  await announce(options, false)
  await source.transaction(async (on) => {
    // Until this ends no other move begins, so that what arrives is of one that has ended, or is of an earlier one.
    if (!(await on.query(steps.LOCK_LEAVING, [account, cancelled]))[0]) throw overtaken(account)
    await target.transaction(async (tx) => {
      const [there] = await tx.query<MoveRow>(steps.LOCK_ARRIVAL, [account])
      if (there?.state !== 'arriving') return
      await copy.removeRows(tx, account, options.within !== undefined)
      await tx.query(steps.REMOVE_ARRIVAL, [account])
      await tx.query(steps.EMPTY_SHELL, [account])
      await tx.query(steps.PRUNE_ACCOUNT, [account])
    }, PATIENT)
    await on.query(steps.PRUNE_LEAVING, [account, cancelled])
  }, PATIENT)
}

async function checkSchemas({ source, target, from, to }: MoveOptions): Promise<void> {
  const numberOf = async (end: Queryable) => {
    const [made] = await end.query<{ is: boolean }>(steps.IS_MADE)
    return made?.is ? ((await end.query<{ number: number }>(steps.SCHEMA))[0]?.number ?? 0) : 0
  }
  const [here, there] = await Promise.all([source, target].map(numberOf))
  if (there === 0) throw new MoveRefused(`${to} has no tables of Tollgate yet: start a gateway on it once.`)
  if (here !== there)
    throw new MoveRefused(`${from} and ${to} are of different versions: upgrade the gateways of both first.`)
}

async function refuseJobs(source: Queryable, account: string): Promise<void> {
  const jobs = await source.query<{ id: string }>(steps.OPEN_JOBS, [account])
  if (jobs.length > 0)
    throw new MoveRefused(
      `Account ${account} has jobs under way (${jobs.map(({ id }) => id).join(', ')}). Wait until they have ended, or cancel them, and move it then.`,
    )
}

/**
 * The account appears at the target, closed. One that is open there is another, or the same in a copy of this database.
 */
async function arrive(options: MoveOptions, move: string): Promise<void> {
  const { account, source, target, from, to, within } = options
  const row = await steps.one<AccountText>(source, steps.ACCOUNT, [account])
  await target.transaction(async (tx) => {
    const [there] = await tx.query<MoveRow>(steps.LOCK_ARRIVAL, [account])
    if (there?.move_id === move) throw new MoveRefused(`${from} and ${to} are the same database.`)
    const isShell = within !== undefined && (there?.ledger ?? null) !== null
    if (there && there.state !== 'arriving' && there.state !== 'gone' && !isShell)
      throw new MoveRefused(`${to} has an account ${account} already, which is open.`)
    // It was here before: what it has now comes from where it was meanwhile.
    if (within ? there?.state !== 'arriving' : there?.state === 'gone')
      await copy.removeRows(tx, account, within !== undefined)
    await tx.query(steps.PUT_ACCOUNT, [row.account, 0n])
    await tx.query(steps.PUT_ARRIVAL, [account, move, from])
  }, PATIENT)
}

/** Whoever is slower than another mover of the same account writes nothing more. */
async function mustArrive(tx: Queryable, account: string, move: string): Promise<void> {
  const [there] = await tx.query<MoveRow>(steps.LOCK_ARRIVAL, [account])
  if (there?.state !== 'arriving' || there.move_id !== move) throw overtaken(account)
}

function overtaken(account: string): MoveRefused {
  return new MoveRefused(`Another move of account ${account} has begun: this one has ended.`)
}

/** Closes the account, and keeps it closed for as long as it is called again and again. */
function keeper({ account, source, world }: MoveOptions, move: string) {
  let frozenMs = Number.NEGATIVE_INFINITY
  return async () => {
    if (world.elapsedMs() - frozenMs < FREEZE_EVERY_MS) return
    frozenMs = world.elapsedMs()
    const [row] = await source.query(steps.FREEZE, [account, move, FROZEN_SECONDS, testAccountOf(account)])
    if (!row) throw overtaken(account)
  }
}

/** Until nothing of the account is held: running calls end, processes give back what they have leased. */
async function drain({ account, source, world, waitMs }: MoveOptions, keep: () => Promise<void>): Promise<void> {
  const startedMs = world.elapsedMs()
  for (;;) {
    await keep()
    const open = await steps.one<Still>(source, steps.STILL_HELD, [account])
    if (open.holds + open.leases === 0) break
    if (world.elapsedMs() - startedMs > waitMs)
      throw new MoveRefused(
        `Account ${account} still had ${open.holds} calls and ${open.leases} leases of processes under way after ${Math.round(waitMs / 1_000)} s. It is open again where it was; move it at a quieter time, or wait longer with --wait.`,
      )
    await sleep(world, LOOK_EVERY_MS)
  }
  await refuseJobs(source, account)
}

/**
 * The point of no return, with the account locked. Answers what differs between the two ends, and then nothing has
 * happened.
 */
async function leave({ options, move, rest, over, settled }: Step, from: string, purses: Date) {
  const { account, source, target, world, to, within } = options
  const tally = async (tx: Queryable): Promise<Tallies> => {
    const tallies = await copy.tallyRest(tx, account, { rest, over, from, purses, settled })
    return within ? tallies : { ...tallies, membership: await copy.tallyMembers(tx, account) }
  }
  return source.transaction(async (tx) => {
    const [row] = await tx.query<{ posted: bigint; busy: boolean }>(steps.LOCK, [account])
    const [leaving] = await tx.query<{ busy: boolean }>(steps.LOCK_LEAVING, [account, move])
    if (!row || !leaving) throw overtaken(account)
    const still = await steps.one<Still>(tx, steps.STILL_HELD, [account])
    if (row.busy || leaving.busy || still.holds + still.leases > 0)
      return `Account ${account} has calls under way again.`
    const [here, there] = await Promise.all([tally(tx), target.transaction(tally, PATIENT)])
    const difference = differenceOf(here, there, options)
    if (difference) return difference
    // What is left here must be spent by nobody: it is taken back, so that these ledger add up as well.
    const takeback = newId(world)
    const taking = [takeback, account, row.posted, `moved to ${to}`, BY.actor]
    const [taken] = row.posted > 0n ? await tx.query<{ moved: bigint }>(steps.TAKE_BACK, taking) : []
    await tx.query(steps.CLOSE, [account, testAccountOf(account)])
    await tx.query(steps.GONE, [account, move, to])
    const detail = { to, amount: formatCredits(taken?.moved ?? 0n), takeback }
    await createAudit({ database: source, world }).write(tx, BY, { action: 'account.move', object: account, detail })
    return undefined
  }, PATIENT)
}

function differenceOf(
  here: Tallies,
  there: Tallies,
  { account, from, to }: Pick<MoveOptions, 'account' | 'from' | 'to'>,
): string | undefined {
  for (const [table, { rows, mark }] of Object.entries(here)) {
    const other = there[table]
    if (other?.rows !== rows || other.mark !== mark)
      return `The rows of account ${account} in "${table}" differ: ${rows} in ${from}, ${other?.rows ?? 0} in ${to}. It stays where it was.`
  }
  return undefined
}

async function open(options: MoveOptions, move: string): Promise<void> {
  const { account, target, world, from } = options
  await target.transaction(async (tx) => {
    await mustArrive(tx, account, move)
    await flip(options, tx)
    await tx.query(steps.OPEN, [account, testAccountOf(account)])
    await putSetting(tx, CALLS_ARRIVED, newId(world))
    // Its keys are looked for anew where somebody asked for them too early.
    await createChanges(target, world).bump(tx, 'keys')
    await createAudit({ database: target, world }).write(tx, BY, {
      action: 'account.arrive',
      object: account,
      detail: { from },
    })
  }, PATIENT)
}

/** Callers are sent to the target. Nobody else does it: the target's account is locked, and still closed. */
async function flip({ account, world, within }: MoveOptions, tx: Queryable): Promise<void> {
  if (!within) return
  const { control, ledger } = within
  const run = async (on: Queryable) => {
    await on.query(steps.FLIP, [account, ledger])
    await on.query(steps.CROSSINGS_FOLLOW, [account, ledger])
    await createChanges(control, world).bump(on, 'homes')
  }
  await (ledger === null ? run(tx) : control.transaction(run))
}

async function count({ account, target, to, within }: MoveOptions): Promise<Omit<Moved, 'closedMs'>> {
  return target.transaction(async (tx) => {
    const tallies = {
      ...(await copy.tallyHistory(tx, account, EVERYTHING)),
      ...(await copy.tallyChanging(tx, account, within !== undefined)),
    }
    const rows = Object.fromEntries(Object.entries(tallies).map(([table, tally]) => [table, tally.rows]))
    return { account, to, rows, balance: formatCredits(await copy.balanceOf(tx, account)) }
  }, PATIENT)
}

interface MoveRow {
  readonly move_id: string
  readonly state: string
  readonly other: string
  readonly ledger?: string | null
}
type Tallies = Readonly<Record<string, copy.Tally>>
const EVERYTHING: copy.Moment = { moved: copy.EVER_MOVED, at: new Date(0) }
interface Still {
  readonly holds: number
  readonly leases: number
}
interface AccountText {
  readonly account: string
  readonly posted: bigint
}
