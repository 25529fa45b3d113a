// Realtime: a caller's WebSocket and one to the vendor, between which events pass. Each response is a call of its own:
// held with a cap that the vendor is told, charged by what the vendor reports at its end, and logged. Responses that
// follow from the caller's pauses are made here too.
import type { ObjectOwner } from '../../../admission/vendor-objects.ts'
import type { RequestContext } from '../../../api/api.ts'
import { rawQuery } from '../../../api/server/server.ts'
import { asFault, CLIENT_CLOSED, Fault, invalid } from '../../../kernel/fault.ts'
import { isObject, type Json, type JsonText, readJson, text } from '../../../kernel/json.ts'
import { newId } from '../../../kernel/world.ts'
import { BYOK } from '../../../ledger/operation.ts'
import { type ArriveDeps, arrive, readFor } from '../../../pipeline/arrive.ts'
import type { Arrived } from '../../../pipeline/call.ts'
import type { Recording } from '../../../pipeline/hooks.ts'
import { broughtBy } from '../../../pipeline/read.ts'
import type { ResponseSink } from '../../../pipeline/response-sink.ts'
import { candidatesOf, serve } from '../../../pipeline/serve.ts'
import type { PaidRequest, Target } from '../../../protocols/protocol.ts'
import { describe, openaiError, refusal } from '../../../protocols/vendor-fault.ts'
import { readErrorBody } from '../../../protocols/vendor-words.ts'
import { attempt } from '../../../routing/attempt.ts'
import type { ByteLease } from '../../../upstream/budget.ts'
import { type CallerSocket, CLOSE } from '../caller-sockets.ts'
import type { SocketHandle, SocketSession } from '../handshake.ts'
import { type ClientSecret, type ClientSecrets, secretIn } from './client-secrets.ts'
import { realtimeEndpoint } from './reader.ts'
import { contextOf, FRAME_END, isTranscribed, type RealtimeLink, type TranscriptLink } from './response.ts'
import { RealtimeSession } from './session.ts'
import { VendorResponse } from './vendor-response.ts'
import { openVendorSocket, type VendorListener, type VendorSocket } from './vendor-socket.ts'

export function realtimeSocket(deps: ArriveDeps & { readonly clientSecrets: ClientSecrets }): SocketHandle {
  return (request) => {
    const sent = secretIn(request.headers)
    const secret = sent === undefined ? undefined : deps.clientSecrets.open(sent, request.headers.origin)
    return { keyId: secret?.keyId, listen: (session) => new LiveSession(session, secret, deps) }
  }
}

const NOT_OFFERED = ['intent', 'call_id']
/** How long a vendor may take until its session is set up. */
const SET_UP_MS = 15_000
/** A call for transcripts covers at least so much sound. */
const TRANSCRIBED_SECONDS_MIN = 60
const NEVER = new Promise<never>(() => undefined)

class LiveSession {
  readonly #session: SocketSession
  readonly #secret: ClientSecret | undefined
  readonly #deps: ArriveDeps
  readonly #socket: CallerSocket
  readonly #uid: string
  readonly #state: RealtimeSession
  readonly #ready: Promise<void>
  #isReady = false
  #vendor: VendorSocket | undefined
  #target: Target | undefined
  #owner: ObjectOwner | undefined
  /** What the vendor says before its session is set up. */
  #setUp = Promise.withResolvers<string>()
  #created: Json | undefined
  /** The response that runs, from the moment that it is asked for. */
  #isResponding = false
  /** The caller has stopped speaking while it runs, and wants another. */
  #isAwaited = false
  #response: VendorResponse | undefined
  #isVendorGone = false
  /** Until the vendor has been told of a response, or never will be. */
  #creating: PromiseWithResolvers<void> | undefined
  /** The call that pays for transcripts of the caller's sound, up to these seconds. */
  #transcript: { readonly seconds: number; end(): void } | undefined
  /** Until there is a hold for the sound of the last frame. */
  #covering: Promise<void> | undefined

