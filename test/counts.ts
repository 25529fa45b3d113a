// A reporter of the runner: how many tests passed, and how many did not.
interface Summary {
  readonly type: string
  readonly data: { file?: string; counts?: { passed: number; failed: number; cancelled: number } }
}

export default async function* counts(events: AsyncIterable<Summary>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:summary' || data.file !== undefined || !data.counts) continue
    const { passed, failed, cancelled } = data.counts
    yield JSON.stringify({ passed, failed: failed + cancelled })
  }
}
