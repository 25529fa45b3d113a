// The operations of each account, one statement at a time. Those that arrive while it runs wait, and go together with
// the next one, so that calls of an account keep their order and share the cost of a commit; calls of others never wait
// for them. Accounts take turns for the few concurrent statements, and accounts that are locked by another transaction
// have a queue of their own.
import { isLockWait, isOfAPart } from '../database/database.ts'
import { AccountLocked, type Done, type Op } from './operation.ts'
import { send } from './statements.ts'
import type { Around } from './write-watch.ts'

interface QueueOptions extends Around {
  /** By which this process goes. */
  readonly limits: { readonly version: string | null }
  readonly observe?: ((size: number) => void) | undefined
  /** After operations that may have freed credits of the account. */
  readonly freed: (account: string) => void
}

interface Waiting {
  readonly op: Op
  readonly resolve: (done: Done) => void
  readonly reject: (error: unknown) => void
}

interface Line {
  readonly account: string
  readonly waiting: Record<Op['kind'], Waiting[]>
  /** Its operations that are not decided. */
  size: number
  /** It runs, or waits for its turn. */
  busy: boolean
  /** The kind that comes next: they take turns. */
  next: number
  /** Its lock timed out: the account goes to its own queue. */
  locked: boolean
  /** When it was last empty. */
  emptyMs: number
}

/** What frees credits comes before what takes them. */
const ORDER = ['resolve', 'reserve', 'lease', 'post', 'expire'] as const satisfies Array<Op['kind']>
const SIZE_MAX = 256
/** Statements at once, and of those that may have to wait for a lock. */
const TURNS = 6
const LOCKED_TURNS = 2
/** How long an account without calls counts as locked. */
const LOCKED_FOR_MS = 60_000
/** The answers delivered in one turn of the event loop: a thousand rejections of one account must not delay others. */
const ANSWERS_AT_ONCE = 16

const kindOf = ({ locked }: Line) => (locked ? 'locked' : 'free')
const kindAt = (at: number) => ORDER[at % ORDER.length]! // a place in it

export function createQueue({ database, watch, world, processId, limits, observe, freed }: QueueOptions) {
  const lines = new Map<string, Line>()
  /** Lines that wait for a turn. */
  const ready: Record<'free' | 'locked', Line[]> = { free: [], locked: [] }
  const running = { free: 0, locked: 0 }
  /** Operations that are not decided. */
  const undecided = { free: 0, locked: 0 }
  const most = { free: TURNS, locked: LOCKED_TURNS }
  const idlers: Array<() => void> = []

  function lineOf(account: string): Line {
    let line = lines.get(account)
    if (!line || isOver(line)) {
      line = {
        account,
        size: 0,
        busy: false,
        next: 0,
        locked: false,
        emptyMs: 0,
        waiting: { resolve: [], reserve: [], lease: [], post: [], expire: [] },
      }
      lines.set(account, line)
    }
    return line
  }

  function isEmpty({ waiting }: Line): boolean {
    return ORDER.every((kind) => waiting[kind].length === 0)
  }

  const isIdle = () => undecided.free + undecided.locked === 0

  function isOver({ busy, emptyMs }: Line): boolean {
    return !busy && world.elapsedMs() - emptyMs > LOCKED_FOR_MS
  }

  function next(kind: 'free' | 'locked'): void {
    while (running[kind] < most[kind]) {
      const line = ready[kind].shift()
      if (!line) return
      void runLine(line, kind)
    }
  }

  function queueUp(line: Line): void {
    const kind = kindOf(line)
    ready[kind].push(line)
    next(kind)
  }

  function resize(line: Line, by: number): void {
    line.size += by
    undecided[kindOf(line)] += by
  }

  function lock(line: Line, locked: boolean): void {
    undecided[kindOf(line)] -= line.size
    line.locked = locked
    undecided[kindOf(line)] += line.size
  }

  async function runLine(line: Line, kind: 'free' | 'locked'): Promise<void> {
    running[kind] += 1
    while (line.waiting[kindAt(line.next)].length === 0) line.next += 1
    const group = line.waiting[kindAt(line.next)].splice(0, SIZE_MAX)
    line.next = isEmpty(line) ? 0 : line.next + 1
    observe?.(group.length)
    const results = await runAll(
      line,
      group.map(({ op }) => op),
    )
    running[kind] -= 1
    resize(line, -group.length)
    if (isEmpty(line)) {
      line.busy = false
      line.emptyMs = world.elapsedMs()
      if (!line.locked) lines.delete(line.account)
      else for (const one of lines.values()) if (isOver(one)) lines.delete(one.account)
    } else queueUp(line)
    next(kind)
    answer(group, results, 0)
    if (group[0]?.op.kind !== 'reserve') freed(line.account)
    if (isIdle()) for (const done of idlers.splice(0)) done()
  }

  async function runAll(line: Line, ops: readonly Op[]): Promise<ReadonlyArray<Done | Error>> {
    try {
      const nowMs = world.elapsedMs()
      const done = await watch(send({ database, processId, nowMs, system: limits.version }, ops))
      lock(line, false)
      return done
    } catch (error) {
      if (isLockWait(error)) {
        lock(line, true)
        return ops.map(() => new AccountLocked())
      }
      // An operation that fails must not fail the others of its group.
      if (ops.length > 1 && isOfAPart(error)) {
        const done: Array<Done | Error> = []
        for (const op of ops) done.push(...(await runAll(line, [op])))
        return done
      }
      return ops.map(() => error as Error) // nothing else is thrown
    }
  }

  function answer(group: readonly Waiting[], results: ReadonlyArray<Done | Error>, from: number): void {
    const until = Math.min(from + ANSWERS_AT_ONCE, group.length)
    for (let at = from; at < until; at++) {
      const { resolve, reject } = group[at]! // within its length
      const result = results[at] ?? new AccountLocked()
      if (result instanceof Error) reject(result)
      else resolve(result)
    }
    if (until < group.length) setImmediate(() => answer(group, results, until))
  }

  return {
    run: <T extends Done>(op: Op) =>
      new Promise<T>((resolve, reject) => {
        const line = lineOf(op.value.account)
        line.waiting[op.kind].push({ op, resolve: resolve as (done: Done) => void, reject }) // each kind has its own answer
        resize(line, 1)
        if (line.busy) return
        line.busy = true
        // After the current turn of the event loop, so that everything which arrived in it goes along.
        setImmediate(() => queueUp(line))
      }),
    idle: () => (isIdle() ? Promise.resolve() : new Promise<void>((resolve) => idlers.push(resolve))),
    /** Operations that are not decided; `locked`: of accounts that another transaction has locked. */
    undecided,
    isIsolated: (account: string) => lines.get(account)?.locked === true,
  }
}
