// One seed, one story: a few processes, a dozen calls, a bad line to the database, bad vendors, a crash or two. The code
// under it is the real one: ledger, admission, routing, relay, on a real Postgres. Throws when the books are wrong.
import assert from 'node:assert/strict'
import { checkDocument } from '../../src/catalog/document.ts'
import type { Database } from '../../src/database/database.ts'
import { asFault } from '../../src/kernel/fault.ts'
import { readJson } from '../../src/kernel/json.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { newId } from '../../src/kernel/world.ts'
import { createLedger, type Ledger } from '../../src/ledger/ledger.ts'
import type { PathDeps } from '../../src/pipeline/call.ts'
import { createMonitor } from '../../src/pipeline/monitor.ts'
import { serve } from '../../src/pipeline/serve.ts'
import { createStreamWatch } from '../../src/pipeline/stream-watch.ts'
import { readTextAsk } from '../../src/protocols/text.ts'
import { createVendors } from '../../src/routing/vendor.ts'
import { chatBody, faultModel, MODEL } from '../faults/chat-vendor.ts'
import { SimulatedCaller } from './caller.ts'
import { databaseOf, Line, type Weather } from './faulty-database.ts'
import { drawPlan, faultyVendor, type VendorPlan } from './faulty-vendor.ts'
import { Chance, VirtualWorld } from './virtual-world.ts'

const PROCESSES = 3
const CALLS = 12
const STORY_MS = 60_000
const END_MS = 48 * 3_600_000

const checked = checkDocument({
  vendors: {
    first: { baseUrl: 'http://first.example', timeouts: { firstByteMs: 20_000, idleMs: 10_000 } },
    second: { baseUrl: 'http://second.example', onAbort: 'drain', timeouts: { firstByteMs: 20_000, idleMs: 10_000 } },
  },
  models: { [MODEL]: faultModel(['first', 'second']) },
  endpoints: {},
})
if (!checked.ok) throw new Error(checked.problems.join('\n'))
const document = checked.document
const model = document.models[MODEL]!
const catalog = { version: 1, document, input: document as never }

interface Process {
  readonly id: string
  readonly ledger: Ledger
  readonly path: PathDeps
  dead: boolean
}

interface Call {
  readonly requestId: string
  readonly process: Process
  readonly caller: SimulatedCaller
  readonly plans: VendorPlan[]
  ended: boolean
}

