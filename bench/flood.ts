// `npm run bench -- flood [--rounds 5]`: what a flood of refusals of one key does to the callers of another. In turns:
// 100 calls a second of one account alone, and the same beside 5,000 a second of a key without credits. Says how much
// slower they are, and how many rows the refusals left.
import { parseArgs } from 'node:util'
import { openBed } from './bed.ts'
import { listCases } from './cases.ts'
import { type LoadResult, runLoad } from './load.ts'
import { median } from './measure.ts'
import { aimAt } from './target.ts'
import { startTollgate } from './tollgate.ts'

const { values: args } = parseArgs({
  args: process.argv.slice(3),
  options: { rounds: { type: 'string', default: '5' } },
})
const SECONDS = 4
const FLOOD = { connections: 64, rate: 5_000, seconds: SECONDS + 1, warmSeconds: 0 }
const CALLS = { connections: 8, rate: 100, seconds: SECONDS, warmSeconds: 0.5 }

async function main(): Promise<void> {
  const { tools, store, options, close } = await openBed('flood')
  const chat = listCases(true).find(({ id }) => id === 'chat-64')
  if (!chat) throw new Error('There is no such case.')
  const tollgate = await startTollgate({ ...options, store })
  try {
    const [poor] = await tollgate.accounts(1, { credits: 0n })
    if (!poor) throw new Error('There is no account without credits.')
    const aim = aimAt(tollgate, chat.body, chat.path)
    const flooding = { ...aim, headers: tollgate.headersOf(poor.key) }
    const found: Array<{ alone: LoadResult; beside: LoadResult; flood: LoadResult }> = []
    await runLoad(tools, aim, { ...CALLS, seconds: 3 })
    for (let round = 0; round < Number(args.rounds); round++) {
      const alone = await runLoad(tools, aim, CALLS)
      const flood = runLoad(tools, flooding, FLOOD)
      // It has read its files by then.
      await new Promise((resolve) => setTimeout(resolve, 300))
      const beside = await runLoad(tools, aim, CALLS)
      found.push({ alone, beside, flood: await flood })
    }
    const of = (read: (round: (typeof found)[number]) => number) => median(found.map(read))
    const ms = (micros: number) => `${(micros / 1000).toFixed(2)} ms`
    const lost = found.reduce(
      (sum, { alone, beside }) => sum + alone.non200 + alone.err + beside.non200 + beside.err,
      0,
    )
    const [rows] = await tollgate.database.query<{ rows: bigint; calls: bigint }>(
      { text: 'select count(*) as rows, coalesce(sum(count), 0)::bigint as calls from refusal where account_id = $1' },
      [poor.id],
    )
    console.log(
      `Beside ${of(({ flood }) => flood.rps).toFixed(0)} refusals a second of another key, ${CALLS.rate} calls a second take ${of(({ alone, beside }) => beside.p50 / alone.p50).toFixed(2)} × as long (p50 ${ms(of(({ alone }) => alone.p50))} and ${ms(of(({ beside }) => beside.p50))}, p99 ${ms(of(({ alone }) => alone.p99))} and ${ms(of(({ beside }) => beside.p99))}); ${lost} of them failed.`,
    )
    console.log(
      `${found.reduce((sum, { flood }) => sum + flood.n, 0)} refusals left ${rows?.rows} rows, which count ${rows?.calls}.`,
    )
  } finally {
    await tollgate.stop()
    await close()
  }
}

await main()
