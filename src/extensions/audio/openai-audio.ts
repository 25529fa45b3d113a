// Speech to text: transcriptions, and translations into English. The form is forwarded unchanged except for the model's
// name. It is charged by the second: the hold covers the longest audio that the file can contain, and the charge is
// what the vendor reports.
import type { Model } from '../../catalog/document.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isObject, type Json, type JsonText, objectOf, readJson, text } from '../../kernel/json.ts'
import { readCount, type Usage } from '../../meter/usage.ts'
import { Fields, mustBe, readBody, wrong } from '../../protocols/check.ts'
import {
  type FormFile,
  type FormHeaders,
  type FormRules,
  onlyFile,
  readForm,
  writeForm,
} from '../../protocols/media/form.ts'
import {
  type Answer,
  type Exchange,
  garbled,
  jsonCall,
  type OpenOptions,
  type PaidRequest,
  type Target,
} from '../../protocols/protocol.ts'
import { dataOf, Observer, PassRelay, readData, readWhole, WholeRelay } from '../../protocols/text/relay.ts'
import { openaiError, vendorFault } from '../../protocols/vendor-fault.ts'
import { readErrorBody } from '../../protocols/vendor-words.ts'
import { bytesToText, encodeComment, encodeJson } from '../../upstream/sse.ts'
import { AUDIO_EDGE_BYTES, type AudioFacts, readAudioFacts } from './audio-file.ts'
import { countCharacters, SPEECH_TYPES, speechBody, TRANSCRIPT_FORMATS } from './endpoints.ts'

/** Whether the output is in the original language or in English. */
export type Work = 'transcriptions' | 'translations'

type Format = (typeof TRANSCRIPT_FORMATS)[number]
const TEXT_TYPE = 'text/plain; charset=utf-8'
/** Audio tokens per second, for vendors that count tokens. */
const TOKENS_PER_SECOND = 10
/** An upper bound of how fast people speak. */
const CHARS_PER_SECOND = 25
/** The same ratio as in counting streamed output. */
const CHARS_PER_TOKEN = 4
const NAME_CHARS_MAX = 100

interface Wanted {
  readonly work: Work
  readonly format: Format
  readonly stream: boolean
  readonly fields: Json
  readonly usageOf: (value: Json) => Usage | undefined
}

