// A Realtime session between a caller and a vendor, without its sockets: which events pass and how they are changed,
// and how much the next response will read. Responses are made by the gateway alone, so that each is held before the
// vendor begins it.
import { invalid } from '../../../kernel/fault.ts'
import { isObject, type Json, type JsonText, objectOf, objects, text } from '../../../kernel/json.ts'
import { readCount, type Usage } from '../../../meter/usage.ts'
import { measurePrompt } from '../../../protocols/text/prompt.ts'
import { SoundFormat, soundBytes } from './sound-format.ts'
import { Transcripts } from './transcripts.ts'

/**
 * The session settings that are passed on. Other settings of vendors would cost something without a price here, or use
 * the operator's resources: they are left out, because SDKs send some of them by default together with the
 * instructions, and `session.updated` names them.
 */
const SESSION = new Set([
  'type',
  'model',
  'instructions',
  'audio',
  'output_modalities',
  'modalities',
  'voice',
  'tools',
  'tool_choice',
  'temperature',
  'max_output_tokens',
  'max_response_output_tokens',
  'truncation',
  'reasoning',
  'speed',
  'include',
  'parallel_tool_calls',
  'input_audio_format',
  'output_audio_format',
  'input_audio_noise_reduction',
  'turn_detection',
  'input_audio_transcription',
])
/** Offered if the model has a price for them. */
const PRICED = new Set(['transcription', 'input_audio_transcription'])
const RESPONSE = new Set([
  'instructions',
  'audio',
  'output_modalities',
  'modalities',
  'voice',
  'tools',
  'tool_choice',
  'conversation',
  'max_output_tokens',
  'max_response_output_tokens',
  'metadata',
  'input',
  'temperature',
  'output_audio_format',
  'reasoning',
  'parallel_tool_calls',
  'prompt',
])

const PASSED = new Set([
  'input_audio_buffer.append',
  'input_audio_buffer.commit',
  'input_audio_buffer.clear',
  'response.cancel',
  'conversation.item.create',
  'conversation.item.delete',
  'conversation.item.truncate',
  'conversation.item.retrieve',
  'session.update',
  'response.create',
])

/** A token is a tenth of a second of input sound, and a twentieth of a second of output sound. */
const READ_PER_SECOND = 10
const SPOKEN_PER_SECOND = 20
const IMAGE_TOKENS = 2_000
const LEFT_OUT_MAX = 16

const wrong = (param: string, words: string) => invalid(`"${param}" ${words}`, param)

/** What a vendor's frame means for the session. */
interface Heard {
  /** The frame as the caller gets it; undefined: the caller does not get it. */
  readonly frame: string | undefined
  /** The caller has stopped speaking, and wants a response then. */
  readonly responds?: true
}

export class RealtimeSession {
  readonly #uid: string
  /** Tokens of the conversation so far. */
  #tokens = { text: 0, audio: 0, image: 0 }
  /** Of the instructions and tools. */
  #base = 0
  /** Tokens added since the last response was requested: that response may not have read them. */
  #since = { text: 0, audio: 0, image: 0 }
  /**
   * Tokens of all sound that was sent, and how much of it is part of the conversation or was discarded. Only the vendor
   * knows how much.
   */
  #sent = 0
  #taken = 0
  /** Where the caller stopped speaking. */
  #stopped: number | undefined
  /** The positions at which the caller asked to discard the sound so far. */
  #cleared: number | undefined
  /** Whether the caller wants responses when it stops speaking. */
  #responds = true
  /** The caller's own commits, which create no response. */
  #commits = 0
  #config: Json = {}
  readonly #input = new SoundFormat()
  readonly #output = new SoundFormat()
  /** The settings that the caller asked for and that are not offered. */
  readonly leftOut = new Set<string>()
  readonly transcripts = new Transcripts()
  readonly #isTranscribed: boolean

  /** `isTranscribed`: the model has a price for transcripts of the input. */
  constructor(uid: string, isTranscribed = false) {
    this.#uid = uid
    this.#isTranscribed = isTranscribed
  }

