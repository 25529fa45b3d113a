// Runs the tests of the table of faults, and writes what happened.
import { resolve } from 'node:path'
import { run } from 'node:test'
import { withTestServer } from '../with-server.ts'
import faults from './faults.json' with { type: 'json' }
import { today, writePart } from './report.ts'

const ROOT = resolve(import.meta.dirname, '..', '..')

/** A fault of the list, how it is brought about, and the tests that show what happens. */
interface FaultRow {
  readonly id: string
  readonly fault: string
  readonly done: string
  /** Files whose tests prove it, and a part of each test's name; every test of the file when there is none. */
  readonly shown: ReadonlyArray<readonly [file: string, name?: string]>
}

// The types of JSON know no tuples.
const FAULTS = faults as unknown as readonly FaultRow[]

interface Result {
  readonly file: string
  readonly name: string
  readonly ok: boolean
  readonly ms: number
  readonly said: string[]
}

export async function runFaults(options: { full: boolean }): Promise<number> {
  if (options.full) process.env.TOLLGATE_TEST_FULL = '1'
  const files = [...new Set(FAULTS.flatMap(({ shown }) => shown.map(([file]) => file)))]
  const results: Result[] = []
  await withTestServer(async () => {
    const stream = run({
      files: files.map((file) => resolve(ROOT, file)),
      concurrency: 1,
      timeout: 3_600_000,
      cwd: ROOT,
    })
    const keep =
      (ok: boolean) => (data: { file?: string; name: string; details: { duration_ms: number; type?: string } }) => {
        if (data.details.type === 'suite' || data.file === undefined || /\.(test|long)\.ts$/.test(data.name)) return
        results.push({
          file: data.file.slice(ROOT.length + 1),
          name: data.name,
          ok,
          ms: data.details.duration_ms,
          said: [],
        })
        console.log(`${ok ? '✔' : '✖'} ${data.name}`)
      }
    stream.on('test:pass', keep(true))
    stream.on('test:fail', keep(false))
    stream.on('test:diagnostic', ({ file, message }) => {
      const last = results.at(-1)
      if (
        last !== undefined &&
        file?.endsWith(last.file) &&
        !/^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(message)
      )
        last.said.push(message)
    })
    // Written again after each file, so that a run that is broken off leaves what it found.
    let written = 0
    for await (const _ of stream) {
      const files = new Set(results.map(({ file }) => file)).size
      if (files === written) continue
      written = files
      await writePart('faults', table(results, options.full))
    }
  })
  const failed = results.filter(({ ok }) => !ok).length
  await writePart('faults', table(results, options.full))
  return failed
}

function table(results: readonly Result[], full: boolean): string {
  const rows = FAULTS.map((row) => `| ${row.id} | ${row.fault} | ${row.done} | ${outcome(row, results)} |`)
  return `
Last run: ${today()}, ${full ? 'with the full figures' : SHORT}.

| | Fault | What was done | What happened |
|---|---|---|---|
${rows.join('\n')}
`
}

function outcome(row: FaultRow, results: readonly Result[]): string {
  const found = row.shown.flatMap(([file, name]) =>
    results.filter((result) => result.file === file && (name === undefined || result.name.includes(name))),
  )
  if (found.length === 0) return 'Not part of this run.'
  const said = found.flatMap((result) => result.said.slice(-2))
  const names =
    found.length > 4
      ? [`${found.length} tests of ${[...new Set(found.map(({ file }) => `\`${file}\``))].join(', ')}`]
      : found.map(({ name }) => name)
  const verdict = found.every(({ ok }) => ok) ? 'Passed' : '**Failed**'
  return `${verdict}: ${names.join('; ')}.${said.length === 0 ? '' : ` ${said.map(plain).join('; ')}.`}`.replaceAll(
    '|',
    '/',
  )
}

/** The second column names the full figures, and a short run has not shown those. */
const SHORT =
  'in the short form of the test suite. The figures in the column "What was done" are those of the full run, which this was not: `npm run chaos` without `--short` makes it'

const plain = (text: string) => text.replaceAll(/["{}]/g, '').replaceAll(',', ', ')
