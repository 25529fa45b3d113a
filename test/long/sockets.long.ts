// A thousand idle sockets with the memory that they take, and a gateway that is killed while responses run on sockets.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startSandbox } from '../../sandbox/server.ts'
import { realWorld } from '../../src/kernel/world.ts'
import { noHolds } from '../chaos/books.ts'
import { makeDataDirectory, openStore, startProcess } from '../chaos/gateway-process.ts'
import { assert, test, until } from '../kit.ts'
import { openSocket, type TestSocket } from '../socket-client.ts'

const SOCKETS = 1_000
/** What a socket may take, those of the kernel not counted. A Realtime session has one at the vendor too. */
const IDLE: readonly (readonly [kind: string, path: string, bytesMax: number])[] = [
  ['Responses', '/v1/responses', 64 * 1024],
  ['Realtime', '/v1/realtime?model=alpha-realtime-1', 192 * 1024],
]
const KEY = /tg_live_\w{38}/
const REALTIME = '/v1/realtime?model=alpha-realtime-1'

const residentBytes = async (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

async function running(env: Record<string, string> = {}) {
  const data = await makeDataDirectory()
  const start = () => startProcess({ env: { TOLLGATE_DATA: data.path, TOLLGATE_SANDBOX_SPEED: '1', ...env } })
  const gateway = await start()
  await until(() => gateway.output, KEY)
  return { data, gateway, start, key: KEY.exec(gateway.output)![0] }
}

async function operatorOf(url: string, directory: string) {
  const authorization = `Bearer ${(await readFile(join(directory, 'operator-token'), 'utf8')).trim()}`
  return async (path: string, body?: object): Promise<any> => {
    const headers = { authorization, 'content-type': 'application/json' }
    const asked = body ? { method: 'PUT', body: JSON.stringify(body) } : {}
    const response = await fetch(`${url}/admin/v1${path}`, { headers, ...asked })
    assert.ok(response.ok, await response.clone().text())
    return ((await response.json()) as any).data
  }
}

/** The simulated vendors in this process: their ends of the sockets are not the gateway's memory. */
async function ownVendor(url: string, directory: string) {
  const vendor = await startSandbox({ world: realWorld })
  const operator = await operatorOf(url, directory)
  const { document } = await operator('/catalog')
  document.vendors.alpha = { ...document.vendors.alpha, baseUrl: `${vendor.url}/openai` }
  await operator('/catalog', { document })
  return vendor
}

const TEXT = { model: 'alpha-5.4', input: 'Say hello.', store: false }

for (const [kind, path, bytesMax] of IDLE)
  test(`a thousand idle sockets (${kind}) take little memory each, and are told of the end`, {
    skip: process.platform !== 'linux',
  }, async () => {
    const { data, gateway, key } = await running()
    const vendor = await ownVendor(gateway.url, data.path)
    const opened: TestSocket[] = []
    const openOne = async () => {
      const socket = await openSocket(gateway.url + path, { key })
      if (kind === 'Realtime') await socket.next('session.created')
      opened.push(socket)
    }
    const openAll = async (count: number) => {
      for (let left = count; left > 0; left -= 50) await Promise.all(Array.from({ length: 50 }, openOne))
    }
    // What the first ones load is not theirs.
    await openAll(100)
    const before = await residentBytes(gateway.pid)
    await openAll(SOCKETS)
    const each = ((await residentBytes(gateway.pid)) - before) / SOCKETS
    console.log(`${SOCKETS} idle sockets (${kind}): ${Math.round(each)} bytes of resident memory each`)
    assert.ok(each < bytesMax, String(each))
    const one = opened[7]!
    one.send({ type: 'response.create', ...(kind === 'Realtime' ? {} : TEXT) })
    await one.next('response.completed', 'response.done')
    assert.equal(await gateway.stop(), 0)
    await until(() => opened.every(({ ended }) => ended?.code === 1001))
    await vendor.close()
    await data.remove()
  })

test('a gateway that is killed while responses run on sockets leaves nothing held', async () => {
  const { data, gateway, start, key } = await running()
  const [responses, realtime] = [
    await openSocket(`${gateway.url}/v1/responses`, { key }),
    await openSocket(gateway.url + REALTIME, { key }),
  ]
  const input = '[[slow=200]] Write an essay about toll gates.'
  responses.send({ type: 'response.create', model: 'alpha-5.4', input, store: false })
  await realtime.next('session.created')
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: '[[slow=500]] Go on.' }] }
  realtime.send({ type: 'conversation.item.create', item })
  realtime.send({ type: 'response.create' })
  await responses.next('response.output_text.delta')
  await realtime.next('response.output_audio.delta')
  const before = await openStore(data.path)
  const [held] = await before.query<{ held: bigint; open: number }>({
    text: 'select (select sum(held) from account) as held, (select count(*)::int from hold) + (select count(*)::int from lease) as open',
  })
  assert.ok(held!.open > 0 && held!.held > 0n, 'there is something to leave behind')
  await before.close()
  gateway.kill('SIGKILL')
  const killedMs = performance.now()
  await gateway.exited
  assert.equal((await responses.closed()).code, 1006)
  assert.equal((await realtime.closed()).code, 1006)
  const again = await start()
  const database = await openStore(data.path)
  await noHolds(database, 60_000)
  console.log(`nothing was held ${Math.round(performance.now() - killedMs)} ms after the kill`)
  const left = await database.query({ text: 'select 1 from account where held <> 0' })
  assert.deepEqual(left, [], 'the accounts say the same')
  const charged = await database.query({ text: 'select 1 from usage where charged > 0' })
  assert.deepEqual(charged, [], 'what was not finished is not charged')
  await database.close()
  assert.equal(await again.stop(), 0)
  await data.remove()
})

test('the operator finds each response of a session in the usage of the account', async () => {
  const { data, gateway, key } = await running()
  const socket = await openSocket(gateway.url + REALTIME, { key })
  await socket.next('session.created')
  socket.send({ type: 'response.create', response: { output_modalities: ['text'] } })
  await socket.next('response.done')
  socket.ws.close()
  const get = await operatorOf(gateway.url, data.path)
  const { items } = await get('/accounts')
  await until(async () => {
    const { items: calls } = await get(`/accounts/${items[0].id}/usage`)
    return calls.some((one: any) => one.endpoint === 'realtime' && one.product === 'alpha-realtime-1')
  })
  await gateway.stop()
  await data.remove()
})