  /** The most seconds of sound that transcripts may have to be paid for. */
  get transcribedSeconds(): number {
    return this.transcripts.seconds((this.#sent - this.#taken) / READ_PER_SECOND)
  }

  /** The event by which the vendor stops to transcribe. */
  untranscribed(): string {
    this.transcripts.isOn = false
    const isOld = 'input_audio_transcription' in this.#config
    const off = isOld
      ? { input_audio_transcription: null }
      : { type: 'realtime', audio: { input: { transcription: null } } }
    return JSON.stringify({ type: 'session.update', session: off })
  }

  /**
   * The first event to the vendor: it must not create responses by itself. `given`: the session settings of a client
   * secret.
   */
  setUp(created: Json, given: Json): string {
    const session = objectOf(created.session)
    const isOld = session.audio === undefined && session.type !== 'realtime'
    const input = objectOf(objectOf(session.audio).input)
    const turns = { ...objectOf(isOld ? session.turn_detection : input.turn_detection), create_response: false }
    const silent = isOld ? { turn_detection: turns } : { type: 'realtime', audio: { input: { turn_detection: turns } } }
    const hasTurns = (isOld ? session.turn_detection : input.turn_detection) !== null
    const wanted = this.#checked({ ...given, ...(isOld ? {} : { type: 'realtime' }) })
    const update =
      hasTurns && !('turn_detection' in objectOf(objectOf(wanted.audio).input)) ? merged(silent, wanted) : wanted
    return JSON.stringify({ type: 'session.update', session: update })
  }

  /**
   * The caller's event for the vendor. Throws what is wrong with it. A `response.create` is checked, and made by the
   * gateway.
   */
  told({ value: event, text: sent }: JsonText): string {
    const { type } = event
    if (typeof type !== 'string' || !PASSED.has(type))
      throw wrong('type', `must be an event of the Realtime protocol that is offered here: ${[...PASSED].join(', ')}.`)
    switch (type) {
      case 'session.update': {
        const session = this.#checked(objectOf(event.session))
        this.#setFormats('tell', session)
        return JSON.stringify({ ...event, session })
      }
      case 'input_audio_buffer.append':
        this.#sent += this.#readTokens(event.audio)
        break
      case 'input_audio_buffer.commit':
        this.#commits += 1
        break
      case 'input_audio_buffer.clear':
        this.#cleared ??= this.#sent
        break
      case 'conversation.item.create':
        this.#add(event.item)
        break
      case 'response.create':
        checkResponse(objectOf(event.response))
    }
    return sent
  }

  #checked(session: Json): Json {
    checkPrompt(session, 'session')
    if (session.model !== undefined && session.model !== this.#uid)
      throw wrong('session.model', 'cannot be changed: open another WebSocket for another model.')
    if (session.type !== undefined && session.type !== 'realtime') throw wrong('session.type', 'must be "realtime".')
    const offers = (name: string) => this.#isTranscribed || !PRICED.has(name)
    const { model: _, ...rest } = this.#only((name) => SESSION.has(name) && offers(name), session)
    if (isObject(rest.audio) && isObject(rest.audio.input)) {
      const input = this.#only(offers, rest.audio.input, 'audio.input.')
      if ('transcription' in input) this.transcripts.isOn = isObject(input.transcription)
      if ('turn_detection' in input) input.turn_detection = this.#turns(input.turn_detection)
      rest.audio = { ...rest.audio, input }
    }
    if ('input_audio_transcription' in rest) this.transcripts.isOn = isObject(rest.input_audio_transcription)
    if ('turn_detection' in rest) rest.turn_detection = this.#turns(rest.turn_detection)
    if (Array.isArray(rest.tools))
      rest.tools = rest.tools.filter((tool) => isFunction(tool) || this.#leave(`tools.${objectOf(tool).type}`))
    return rest
  }

  /** The members that are offered. One that is null asks for nothing. */
  #only(offers: (name: string) => boolean, given: Json, at = ''): Json {
    const kept: Json = {}
    for (const [name, value] of Object.entries(given))
      if (offers(name)) kept[name] = value
      else if (value !== null) this.#leave(at + name)
    return kept
  }

  /** Names are the caller's, and go into a header. */
  #leave(name: string): false {
    if (this.leftOut.size < LEFT_OUT_MAX && /^[\w.]{1,60}$/.test(name)) this.leftOut.add(name)
    return false
  }

  #turns(given: unknown): unknown {
    if (!isObject(given)) {
      this.#responds = false
      return given
    }
    this.#responds = given.create_response !== false
    return { ...this.#only((name) => name !== 'idle_timeout_ms', given, 'turn_detection.'), create_response: false }
  }

  /** A vendor's event. */
  heard(event: Json, sent: string): Heard {
    switch (event.type) {
      case 'rate_limits.updated': // Those of the operator at the vendor.
        return { frame: undefined }
      case 'session.created':
      case 'session.updated':
        this.#setFormats('confirm', objectOf(event.session))
        return {
          frame: JSON.stringify({
            ...event,
            session: this.#shown(objectOf(event.session)),
            ...(this.leftOut.size > 0 ? { left_out: [...this.leftOut] } : {}),
          }),
        }
      case 'input_audio_buffer.speech_started':
        this.#take(tokensOf(event.audio_start_ms))
        break
      case 'input_audio_buffer.speech_stopped':
        this.#stopped = tokensOf(event.audio_end_ms)
        break
      case 'input_audio_buffer.cleared':
        this.#take(this.#cleared)
        this.#cleared = undefined
        break
      case 'input_audio_buffer.committed': {
        const tokens = this.#take(this.#stopped ?? this.#sent)
        this.#grow('audio', tokens)
        this.#stopped = undefined
        this.transcripts.committed(event.item_id, tokens / READ_PER_SECOND)
        if (this.#commits > 0) this.#commits -= 1
        else if (this.#responds) return { frame: sent, responds: true }
        break
      }
      case 'conversation.item.input_audio_transcription.completed':
        this.transcripts.completed(event)
        break
      case 'conversation.item.input_audio_transcription.failed':
        this.transcripts.failed(event)
        break
      case 'response.done':
        this.#report(objectOf(event.response))
    }
    return { frame: sent }
  }

  /** Sound up to there is no longer waiting. Returns how much that was. */
  #take(until = 0): number {
    const before = this.#taken
    this.#taken = Math.max(before, Math.min(until, this.#sent))
    return this.#taken - before
  }

  #grow(kind: 'text' | 'audio' | 'image', tokens: number): void {
    this.#tokens[kind] += Math.ceil(tokens)
    this.#since[kind] += Math.ceil(tokens)
  }

  /** The session as the caller asked for it. */
  #shown(session: Json): Json {
    this.#config = session
    if (this.#isTranscribed)
      this.transcripts.confirm(
        objectOf(objectOf(session.audio).input).transcription ?? session.input_audio_transcription,
      )
    const { most } = measurePrompt([session.instructions, session.tools], {})
    this.#base = most
    const shown: Json = { ...session, model: this.#uid }
    const turns = (given: unknown) => (isObject(given) ? { ...given, create_response: this.#responds } : given)
    if ('turn_detection' in session) shown.turn_detection = turns(session.turn_detection)
    const audio = objectOf(session.audio)
    const input = objectOf(audio.input)
    if ('turn_detection' in input)
      shown.audio = { ...audio, input: { ...input, turn_detection: turns(input.turn_detection) } }
    return shown
  }

  #report({ usage, conversation_id }: Json): void {
    if (!isObject(usage) || conversation_id === null) return
    const { input_token_details: read, output_token_details: made } = usage
    const of = (name: string) => (readCount(objectOf(read)[name]) ?? 0) + (readCount(objectOf(made)[name]) ?? 0)
    const { text: words, audio, image } = this.#since
    this.#tokens = {
      text: of('text_tokens') + words,
      audio: of('audio_tokens') + audio,
      image: of('image_tokens') + image,
    }
  }

  #add(item: unknown): void {
    const { content, ...rest } = objectOf(item)
    for (const part of objects(content)) {
      if (typeof part.audio === 'string') this.#grow('audio', this.#readTokens(part.audio))
      else if (part.type === 'input_image') this.#grow('image', IMAGE_TOKENS)
      else this.#grow('text', measurePrompt([part], {}).most)
    }
    this.#grow('text', measurePrompt([rest], {}).most)
  }

  /** Waiting sound may be read again in a new format: the protocol does not exclude it. */
  #setFormats(how: 'tell' | 'confirm', { audio, input_audio_format, output_audio_format }: Json): void {
    const before = this.#input.bytes
    this.#input[how](objectOf(objectOf(audio).input).format ?? input_audio_format)
    this.#output[how](objectOf(objectOf(audio).output).format ?? output_audio_format)
    const times = Math.max(1, before / this.#input.bytes)
    this.#sent += (this.#sent - this.#taken) * (times - 1)
  }

  #readTokens(sound: unknown): number {
    return ((text(sound)?.length ?? 0) * 0.75 * READ_PER_SECOND) / this.#input.bytes
  }