export async function simulate(seed: number, database: Database): Promise<void> {
  const world = new VirtualWorld(new Chance(seed))
  const { chance } = world
  const bad = chance.next() * 0.15
  const weather: Weather = { slow: bad, lostBefore: bad / 2, lostAfter: bad / 2, zombie: bad / 3 }
  const line = new Line(database, world, weather)
  const account = `acc_${seed}_${newId(world)}`
  const calls: Call[] = []
  const vendorCalls = new Set<string>()

  function makeProcess(): Process {
    const process: Process = { id: `p_${newId(world)}`, dead: false } as Process
    const own = databaseOf(line, () => process.dead)
    const ledger = createLedger({ database: own, world, processId: process.id })
    const upstream = faultyVendor({
      world,
      isDead: () => process.dead,
      async onCall(call) {
        const { messages, stream = false } = JSON.parse(String(call.body)) as {
          messages: Array<{ content: string }>
          stream?: boolean
        }
        const requestId = messages[0]!.content
        const id = requestId.slice('req_'.length)
        // The hold must have been there before the vendor heard of the call.
        const [row] = await line.run<{ n: bigint }>(
          {
            text: 'select (select count(*) from hold where id = $1) + (select count(*) from transfer where id = $1) as n',
          },
          [id],
        )
        assert.ok(row!.n > 0n, `${requestId} reached a vendor without a hold`)
        vendorCalls.add(requestId)
        const plan = drawPlan(world, stream)
        calls.find((entry) => entry.requestId === requestId)!.plans.push(plan)
        return plan
      },
    })
    const path: PathDeps = {
      database: own,
      ledger,
      upstream,
      world,
      log: silentLog,
      vendors: createVendors(world),
      routes: { world, sandboxUrl: () => undefined, credential: () => undefined },
      monitor: createMonitor({ world, log: silentLog }),
      watch: createStreamWatch(world),
    }
    const beat = () => {
      if (process.dead) return
      ledger.sweep().then(
        () => world.after(5_000, beat),
        () => world.after(1_000, beat),
      )
    }
    Object.assign(process, { ledger, path })
    beat()
    return process
  }

  const processes = Array.from({ length: PROCESSES }, makeProcess)
  await line.run({ text: 'insert into account (id, name) values ($1, $1)' }, [account])
  const granted = BigInt(chance.below(20_000))
  await line.run({ text: `select ledger_grant($1, $2, $3, 'simulated', 'simulated')` }, [
    newId(world),
    account,
    granted,
  ])
  // Postgres's own clock is real: a process that is silent for long is told so.
  const silence = (process: Process) =>
    line.run({ text: `update process set heartbeat_at = now() - interval '1 hour' where id = $1` }, [process.id])

  function begin(): void {
    const alive = processes.filter(({ dead }) => !dead)
    const process = chance.pick(alive)
    const caller = new SimulatedCaller(world)
    const requestId = `req_${newId(world)}`
    const call: Call = { requestId, process, caller, plans: [], ended: false }
    calls.push(call)
    const stream = chance.is(0.6)
    const key = chance.is(0.3) ? `key-${chance.below(2)}` : undefined
    const text = chatBody(requestId, {
      stream,
      ...(chance.is(0.5) ? { max_tokens: 1 + chance.below(500) } : {}),
    })
    const ask = readTextAsk('openai-chat', readJson(Buffer.from(text)), {
      uid: MODEL,
      traits: {},
      limits: model.limits,
    })
    if (chance.is(0.3)) world.after(chance.below(15_000), () => caller.leave())
    serve(
      {
        requestId,
        principal: {
          accountId: account,
          keyId: `key_${seed}`,
          models: null,
          expiresAtMs: Number.POSITIVE_INFINITY,
          addresses: null,
        },
        ask,
        catalog,
        product: model,
        door: 'chat',
        traits: {},
        startedMs: world.elapsedMs(),
        out: caller,
        callerHeaders: {},
        ...(key === undefined ? {} : { idempotency: { key, requestHash: 'the same' } }),
      },
      process.path,
    )
      .catch((error: unknown) => {
        if (process.dead || caller.left) return
        const fault = asFault(error)
        assert.ok(
          fault.kind !== 'internal',
          `${requestId}: ${fault.cause instanceof Error ? fault.cause.stack : fault.message}`,
        )
        if (caller.started) caller.leave()
        else caller.refused = fault.status
      })
      .catch((error: unknown) => {
        failure ??= error
      })
      .finally(() => {
        call.ended = true
      })
  }
  let failure: unknown

  for (let i = 0; i < CALLS; i++) world.after(chance.below(STORY_MS), begin)
  if (chance.is(0.5)) {
    const victim = processes[0]!
    world.after(chance.below(STORY_MS), () => {
      victim.dead = true
      processes.push(makeProcess())
      world.after(25_000, () => void silence(victim))
    })
  }
  if (chance.is(0.2)) world.after(chance.below(STORY_MS), () => void silence(processes[1]!))

  const over = () => calls.length === CALLS && calls.every((call) => call.ended || call.process.dead)
  await world.runUntil(over, END_MS)
  if (failure) throw failure
  line.calm = true
  let idle = false
  void Promise.all(processes.filter(({ dead }) => !dead).map(({ ledger }) => ledger.idle())).then(() => {
    idle = true
  })
  await world.runUntil(() => idle && line.zombies === 0, END_MS)
  for (const process of processes) if (process.dead) await silence(process)
  let open = 1n
  const count = async () => {
    const [row] = await line.run<{ n: bigint }>({ text: 'select count(*) as n from hold where account_id = $1' }, [
      account,
    ])
    open = row!.n
  }
  // One sweep and the grace of a process that has just been heard again.
  const sweptMs = world.elapsedMs()
  await count()
  const look = () => void count().then(() => world.after(1_000, look))
  look()
  await world.runUntil(() => open === 0n, sweptMs + 60_000)
  await check(account, granted, calls, vendorCalls, line)
  for (const process of processes) process.dead = true
}

interface UsageRow {
  id: string
  outcome: string
  charged: bigint
  loss: bigint
}

async function check(
  account: string,
  granted: bigint,
  calls: readonly Call[],
  vendorCalls: ReadonlySet<string>,
  line: Line,
): Promise<void> {
  const rows = await line.run<UsageRow>(
    { text: 'select id, outcome, charged, loss from usage where account_id = $1' },
    [account],
  )
  const byId = new Map(rows.map((row) => [row.id, row]))
  let paid = 0n
  for (const { requestId, caller, process, plans } of calls) {
    const id = requestId.slice('req_'.length)
    const own = [byId.get(id), byId.get(`${id}+late`)].filter((row) => row !== undefined)
    const settled = own.filter(({ outcome }) => outcome === 'settled')
    assert.ok(settled.length <= 1, `${requestId} was settled ${settled.length} times`)
    const charged = settled[0]?.charged ?? 0n
    paid += charged
    const told = caller.complete
    if (told && !told.replayed) {
      // A hold that expired under a sleeping process needs no late settlement when there is nothing to pay.
      const free = told.charge === 0n && own[0]?.outcome === 'expired'
      assert.ok(settled.length === 1 || free, `${requestId} was complete and is not settled`)
      assert.equal(charged, told.charge, `${requestId} was told ${told.charge} and charged ${charged}`)
    }
    const reported = plans.some(({ pieces }) => pieces?.some(({ text }) => text.includes('"usage"')))
    if (caller.refused !== undefined && !reported && !process.dead)
      assert.equal(charged, 0n, `${requestId} was refused (${caller.refused}) and charged`)
    if (!vendorCalls.has(requestId)) assert.equal(charged, 0n, `${requestId} reached no vendor and was charged`)
  }
  const [state] = await line.run<{ posted: bigint; held: bigint; entries: bigint; keys: bigint }>(
    {
      text: `select a.posted, a.held,
        (select coalesce(sum(e.amount), 0)::bigint from entry e where e.account = 'account:' || a.id) as entries,
        (select count(*) from idempotency i where i.account_id = a.id and i.status is null) as keys
        from account a where a.id = $1`,
    },
    [account],
  )
  assert.deepEqual(state, { posted: granted - paid, held: 0n, entries: granted - paid, keys: 0n })
}
