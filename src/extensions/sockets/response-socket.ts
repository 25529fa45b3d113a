// Responses over a WebSocket, as Codex and the openai SDKs use it: each `response.create` is a call like a POST, and
// its events come back as frames. Requests of one `stream_id` run one after the other. What was said on the socket is
// remembered, so that the next request need send only what is new, also where the vendor stores nothing.

import type { RequestContext } from '../../api/api.ts'
import { handleSmall, type PaidDeps } from '../../api/paid.ts'
import { faultHeaders } from '../../api/server/envelope.ts'
import { ENDPOINTS } from '../../catalog/index.ts'
import { asFault, CLIENT_CLOSED, Fault, invalid } from '../../kernel/fault.ts'
import { isObject, type JsonText, readJson, withMembers } from '../../kernel/json.ts'
import { NEVER } from '../../kernel/timers.ts'
import { newId } from '../../kernel/world.ts'
import { readFor } from '../../pipeline/arrive.ts'
import type { Recording } from '../../pipeline/hooks.ts'
import { broughtBy, type PaidSpec } from '../../pipeline/read.ts'
import type { ResponseSink } from '../../pipeline/response-sink.ts'
import { echoed } from '../../protocols/text/openai-responses/pass.ts'
import { openaiError } from '../../protocols/vendor-fault.ts'
import type { ByteBudget, ByteLease } from '../../upstream/budget.ts'
import { bytesOf, SseDecoder } from '../../upstream/sse.ts'
import { type CallerSocket, CLOSE } from './caller-sockets.ts'
import type { SocketHandle, SocketSession } from './handshake.ts'
import { noSecret, secretIn } from './realtime/client-secrets.ts'

interface ResponseSocketDeps extends PaidDeps {
  /** For what is remembered of conversations. */
  readonly remembered: ByteBudget
}

/** Requests of a socket that run or wait. */
const CALLS_MAX = 8
const STREAM_ID_CHARS_MAX = 128
/** The latest responses of a socket that can be continued. */
const REMEMBERED_MAX = 8
const REMEMBERED_BYTES_MAX = 8 * 1024 * 1024

/** The error event of these sockets: with the status and headers that an answer over HTTP would have. */
function errorEvent(fault: Fault, requestId: string): Record<string, unknown> {
  const { 'content-type': _, ...headers } = faultHeaders(fault)
  return { type: 'error', status: fault.status, error: openaiError(fault), headers, request_id: requestId }
}

export function responseSocket(deps: ResponseSocketDeps): SocketHandle {
  // The list of endpoints has it, and it sells text.
  const spec = ENDPOINTS.find(({ id }) => id === 'responses') as PaidSpec
  return ({ headers }) => {
    // A secret is for a Realtime session of one model, and for nothing else.
    if (secretIn(headers) !== undefined) throw noSecret()
    return { listen: (session) => new Conversations(session, spec, deps) }
  }
}

class Conversations {
  readonly #session: SocketSession
  readonly #spec: PaidSpec
  readonly #deps: ResponseSocketDeps
  readonly #memory: Memory
  /** The last request of each stream. */
  readonly #lanes = new Map<string, Promise<void>>()
  #calls = 0

  constructor(session: SocketSession, spec: PaidSpec, deps: ResponseSocketDeps) {
    this.#session = session
    this.#spec = spec
    this.#deps = deps
    this.#memory = new Memory(deps.remembered.open(session.request.principal.accountId))
  }

