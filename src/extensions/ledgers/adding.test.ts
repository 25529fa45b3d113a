// A ledger is added to an installation that runs, and removed again.
import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { commandLineOf } from '../../../test/command-line.ts'
import { SECRET } from '../../../test/gateway.ts'
import { type Customer, type Installation, openOn, startInstallation } from '../../../test/installation.ts'
import { closing, listen } from '../../../test/started.ts'
import { until } from '../../../test/until.ts'
import { openDatabase } from '../../database/database.ts'
import { migrate } from '../../database/migrate.ts'
import type { Page } from '../../kernel/view.ts'
import { installationOf, readLedgers } from '../postgres/ledgers.ts'
import { prepareLedger } from '../postgres/mount.ts'

let all: Installation

before(async () => {
  all = await startInstallation(['east', 'west', 'other', 'twin'], { TOLLGATE_LEDGERS: '' })
})
after(() => all.close())

const line = commandLineOf(() => all)
const run = (...args: string[]) =>
  line.run(['ledgers', ...args], { databaseUrl: all.addressOf('control'), secret: SECRET })

async function done(...args: string[]): Promise<string> {
  const { code, out, err } = await run(...args)
  assert.equal(code, 0, err)
  return out
}

async function refused(said: RegExp, ...args: string[]): Promise<void> {
  const { code, err } = await run(...args)
  assert.equal(code, 1, err)
  assert.match(err, said)
}

const madeIn = (home: string): Promise<Customer> =>
  until(async () => {
    const made = await all.customer()
    return made.home === home ? made : undefined
  })

test('gateways that run open a ledger that is added, new accounts go there, and its address is sealed', async () => {
  await using second = await openOn(all, { TOLLGATE_LEDGERS: '' })
  const early = await all.customer()
  assert.equal(early.home, 'control')
  await refused(/ledgers add NAME URL/, 'list')
  await done('add', 'east', all.addressOf('east'), '--region', 'eu')
  const late = await madeIn('east')
  assert.equal((await all.customer({ region: 'eu' })).home, 'east')
  for (const { key } of [early, late])
    for (const gateway of [all, second]) assert.equal(await until(async () => served(gateway, key)), true)
  assert.match(await done('list'), /east +eu +true/)
  const [stored] = await all
    .databaseOf('control')
    .query<{ value: string }>({ text: `select value from setting where name = 'ledgers'` })
  const { password } = new URL(all.addressOf('east'))
  assert.ok(password.length > 5 && stored?.value.includes('east') && !stored.value.includes(password))
  const audit = await all.ask<Page<{ changes: unknown }>>('/audit?action=system.ledgers')
  assert.equal(audit.items.length, 1)
  assert.ok(!JSON.stringify(audit).includes(password))
})

async function served(gateway: Pick<Installation, 'chat'>, key: string): Promise<true | undefined> {
  return (await gateway.chat(key)).status === 200 ? true : undefined
}

test('a process that starts later has it from the start', async () => {
  await using later = await openOn(all, { TOLLGATE_LEDGERS: '' })
  const { key } = await madeIn('east')
  assert.equal((await later.chat(key)).status, 200)
})

test('a database that is no empty one, not this ledger, or away is not added, and the reason is said', async () => {
  await refused(/has a gateway of its own, or is the control database/, 'add', 'west', all.addressOf('control'))
  await refused(/is the ledger east of this installation/, 'add', 'west', all.addressOf('east'))
  const at = { connection: { connectionString: all.addressOf('control') }, ledger: 'west' }
  await prepareLedger({ connectionString: all.addressOf('other') }, { ...at, installation: 'another' })
  await refused(/ledger of another installation/, 'add', 'west', all.addressOf('other'))
  const west = all.databaseOf('west')
  await west.query({ text: 'create table public.something ()' })
  await refused(/tables of something else/, 'add', 'west', all.addressOf('west'))
  await west.query({ text: 'drop table public.something' })
  all.cut('west')
  await refused(/Nothing was added/, 'add', 'west', all.addressOf('west'))
  all.heal('west')
  const wrong = await run('add', 'control', all.addressOf('west'))
  assert.match(wrong.err, /the name control is taken/)
  assert.deepEqual([...(await readLedgers(all.databaseOf('control'), SECRET)).keys()], ['east'])
})

/** An address that is another server's for servers of ledgers than for gateways, as `localhost` is on two machines. */
const twoFaced = (gateways: string, ledgers: string) =>
  listen(
    createServer((caller) => {
      caller.on('error', () => caller.destroy())
      const ask = () =>
        caller.once('data', (first) => {
          // It asks for encryption.
          if (first.length === 8) {
            caller.write('N')
            return ask()
          }
          const { port, hostname } = new URL(first.includes('postgres_fdw') ? ledgers : gateways)
          const server = connect(Number(port), hostname).on('error', () => caller.destroy())
          server.write(first)
          caller.pipe(server).pipe(caller)
        })
      ask()
    }),
  )

test('a ledger whose server finds another database at the address of control is not added', async () => {
  const { password } = new URL(all.addressOf('control'))
  await all.databaseOf('twin').query({ text: `alter role gateway password '${password}'` })
  const address = new URL(all.addressOf('twin'))
  address.password = password
  await using twin = closing(openDatabase({ connection: { connectionString: address.href } }))
  await migrate(twin)
  await using faces = await twoFaced(all.addressOf('control'), address.href)
  const seen = new URL(all.addressOf('control'))
  seen.host = new URL(faces.url).host
  const add = (databaseUrl: string) =>
    line.run(['ledgers', 'add', 'west', all.addressOf('west')], { databaseUrl, secret: SECRET })
  for (const makes of [false, true]) {
    if (makes) await installationOf(twin)
    const { code, err } = await add(seen.href)
    assert.equal(code, 1)
    assert.match(err, /The server of the ledger finds another database at DATABASE_URL\. Set it to an address/)
  }
  assert.deepEqual([...(await readLedgers(all.databaseOf('control'), SECRET)).keys()], ['east'])
  // With an address that is the same from everywhere it is: nothing stands in the way.
  assert.equal((await add(all.addressOf('control'))).code, 0)
  await done('remove', 'west')
})

test('a name stands in both lists with one address only, and an address opens under its secret only', async () => {
  const control = all.databaseOf('control')
  const url = all.addressOf('west')
  await assert.rejects(
    readLedgers(control, SECRET, new Map([['east', { url, region: 'eu' }]])),
    /Keep one: remove east/,
  )
  await assert.rejects(openOn(all, { TOLLGATE_LEDGERS: `east@eu=${url}` }), /Keep one: remove east/)
  await assert.rejects(readLedgers(control, 'another'), /another TOLLGATE_SECRET/)
  const same = new Map([['east', { url: all.addressOf('east'), region: 'eu' }]])
  assert.deepEqual(await readLedgers(control, SECRET, same), same)
  assert.match(await installationOf(control), /^[0-9a-f-]{36}$/)
})

test('a ledger goes when no account lies there', async () => {
  await done('add', 'west', all.addressOf('west'))
  const { id, key } = await madeIn('west')
  await refused(/lies? in west.*ledgers move/, 'remove', 'west')
  const { items } = JSON.parse(await done('show', 'west', '--json')) as { items: Array<{ id: string }> }
  for (const one of items) await done('move', one.id, '--to', 'east')
  await done('remove', 'west')
  assert.doesNotMatch(await done('list'), /west/)
  assert.deepEqual(await all.homesOf(id), ['east'])
  assert.equal(await until(async () => served(all, key)), true)
  assert.equal((await all.customer()).home, 'east')
  await refused(/No ledger west was added/, 'remove', 'west')
})
