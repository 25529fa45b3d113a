// Group commit. Operations that arrive while a flush is in flight wait for the next one; a flush is one statement for
// all of them. So operations share the cost of a commit, and the load decides the size of the groups.

export interface Batch<Op, Result> {
  run(op: Op): Promise<Result>
  /** The operations that wait for a flush. */
  readonly waiting: { readonly length: number }
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

  function launch(): void {
    scheduled = false
    while (isDue()) void flush(waiting.splice(0, options.sizeMax))
  }

  async function flush(group: Waiting<Op, Result>[]): Promise<void> {
    inFlight += 1
    options.observe?.(group.length)
    let results: ReadonlyArray<Result | Error> | undefined
    let failure: unknown
    try {
      const ops: Op[] = []
      for (const { op } of group) ops.push(op)
      results = await options.flush(ops)
    } catch (error) {
      failure = error
    }
    inFlight -= 1
    // The next flush starts before the answers of this one are handed out, so that the database works meanwhile.
    if (waiting.length > 0) launch()
    for (const [index, { resolve, reject }] of group.entries()) {
      const result = results ? (results[index] as Result | Error) : failure // There is one for each operation.
      if (!results || result instanceof Error) reject(result)
      else resolve(result as Result) // It is no error.
    }
    if (inFlight > 0 || waiting.length > 0) return
    for (const done of idlers) done()
    idlers = []
  }

  return {
    run(op) {
      const { promise, resolve, reject } = Promise.withResolvers<Result>()
      waiting.push({ op, resolve, reject })
      if (!scheduled && isDue()) {
        scheduled = true
        // After the current turn of the event loop, so that everything which arrived in it goes along.
        setImmediate(launch)
      }
      return promise
    },
    waiting,
    idle: () =>
      inFlight === 0 && waiting.length === 0 ? Promise.resolve() : new Promise((resolve) => idlers.push(resolve)),
  }
}
