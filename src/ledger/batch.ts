// Group commit. Operations that arrive while a flush is in flight wait for the next one; a flush is one statement for all
// of them. So operations share the cost of a commit, and the load decides the size of the groups.

export interface Batch<Op, Result> {
  run(op: Op): Promise<Result>
  readonly pending: number
  /** Resolves when nothing is in flight or waiting. */
  idle(): Promise<void>
  /** Runs something while nothing is in flight; what arrives meanwhile waits. */
  alone<T>(run: () => Promise<T>): Promise<T>
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
   * Maximum concurrent flushes. Besides the first, only full groups are flushed (by size or by `together`): larger groups cost less per operation, so a group that is not full waits for the running commit.
   */
  readonly flushesMax: number
  readonly sizeMax: number
  /** How many of the first ones go together, at least one; absent: as many as are allowed. */
  readonly together?: (ops: ReadonlyArray<{ readonly op: Op }>) => number
  readonly observe?: (size: number) => void
}

export function createBatch<Op, Result>(options: BatchOptions<Op, Result>): Batch<Op, Result> {
  const waiting: Waiting<Op, Result>[] = []
  let inFlight = 0
  let scheduled = false
  let idlers: Array<() => void> = []
  let paused = 0
  let landed: Array<() => void> = []

  function isDue(): boolean {
    if (paused > 0 || waiting.length === 0 || inFlight >= options.flushesMax) return false
    return (
      inFlight === 0 ||
      waiting.length >= options.sizeMax ||
      (options.together?.(waiting) ?? waiting.length) < waiting.length
    )
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
    while (isDue()) {
      const count = options.together?.(waiting) ?? options.sizeMax
      void flush(waiting.splice(0, Math.min(count, options.sizeMax)))
    }
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
    if (inFlight > 0) return
    for (const done of landed) done()
    landed = []
    if (waiting.length > 0) return
    for (const done of idlers) done()
    idlers = []
  }

  async function alone<T>(run: () => Promise<T>): Promise<T> {
    paused += 1
    try {
      if (inFlight > 0) await new Promise<void>((resolve) => landed.push(resolve))
      return await run()
    } finally {
      paused -= 1
      launch()
    }
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
    alone,
  }
}
