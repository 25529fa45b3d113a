// How many connections vendors see: as few as their calls need, and calls never wait for one another on one.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { atOnce } from '../../test/lists.ts'
import { listen } from '../../test/started.ts'
import { realWorld } from '../kernel/world.ts'
import { createUpstream } from './exchange.ts'

const DEADLINES = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 }
/** More than are kept once they have ended. */
const MANY = 100

test('calls at the same time have a connection each, later ones use them again, and those that the vendor ended are replaced', async (t) => {
  const sockets = new Set<Socket>()
  let opened = 0
  let waiting: Array<() => void> = []
  const server = createServer((request, response) => {
    const answer = () => response.end(request.url)
    if (request.url === '/together') waiting.push(answer)
    else answer()
    if (waiting.length === MANY) for (const one of waiting.splice(0)) one()
  })
  server.on('connection', (socket: Socket) => {
    opened += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const { url, close } = await listen(server)
  const upstream = createUpstream({ world: realWorld })
  t.after(async () => {
    waiting = []
    await upstream.close()
    await close()
  })
  const get = async (path: string) => {
    const signal = new AbortController().signal
    const reply = await upstream.send(
      { method: 'GET', url: `${url}${path}`, headers: {} },
      { deadlines: DEADLINES, signal },
    )
    assert.equal(String(await reply.read(100)), path)
  }
  const together = () => atOnce(MANY, () => get('/together'))

  for (let i = 0; i < 10; i++) await get('/alone')
  assert.equal(opened, 1, 'one call after another needs one connection')
  await together()
  assert.equal(opened, MANY, 'each of many has its own, the first one among them')
  await together()
  assert.equal(opened, MANY, 'the same many need no new ones')

  for (const socket of sockets) socket.destroy()
  await Promise.all([...sockets].map((socket) => once(socket, 'close')))
  for (let i = 0; i < 3 * MANY; i++) await get('/alone')
  assert.equal(opened, MANY + 1, 'after all were ended, one call after another needs one again')
  await together()
  assert.equal(opened, 2 * MANY, 'and many as many as before')
})
