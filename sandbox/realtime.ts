// A simulated vendor of the Realtime protocol: sessions with text and sound, turns by silence, tools, and usage at the
// end of each response. Sound is a tone; whoever sends sound is taken to stop speaking when a piece of it is silent.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket, WebSocketServer } from 'ws'
import type { World } from '../src/kernel/world.ts'
import { isRecord, type Json, list, parseJson, record, string } from './json.ts'
import type { CallLog, SeenCall } from './log.ts'
import { Memory } from './memory.ts'
import { SIMULATED_HEADER } from './room.ts'
import { countTokens } from './tokens.ts'
import { readTriggers, type Triggers } from './trigger.ts'

interface Facts {
  readonly world: World
  readonly speed: number
  readonly log: CallLog
}

const SAMPLE_BYTES_PER_SECOND = 48_000
const READ_TOKENS_PER_SECOND = 10
const SPOKEN_TOKENS_PER_SECOND = 20
const DELTA_MS = 50
const DEFAULT_TURNS = {
  type: 'server_vad',
  threshold: 0.5,
  prefix_padding_ms: 300,
  silence_duration_ms: 200,
  idle_timeout_ms: null,
  create_response: true,
  interrupt_response: true,
}

/** Takes upgrades to `/realtime`; everything else is refused. */
export function openRealtimeVendor(facts: Facts, { WebSocketServer: Server }: typeof import('ws')) {
  const server: WebSocketServer = new Server({ noServer: true, perMessageDeflate: false })
  server.on('headers', (headers) => headers.push(`x-simulated: ${SIMULATED_HEADER['x-simulated']}`))
  return (request: IncomingMessage, link: Duplex, head: Buffer): void => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://sandbox')
    const model = searchParams.get('model') ?? ''
    const bearer = String(request.headers.authorization ?? '')
    const triggers = readTriggers({
      texts: [model],
      headers: request.headers,
      query: searchParams,
      memory: new Memory(),
    })
    const status = !pathname.endsWith('/realtime')
      ? 404
      : /sk-bad/.test(bearer)
        ? 401
        : Number(triggers.status?.name ?? 0)
    if (status > 0) {
      const body = JSON.stringify({ error: { message: `Simulated refusal ${status}.`, type: 'invalid_request_error' } })
      link.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`)
      return
    }
    const call = seen(request, facts, model)
    facts.log.callStarted(call)
    server.handleUpgrade(request, link, head, (socket) => new Session(socket, model, facts, call))
  }
}

function seen(request: IncomingMessage, { world, log }: Facts, model: string): SeenCall {
  return {
    number: log.requests + 1,
    room: 'openai-realtime',
    method: 'GET',
    url: request.url ?? '/',
    headers: request.headers,
    startedMs: world.elapsedMs(),
    endedMs: undefined,
    outcome: 'open',
    status: 101,
    model,
    stream: true,
    body: undefined,
    bodyBytes: 0,
    chunks: 0,
  }
}

interface Item {
  readonly id: string
  readonly shown: Json
  readonly text: string
  readonly tokens: { text: number; audio: number }
}

interface Running {
  readonly id: string
  cancel(reason: string): void
}

class Session {
  readonly #socket: WebSocket
  readonly #facts: Facts
  readonly #call: SeenCall
  #session: Json
  #items: Item[] = []
  #buffer = 0
  /** Bytes of sound in the whole session. */
  #heard = 0
  #isSpeaking = false
  #running: Running | undefined
  #ids = 0
  #cachedTokens = 0

  constructor(socket: WebSocket, model: string, facts: Facts, call: SeenCall) {
    this.#socket = socket
    this.#facts = facts
    this.#call = call
    this.#session = {
      id: this.#id('sess'),
      object: 'realtime.session',
      type: 'realtime',
      model,
      output_modalities: ['audio'],
      instructions: 'You are simulated.',
      tools: [],
      tool_choice: 'auto',
      max_output_tokens: 'inf',
      audio: {
        input: { format: { type: 'audio/pcm', rate: 24_000 }, turn_detection: DEFAULT_TURNS, transcription: null },
        output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'alloy', speed: 1 },
      },
    }
    socket.on('message', (data) => this.#take(data))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#running?.cancel('client_cancelled')
      facts.log.callEnded(call, 'finished', facts.world.elapsedMs())
    })
    this.#send('session.created', { session: this.#session })
  }

  #id(prefix: string): string {
    this.#ids += 1
    return `${prefix}_sandbox${this.#call?.number ?? 0}_${this.#ids}`
  }

  #send(type: string, members: Json): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    this.#call.chunks += 1
    this.#socket.send(JSON.stringify({ type, event_id: this.#id('event'), ...members }))
  }

  #refuse(event: Json, message: string, code: string | null = null): void {
    const about = { type: 'invalid_request_error', code, message, param: null, event_id: event.event_id ?? null }
    this.#send('error', { error: about })
  }

  #take(data: RawData): unknown {
    const event = parseJson(String(data))
    if (!isRecord(event)) return this.#refuse({}, 'The event is no JSON object.')
    // The last event that is no sound is what tests look at.
    if (event.type !== 'input_audio_buffer.append') this.#call.body = JSON.stringify(event)
    switch (event.type) {
      case 'session.update':
        this.#session = merged(this.#session, record(event.session))
        return this.#send('session.updated', { session: this.#session })
      case 'input_audio_buffer.append':
        return this.#hear(Buffer.from(string(event.audio), 'base64'))
      case 'input_audio_buffer.commit':
        return this.#buffer > 0
          ? this.#commit()
          : this.#refuse(event, 'The buffer is empty.', 'input_audio_buffer_commit_empty')
      case 'input_audio_buffer.clear':
        this.#buffer = 0
        return this.#send('input_audio_buffer.cleared', {})
      case 'conversation.item.create':
        return this.#add(itemOf(record(event.item), this.#id('item')))
      case 'conversation.item.delete':
        this.#items = this.#items.filter(({ id }) => id !== event.item_id)
        return this.#send('conversation.item.deleted', { item_id: event.item_id })
      case 'response.cancel':
        return this.#running
          ? this.#running.cancel('client_cancelled')
          : this.#refuse(event, 'No response is active.', 'response_cancel_not_active')
      case 'response.create':
        return void this.#respond(event, record(event.response))
      default:
        return this.#refuse(event, `The sandbox does not know the event ${String(event.type)}.`)
    }
  }

  #add(item: Item): void {
    this.#items.push(item)
    this.#send('conversation.item.added', { previous_item_id: this.#items.at(-2)?.id ?? null, item: item.shown })
    this.#send('conversation.item.done', { previous_item_id: this.#items.at(-2)?.id ?? null, item: item.shown })
  }

  #turns(): Json | undefined {
    const { turn_detection: turns } = record(record(this.#session.audio).input)
    return isRecord(turns) ? turns : undefined
  }

  /** Zeros are silence. */
  #hear(sound: Buffer): void {
    const isSilent = sound.every((byte) => byte === 0)
    if (!isSilent && !this.#isSpeaking && this.#turns()) {
      this.#isSpeaking = true
      this.#buffer = 0
      this.#send('input_audio_buffer.speech_started', { audio_start_ms: this.#heardMs(), item_id: this.#id('item') })
      if (this.#turns()?.interrupt_response !== false) this.#running?.cancel('turn_detected')
    }
    this.#buffer += sound.length
    this.#heard += sound.length
    if (!isSilent || !this.#isSpeaking) return
    this.#isSpeaking = false
    this.#send('input_audio_buffer.speech_stopped', { audio_end_ms: this.#heardMs(), item_id: this.#id('item') })
    this.#commit()
    if (this.#turns()?.create_response !== false) void this.#respond({}, {})
  }

  #heardMs(): number {
    return Math.floor((this.#heard / SAMPLE_BYTES_PER_SECOND) * 1000)
  }

  #commit(): void {
    const id = this.#id('item')
    const seconds = this.#buffer / SAMPLE_BYTES_PER_SECOND
    const audio = Math.ceil(seconds * READ_TOKENS_PER_SECOND)
    this.#buffer = 0
    this.#send('input_audio_buffer.committed', { previous_item_id: this.#items.at(-1)?.id ?? null, item_id: id })
    const content = [{ type: 'input_audio', transcript: null }]
    const shown = { id, object: 'realtime.item', type: 'message', role: 'user', status: 'completed', content }
    this.#add({ id, shown, text: '', tokens: { text: 0, audio } })
    const { transcription } = record(record(this.#session.audio).input)
    if (isRecord(transcription)) this.#transcribe(id, seconds, transcription)
  }

  /** Whisper reports seconds, the others tokens. */
  #transcribe(item_id: string, seconds: number, { model }: Json): void {
    const at = { item_id, content_index: 0 }
    const transcript = 'A simulated transcript.'
    const [input, output_tokens] = [Math.ceil(seconds * READ_TOKENS_PER_SECOND), countTokens(transcript)]
    const tokens = { type: 'tokens', total_tokens: input + output_tokens, input_tokens: input, output_tokens }
    const usage =
      model === 'whisper-1'
        ? { type: 'duration', seconds }
        : { ...tokens, input_token_details: { text_tokens: 0, audio_tokens: input } }
    const type = 'conversation.item.input_audio_transcription'
    this.#send(`${type}.delta`, { ...at, delta: transcript })
    this.#send(`${type}.completed`, { ...at, transcript, usage })
  }

  async #respond(event: Json, asked: Json): Promise<void> {
    if (this.#running)
      return this.#refuse(
        event,
        'Conversation already has an active response.',
        'conversation_already_has_active_response',
      )
    const said = this.#items.at(-1)?.text ?? ''
    const triggers = readTriggers({ texts: [said], headers: {}, query: new URLSearchParams(), memory: new Memory() })
    if (triggers.status) return this.#refuse(event, `Simulated refusal ${triggers.status.name}.`)
    const response = new SimulatedResponse(this.#settings(asked), said, triggers)
    const id = this.#id('resp')
    let cancelled: string | undefined
    this.#running = {
      id,
      cancel(reason) {
        cancelled ??= reason
      },
    }
    const about = {
      id,
      object: 'realtime.response',
      status: 'in_progress',
      status_details: null,
      output: [],
      usage: null,
      max_output_tokens: response.cap,
      output_modalities: response.modalities,
      conversation_id: 'conv_sandbox',
    }
    this.#send('response.created', { response: about })
    const itemId = this.#id('item')
    const at = { response_id: id, item_id: itemId, output_index: 0, content_index: 0 }
    const item = {
      id: itemId,
      object: 'realtime.item',
      type: 'message',
      role: 'assistant',
      status: 'in_progress',
      content: [],
    }
    this.#send('response.output_item.added', { response_id: id, output_index: 0, item })
    for (const delta of response.deltas()) {
      await this.#pause(triggers.number('slow') ?? DELTA_MS)
      if (cancelled !== undefined || this.#socket.readyState !== this.#socket.OPEN) break
      if (triggers.has('cut') && response.made.text > 2) return this.#socket.terminate()
      for (const [type, text] of delta) this.#send(type, { ...at, delta: text })
    }
    const read = this.#read()
    const status = cancelled !== undefined ? 'cancelled' : response.isCut ? 'incomplete' : 'completed'
    const reason = cancelled ?? (response.isCut ? 'max_output_tokens' : undefined)
    const { speaks, said: text } = response
    const content = [speaks ? { type: 'output_audio', transcript: text } : { type: 'output_text', text }]
    const made: Item = { id: itemId, shown: { ...item, status: 'completed', content }, text, tokens: response.made }
    this.#items.push(made)
    this.#send('response.output_item.done', { response_id: id, output_index: 0, item: made.shown })
    this.#running = undefined
    const details = reason === undefined ? null : { type: status, reason }
    const usage = triggers.has('no-usage') ? null : this.#usage(read, response.made)
    this.#send('response.done', {
      response: { ...about, status, status_details: details, output: [made.shown], usage },
    })
    this.#send('rate_limits.updated', {
      rate_limits: [{ name: 'tokens', limit: 1000, remaining: 10, reset_seconds: 1 }],
    })
  }

  #settings(asked: Json): Json {
    return { ...this.#session, ...asked }
  }

  #read(): { text: number; audio: number } {
    const base = countTokens(string(this.#session.instructions)) + countTokens(JSON.stringify(this.#session.tools))
    const sum = (kind: 'text' | 'audio') => this.#items.reduce((all, { tokens }) => all + tokens[kind], 0)
    return { text: base + sum('text'), audio: sum('audio') }
  }

  #usage(read: { text: number; audio: number }, made: { text: number; audio: number }): Json {
    const cachedText = Math.min(read.text, this.#cachedTokens)
    this.#cachedTokens = read.text
    const [input, output] = [read.text + read.audio, made.text + made.audio]
    return {
      total_tokens: input + output,
      input_tokens: input,
      output_tokens: output,
      input_token_details: {
        text_tokens: read.text,
        audio_tokens: read.audio,
        image_tokens: 0,
        cached_tokens: cachedText,
        cached_tokens_details: { text_tokens: cachedText, audio_tokens: 0, image_tokens: 0 },
      },
      output_token_details: { text_tokens: made.text, audio_tokens: made.audio },
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#facts.world.after(ms / this.#facts.speed, resolve))
  }
}

const WORDS = 'This is a simulated answer about toll gates, which open when somebody has paid for the road. '

class SimulatedResponse {
  readonly cap: unknown
  readonly modalities: unknown
  readonly speaks: boolean
  readonly made = { text: 0, audio: 0 }
  said = ''
  isCut = false
  readonly #words: string[]
  readonly #most: number

  constructor(settings: Json, said: string, triggers: Triggers) {
    this.cap = settings.max_output_tokens
    this.modalities = settings.output_modalities ?? settings.modalities
    this.speaks = list(this.modalities).includes('audio')
    const long = triggers.number('long')
    const whole = long === undefined ? `You said: ${said.slice(0, 60)}. ${WORDS}` : WORDS.repeat(Math.ceil(long / 16))
    this.#words = whole
      .trim()
      .split(' ')
      .map((word) => `${word} `)
    this.#most = typeof this.cap === 'number' && !triggers.has('ignore-cap') ? this.cap : Number.POSITIVE_INFINITY
  }

  /** A word at a time, and of sound a fifth of a second with it. */
  *deltas(): Generator<(readonly [type: string, delta: string])[]> {
    for (const word of this.#words) {
      const audio = this.speaks ? SPOKEN_TOKENS_PER_SECOND / 5 : 0
      if (this.made.text + this.made.audio + 1 + audio > this.#most) {
        this.isCut = true
        return
      }
      this.made.text += 1
      this.made.audio += audio
      this.said += word
      yield this.speaks
        ? [
            ['response.output_audio_transcript.delta', word],
            ['response.output_audio.delta', TONE],
          ]
        : [['response.output_text.delta', word]]
    }
  }
}

const TONE = Buffer.alloc(SAMPLE_BYTES_PER_SECOND / 5, 7).toString('base64')

function itemOf(given: Json, id: string): Item {
  const parts = list(given.content).map(record)
  const text = parts.map((part) => string(part.text)).join(' ') || string(given.output)
  const bytes = parts.reduce((sum, part) => sum + Buffer.from(string(part.audio), 'base64').length, 0)
  const audio = Math.ceil((bytes / SAMPLE_BYTES_PER_SECOND) * READ_TOKENS_PER_SECOND)
  const shown = { id, object: 'realtime.item', status: 'completed', ...given }
  return { id: string(shown.id) || id, shown, text, tokens: { text: countTokens(text) + 4, audio } }
}

function merged(base: Json, over: Json): Json {
  const all: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(over)) {
    const known = all[name]
    all[name] = isRecord(known) && isRecord(value) ? merged(known, value) : value
  }
  return all
}
