// A vendor that does whatever a test tells it to, byte by byte, and a gateway with one model that is routed to it.
// Prices are one micro-credit for a token of input and two for a token of output, so that charges can be read off.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { CatalogInput } from '../../src/catalog/document.ts'
import type { Log } from '../../src/kernel/log.ts'
import type { World } from '../../src/kernel/world.ts'
import { fasterWorld } from '../faster-world.ts'
import { chatChunk, event, FORMATS } from '../formats.ts'
import { startGateway, type TestGateway } from '../gateway.ts'
import { listen } from '../started.ts'

export const MODEL = 'fault-1'

/** The 30 seconds that a stuck caller is given pass in one. */
export const fastWorld = fasterWorld(30)

export interface VendorCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: string
  /** The text of the last message. */
  readonly prompt: string
  /** Resolves when the connection of this call is gone, with the moment at which it went. */
  readonly closed: Promise<number>
}

export interface ChatVendor {
  readonly url: string
  readonly calls: VendorCall[]
  readonly openSockets: number
  answer: (call: VendorCall) => unknown
  close(): Promise<void>
}

export async function startVendor(answer?: ChatVendor['answer']): Promise<ChatVendor> {
  const sockets = new Set<Socket>()
  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    const closed = new Promise<number>((resolve) => {
      response.once('close', () => resolve(performance.now()))
    })
    const pieces: Buffer[] = []
    try {
      for await (const piece of request) pieces.push(piece as Buffer)
    } catch {
      return
    }
    const body = Buffer.concat(pieces).toString()
    const call: VendorCall = { request, response, body, prompt: promptOf(body), closed }
    vendor.calls.push(call)
    await vendor.answer(call)
  })
  server.on('connection', (socket: Socket) => {
    socket.setNoDelay(true)
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  const { url, close } = await listen(server)
  const vendor: ChatVendor = {
    url,
    calls: [],
    close,
    get openSockets() {
      return sockets.size
    },
    answer: answer ?? (({ response }) => response.writeHead(500).end()),
  }
  return vendor
}

function promptOf(body: string): string {
  try {
    const { messages } = JSON.parse(body) as { messages: Array<{ content: string }> }
    return messages.at(-1)?.content ?? ''
  } catch {
    return ''
  }
}

// ---- What a chat vendor says.

export const STREAM_HEADERS = { 'content-type': 'text/event-stream' }
export const DONE = 'data: [DONE]\n\n'

const CHAT = FORMATS['openai-chat']

export { event }
export const { usage } = CHAT
const NAMED = { id: 'chatcmpl-1', model: 'vendor-model' }

export const chunk = (text: string, finish_reason: string | null = null, more: object = {}) =>
  chatChunk({ ...NAMED, choices: [{ index: 0, delta: text === '' ? {} : { content: text }, finish_reason }], ...more })
export const usageChunk = (used: unknown) => chatChunk({ ...NAMED, choices: [], usage: used })

export function wholeStream(words: readonly string[], prompt: number, completion: number): string {
  return [...words.map((word) => chunk(word)), chunk('', 'stop'), usageChunk(usage(prompt, completion)), DONE].join('')
}

export const wholeAnswer = (text: string, used: unknown) => JSON.stringify({ ...CHAT.answer(used, text), ...NAMED })

// ---- The gateway in front of it.

type VendorInput = CatalogInput['vendors'][string]

export interface FaultGatewayOptions {
  readonly vendors: Record<string, VendorInput>
  /** In the order of the vendors by default. */
  readonly limits?: object
  readonly log?: Log
  readonly world?: World
  readonly env?: Record<string, string>
}

/** One model, whose routes are the vendors given, tried in their order. */
export function startFaultGateway(options: FaultGatewayOptions): Promise<TestGateway> {
  return startGateway({
    ...(options.log ? { log: options.log } : {}),
    ...(options.world ? { world: options.world } : {}),
    ...(options.env ? { env: options.env } : {}),
    catalog: (document: CatalogInput) => {
      Object.assign(document.vendors, options.vendors)
      document.models[MODEL] = faultModel(Object.keys(options.vendors), options.limits)
    },
  })
}

export function faultModel(vendors: readonly string[], limits: object = {}): CatalogInput['models'][string] {
  return {
    name: 'Fault 1',
    type: 'text',
    family: 'fault',
    clientFormats: ['openai-chat'],
    limits: { contextTokens: 100_000, outputTokensMax: 10_000, outputTokensReserve: 1_000, ...limits },
    routes: vendors.map((vendor, order) => ({
      vendor,
      protocol: 'openai-chat' as const,
      model: 'vendor-model',
      order,
    })),
    pricing: { unit: 'credits', tiers: [{ input: '1', output: '2' }] },
  }
}

export function chatBody(prompt: string, more: object = {}): string {
  return JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: prompt }], ...more })
}

export const CHAT_PATH = '/v1/chat-completions'
