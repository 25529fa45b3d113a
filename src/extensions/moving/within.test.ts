// An account that moves between the databases of one installation while it is called.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Died, dieAt, dieBefore } from '../../../test/dying.ts'
import { BY } from '../../../test/gateway.ts'
import { type Customer, type Installation, startInstallation } from '../../../test/installation.ts'
import { runs } from '../../../test/runs.ts'
import { settlement } from '../../../test/settlement.ts'
import { pause, until } from '../../../test/until.ts'
import { storedCatalogs } from '../../catalog/store.ts'
import { createAudit } from '../../database/audit.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { newId, realWorld } from '../../kernel/world.ts'
import { verifyLedger } from '../verify/verify.ts'
import { cancelWithin, moveWithin, type Places, withPlaces } from './places.ts'

let all: Installation
const ENDS = ['control', 'east', 'west'] as const

before(async () => {
  all = await startInstallation(['east@eu', 'west'])
})
after(() => all.close())

const inPlaces = <T>(run: (places: Places) => Promise<T>) =>
  withPlaces(
    {
      databaseUrl: all.addressOf('control'),
      ledgers: new Map([
        ['east', { url: all.addressOf('east'), region: 'eu' }],
        ['west', { url: all.addressOf('west'), region: undefined }],
      ]),
    },
    run,
  )

const MOVE = { world: realWorld, waitMs: 60_000, say: () => undefined }
const move = (account: string, to: string, say: (line: string) => void = () => undefined) =>
  inPlaces((places) => moveWithin({ ...MOVE, places, account, to, say }))

/** More than is spent in ten minutes. */
const CREDITS = 100_000_000_000n
/** Made before there were ledgers. */
async function early(): Promise<Customer> {
  const { gateway } = all
  const id = await gateway.accounts.create({ name: 'Early', credits: CREDITS }, BY)
  const { key } = await all.ask<{ key: string }>(`/accounts/${id}/keys`, { name: 'app' })
  return { id, key, home: 'control' }
}

async function booksAddUp(): Promise<void> {
  for (const name of ENDS) {
    await using database = all.open(name)
    const audit = createAudit({ database, world: realWorld })
    assert.deepEqual((await verifyLedger(database, storedCatalogs(database), { audit })).problems, [])
  }
}

async function isOpen(name: string, account: string): Promise<boolean> {
  const text = 'select 1 from public.account where id = $1 and ledger is null and frozen_until > now() is not true'
  return (await all.databaseOf(name).query({ text }, [account])).length > 0
}

/** When its calls are posted. */
async function settled(account: string): Promise<{ balance: string }> {
  const read = () => all.ask<{ balance: string; held: string }>(`/accounts/${account}`)
  await until(async () => (await read()).held, '0')
  return read()
}

const rowsOf = async (name: string, account: string, TABLE: string) =>
  (
    await all
      .databaseOf(name)
      .query<{ count: number }>({ text: `select count(*)::int as count from ${TABLE} where account_id = $1` }, [
        account,
      ])
  )[0]?.count

test('an account moves between ledgers while it is called: every call is served or told to come back, and charged once', async (t) => {
  for (const [from, to] of [
    ['control', 'east'],
    ['east', 'west'],
    ['west', 'east'],
    ['east', 'control'],
  ] as const) {
    const account = await early()
    const test = await all.ask<{ key: string }>(`/accounts/${account.id}/keys`, { name: 'try', test: true })
    if (from !== 'control') await move(account.id, from)
    await all.databaseOf('control').query(
      {
        text: `with made as (insert into person (id, email) values ('per_' || $1, $1 || '@example.com') returning id)
          insert into membership (account_id, person_id, role) select $1, id, 'owner' from made`,
      },
      [account.id],
    )
    const members = await all.ask(`/accounts/${account.id}/members`)
    let [served, moving] = [0, 0]
    let ended = false
    const caller = async () => {
      while (!ended) {
        const response = await all.chat(account.key)
        const text = await response.text()
        if (response.status === 200) served++
        else {
          assert.equal(response.status, 503, text)
          assert.match(text, /being moved/)
          moving++
        }
      }
    }
    const callers = [caller(), caller(), caller()]
    const said: string[] = []
    const moved = await move(account.id, to, (line) => said.push(line)).finally(() => {
      ended = true
    })
    await Promise.all(callers)
    t.diagnostic(`${from} → ${to}: ${served} calls served, ${moving} told to come back. ${said.at(-1)}`)
    assert.ok(served > 0)
    await all.ask(`/accounts/${account.id}`, { limits: { requestsPerMinute: 100_000 } }, 'PATCH')
    assert.equal((await all.chat(account.key)).status, 200)
    assert.equal((await all.chat(test.key)).status, 200, 'its test key is served where it is now')
    await until(() => rowsOf(to, account.id, 'usage'), served + 1)
    assert.deepEqual(await all.homesOf(account.id), [to])
    for (const table of ['usage', 'transfer', 'api_key']) assert.equal(await rowsOf(from, account.id, table), 0, table)
    assert.deepEqual(await all.ask(`/accounts/${account.id}/members`), members)
    assert.equal(moved.account, account.id)
  }
  await booksAddUp()
})