/** Without a file it is a quote, and `seconds` takes the place of the file. */
export function readTranscriptionRequest(
  { json, file: sent, work }: { json: JsonText; file: FormFile | undefined; work: Work },
  uid: string,
  model?: Model,
): PaidRequest {
  const file = sent && audioIn(sent)
  const fields = new Fields(json)
  for (const [name, value] of Object.entries(json.value))
    if (file && (name.length > NAME_CHARS_MAX || /["\r\n\0]/.test(name)))
      throw invalid(`"${name.slice(0, 60)}" is not a valid field name.`)
    else if (file && /ur[il]$/i.test(name))
      throw invalid(`"${name}": send the recording as "file". The charge depends on its contents.`, name)
    else if (Array.isArray(value) && !name.endsWith('[]')) throw mustBe(name, 'a text', value)
  const format = fields.string('response_format') ?? 'json'
  if (!isFormat(format)) throw mustBe('response_format', `one of ${TRANSCRIPT_FORMATS.join(', ')}`, format)
  const stream = readFlag(fields.get('stream'))
  if (stream && format !== 'json' && format !== 'text' && format !== 'diarized_json')
    throw wrong('stream', `goes with the response_format json, text or diarized_json, not ${format}.`)
  const { secondsMin = 1, secondsMax = Number.POSITIVE_INFINITY } =
    model?.enabled && model.type === 'transcription' ? model.traits : {}
  const { secondsMost, secondsLikely, secondsPossible } = file ? file.facts : quotedFacts(fields)
  const worst = { second: Math.max(secondsMin, Math.ceil(Math.min(secondsMost, secondsMax))) }
  const most = { second: Math.max(secondsMin, Math.ceil(Math.min(secondsPossible, secondsMax))) }
  const usageOf = (value: Json) => secondsOf(value, secondsMin)
  const wanted: Wanted = { work, format, stream, fields: json.value, usageOf }
  return {
    product: uid,
    clientFormat: 'openai-audio',
    sent: json.text,
    stream,
    price: {},
    worst,
    // No decoder gets more out of the file.
    most,
    likely(outputTokens) {
      // The file's own length may be wrong, but the transcribed text needs a minimum time.
      const heard = (outputTokens * CHARS_PER_TOKEN) / CHARS_PER_SECOND
      return { second: Math.min(Math.max(secondsMin, Math.ceil(secondsLikely), Math.floor(heard)), worst.second) }
    },
    open(target, options) {
      if (!file) throw new Fault('internal', { internal: { why: 'a quote was opened' } })
      return openTranscription(wanted, file, target, options)
    },
  }
}

function isFormat(value: string): value is Format {
  return TRANSCRIPT_FORMATS.some((format) => format === value)
}

/** Form fields are always text. */
function readFlag(value: unknown): boolean {
  if (value === undefined || value === false || value === 'false' || value === '') return false
  if (value === true || value === 'true') return true
  throw mustBe('stream', 'true or false', value)
}

function quotedFacts(fields: Fields): Omit<AudioFacts, 'type'> {
  const seconds = fields.number('seconds')
  if (seconds === undefined || seconds <= 0)
    throw wrong('seconds', 'is required in a quote: how long the recording is, instead of the "file".')
  return { secondsMost: seconds, secondsLikely: seconds, secondsPossible: seconds }
}

/** The vendor's report; it bills a minimum. */
function secondsOf({ usage, duration }: Json, least: number): Usage | undefined {
  const reported = objectOf(usage)
  const details = objectOf(reported.input_token_details)
  const tokens = readCount(details.audio_tokens)
  const seconds =
    positive(reported.seconds) ?? positive(duration) ?? (tokens === undefined ? undefined : tokens / TOKENS_PER_SECOND)
  return seconds === undefined ? undefined : { second: seconds === 0 ? 0 : Math.max(Math.ceil(seconds), least) }
}

/** Some vendors send the duration as text. */
function positive(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{1,9}(\.\d{1,9})?$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined
}

function openTranscription(wanted: Wanted, file: AudioFile, target: Target, options: OpenOptions): Exchange {
  const { work, stream, usageOf } = wanted
  const { requestId, guard } = options
  // The caller learns the request id only with the answer, so no file can contain the boundary on purpose.
  const boundary = `tollgate-${requestId}`
  return {
    call: {
      method: 'POST',
      url: `${target.baseUrl}/audio/${work}`,
      headers: {
        'content-type': `multipart/form-data; boundary=${boundary}`,
        accept: stream ? 'text/event-stream' : '*/*',
      },
      body: formPieces(wanted, file, { model: target.model, boundary }),
    },
    answer: (body) => readTranscript(body, wanted),
    ...(stream
      ? {
          stream: (headers: Readonly<Record<string, string>>) => {
            const relay = new PassRelay(new AudioObserver(usageOf))
            const events = /json/i.test(headers['content-type'] ?? '') ? new WholeRelay(relay, unrollTranscript) : relay
            return guard ? guard.relay(events) : events
          },
        }
      : {}),
    vendorError: readErrorBody,
  }
}

/** Plain text carries no usage, so the vendor is asked for JSON, which does. */
function formatAsked({ format }: Wanted): Format {
  return format === 'text' ? 'json' : format
}

function formPieces(
  wanted: Wanted,
  file: AudioFile,
  { model, boundary }: { model: string; boundary: string },
): (string | Buffer)[] {
  const { response_format: given, stream: _, model: __, ...others } = wanted.fields
  const fields: [name: string, value: unknown][] = [['model', model]]
  if (given !== undefined) fields.push(['response_format', formatAsked(wanted)])
  if (wanted.stream) fields.push(['stream', true])
  for (const [name, value] of Object.entries(others)) for (const one of [value].flat()) fields.push([name, one])
  return writeForm(boundary, fields, [{ ...file, name: 'file', fileName: file.name }])
}

function readTranscript(body: Buffer, { format, usageOf }: Wanted): Answer {
  if (format === 'srt' || format === 'vtt') {
    // The only JSON possible here is an error reported with status 200.
    if (body[0] === 0x7b) throw garbled(`JSON in answer to a request for ${format}`)
    const contentType = format === 'vtt' ? 'text/vtt; charset=utf-8' : TEXT_TYPE
    return { body, contentType, usage: undefined, outputChars: lastCueSeconds(body) * CHARS_PER_SECOND }
  }
  const { value } = readWhole(body, 'utf8')
  const said = text(value.text)
  if (said === undefined) throw garbled('the answer has no text')
  const usage = usageOf(value)
  const outputChars = said.length
  if (format === 'text') return { body: `${said}\n`, contentType: TEXT_TYPE, usage, outputChars }
  return { body, contentType: 'application/json', usage, outputChars }
}

/** The end time of the last subtitle. */
function lastCueSeconds(body: Buffer): number {
  const at = body.lastIndexOf('-->')
  const end = at < 0 ? '' : body.toString('latin1', at + 3, at + 33)
  const [, hours = 0, minutes, seconds] = /^\s*(?:(\d{1,3}):)?(\d\d):(\d\d[.,]\d{1,3})/.exec(end) ?? []
  if (minutes === undefined || seconds === undefined) return 0
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds.replace(',', '.'))
}

// The events of a streamed transcription or of streamed speech. They are relayed as they come; the last one waits for
// the settlement.

const DONE = new Set(['transcript.text.done', 'speech.audio.done'])
const PIECE = new Set(['transcript.text.delta', 'transcript.text.segment', 'speech.audio.delta'])

class AudioObserver extends Observer {
  readonly keepAlive = ': ping\n'
  usage: Usage | undefined
  private readonly usageOf: (done: Json) => Usage | undefined
  private held = ''

  constructor(usageOf: (done: Json) => Usage | undefined) {
    super()
    this.usageOf = usageOf
  }

  see(block: string): string {
    if (this.terminal || this.fault) return ''
    const data = dataOf(block)
    if (data.trim() === '[DONE]') return ''
    // Only the beginning of an audio event is read: the type is there, and the rest is long.
    const type = /"type"\s*:\s*"([\w.]{1,60})"/.exec(data.slice(0, TYPE_CHARS))?.[1]
    if (type !== undefined && PIECE.has(type)) {
      this.output.addBytes(type === 'transcript.text.delta' ? charsOf(data) : data.length)
      return block
    }
    const value = readData(bytesToText(data))
    if (!isObject(value)) return ''
    if (value.type === 'error' || isObject(value.error)) {
      this.fault = vendorFault(isObject(value.error) ? value.error : value)
      return ''
    }
    if (!DONE.has(text(value.type) ?? '')) return block
    this.usage = this.usageOf(value)
    this.held = block
    this.terminal = true
    return ''
  }

  finish(comment: string): string {
    return encodeComment(comment) + bytesToText(this.held)
  }

  fail(fault: Fault, requestId: string): string {
    const { code, message } = fault
    return encodeJson({ type: 'error', error: openaiError(fault), code, message, requestId }, 'error')
  }
}

const TYPE_CHARS = 200

/** Counts the text only: its length shows how long the audio was. */
function charsOf(data: string): number {
  const value = readData(bytesToText(data))
  return isObject(value) ? (text(value.delta)?.length ?? 0) : 0
}

/** Turns a whole transcript into stream events, for vendors that do not stream. */
function unrollTranscript(value: Json): string {
  const said = text(value.text) ?? ''
  const { usage, duration } = value
  const done = {
    type: 'transcript.text.done',
    text: said,
    ...(usage ? { usage } : {}),
    ...(duration ? { duration } : {}),
  }
  return encodeJson({ type: 'transcript.text.delta', delta: said }) + encodeJson(done)
}

// Text to speech: the audio is relayed to the caller as it comes. It is charged by the character of `input`, so the
// price is known before the call.

export function readSpeechRequest(json: JsonText, uid: string): PaidRequest {
  const { input, response_format, stream_format } = readBody(speechBody, json)
  const worst = { character: countCharacters(input) }
  const events = stream_format === 'sse'
  const type = SPEECH_TYPES[response_format ?? 'mp3']
  return {
    product: uid,
    clientFormat: 'openai-speech',
    sent: json.text,
    stream: events,
    price: {},
    worst,
    open: (target) => openSpeech({ json, worst, events, type }, target),
  }
}

function openSpeech(
  { json, worst, events, type }: { json: JsonText; worst: Usage; events: boolean; type: string },
  target: Target,
): Exchange {
  return {
    call: jsonCall('/audio/speech', json, target, events ? 'text/event-stream' : '*/*'),
    answer(body, headers) {
      return { body, contentType: soundType(headers, type), usage: worst }
    },
    passesAsItComes: true,
    pass: (headers) => ({ contentType: soundType(headers, type), usage: worst }),
    ...(events ? { stream: () => new PassRelay(new AudioObserver(() => worst)) } : {}),
    vendorError: readErrorBody,
  }
}

/** The vendor's audio type or, for unspecified bytes, the requested one. Any other type is not a valid answer. */
function soundType(headers: Readonly<Record<string, string>>, wanted: string): string {
  const given = headers['content-type'] ?? ''
  if (/^audio\/[\w.+-]{1,40}(?:;[ \w=.-]{0,60})?$/i.test(given)) return given
  if (given === '' || /^application\/octet-stream/i.test(given)) return wanted
  throw new Fault('upstream_garbled', { internal: { why: 'the answer is no sound', contentType: given.slice(0, 60) } })
}

// The form of a transcription: one recording and some fields.

const MB = 1_048_576
const AUDIO_BYTES_MAX = 25 * MB
/** Limit for everything except the file. */
const FIELDS_BYTES_MAX = MB
/** Includes the boundaries between the parts. */
const BODY_BYTES_MAX = AUDIO_BYTES_MAX + FIELDS_BYTES_MAX + 262_144
const FILE_NAME_CHARS_MAX = 200

interface AudioFile extends Pick<FormFile, 'pieces' | 'bytes'> {
  readonly name: string
  readonly type: string
  readonly facts: AudioFacts
}

interface AudioForm {
  /** The fields, each a text or a list of texts. */
  readonly json: JsonText
  readonly file: FormFile
  /** A digest of the form's content, not of its bytes: a client that retries chooses another boundary. */
  readonly digest: string
}

export async function readAudioForm(stream: AsyncIterable<Buffer>, headers: FormHeaders): Promise<AudioForm> {
  const { fields, files, digest } = await readForm(stream, headers, RULES)
  const [file] = files
  if (!file) throw invalid('"file" is required: the recording, as a file of the form.', 'file')
  return { json: readJson(Buffer.from(JSON.stringify(fields))), file, digest }
}

function audioIn({ head, pieces, bytes }: FormFile): AudioFile {
  const edge = Math.min(bytes, AUDIO_EDGE_BYTES)
  const facts = readAudioFacts(sliceOf(pieces, 0, edge), sliceOf(pieces, bytes - edge, bytes), bytes)
  if (!facts)
    throw invalid(
      '"file" must be a recording that can be read: wav, mp3 (mpga, mpeg), flac, ogg (oga, opus), mp4 (m4a) or webm.',
      'file',
    )
  const type = TYPE.test(head.type) ? head.type : `audio/${facts.type}`
  return { pieces, bytes, name: fileName(head.filename ?? '', facts), type, facts }
}

const RULES: FormRules = {
  takes: 'Send a form with "Content-Type: multipart/form-data": the recording as "file", and "model".',
  bodyBytesMax: BODY_BYTES_MAX,
  fieldsBytesMax: FIELDS_BYTES_MAX,
  fileNames: ['file'],
  tooLarge,
  checkFile: onlyFile('file'),
  checkBytes(_head, bytes) {
    if (bytes > AUDIO_BYTES_MAX) throw tooLarge()
  },
}

const TYPE = /^[a-z]{1,20}\/[a-z0-9.+-]{1,60}$/

/** Vendors detect the format by the file extension, so a file without one gets it. */
function fileName(name: string, { type }: AudioFacts): string {
  const plain = name
    .replaceAll(/[^\x20-\x7e]|["\\/]/g, '_')
    .slice(-FILE_NAME_CHARS_MAX)
    .trim()
  return /\.[a-z0-9]{2,5}$/i.test(plain) ? plain : `${plain || 'audio'}.${type}`
}

function sliceOf(pieces: readonly Buffer[], from: number, to: number): Buffer {
  const found: Buffer[] = []
  let at = 0
  for (const piece of pieces) {
    if (at + piece.length > from && at < to) found.push(piece.subarray(Math.max(0, from - at), to - at))
    at += piece.length
  }
  return Buffer.concat(found)
}

function tooLarge(): Fault {
  return new Fault('request_too_large', {
    message: `The form is too large: at most ${AUDIO_BYTES_MAX / MB} MB of audio and ${FIELDS_BYTES_MAX / MB} MB of everything else.`,
  })
}
