// What holds a stream back while a check takes its time: one check after the other, and nothing leaves that was not let
// through.
import { assert, test } from '../../../test/kit.ts'
import type { Verdict } from './checks.ts'
import { gateOf } from './checks.ts'

function gateWithHook() {
  const asked: { readonly text: string; answer(verdict: Verdict): void }[] = []
  const sent: string[] = []
  const timers = new Set<() => void>()
  let said = ''
  let nowMs = 0
  const guard = {
    hooks: {
      ask: (_: string, __: object, { texts }: { texts: string[] }) =>
        new Promise<Verdict>((answer) => asked.push({ text: texts[0] ?? '', answer })),
    },
    asks: () => true,
    checks: () => [{ name: 'gate', rule: { hook: {} } }],
    note() {},
    takeSaid() {
      const taken = said
      said = ''
      return taken
    },
  }
  const deps = {
    world: {
      elapsedMs: () => nowMs,
      after(_: number, run: () => void) {
        timers.add(run)
        return () => timers.delete(run)
      },
    },
  }
  const out = { signal: new AbortController().signal }
  const answered = { paidRequest: { product: 'p' }, out, admitted: { rate: null } }
  const send = (piece: string | Buffer | undefined) => {
    sent.push(String(piece))
    return undefined
  }
  const gate = gateOf(guard as never, answered as never, send, deps as never)! // Of a test.
  const say = (text: string) => {
    said = text
    Promise.resolve(gate.forward(text)).catch(() => {})
  }
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  const fire = (afterMs = 0) => {
    nowMs += afterMs
    for (const run of [...timers]) {
      timers.delete(run)
      run()
    }
  }
  return { asked, sent, gate, say, settle, fire }
}

const ALLOW: Verdict = { action: 'allow' }
const BLOCK: Verdict = { action: 'block', reason: '' }

test('a check that is slower than the window is waited for, also by what comes with the timer', async () => {
  const { asked, sent, gate, say, settle, fire } = gateWithHook()
  say('a'.repeat(400))
  say('b'.repeat(400))
  asked[0]?.answer(ALLOW)
  await settle()
  say(`poison${'c'.repeat(400)}`)
  fire()
  asked[1]?.answer(ALLOW)
  await settle()
  assert.ok(asked[2]?.text.includes('poison'))
  say('d'.repeat(400))
  fire()
  await settle()
  const ended = gate.end()
  await settle()
  assert.equal(asked.length, 3, 'no other check runs beside it')
  asked[2]?.answer(BLOCK)
  await assert.rejects(ended, /blocked this answer/)
  assert.ok(!sent.some((piece) => piece.includes('poison')), sent.join())
})

test('what a check has blocked stays held back at the end of the stream', async () => {
  const { asked, sent, gate, say, settle } = gateWithHook()
  say(`poison${'c'.repeat(400)}`)
  asked[0]?.answer(BLOCK)
  await settle()
  await assert.rejects(gate.end(), /blocked this answer/)
  assert.deepEqual(sent, [])
})

test('what comes in pieces more than a second apart is judged as a whole, and the end goes when nothing comes for three', async () => {
  const { asked, sent, gate, say, settle, fire } = gateWithHook()
  const allow = async () => {
    fire(1_200)
    asked.at(-1)?.answer(ALLOW)
    await settle()
  }
  say('Card 4111 1111')
  await allow()
  assert.deepEqual(sent, [], 'it may go on')
  await allow()
  assert.equal(asked.length, 1, 'nobody is asked twice about the same')
  say(' 1111 1111')
  fire(1_200)
  assert.equal(asked.at(-1)?.text, 'Card 4111 1111 1111 1111')
  asked.at(-1)?.answer(ALLOW)
  await settle()
  say(' is a card')
  for (const _ of [1, 2]) await allow()
  assert.deepEqual(sent, [])
  await allow()
  assert.deepEqual(sent.join(''), 'Card 4111 1111 1111 1111 is a card')
  gate.stop()
})