test('a call that ends when its hold has expired and its account has moved is told to come again, and charged nowhere', async () => {
  const { id: account } = await early()
  await move(account, 'east')
  const { ledger } = all.cells?.of('east') ?? assert.fail('it is open')
  const call = async () => {
    const id = newId(realWorld)
    const more = { key: 'key_1', product: 'alpha-5.4', catalogVersion: 1, want: 10n, floor: 10n, tokens: 10 }
    const { outcome } = await ledger.reserve({ id, account, ...more, isApart: true })
    assert.equal(outcome, 'held')
    return id
  }
  const [settles, releases] = [await call(), await call()]
  // As if their process had slept.
  await all.databaseOf('east').query({ text: `select ledger_expire($1, '0')` }, [account])
  await move(account, 'west')
  await assert.rejects(
    ledger.resolve(settlement(account, settles, 5n)),
    (error) => error instanceof Fault && error.status === 503 && error.details.cause === undefined,
  )
  await ledger.resolve(settlement(account, releases, 0n, { kind: 'released' }))
  assert.equal((await settled(account)).balance, formatCredits(CREDITS))
  assert.equal(ledger.waiting.settlements, 0)
  await booksAddUp()
})

test('a mover that dies at any step leaves the account open in one ledger at most, and the next one ends its work', async (t) => {
  const account = await early()
  await move(account.id, 'east')
  assert.equal((await all.chat(account.key)).status, 200)
  const { balance } = await settled(account.id)
  let steps = 0
  // Each begins anew, and there are some four hundred: some of them, others in every run. TOLLGATE_TEST_FULL=1 takes
  // all.
  const stride = runs(29, 1)
  for (let at = randomInt(stride) + 1, done = false; !done; at += stride) {
    await inPlaces(async (places) => {
      const dying = dieAt(
        at,
        [...places.values()].map(({ database }) => database),
      )
      const seen = new Map([...places].map(([name, place], n) => [name, { ...place, database: dying[n]! }])) // One each.
      await moveWithin({ ...MOVE, places: seen, account: account.id, to: 'west', noticeMs: 0 }).then(
        () => {
          done = true
          steps = at
        },
        (error) => assert.ok(error instanceof Died, String(error)),
      )
    })
    const open = await Promise.all(ENDS.map((name) => isOpen(name, account.id)))
    assert.ok(open.filter(Boolean).length <= 1, `open at ${open} after dying at step ${at}`)
  }
  t.diagnostic(`${steps} steps`)
  assert.ok(steps > 30, 'a move has many steps, or none of them was seen')
  assert.deepEqual(await all.homesOf(account.id), ['west'])
  assert.equal((await settled(account.id)).balance, balance)
  assert.equal((await all.chat(account.key)).status, 200)
  await booksAddUp()
})

/** A command that is killed before it says a statement for the n-th time. */
const killedBefore = (statement: string, times: number, account: string, to: string) =>
  inPlaces(async (places) => {
    const dying = dieBefore(
      statement,
      times,
      [...places.values()].map(({ database }) => database),
    )
    const seen = new Map([...places].map(([name, place], n) => [name, { ...place, database: dying[n]! }])) // One each.
    await assert.rejects(moveWithin({ ...MOVE, places: seen, account, to, noticeMs: 0 }), Died)
  })

const MOVES = { text: `select account_id, state from account_move where state in ('leaving', 'arriving')` }

test('what is copied is verified by nobody, and a move that is cancelled leaves no copy, however often it began', async () => {
  const { id } = await early()
  await move(id, 'east')
  for (const [statement, to] of [
    ['move_freeze', 'west'],
    ['move_put_arrival', 'west'],
    // It was there before, and what control knows of it is not there yet.
    ['move_freeze', 'control'],
  ] as const) {
    await killedBefore(statement, 1, id, to)
    await booksAddUp()
    if (statement === 'move_freeze' && to === 'west') continue
    await inPlaces((places) => cancelWithin({ ...MOVE, places, account: id, to }))
    for (const end of ENDS) assert.deepEqual(await all.databaseOf(end).query(MOVES), [])
    assert.deepEqual(await all.homesOf(id), ['east'])
    await booksAddUp()
  }
})