  constructor(session: SocketSession, secret: ClientSecret | undefined, deps: ArriveDeps) {
    this.#session = session
    this.#secret = secret
    this.#deps = deps
    this.#socket = session.socket
    this.#uid = new URLSearchParams(rawQuery(session.request)).get('model') ?? secret?.model ?? ''
    this.#state = new RealtimeSession(this.#uid, isTranscribed(this.#model))
    this.#setUp.promise.catch(() => undefined) // Whoever waits for it hears of it.
    this.#ready = this.#open()
      .then(
        () => {
          this.#isReady = true
        },
        (error: unknown) => this.#abandon(error),
      )
      .catch((error: unknown) => this.#broken(error))
  }

  /** Opens a session at a vendor that can have one: by the rules by which a call finds its vendor. */
  async #open(): Promise<void> {
    const { request } = this.#session
    const secret = this.#secret
    const query = new URLSearchParams(rawQuery(request))
    for (const name of NOT_OFFERED) if (query.has(name)) throw invalid(`"${name}" is not offered here.`, name)
    if (secret && secret.model !== this.#uid) throw invalid('This client secret is for another model.', 'model')
    const { world } = this.#deps.path
    const { arrived } = await this.#arrive(request, readJson(Buffer.from(JSON.stringify({ model: this.#uid }))), NOBODY)
    const { once: _, ...asked } = arrived.paidRequest as PaidRequest // A session is no job.
    const paidRequest: PaidRequest = {
      ...asked,
      open: (target) => ({
        call: {
          method: 'GET',
          headers: {},
          url: `${target.baseUrl}/realtime?model=${encodeURIComponent(target.model)}`,
        },
        send: (call, options) => openVendorSocket(call, options, this.#vendorListener(target)),
        answer: () => ({ body: '', contentType: '', usage: {} }),
        vendorError: readErrorBody,
      }),
    }
    const { accountId: account } = arrived.principal
    const attempted = await attempt(
      paidRequest,
      candidatesOf({ ...arrived, paidRequest }, this.#deps.path),
      {
        requestId: request.id,
        account,
        isRepeatable: false,
        signal: this.#socket.signal,
        createdSeconds: Math.floor(world.nowMs() / 1000),
        recorder: { all: false, add: () => undefined, decided: () => undefined },
      },
      this.#deps.path,
    )
    attempted.leave()
    this.#owner = { vendor: attempted.candidate.vendorName, credential: attempted.candidate.credential }
    const cancel = world.after(SET_UP_MS, () => this.#setUp.reject(new Fault('upstream_timeout')))
    this.#socket.send(await this.#setUp.promise.finally(cancel))
  }

  #vendorListener(target: Target): VendorListener {
    return {
      opened: (vendor) => {
        this.#vendor = vendor
        this.#target = target
      },
      frame: (data) => {
        try {
          this.#heard(data.toString())
        } catch (error) {
          this.#deps.path.log.warn({ requestId: this.#session.request.id, error }, 'a vendor sent an invalid event')
          this.#vendor?.close()
        }
      },
      gone: (code) => {
        const fault = new Fault('upstream_failed', { internal: { why: 'the vendor ended the session', code } })
        this.#isVendorGone = true
        this.#transcript?.end()
        this.#setUp.reject(fault)
        this.#response?.fail(fault)
        if (this.#isReady && !this.#isResponding) this.#abandon(fault)
      },
    }
  }

  #heard(frame: string): void {
    const event: unknown = JSON.parse(frame)
    if (!isObject(event)) throw new TypeError('an event is no object')
    if (!this.#isReady) {
      this.#begin(event)
      return
    }
    if (event.type === 'error' && !this.#response?.isAbout(event)) {
      const about = text(isObject(event.error) ? event.error.event_id : undefined)
      // What is to be cancelled may have ended by itself.
      if (about !== OWN_CANCEL) this.#holdVendor(this.#tell(this.#vendorFault(event), about))
      return
    }
    const { frame: shown, responds } = this.#state.heard(event, frame)
    if (shown !== undefined) this.#relay(shown, event)
    if (responds && this.#isResponding) this.#isAwaited = true
    else if (responds) this.#holdVendor(this.#respond(RESPONSE_CREATE, undefined))
  }

  /**
   * The vendor's session is told first that it makes no responses by itself. What the caller sees is the session after
   * that.
   */
  #begin(event: Json): void {
    if (event.type !== (this.#created ? 'session.updated' : 'session.created')) {
      this.#setUp.reject(this.#vendorFault(event))
    } else if (!this.#created) {
      this.#created = event
      this.#vendor?.send(this.#state.setUp(event, this.#secret?.session ?? {}))
    } else {
      this.#isReady = true
      this.#setUp.resolve(this.#state.heard({ ...this.#created, session: event.session }, '').frame ?? '')
    }
  }

  /** While a response runs, all that the vendor says goes the way of its events, so that the order stays. */
  #relay(frame: string, event: Json): void {
    if (this.#response?.push(frame, event)) return
    this.#holdVendor(this.#socket.send(frame))
  }

  /** No more is read of the vendor until the caller has read on. */
  #holdVendor(full: Promise<void> | undefined): void {
    if (!full) return
    this.#vendor?.pause()
    const resume = () => this.#vendor?.resume()
    full.then(resume, resume)
  }

  frame(data: Buffer, lease: ByteLease): Promise<void> | undefined {
    if (!this.#isReady) return this.#ready.then(() => this.#inTurn(data, lease))
    return this.#inTurn(data, lease)
  }

  /** What comes after the creation of a response reaches the vendor after it, although that waits for its hold. */
  #inTurn(data: Buffer, lease: ByteLease): Promise<void> | undefined {
    const before = this.#creating?.promise ?? this.#covering
    return before?.then(() => this.#inTurn(data, lease)) ?? this.#take(data, lease)
  }

  #take(data: Buffer, lease: ByteLease): Promise<void> | undefined {
    lease.release()
    if (this.#socket.signal.aborted || this.#isVendorGone) return undefined
    let eventId: string | undefined
    try {
      const json = readJson(data)
      eventId = text(json.value.event_id)
      const told = this.#state.told(json)
      if (json.value.type === 'response.create') return this.#respond(json, eventId)
      const seconds = this.#state.transcribedSeconds
      if (seconds <= (this.#transcript?.seconds ?? 0)) return this.#vendor?.send(told)
      // Twice as much as before, so that silence makes few calls.
      this.#covering = this.#transcribe(Math.ceil(seconds * 2) + TRANSCRIBED_SECONDS_MIN).then(() => {
        this.#covering = undefined
        return this.#vendor?.send(told)
      })
      return this.#covering
    } catch (error) {
      return this.#socket.sendError(this.#errorEvent(error, eventId))
    }
  }

  /** Resolves when a hold covers the transcripts of so much sound, or the vendor makes none any more. */
  #transcribe(seconds: number): Promise<void> {
    const call = this.#session.call()
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
    const { promise: body, resolve: over } = Promise.withResolvers<Buffer>()
    const end = () => over(Buffer.from(String(this.#state.transcripts.take())))
    const reply = { status: 200, headers: {}, read: () => body, pipe: () => NEVER, letGo: () => undefined, abort: end }
    const send = async () => {
      if (this.#socket.signal.aborted) throw CLIENT_CLOSED
      this.#transcript?.end()
      this.#transcript = { seconds, end }
      held()
      return reply
    }
    this.#callFor(call, { seconds, send })
      .catch((error: unknown) => {
        if (error === CLIENT_CLOSED || this.#socket.signal.aborted) return
        this.#session.refused(call, asFault(error))
        this.#vendor?.send(this.#state.untranscribed())
        void this.#tell(error)
      })
      .catch((error: unknown) => this.#broken(error))
      .finally(held)
    return isHeld
  }

  async #callFor(call: RequestContext, link: TranscriptLink): Promise<void> {
    await this.#session.enter(call)
    const json = readJson(Buffer.from(JSON.stringify({ model: this.#uid })))
    await this.#serve(await this.#arrive(call, json, { ...NOBODY, signal: this.#socket.signal }, link))
  }

  /** At the vendor of the session, with its credential. */
  #serve({ arrived }: { arrived: Arrived }): Promise<void> {
    const own = this.#owner?.credential === BYOK && arrived.own ? { ...arrived.own, fallback: false } : undefined
    return serve({ ...arrived, objectOwner: this.#owner, own }, this.#deps.path)
  }

  #respond(json: JsonText, eventId: string | undefined): Promise<void> | undefined {
    if (this.#socket.isLeaving)
      return this.#tell(new Fault('unavailable', { message: 'This process is being stopped. Connect again.' }), eventId)
    if (this.#isResponding) {
      const vendorCode = 'conversation_already_has_active_response'
      const message = 'A response is in progress. Wait until it is done, or cancel it, before creating another.'
      return this.#tell(new Fault('conflict', { message, vendorCode }), eventId)
    }
    this.#isResponding = true
    this.#creating = Promise.withResolvers()
    const ended = this.#socket.begin()
    this.#call(json, eventId)
      .finally(() => {
        this.#hasCreated()
        this.#isResponding = false
        this.#response = undefined
        ended()
        if (this.#socket.signal.aborted) this.#vendor?.close()
        else if (this.#isVendorGone) this.#abandon(new Fault('upstream_failed'))
        else if (this.#isAwaited) {
          this.#isAwaited = false
          this.#holdVendor(this.#respond(RESPONSE_CREATE, undefined))
        }
      })
      .catch((error: unknown) => this.#broken(error))
    return undefined
  }

  async #call(asked: JsonText, eventId: string | undefined): Promise<void> {
    const call = this.#session.call()
    let out: FrameSink | undefined
    let recording: Recording | undefined
    try {
      await this.#session.enter(call)
      recording = this.#session.record(call)
      recording?.asked(asked.text)
      out = new FrameSink(this.#socket, recording)
      const json = readJson(Buffer.from(JSON.stringify({ ...asked.value, model: this.#uid })))
      await this.#serve(await this.#arrive(call, json, out, this.#link(asked, call)))
    } catch (error) {
      if (error === CLIENT_CLOSED || this.#socket.signal.aborted) return
      this.#session.refused(call, asFault(error))
      if (!out?.started) await this.#tell(error, eventId)
      if (asFault(error).status === 401) this.#socket.close(CLOSE.policy, asFault(error).message)
    } finally {
      recording?.end()
    }
  }

  get #model() {
    const { models } = this.#deps.catalog.current.document
    return Object.hasOwn(models, this.#uid) ? models[this.#uid] : undefined
  }

  #link(asked: JsonText, { id }: RequestContext): RealtimeLink {
    const model = this.#model
    const response = isObject(asked.value.response) ? asked.value.response : {}
    const context = contextOf(model?.type === 'realtime' ? model : undefined)
    return {
      turn: this.#state.response(response, context),
      eventId: id,
      cancel: () => this.#cancel(),
      send: ({ body }, { deadlines, signal }) => {
        const vendor = this.#vendor
        if (!vendor || this.#isVendorGone)
          throw new Fault('upstream_failed', { internal: { why: 'the session is over' } })
        const { world } = this.#deps.path
        const one = new VendorResponse({ vendor, world, deadlines, signal, eventId: id, cancel: () => this.#cancel() })
        this.#response = one
        vendor.send(String(body))
        this.#hasCreated()
        return one.begun
      },
    }
  }

  #hasCreated(): void {
    this.#creating?.resolve()
    this.#creating = undefined
  }

  #cancel(): void {
    this.#vendor?.send(JSON.stringify({ type: 'response.cancel', event_id: OWN_CANCEL }))
  }

  async #arrive(
    call: RequestContext,
    json: JsonText,
    out: ResponseSink,
    link?: RealtimeLink | TranscriptLink,
  ): Promise<{ arrived: Arrived }> {
    const { principal, headers, id: requestId } = call
    const { read } = this.#deps
    const known = this.#secret && { known: { labels: this.#secret.labels } }
    const brought = await broughtBy(principal, read)
    const incoming = {
      spec: realtimeEndpoint(link),
      principal,
      brought,
      params: {},
      query: '',
      body: { json },
      headers,
      ...known,
    }
    const { asked, catalog } = readFor(incoming, this.#deps)
    const arrival = { requestId, principal, endpoint: 'realtime', out, headers }
    return { arrived: arrive(arrival, asked, catalog, this.#deps.path) }
  }

  /** A vendor's error in words that a caller may hear. */
  #vendorFault(event: Json): Fault {
    const said = readErrorBody(Buffer.from(JSON.stringify(event)))
    const { fault } = refusal(400, said, this.#target?.model ?? '', {})
    const paidRequest = { product: this.#uid, clientFormat: 'openai-realtime' as const }
    return asFault(this.#target ? describe(fault, { paidRequest, target: this.#target }) : fault)
  }

  #tell(error: unknown, eventId?: string): Promise<void> | undefined {
    return this.#socket.send(this.#errorEvent(error, eventId))
  }

  #errorEvent(error: unknown, eventId: string | undefined): string {
    const fault = asFault(error)
    const about = { ...openaiError(fault), event_id: eventId ?? null }
    const event_id = `event_${newId(this.#deps.path.world)}`
    return JSON.stringify({ type: 'error', event_id, status: fault.status, error: about })
  }

  /** The session cannot go on. */
  #abandon(error: unknown): void {
    this.#vendor?.close()
    if (this.#socket.signal.aborted) return
    const fault = asFault(error)
    this.#session.refused(this.#session.request, fault)
    void this.#tell(fault)
    this.#socket.close(fault.blame === 'caller' ? CLOSE.policy : CLOSE.failed, fault.message)
  }

  /** A fault of ours: it ends this session, and nothing else. */
  #broken(error: unknown): void {
    this.#deps.path.log.error({ requestId: this.#session.request.id, error }, 'a realtime session failed')
    this.#vendor?.close()
    this.#socket.destroy()
  }

  expired(): void {
    const message = 'A session lives for 60 minutes at most. Connect again.'
    void this.#tell(new Fault('request_invalid', { message, vendorCode: 'session_expired' }))
  }

  gone(): void {
    this.#transcript?.end()
    if (!this.#isResponding) this.#vendor?.close()
  }
}

const OWN_CANCEL = 'tollgate_cancel'
const RESPONSE_CREATE = readJson(Buffer.from('{"type":"response.create"}'))

/** The caller's end of one response: the relay's pieces, each as its frames. */
class FrameSink implements ResponseSink {
  readonly signal: AbortSignal
  readonly #socket: CallerSocket
  readonly #recording: Recording | undefined
  started = false

  constructor(socket: CallerSocket, recording: Recording | undefined) {
    this.signal = socket.signal
    this.#socket = socket
    this.#recording = recording
  }

  send(): void {
    throw new Fault('internal', { internal: { why: 'a response of a session is a stream' } })
  }

  startStream(headers: Record<string, string>): void {
    this.started = true
    this.#recording?.answers(200, headers['content-type'] ?? '')
  }

  write(piece: string | Buffer): Promise<void> | undefined {
    let full: Promise<void> | undefined
    for (const frame of String(piece).split(FRAME_END)) {
      if (frame === '') continue
      this.#recording?.sent(`${frame}\n`)
      full = this.#socket.send(frame) ?? full
    }
    return full
  }

  end(piece: string | Buffer): void {
    void this.write(piece)
  }

  destroy(): void {
    this.#socket.destroy()
  }
}

const NOBODY: ResponseSink = {
  signal: new AbortController().signal,
  started: false,
  send: () => undefined,
  startStream: () => undefined,
  write: () => undefined,
  end: () => undefined,
  destroy: () => undefined,
}
