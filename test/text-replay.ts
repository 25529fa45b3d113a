// Recorded streams and answers, replayed through any pair of doors without a network.
import { globSync, readFileSync } from 'node:fs'
import { join, parse } from 'node:path'
import { readTextTraits, type TextTraitsGiven } from '../src/catalog/traits.ts'
import { Fault } from '../src/kernel/fault.ts'
import { readJson } from '../src/kernel/json.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import type { Exchange } from '../src/protocols/protocol.ts'
import { readTextRequest } from '../src/protocols/text/text.ts'
import { vendorCall } from '../src/protocols/vendor-call.ts'
import { bytesOf } from '../src/upstream/sse.ts'
import { FORMATS } from './formats.ts'
import type { Chance } from './simulate/virtual-world.ts'

export const UID = 'public-model'
export const FIXTURES = join(import.meta.dirname, 'fixtures')

export function fixture(protocol: ClientFormatName, name: string): Buffer {
  return readFileSync(join(FIXTURES, protocol, name))
}

/** Every recorded answer: texts, tools, thoughts, refusals, and as streams faults too. */
export function recordingsOf(protocol: ClientFormatName, ending: 'sse' | 'json'): string[] {
  return globSync(`*.${ending}`, { cwd: join(FIXTURES, protocol) })
    .filter((name) => !name.startsWith('request') && !name.startsWith('error.json'))
    .sort()
}

/** Recordings of vendors with habits need the traits that name them. */
const TRAITS: Record<string, TextTraitsGiven> = {
  'think-tags': { quirks: ['think-tags', 'reasoning-details'] },
  snapshots: { quirks: ['think-tags', 'reasoning-details'] },
  'no-index': { quirks: ['tool-index'] },
}

export function traitsOf(recording: string): TextTraitsGiven {
  return TRAITS[parse(recording).name] ?? {}
}

/** What only a door of this format has. */
const MORE: Partial<Record<ClientFormatName, object>> = {
  'openai-chat': { stream_options: { include_usage: true } },
  'openai-responses': { instructions: 'Be brief.', metadata: { k: 'v' } },
  gemini: { alt: 'sse' },
}

export interface Pair {
  readonly front: ClientFormatName
  readonly back: ClientFormatName
  readonly stream?: boolean
  readonly traits?: TextTraitsGiven
  /** Laid over the short request. */
  readonly request?: object
}

export async function openPair({ front, back, stream = true, traits = {}, request = {} }: Pair): Promise<Exchange> {
  const body = Buffer.from(
    JSON.stringify({ model: UID, ...FORMATS[front].body('Hello'), ...MORE[front], stream, ...request }),
  )
  return openBody(front, back, body, traits)
}

export async function openBody(
  front: ClientFormatName,
  back: ClientFormatName,
  body: Buffer,
  traits: TextTraitsGiven,
): Promise<Exchange> {
  const limits = { outputTokensReserve: 4096, outputTokensFloor: 64 }
  const ask = readTextRequest(front, readJson(body), { uid: UID, traits: readTextTraits(traits), limits })
  const target = {
    protocol: back,
    baseUrl: 'http://vendor.test',
    secret: 'sk-vendor',
    headers: {},
    model: 'vendor-model',
  }
  const signal = new AbortController().signal
  // As a call that names no limit gets one from its hold.
  const outputTokensCap = ask.outputOpen?.mostTokens
  const exchange = await ask.open(target, {
    requestId: 'req_01abc',
    createdSeconds: 1789000000,
    signal,
    outputTokensCap,
  })
  return { ...exchange, call: vendorCall(exchange.call, target) }
}

export interface Replayed {
  /** What the caller got before the end. */
  readonly sent: string
  /** The last frames: of a finish when the stream was whole, of a failure when not. */
  readonly last: string
  readonly terminal: boolean
  readonly fault: string | undefined
  readonly usage: unknown
  readonly tokensSeen: number
}

/** Sends the bytes in the pieces given, then ends the stream. */
export function replay(exchange: Exchange, pieces: Iterable<Buffer>, contentType = 'text/event-stream'): Replayed {
  const relay = exchange.stream!({ 'content-type': contentType })
  const out: Buffer[] = []
  let thrown: Fault | undefined
  try {
    for (const piece of pieces) out.push(bytesOf(relay.push(piece) ?? '', relay.encoding))
    out.push(bytesOf(relay.end() ?? '', relay.encoding))
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    thrown = error
  }
  const { terminal, usage, outputTokensSeen } = relay.state
  const fault = thrown ?? relay.state.fault
  const whole = terminal && !fault
  return {
    sent: Buffer.concat(out).toString('utf8'),
    last: whole ? relay.finish('charge 1.5') : relay.fail(fault ?? new Fault('upstream_garbled'), 'req_01abc'),
    terminal,
    fault: fault?.kind,
    usage,
    tokensSeen: outputTokensSeen,
  }
}

export function* sliced(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** Up to twelve cuts, anywhere. */
export function randomlyCut(bytes: Buffer, chance: Chance): Buffer[] {
  const cuts = Array.from({ length: 1 + chance.below(12) }, () => chance.below(bytes.length + 1)).sort((a, b) => a - b)
  return [...cuts, bytes.length].map((end, index) => bytes.subarray(cuts[index - 1] ?? 0, end))
}
