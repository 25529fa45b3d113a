// Vendors that refuse, stall, break off, report nonsense or nothing, and sometimes answer.

import { Fault } from '../../src/kernel/fault.ts'
import { NEVER } from '../../src/kernel/timers.ts'
import type { Deadlines, HttpCall, Upstream, UpstreamReply } from '../../src/upstream/call.ts'
import { chunk, DONE, usage, usageChunk, wholeAnswer } from '../faults/chat-vendor.ts'
import { asMortal, type Mortal } from './faulty-database.ts'
import type { VirtualWorld } from './virtual-world.ts'

export interface VendorPlan {
  readonly headersMs: number
  readonly status: number
  /** Absent: the connection fails. */
  readonly pieces?: ReadonlyArray<{ readonly afterMs: number; readonly text: string }>
  readonly ending: 'clean' | 'cut' | 'stall'
}

export function drawPlan(world: VirtualWorld, stream: boolean): VendorPlan {
  const { chance } = world
  const headersMs = chance.is(0.1) ? chance.below(60_000) : chance.below(2_000)
  if (chance.is(0.1)) return { headersMs, status: 0, ending: 'cut' }
  if (chance.is(0.2))
    return {
      headersMs,
      status: chance.pick([400, 401, 402, 408, 429, 500, 503]),
      pieces: [{ afterMs: 0, text: '{}' }],
      ending: 'clean',
    }
  const reported = chance.pick([
    usage(20, 30),
    usage(20, 30),
    usage(0, 0),
    usage(5, 1e15),
    undefined,
    { prompt_tokens: -1 },
  ])
  const ending = chance.pick(['clean', 'clean', 'clean', 'cut', 'stall'] as const)
  if (!stream) {
    const text = wholeAnswer('an answer', reported)
    const half = ending === 'clean' ? text.length : chance.below(text.length)
    return { headersMs, status: 200, pieces: [{ afterMs: chance.below(3_000), text: text.slice(0, half) }], ending }
  }
  const texts = [
    ...Array.from({ length: chance.below(8) }, (_, i) => chunk(`word${i} `)),
    chunk('', 'stop'),
    ...(reported === undefined ? [] : [usageChunk(reported)]),
    DONE,
  ]
  const sent = ending === 'clean' ? texts : texts.slice(0, chance.below(texts.length))
  return { headersMs, status: 200, pieces: sent.map((text) => ({ afterMs: chance.below(4_000), text })), ending }
}

export interface VendorOptions {
  readonly world: VirtualWorld
  readonly mortal: Mortal
  /** Called before anything is answered, with the call's body. */
  readonly onCall: (call: HttpCall) => Promise<VendorPlan>
}

export function faultyVendor({ world, mortal, onCall }: VendorOptions): Upstream {
  return {
    async send(call, { deadlines, signal }) {
      const plan = await asMortal(mortal, () => onCall(call))
      return new Promise<UpstreamReply>((resolve, reject) => {
        const settle = (run: () => void) => {
          cancelHeaders()
          cancelDeadline()
          signal.removeEventListener('abort', leave)
          run()
        }
        const leave = () => settle(() => reject(signal.reason))
        const cancelHeaders = world.after(plan.headersMs, () =>
          settle(() =>
            plan.pieces
              ? resolve(new Reply(plan, deadlines, signal, world))
              : reject(new Fault('upstream_failed', { internal: { phase: 'connect', sent: false } })),
          ),
        )
        const cancelDeadline = world.after(deadlines.firstByteMs, () =>
          settle(() => reject(new Fault('upstream_timeout', { internal: { phase: 'first-byte' } }))),
        )
        if (signal.aborted) leave()
        else signal.addEventListener('abort', leave)
      })
    },
    close: async () => {},
  }
}

class Reply implements UpstreamReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly #plan: VendorPlan
  readonly #deadlines: Deadlines
  #signal: AbortSignal
  readonly #world: VirtualWorld
  readonly #aborted = new AbortController()

  constructor(plan: VendorPlan, deadlines: Deadlines, signal: AbortSignal, world: VirtualWorld) {
    this.status = plan.status
    this.headers = {
      'content-type':
        plan.pieces!.length > 1 || plan.pieces![0]?.text.startsWith('data:') ? 'text/event-stream' : 'text/plain',
    }
    this.#plan = plan
    this.#deadlines = deadlines
    this.#signal = signal
    this.#world = world
  }

  async read(): Promise<Buffer> {
    let text = ''
    await this.pipe((piece) => {
      text += piece
      return undefined
    })
    return Buffer.from(text)
  }

  async pipe(onData: (chunk: Buffer) => Promise<void> | undefined): Promise<void> {
    for (const { afterMs, text } of this.#plan.pieces!) {
      await this.#wait(afterMs)
      await onData(Buffer.from(text))
    }
    if (this.#plan.ending === 'clean') return
    if (this.#plan.ending === 'cut') throw new Fault('upstream_failed', { internal: { phase: 'body' } })
    await this.#wait(Number.POSITIVE_INFINITY)
  }

  letGo(): void {
    this.#signal = NEVER
  }

  abort(): void {
    this.#aborted.abort(new Fault('upstream_failed', { internal: { why: 'aborted' } }))
  }

  /** For so long, unless the vendor is given up before. */
  #wait(ms: number): Promise<void> {
    const gone = AbortSignal.any([this.#signal, this.#aborted.signal])
    return new Promise((resolve, reject) => {
      const end = (run: () => void) => {
        cancel()
        gone.removeEventListener('abort', leave)
        run()
      }
      const leave = () => end(() => reject(gone.reason))
      const slow = ms > this.#deadlines.idleMs
      const cancel = this.#world.after(slow ? this.#deadlines.idleMs : ms, () =>
        end(() => (slow ? reject(new Fault('upstream_timeout', { internal: { phase: 'idle' } })) : resolve())),
      )
      if (gone.aborted) leave()
      else gone.addEventListener('abort', leave)
    })
  }
}
