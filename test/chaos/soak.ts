// `npm run soak -- --minutes 60 [--at-once 30 | --per-second 60]`: mixed traffic for a long time; memory, open files
// and latency must stay flat.
import { readdir, readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { newId, realWorld } from '../../src/kernel/world.ts'
import { assert, atLeast, until } from '../kit.ts'
import { checkBooks, noHolds } from './books.ts'
import { keyOf, makeDataDirectory, openStore, startProcess } from './gateway-process.ts'
import { today, writePart } from './report.ts'
import { countBy, percentile, startTraffic } from './traffic.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    'at-once': { type: 'string', default: '30' },
    'per-second': { type: 'string' },
  },
})
const minutes = Number(values.minutes)
const perSecond = values['per-second']
const load = perSecond ? `${perSecond} calls a second` : `${values['at-once']} calls at once`
const SAMPLES = 10
/** How far the last sample's p99 may lie above the third's. */
const P99_GROWTH_MAX = 3

interface Sample {
  readonly minute: number
  readonly rssMb: number
  readonly heapMb: number
  readonly files: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly calls: number
}

const data = await makeDataDirectory()
const gateway = await startProcess({ env: { TOLLGATE_DATA: data.path, TOLLGATE_SANDBOX_SPEED: '100' } })
try {
  const key = await keyOf(gateway)
  const database = await openStore(data.path)
  await database.query({ text: `select ledger_grant($1, id, 1000000000000000, 'soak', 'soak') from account` }, [
    newId(realWorld),
  ])
  const traffic = startTraffic({
    urls: () => [gateway.url],
    key,
    kinds: ['chat', 'stream', 'data', 'leave', 'chat', 'fail', 'stream'],
    ...(perSecond ? { perSecond: Number(perSecond) } : { atOnce: Number(values['at-once']) }),
  })
  const heapMb = async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text()
    return Math.round(Number(/^nodejs_heap_size_used_bytes (.+)$/m.exec(text)?.[1] ?? Number.NaN) / 1024 ** 2)
  }
  const samples: Sample[] = []
  const startedMs = performance.now()
  let seen = 0
  for (let i = 1; i <= SAMPLES; i++) {
    await until(() => performance.now() - startedMs, atLeast((minutes * 60_000 * i) / SAMPLES), Infinity)
    const latest = traffic.told.slice(seen)
    seen = traffic.told.length
    const ms = latest.filter(({ status, kind }) => status === 200 && kind !== 'leave').map((told) => told.ms)
    const status = await readFile(`/proc/${gateway.pid}/status`, 'utf8').catch(() => '')
    const sample: Sample = {
      minute: (minutes * i) / SAMPLES,
      rssMb: Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024),
      heapMb: await heapMb(),
      files: (await readdir(`/proc/${gateway.pid}/fd`).catch(() => [])).length,
      p50Ms: Math.round(percentile(ms, 0.5)),
      p99Ms: Math.round(percentile(ms, 0.99)),
      calls: latest.length,
    }
    samples.push(sample)
    console.log(sample)
  }
  await traffic.stop()
  await noHolds(database, 60_000)
  const books = await checkBooks(database, traffic.acknowledged())
  await database.close()
  for (const { status, kind, text } of traffic.told)
    assert.ok(status === 200 || status === 503 || (kind === 'fail' && status === 502), `${kind} ${status} ${text}`)
  // The first samples warm up; from then on nothing may grow by more than half.
  const [early, late] = [samples[2]!, samples.at(-1)!]
  assert.ok(late.rssMb < early.rssMb * 1.5, `memory grew from ${early.rssMb} to ${late.rssMb} MB`)
  assert.ok(late.heapMb < early.heapMb * 2, `the heap grew from ${early.heapMb} to ${late.heapMb} MB`)
  const p99Max = early.p99Ms * P99_GROWTH_MAX
  assert.ok(late.p99Ms < p99Max, `p99 grew from ${early.p99Ms} to ${late.p99Ms} ms`)
  assert.ok(late.files < early.files + 50, `open files grew from ${early.files} to ${late.files}`)
  await writePart(
    'soak',
    `
Last run: ${today()}, ${minutes} minutes with ${load}: ${JSON.stringify(countBy(traffic.told)).replaceAll(/["{}]/g, '').replaceAll(',', ', ')}; ${books.acknowledged} acknowledged charges, all in the ledger; \`ledger verify\` ok.

| Minute | Calls | Memory (MB) | Heap (MB) | Open files | p50 (ms) | p99 (ms) |
|---|---|---|---|---|---|---|
${samples.map((sample) => `| ${sample.minute.toFixed(1)} | ${sample.calls} | ${sample.rssMb} | ${sample.heapMb} | ${sample.files} | ${sample.p50Ms} | ${sample.p99Ms} |`).join('\n')}
`,
  )
  assert.equal(await gateway.stop(), 0)
} finally {
  gateway.kill('SIGKILL')
  await gateway.exited
  await data.remove()
}
