// DNS rebinding with a real name server: its first answer is a public address, all others are this machine.

import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { after, assert, before, beforeEach, listen, started, test } from '../../test/kit.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { createGuardedFetch, type GuardedFetch } from './guard.ts'

const PUBLIC = [93, 184, 216, 34]
const HERE = [127, 0, 0, 1]
const A = 1
const dns = createSocket('udp4')
let reached = 0
const canary = started(() =>
  listen((_request, response) => {
    reached += 1
    response.end('inside')
  }),
)
/** What the next questions for an address are answered with; the last one stays. */
let answers = [PUBLIC]
let asked = 0
/**
 * Since the last call began. Only what comes after it may be slow for nothing: the name server answers late on a busy
 * machine.
 */
let isAnswered = false
let guard: GuardedFetch
let url = ''

/** The question again, and one address that may be kept for no time. */
function answerTo(question: Buffer): Buffer {
  const end = question.indexOf(0, 12) + 5
  const head = Buffer.from(question.subarray(0, end))
  const isAddress = question.readUInt16BE(end - 4) === A
  head.writeUInt16BE(0x8180, 2)
  head.writeUInt16BE(isAddress ? 1 : 0, 6)
  head.writeUInt32BE(0, 8)
  if (!isAddress) return head
  asked += 1
  isAnswered = true
  const address = answers.length > 1 ? answers.shift() : answers[0]
  return Buffer.concat([head, Buffer.from([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 0, 0, 4, ...(address ?? HERE)])])
}

before(async () => {
  dns.on('message', (question, { port, address }) => dns.send(answerTo(question), port, address))
  dns.bind(0, '127.0.0.1')
  await once(dns, 'listening')
  const { port } = canary
  const resolver = new Resolver({ timeout: 60_000, tries: 1 })
  resolver.setServers([`127.0.0.1:${dns.address().port}`])
  const resolve = (host: string) => resolver.resolve4(host)
  const world: World = { ...realWorld, after: (ms, run) => realWorld.after(isAnswered ? ms / 20 : ms * 20, run) }
  guard = createGuardedFetch({ world, resolve, ports: [port] })
  url = `http://rebinds.example.com:${port}/`
})
beforeEach(() => {
  asked = 0
  isAnswered = false
})
after(() => void dns.close())
const { signal } = new AbortController()
const send = () => {
  isAnswered = false
  return guard.post(url, '{}', {}, { account: 'a', signal })
}

test('a name that was public when it was stored and leads inside later is refused when it is used', async () => {
  answers = [PUBLIC, HERE]
  await guard.check(url, { signal })
  await assert.rejects(send())
  assert.deepEqual([asked, reached], [2, 0])
})

test('a name is asked for once for each call: the connection goes to the address that was checked, and nowhere else', async () => {
  answers = [PUBLIC, HERE]
  await assert.rejects(send())
  assert.deepEqual([asked, reached], [1, 0])
  answers = [HERE]
  await assert.rejects(send())
  assert.equal(reached, 0)
})

test('without the guard the name leads to the canary', async () => {
  assert.equal(await (await fetch(canary.url)).text(), 'inside')
})
