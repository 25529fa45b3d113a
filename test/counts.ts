// A reporter of the runner: how many tests passed, how many did not, and which.
interface Event {
  readonly type: string
  readonly data: {
    readonly name?: string
    readonly nesting?: number
    readonly file?: string
    readonly details?: { readonly error?: { readonly cause?: unknown; readonly failureType?: string } }
    readonly counts?: { readonly passed: number; readonly failed: number; readonly cancelled: number }
  }
}

export type Counted = { readonly passed: number; readonly failed: number; readonly failures: readonly Failure[] }
export type Failure = { readonly file: string; readonly test: string; readonly why: string }

export default async function* counts(events: AsyncIterable<Event>): AsyncGenerator<string> {
  let file = ''
  const failures: Failure[] = []
  for await (const { type, data } of events) {
    // What is outermost is a file, and the runner tells of one after the other.
    if (type === 'test:start' && data.nesting === 0) file = data.name ?? ''
    const { cause, failureType } = data.details?.error ?? {}
    if (type === 'test:fail' && failureType !== 'subtestsFailed')
      failures.push({ file, test: data.name ?? '', why: inOneLine(cause) })
    if (type !== 'test:summary' || data.file !== undefined || !data.counts) continue
    const { passed, failed, cancelled } = data.counts
    yield JSON.stringify({ passed, failed: failed + cancelled, failures } satisfies Counted)
  }
}

const WHY_CHARACTERS_MAX = 200
const inOneLine = (cause: unknown) =>
  String(cause instanceof Error ? cause.message : cause)
    .replace(/\s+/g, ' ')
    .slice(0, WHY_CHARACTERS_MAX)
