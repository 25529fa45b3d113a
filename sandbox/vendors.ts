// The simulated vendors, one room a wire format, behind one function. A vendor's baseUrl is `<url>/<room>`.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { World } from '../src/kernel/world.ts'
import { analyticsRoom } from './analytics.ts'
import { countTokensRoom, openMessagesRoom } from './anthropic-messages.ts'
import { speechRoom, transcriptionRoom } from './audio.ts'
import { RoomContext } from './context.ts'
import { embeddingsRoom } from './embeddings.ts'
import { geminiCountRoom, geminiRoom } from './gemini.ts'
import { imagesRoom } from './images.ts'
import { moderationsRoom, rerankRoom } from './judgement.ts'
import type { CallLog, SeenCall } from './log.ts'
import { toolsRoom } from './mcp-tools.ts'
import { Memory } from './memory.ts'
import { modelsRoom } from './models.ts'
import { ocrRoom } from './ocr.ts'
import { chatRoom } from './openai-chat.ts'
import { openResponsesRoom } from './openai-responses.ts'
import { openPaymentsRoom } from './payments.ts'
import { productRoom } from './product.ts'
import { type Room, SIMULATED_HEADER } from './room.ts'
import { openSocialRoom } from './social.ts'
import { Variation } from './variation.ts'
import { openVideoRoom } from './video.ts'

/** Every simulated vendor. A room with state is made anew for each sandbox. */
function openRooms(): Room[] {
  return [
    chatRoom,
    openResponsesRoom(),
    openMessagesRoom(),
    countTokensRoom,
    geminiRoom,
    geminiCountRoom,
    embeddingsRoom,
    rerankRoom,
    moderationsRoom,
    ocrRoom,
    transcriptionRoom,
    speechRoom,
    modelsRoom,
    imagesRoom,
    openVideoRoom(),
    productRoom,
    analyticsRoom,
    openSocialRoom(),
    toolsRoom,
    openPaymentsRoom(),
  ]
}

/**
 * Whoever does not say which vendor is meant gets the one that has such a path. The last has an answer to everything.
 */
const VENDORS = ['openai', 'anthropic', 'google', 'ark', 'social', 'product', 'tools', 'payments', 'analytics']

function findRoom(rooms: readonly Room[], method: string, asked: string): { room: Room | undefined; path: string } {
  const paths = VENDORS.some((vendor) => asked.startsWith(`/${vendor}/`))
    ? [asked]
    : VENDORS.map((vendor) => `/${vendor}${asked}`)
  for (const path of paths) {
    const room = rooms.find((candidate) => candidate.match(method, path))
    if (room) return { room, path }
  }
  return { room: undefined, path: asked }
}

export interface SandboxFacts {
  readonly world: World
  readonly speed: number
  /** Where the sandbox is reached. */
  readonly url: string
  readonly log: CallLog
  readonly variation: number | undefined
}

/** What answers a request to the simulated vendors. */
export function openVendors({ world, speed, url, log, variation }: SandboxFacts): RequestListener {
  const rooms = openRooms()
  const memory = new Memory()

  return (req, res) => {
    const target = new URL((req.url ?? '/').replace(/^\/+/, '/'), 'http://sandbox')
    const asked = target.pathname.replace(/\/{2,}/g, '/')
    res.setHeader('x-simulated', SIMULATED_HEADER['x-simulated'])
    if (asked.startsWith('/__sandbox')) {
      serveLog(req, res, asked, log)
      return
    }

    const method = req.method ?? 'GET'
    const { room, path } = findRoom(rooms, method, asked)
    const call: SeenCall = {
      number: log.requests + 1,
      room: room?.name ?? 'none',
      method,
      url: req.url ?? '/',
      headers: req.headers,
      startedMs: world.elapsedMs(),
      endedMs: undefined,
      outcome: 'open',
      status: 0,
      model: undefined,
      stream: false,
      body: undefined,
      bodyBytes: 0,
      chunks: 0,
    }
    log.callStarted(call)
    const ctx = new RoomContext(req, res, {
      world,
      speed,
      baseUrl: url,
      path,
      query: target.searchParams,
      log,
      call,
      memory,
      // Data is compared as it stands.
      variation: variation === undefined || method === 'GET' ? undefined : new Variation(variation + call.number),
    })
    if (!room) {
      ctx.json(404, { error: { message: `The sandbox has no vendor at ${method} ${path}.`, type: 'not_found_error' } })
      return
    }
    Promise.resolve()
      .then(() => room.serve(req, res, ctx))
      .catch((error: unknown) => {
        if (ctx.isGone) return
        if (res.headersSent) return ctx.cut()
        ctx.json(500, { error: { message: `The sandbox itself failed: ${String(error)}`, type: 'sandbox_error' } })
      })
  }
}

/** GET shows the log to tests in other processes, DELETE clears it. */
function serveLog(req: IncomingMessage, res: ServerResponse, path: string, log: CallLog): void {
  if (path !== '/__sandbox/log') {
    res.writeHead(404).end()
    return
  }
  if (req.method === 'DELETE') log.clear()
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(log))
}