  frame(text: Buffer, lease: ByteLease): Promise<void> | undefined {
    const call = this.#session.call()
    let lane: string | undefined
    try {
      const json = readJson(text)
      lane = laneOf(json)
      checkType(json.value.type)
      if (this.#session.socket.isLeaving)
        throw new Fault('unavailable', { message: 'This process is being stopped. Connect again.' })
      if (this.#calls >= CALLS_MAX)
        throw new Fault('rate_limited', { message: `At most ${CALLS_MAX} responses may run or wait on a WebSocket.` })
      this.#queue(lane, async () => this.#answer(call, json, lane, lease))
    } catch (error) {
      lease.release()
      return this.#tell(call, error, { lane, isWrong: true })
    }
    return undefined
  }

  expired(): void {
    const message =
      'Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.'
    const fault = new Fault('request_invalid', { message, vendorCode: 'websocket_connection_limit_reached' })
    void this.#tell(this.#session.call(), fault, {})
  }

  gone(): void {
    this.#memory.release()
  }

  #queue(lane: string | undefined, run: () => Promise<void>): void {
    const ended = this.#session.socket.begin()
    this.#calls += 1
    const name = lane ?? ''
    const last: Promise<void> = (this.#lanes.get(name) ?? Promise.resolve())
      .then(run)
      .finally(() => {
        this.#calls -= 1
        if (this.#lanes.get(name) === last) this.#lanes.delete(name)
        ended()
      })
      .catch((error: unknown) => {
        this.#deps.path.log.error({ requestId: this.#session.request.id, error }, 'a WebSocket failed')
        this.#session.socket.destroy()
      })
    this.#lanes.set(name, last)
  }

  async #answer(call: RequestContext, sent: JsonText, lane: string | undefined, lease: ByteLease): Promise<void> {
    const { socket } = this.#session
    let out: EventSink | undefined
    let recording: Recording | undefined
    try {
      if (socket.signal.aborted) return
      await this.#session.enter(call)
      recording = this.#session.record(call)
      recording?.asked(sent.text)
      const json = asRequest(sent, this.#memory.items(sent))
      const items = itemsOf(json)
      if (sent.value.generate === false) {
        await this.#warmUp(call, json, items, lane)
        return
      }
      out = new EventSink(socket, { lane, lease, recording })
      await handleSmall(call, out, { spec: this.#spec, body: { json } }, this.#deps)
      if (out.completed) await this.#memory.keep(out.completed, items)
    } catch (error) {
      await this.#tell(call, error, { lane, out })
    } finally {
      lease.release()
      recording?.end()
    }
  }

  /** Nothing is generated and nothing is owed: what was sent is checked and remembered. */
  async #warmUp(call: RequestContext, json: JsonText, items: string, lane: string | undefined): Promise<void> {
    const { principal, headers } = call
    const spec = this.#spec
    const brought = await broughtBy(principal, this.#deps.read)
    readFor({ spec, principal, brought, params: {}, query: '', body: { json }, headers }, this.#deps)
    const { world } = this.#deps.path
    const seconds = Math.floor(world.nowMs() / 1000)
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
    const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } }
    const response = {
      id: `resp_${newId(world)}`,
      object: 'response',
      created_at: seconds,
      status: 'in_progress',
      output: [],
      ...echoed(json.value),
      store: false,
      model: json.value.model,
    }
    const completed = { ...response, status: 'completed', completed_at: seconds, usage: { ...usage, ...details } }
    await this.#memory.keep(completed, items)
    const { socket } = this.#session
    const send = (event: object) => socket.send(inLane(JSON.stringify(event), lane))
    send({ type: 'response.created', sequence_number: 0, response })
    await send({ type: 'response.completed', sequence_number: 1, response: completed })
  }

  /** A promise: the caller has much to read before it. `isWrong`: nothing began, the frame itself was wrong. */
  #tell(
    call: RequestContext,
    error: unknown,
    { lane, out, isWrong }: { lane?: string | undefined; out?: EventSink | undefined; isWrong?: true },
  ): Promise<void> | undefined {
    const { socket } = this.#session
    if (error === CLIENT_CLOSED || socket.signal.aborted) return undefined
    const fault = asFault(error)
    this.#session.refused(call, fault)
    const event = inLane(JSON.stringify(errorEvent(fault, call.id)), lane)
    // A stream that broke has said so itself.
    const full = out?.started ? undefined : isWrong ? socket.sendError(event) : socket.send(event)
    if (fault.status === 401) socket.close(CLOSE.policy, fault.message)
    return full
  }
}

function checkType(type: unknown): void {
  if (type === 'response.create') return
  const offered = 'this WebSocket takes "response.create"'
  throw invalid(
    typeof type === 'string' ? `"${type.slice(0, 60)}" is not offered: ${offered}.` : `"type" is missing: ${offered}.`,
    'type',
  )
}

function laneOf({ value: { stream_id: lane } }: JsonText): string | undefined {
  if (lane === undefined || lane === null) return undefined
  if (typeof lane === 'string' && lane !== '' && lane.length <= STREAM_ID_CHARS_MAX) return lane
  throw invalid(`"stream_id" must be a string of 1 to ${STREAM_ID_CHARS_MAX} characters.`, 'stream_id')
}

/** The body of a POST that asks the same. `earlier`: what the conversation began with. */
function asRequest(sent: JsonText, earlier: string | undefined): JsonText {
  if (sent.value.background === true) throw invalid('"background" must be false on a WebSocket.', 'background')
  const remove = ['type', 'stream_id', 'generate', 'background']
  if (earlier === undefined) return withMembers(sent, { stream: 'true' }, remove)
  const input = `[${joined(earlier, itemsOf(sent))}]`
  return withMembers(sent, { stream: 'true', input }, [...remove, 'previous_response_id'])
}

/** The items of a request's input as JSON, without the brackets around them. */
function itemsOf(json: JsonText): string {
  const { input } = json.value
  const span = json.member('input')
  if (typeof input === 'string') return JSON.stringify({ type: 'message', role: 'user', content: input })
  return Array.isArray(input) && span ? json.text.slice(span[0] + 1, span[1] - 1).trim() : ''
}

const joined = (...parts: readonly string[]) => parts.filter((part) => part !== '').join(',')

const inLane = (event: string, lane: string | undefined) =>
  lane === undefined ? event : `{"stream_id":${JSON.stringify(lane)},${event.slice(1)}`

/**
 * The conversations of a socket by their last response, the oldest first. What does not fit is forgotten: the caller
 * then sends it whole.
 */
class Memory {
  readonly #lease: ByteLease
  readonly #items = new Map<string, string>()

  constructor(lease: ByteLease) {
    this.#lease = lease
  }

  /** Undefined: the request continues nothing that is remembered here. */
  items({ value: { previous_response_id: id } }: JsonText): string | undefined {
    return typeof id === 'string' ? this.#items.get(id) : undefined
  }

  /** What a vendor stores is continued there. */
  async keep({ id, output, store }: Record<string, unknown>, items: string): Promise<void> {
    if (typeof id !== 'string' || store === true || !Array.isArray(output)) return
    // Without its encrypted content, a thought cannot be sent again.
    const said = output.filter((item) => isObject(item) && (item.type !== 'reasoning' || item.encrypted_content))
    const text = joined(items, ...said.map((item) => JSON.stringify(item)))
    while (this.#items.size >= REMEMBERED_MAX || this.#lease.bytes + sizeOf(text) > REMEMBERED_BYTES_MAX) {
      if (this.#items.size === 0) return
      this.#forgetOldest()
    }
    await this.#lease.grow(sizeOf(text), NEVER).then(
      () => this.#items.set(id, text),
      () => undefined,
    )
  }

  #forgetOldest(): void {
    for (const [id, text] of this.#items) {
      this.#items.delete(id)
      this.#lease.shrinkTo(this.#lease.bytes - sizeOf(text))
      return
    }
  }

  release(): void {
    this.#items.clear()
    this.#lease.release()
  }
}

/** A text with one character beyond Latin takes two bytes for each. */
const sizeOf = (text: string) => text.length * 2

/** The caller's end of one response: the events of its stream, each as a frame. */
class EventSink implements ResponseSink {
  readonly signal: AbortSignal
  readonly #socket: CallerSocket
  readonly #lane: string | undefined
  readonly #lease: ByteLease
  readonly #recording: Recording | undefined
  readonly #events = new SseDecoder()
  started = false
  /** The response, when it has ended well. */
  completed: Record<string, unknown> | undefined

  constructor(
    socket: CallerSocket,
    { lane, lease, recording }: { lane: string | undefined; lease: ByteLease; recording: Recording | undefined },
  ) {
    this.signal = socket.signal
    this.#socket = socket
    this.#lane = lane
    this.#lease = lease
    this.#recording = recording
  }

  send(status: number, headers: Record<string, string>, body: string | Buffer): void {
    this.#begin(status, headers)
    if (headers['content-type']?.startsWith('text/event-stream')) this.end(body)
    else {
      this.#recording?.sent(body)
      void this.#emit(`{"type":"response.completed","sequence_number":0,"response":${body}}`)
    }
  }

  startStream(headers: Record<string, string>): void {
    this.#begin(200, headers)
  }

  #begin(status: number, headers: Record<string, string>): void {
    this.started = true
    this.#lease.release()
    this.#recording?.answers(status, headers['content-type'] ?? '')
  }

  write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
    this.#recording?.sent(piece, encoding)
    let full: Promise<void> | undefined
    for (const { data } of this.#events.push(bytesOf(piece, encoding))) full = this.#emit(data) ?? full
    return full
  }

  end(piece: string | Buffer): void {
    void this.write(piece)
    const last = this.#events.end()
    if (last) void this.#emit(last.data)
  }

  #emit(data: string): Promise<void> | undefined {
    if (!data.startsWith('{')) return undefined
    if (data.includes('response.completed')) this.#complete(data)
    return this.#socket.send(inLane(data, this.#lane))
  }

  #complete(data: string): void {
    const { type, response } = JSON.parse(data) as { type?: unknown; response?: unknown } // The relay has read it.
    if (type === 'response.completed' && isObject(response)) this.completed = response
  }

  destroy(): void {
    this.#socket.destroy()
  }
}