  /** What a response with these members reads and may write. */
  response(asked: Json, contextTokens: number): RealtimeTurn {
    this.#since = { text: 0, audio: 0, image: 0 }
    const own = isObject(asked) ? measurePrompt([asked.instructions, asked.tools, asked.input], {}).most : 0
    const audio = Math.min(contextTokens, Math.ceil(this.#tokens.audio + this.#sent - this.#taken))
    const image = Math.min(contextTokens - audio, this.#tokens.image)
    const input = Math.min(contextTokens - audio - image, this.#tokens.text + this.#base + own)
    const modalities =
      asked.output_modalities ?? asked.modalities ?? this.#config.output_modalities ?? this.#config.modalities
    const spoken = objectOf(objectOf(asked.audio).output).format ?? asked.output_audio_format
    const most = [asked, this.#config].map((one) => readCount(one.max_output_tokens ?? one.max_response_output_tokens))
    return {
      reads: { input, ...(audio > 0 ? { inputAudio: audio } : {}), ...(image > 0 ? { inputImage: image } : {}) },
      speaks: !Array.isArray(modalities) || modalities.includes('audio'),
      tokensMax: most[0] ?? most[1],
      // A vendor may leave the response's own format unheeded.
      bytesSpoken: Math.min(this.#output.bytes, soundBytes(spoken)) / SPOKEN_PER_SECOND,
    }
  }
}

export interface RealtimeTurn {
  readonly reads: Usage
  /** Its output may be sound. */
  readonly speaks: boolean
  /** The caller's own limit. */
  readonly tokensMax: number | undefined
  /** The bytes of a token of spoken sound. */
  readonly bytesSpoken: number
}

const tokensOf = (ms: unknown) => {
  const count = readCount(ms)
  return count === undefined ? undefined : (count / 1000) * READ_PER_SECOND
}

const isFunction = (tool: unknown) => objectOf(tool).type === 'function'

function checkResponse(given: Json): void {
  checkPrompt(given, 'response')
  for (const name of Object.keys(given))
    if (!RESPONSE.has(name)) throw wrong(`response.${name}`.slice(0, 80), 'is not offered here.')
  if (!objects(given.tools).every(isFunction)) throw wrong('response.tools', 'may be functions only.')
}

/** It holds the instructions, at the vendor: without it the session would not be the caller's. */
function checkPrompt({ prompt }: Json, at: string): void {
  if (prompt !== undefined && prompt !== null) throw wrong(`${at}.prompt`, 'is not offered here.')
}

/** Members of objects are merged; those of `over` win. */
function merged(base: Json, over: Json): Json {
  const all: Json = { ...base }
  for (const [name, value] of Object.entries(over)) {
    const known = all[name]
    all[name] = isObject(known) && isObject(value) ? merged(known, value) : value
  }
  return all
}
