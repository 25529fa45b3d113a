// A reporter that names the files in which something failed, a line each.
interface TestEvent {
  readonly type: string
  readonly data: { readonly file?: string; readonly nesting?: number }
}

export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const told = new Set<string>()
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.file === undefined || told.has(data.file)) continue
    told.add(data.file)
    yield `${data.file}\n`
  }
}
