// What holds a stream back while a check takes its time: one check after the other, and nothing leaves that was not let through.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Verdict } from './guard.ts'
import { gateOf } from './guard.ts'

function gateWithHook() {
  const asked: { readonly text: string; answer(verdict: Verdict): void }[] = []
  const sent: string[] = []
  const timers = new Set<() => void>()
  let said = ''
  const guard = {
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
      after(_: number, run: () => void) {
        timers.add(run)
        return () => timers.delete(run)
      },
    },
    hooks: {
      ask: (_: string, __: object, { texts }: { texts: string[] }) =>
        new Promise<Verdict>((answer) => asked.push({ text: texts[0] ?? '', answer })),
    },
  }
  const answered = { guard: { guard }, paidRequest: { product: 'p' }, out: { signal: new AbortController().signal } }
  const send = (piece: string | Buffer | undefined) => {
    sent.push(String(piece))
    return undefined
  }
  const gate = gateOf(answered as never, send, deps as never)! // Of a test.
  const say = (text: string) => {
    said = text
    Promise.resolve(gate.forward(text)).catch(() => {})
  }
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  const fire = () => {
    for (const run of timers) run()
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
  await assert.rejects(ended, /does not let this answer through/)
  assert.ok(!sent.some((piece) => piece.includes('poison')), sent.join())
})

test('what a check has blocked stays held back at the end of the stream', async () => {
  const { asked, sent, gate, say, settle } = gateWithHook()
  say(`poison${'c'.repeat(400)}`)
  asked[0]?.answer(BLOCK)
  await settle()
  await assert.rejects(gate.end(), /does not let this answer through/)
  assert.deepEqual(sent, [])
})
