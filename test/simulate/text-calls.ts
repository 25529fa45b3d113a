// Callers of a text model in a story.
import assert from 'node:assert/strict'
import { asFault } from '../../src/kernel/fault.ts'
import { readJson } from '../../src/kernel/json.ts'
import { newId } from '../../src/kernel/world.ts'
import type { Arrived } from '../../src/pipeline/call.ts'
import { serve } from '../../src/pipeline/serve.ts'
import { readTextRequest } from '../../src/protocols/text/text.ts'
import type { HttpCall } from '../../src/upstream/call.ts'
import { chatBody, MODEL } from '../faults/chat-vendor.ts'
import { SimulatedCaller } from './caller.ts'
import { catalog, textModel } from './catalog.ts'
import { drawPlan, type VendorPlan } from './faulty-vendor.ts'
import type { Process } from './process.ts'
import type { VirtualWorld } from './virtual-world.ts'

export interface TextCall {
  readonly requestId: string
  readonly process: Process
  readonly caller: SimulatedCaller
  /** What vendors did with it; empty when none heard of it. */
  readonly plans: VendorPlan[]
  ended: boolean
}

export function principalOf(account: string, key = keysOf(account)[0]!) {
  return {
    accountId: account,
    keyId: key,
    models: null,
    endpoints: null,
    expiresAtMs: Number.POSITIVE_INFINITY,
    addresses: null,
  }
}

export function keysOf(account: string): readonly string[] {
  return [`key_of_${account}`, `other_of_${account}`]
}

export class TextCalls {
  readonly made: TextCall[] = []
  readonly #world: VirtualWorld
  readonly #account: string
  readonly #wrong: (error: unknown) => void

  constructor(world: VirtualWorld, account: string, wrong: (error: unknown) => void) {
    this.#world = world
    this.#account = account
    this.#wrong = wrong
  }

  /** `many`: one of several that come at once. */
  begin(process: Process, many = false): void {
    const world = this.#world
    const { chance } = world
    const caller = new SimulatedCaller(world, process)
    const requestId = `req_${newId(world)}`
    const call: TextCall = { requestId, process, caller, plans: [], ended: false }
    this.made.push(call)
    const stream = chance.is(0.6)
    const key = chance.is(many ? 0.1 : 0.3) ? `key-${chance.below(2)}` : undefined
    const max = chance.is(many ? 0.9 : 0.5) ? { max_tokens: 1 + chance.below(many ? 50 : 500) } : {}
    const text = chatBody(requestId, { stream, ...max })
    const about = { uid: MODEL, traits: textModel.traits, limits: textModel.limits }
    if (chance.is(0.3)) world.after(chance.below(15_000), () => caller.leave())
    const arrived: Arrived = {
      requestId,
      principal: principalOf(this.#account, keysOf(this.#account)[many && chance.is(0.2) ? 1 : 0]),
      paidRequest: readTextRequest('openai-chat', readJson(Buffer.from(text)), about),
      catalog,
      product: textModel,
      routes: textModel.routes,
      endpoint: 'chat',
      startedMs: world.elapsedMs(),
      out: caller,
      callerHeaders: {},
      ...(key === undefined ? {} : { idempotency: { key, requestHash: 'the same' } }),
    }
    const cell = process.cellOf(this.#account)
    const served = cell instanceof Promise ? cell.then(({ path }) => serve(arrived, path)) : serve(arrived, cell.path)
    served
      .catch((error: unknown) => {
        if (caller.left) return
        const fault = asFault(error)
        // Its hold was taken from a process that nobody heard of, and then its account went elsewhere.
        const isTooLate = String(fault.cause).includes('there is no account')
        assert.ok(
          fault.kind !== 'internal' || isTooLate,
          `${requestId}: ${fault.cause instanceof Error ? fault.cause.stack : fault.message}`,
        )
        if (caller.started) caller.leave()
        else caller.refused = fault.status
      })
      .catch(this.#wrong)
      .finally(() => {
        call.ended = true
      })
  }

  /** A vendor hears of a call. */
  heard(call: HttpCall): VendorPlan {
    const { messages, stream = false } = JSON.parse(String(call.body)) as {
      messages: Array<{ content: string }>
      stream?: boolean
    }
    const plan = drawPlan(this.#world, stream)
    this.made.find(({ requestId }) => requestId === messages[0]!.content)!.plans.push(plan)
    return plan
  }

  /** The hold that must be there before a vendor hears of it. */
  static holdOf(call: HttpCall): string {
    const { messages } = JSON.parse(String(call.body)) as { messages: Array<{ content: string }> }
    return messages[0]!.content.slice('req_'.length)
  }

  has(hold: string): boolean {
    return this.made.some(({ requestId }) => requestId === `req_${hold}`)
  }

  get over(): boolean {
    return this.made.every((call) => call.ended || call.process.dead)
  }
}