test('a move whose command is killed and never repeated is taken back, or finished, by the gateways', async () => {
  const kills = [
    ['move_freeze', 1, 'east'],
    ['move_flip', 1, 'west'],
    ['move_remove_content', 1, 'west'],
    ['move_leave', 2, 'west'],
  ] as const
  const killed = []
  for (const [statement, times, home] of kills) {
    const account = await early()
    const test = await all.ask<{ key: string }>(`/accounts/${account.id}/keys`, { name: 'try', test: true })
    await move(account.id, 'east')
    await killedBefore(statement, times, account.id, 'west')
    killed.push({ account, test, home })
  }
  for (const end of ENDS)
    await all.databaseOf(end).query({ text: `update account_move set at = at - interval '2 minutes'` })
  for (const { account, test, home } of killed) {
    await until(() => all.homesOf(account.id), [home])
    await until(() => all.homesOf(`${account.id}_test`), [home])
    for (const key of [account.key, test.key]) await until(async () => (await all.chat(key)).status, 200)
    assert.equal(await rowsOf(home === 'east' ? 'west' : 'east', account.id, 'api_key'), 0)
  }
  for (const end of ENDS) {
    assert.deepEqual(await all.databaseOf(end).query(MOVES), [])
    assert.deepEqual(await all.databaseOf(end).query({ text: 'select id from account where is_moving' }), [])
  }
  await booksAddUp()
})

const MAIN = resolve(import.meta.dirname, '..', '..', 'main.ts')

/** The command in a process of its own. */
function command(account: string, to: string) {
  const child = spawn(process.execPath, [MAIN, 'ledgers', 'move', account, '--to', to, '--json'], {
    env: { PATH: process.env.PATH, ...all.environment },
  })
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => said.push(String(data)))
  return { kill: () => child.kill('SIGKILL'), said, ended: once(child, 'exit').then(([code]) => code as number | null) } // As Node says.
}

/** What is to be seen of a move, in its order, in the source (true) or in the target. */
const PHASES: ReadonlyArray<readonly [string, boolean, string]> = [
  ['copies', true, `select 1 from account_move where account_id = $1 and state = 'leaving'`],
  ['arrives', false, `select 1 from account_move where account_id = $1 and state = 'arriving'`],
  ['leases nothing', true, 'select 1 from public.account where id = $1 and is_moving'],
  ['is closed', true, 'select 1 from public.account where id = $1 and frozen_until > now()'],
  ['is gone', true, `select 1 from account_move where account_id = $1 and state = 'gone'`],
  ['is open', false, `select 1 from account_move where account_id = $1 and state = 'arrived'`],
  ['is removed', true, 'select 1 where not exists (select 1 from usage where account_id = $1)'],
]

test('a command that is killed at any moment, and repeated, moves the account: every call is charged once', async (t) => {
  const account = await early()
  await move(account.id, 'east')
  await all.ask(`/accounts/${account.id}`, { limits: { requestsPerMinute: 100_000 } }, 'PATCH')
  let served = 0
  let ended = false
  const caller = async () => {
    while (!ended) {
      const response = await all.chat(account.key)
      const text = await response.text()
      if (response.status === 200) served++
      else assert.equal(response.status, 503, text)
    }
  }
  const callers = [caller(), caller()]
  let [from, to] = ['east', 'west']
  let wholeMs = 0
  const kills = runs(3, 12)
  for (let n = 0; n <= kills; n++) {
    // The first is not killed: the moments of the others lie within what it takes. Every other waits for its phase.
    const startedMs = performance.now()
    const killed = command(account.id, to)
    let isOver = false
    const over = killed.ended.finally(() => {
      isOver = true
    })
    const [what, isSource, text] = PHASES[n % PHASES.length]! // It is in the list.
    const isThere = async () =>
      isOver || (await all.databaseOf(isSource ? from : to).query({ text }, [account.id])).length > 0
    if (n === 0) assert.equal(await over, 0, killed.said.join(''))
    else if (n % 2 === 0) await pause(randomInt(Math.ceil(wholeMs)), 'any moment is right')
    else while (!(await isThere())) await setImmediate()
    if (n === 0) wholeMs = performance.now() - startedMs
    const killedMs = performance.now() - startedMs
    killed.kill()
    const code = await over
    const open = await Promise.all(ENDS.map((name) => isOpen(name, account.id)))
    assert.ok(open.filter(Boolean).length <= 1, `open at ${open} after it was killed when it ${what}`)
    const [state] = await all
      .databaseOf(from)
      .query<{ state: string }>({ text: 'select state from account_move where account_id = $1' }, [account.id])
    const repeated = command(account.id, to)
    assert.equal(await repeated.ended, 0, `${what}: ${repeated.said.join('')}`)
    const when = n % 2 === 0 ? 'at some moment' : `when it ${what}`
    t.diagnostic(`killed ${when}, after ${Math.round(killedMs)} ms: ${state?.state}; exit ${code}`)
    assert.deepEqual(await all.homesOf(account.id), [to])
    ;[from, to] = [to, from]
  }
  ended = true
  await Promise.all(callers)
  const { balance } = await settled(account.id)
  await until(() => rowsOf(from, account.id, 'usage'), served)
  const [sums] = await all
    .databaseOf(from)
    .query<{ charged: bigint }>({ text: 'select sum(charged)::bigint as charged from usage where account_id = $1' }, [
      account.id,
    ])
  assert.equal(balance, formatCredits(CREDITS - (sums?.charged ?? 0n)))
  t.diagnostic(`${kills} kills, ${served} calls served and charged`)
  await booksAddUp()
})
