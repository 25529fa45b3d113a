// Group commit. Operations that arrive while a flush is in flight wait for the next one; a flush is one statement for
// all of them. So operations share the cost of a commit, and the load decides the size of the groups.

export interface Batch<Op, Result> {
  run(op: Op): Promise<Result>
  readonly pending: number
  /** Resolves when nothing is in flight or waiting. */
  idle(): Promise<void>
}

interface Waiting<Op, Result> {
  op: Op
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

interface BatchOptions<Op, Result> {
  /** One result per operation, in order; an Error fails only its own. */
  readonly flush: (ops: readonly Op[]) => Promise<ReadonlyArray<Result | Error>>
  /**
   * Maximum concurrent flushes. Besides the first, only full groups are flushed: larger groups cost less per operation,
   * so a group that is not full waits for the running commit.
   */
  readonly flushesMax: number
  readonly sizeMax: number
  readonly observe?: (size: number) => void
}

export function createBatch<Op, Result>(options: BatchOptions<Op, Result>): Batch<Op, Result> {
  const waiting: Waiting<Op, Result>[] = []
  let inFlight = 0
  let scheduled = false
  let idlers: Array<() => void> = []

  function isDue(): boolean {
    if (waiting.length === 0 || inFlight >= options.flushesMax) return false
    return inFlight === 0 || waiting.length >= options.sizeMax
  }

  function schedule(): void {
    if (scheduled || !isDue()) return
    scheduled = true
    // After the current turn of the event loop, so that everything which arrived in it goes along.
    setImmediate(() => {
      scheduled = false
      launch()
    })
  }

  function launch(): void {
    while (isDue()) void flush(waiting.splice(0, options.sizeMax))
  }

  async function flush(group: Waiting<Op, Result>[]): Promise<void> {
    inFlight += 1
    options.observe?.(group.length)
    let results: ReadonlyArray<Result | Error>
    try {
      results = await options.flush(group.map((entry) => entry.op))
    } catch (error) {
      results = group.map(() => error as Error)
    }
    inFlight -= 1
    // The next flush starts before the answers of this one are handed out, so that the database works meanwhile.
    launch()
    group.forEach((entry, index) => {
      const result = results[index] as Result | Error
      if (result instanceof Error) entry.reject(result)
      else entry.resolve(result)
    })
    if (inFlight > 0 || waiting.length > 0) return
    for (const done of idlers) done()
    idlers = []
  }

  return {
    run: (op) =>
      new Promise((resolve, reject) => {
        waiting.push({ op, resolve, reject })
        schedule()
      }),
    get pending() {
      return waiting.length
    },
    idle: () =>
      inFlight === 0 && waiting.length === 0 ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve)),
  }
}
