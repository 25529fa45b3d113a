// Many agents at once on two processes, one of which is killed: whoever asks again with the same key gets the answer,
// once paid.
import type { Client } from '@modelcontextprotocol/client'
import { makeDataDirectory, startProcess } from '../../../test/chaos/gateway-process.ts'
import { freshDatabase } from '../../../test/database.ts'
import { assert, atOnce, pause, runs, SECRET, startGateway, test } from '../../../test/gateway.ts'
import { connect, ERAS } from '../../../test/mcp/client.ts'

const SESSIONS = runs(50, 200)
const CALLS = 2
const KILLED_AFTER = (SESSIONS * 3) / 5
/** An odd session: it calls the process that is killed. */
const CUT_OFF = 1
const PRICE = 300_000n
/** The older revisions have no word for a stream that breaks: their clients wait. */
const TIMEOUT_MS = 3_000

test('many sessions on two processes, one of them killed: no call is lost, and none is charged twice', async (t) => {
  const database = await freshDatabase()
  const data = await makeDataDirectory()
  const g = await startGateway({ database })
  const other = await startProcess({
    env: { TOLLGATE_DATA: data.path, DATABASE_URL: database.url, TOLLGATE_SECRET: SECRET, TOLLGATE_DRAIN_SECONDS: '2' },
  })
  const { id, key } = await g.account()
  let answers = 0
  let repeated = 0
  let killed = false
  let dead = () => {}
  const death = new Promise<void>((resolve) => {
    dead = resolve
  })

  const kill = async () => {
    killed = true
    other.kill('SIGKILL')
    await other.exited
    dead()
    // Twenty seconds of silence pass at once; the living one is heard again by its own next sweep.
    await g.sql(`update gateway_instance set heartbeat_at = now() - interval '1 minute'`)
    await g.gateway.ledger.sweep()
  }

  /** As a client does it that was cut off: elsewhere, with the same key, until there is an answer. */
  async function insist(session: number, n: number, client: { now?: Client | undefined }): Promise<void> {
    const asked = {
      name: 'website_ranks',
      arguments: { keys: `site${session}-${n}.example` },
      _meta: { 'tollgate/idempotencyKey': `${session} ${n}` },
    }
    for (let tries = 0; tries < 200; tries++) {
      try {
        const url = session % 2 === 0 || killed ? g.url : other.url
        client.now ??= await connect(url, key, { era: ERAS[(session >> 1) % 2]!, name: `agent-${session}` })
        const result = (await client.now.callTool(asked, { timeout: TIMEOUT_MS })) as any
        if (!result.isError) {
          assert.ok(result.structuredContent.Data[asked.arguments.keys])
          answers += 1
          return
        }
        assert.match(result._meta['tollgate/error'].kind, /^(conflict|unavailable)$/, JSON.stringify(result.content))
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
        client.now = undefined
      }
      repeated += 1
      await pause(100, 'a client that tries again')
    }
    assert.fail(`session ${session} never had an answer`)
  }

  try {
    let dying: Promise<void> | undefined
    await atOnce(SESSIONS, async (session) => {
      const client: { now?: Client | undefined } = {}
      for (let n = 0; n < CALLS; n++) {
        // However fast the others are, one session is still connected to the process that dies.
        if (session === CUT_OFF && n === CALLS - 1) await death
        await insist(session, n, client)
        if (answers >= KILLED_AFTER) dying ??= kill()
      }
      await client.now?.close()
    })
    await dying
    await g.settled()
    assert.equal(answers, SESSIONS * CALLS)
    assert.ok(repeated > 0, 'nobody was cut off')
    assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n - BigInt(SESSIONS * CALLS) * PRICE, held: 0n })
    const [row] = await g.sql<{ settled: bigint; expired: bigint }>(
      `select count(*) filter (where outcome = 'settled') as settled, count(*) filter (where outcome = 'expired') as expired
               from usage where account_id = $1`,
      [id],
    )
    assert.equal(row!.settled, BigInt(SESSIONS * CALLS))
    t.diagnostic(`${answers} answers, ${repeated} repeated, ${row!.expired} holds of the dead given back`)
  } finally {
    other.kill('SIGKILL')
    await other.exited
    await g.close()
    await data.remove()
    await database.drop()
  }
})
