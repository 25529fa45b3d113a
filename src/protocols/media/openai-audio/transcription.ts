// Speech to text: transcriptions, and translations into English. The form is forwarded unchanged except for the model's name. It is charged by
// the second: the hold covers the longest audio that the file can contain, and the charge is what the vendor reports.
import { TRANSCRIPT_FORMATS } from '../../../catalog/audio.ts'
import type { ModelOf } from '../../../catalog/document.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import type { JsonText } from '../../../kernel/json.ts'
import { readCount, type Usage } from '../../../meter/usage.ts'
import type { AudioFacts } from '../../../parsers/audio-file.ts'
import { Fields, type Json, mustBe, objectOf, text, wrong } from '../../check.ts'
import { type Answer, type Exchange, garbled, type OpenOptions, type PaidRequest, type Target } from '../../protocol.ts'
import { PassRelay, readWhole, WholeRelay } from '../../text/relay.ts'
import { readErrorBody } from '../../vendor-words.ts'
import { AudioObserver, unrollTranscript } from './events.ts'
import type { AudioFile } from './form.ts'

/** Whether the output is in the original language or in English. */
type Work = 'transcriptions' | 'translations'

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
  { json, file, work }: { json: JsonText; file: AudioFile | undefined; work: Work },
  uid: string,
  model?: Pick<ModelOf<'transcription'>, 'traits'>,
): PaidRequest {
  const fields = new Fields(json)
  for (const [name, value] of Object.entries(json.value))
    if (file && (name.length > NAME_CHARS_MAX || /["\r\n\0]/.test(name)))
      throw invalid(`"${name.slice(0, 60)}" is no name of a field.`)
    else if (file && /ur[il]$/i.test(name))
      throw invalid(`"${name}": the recording comes as "file", because it is paid by what stands in that.`, name)
    else if (Array.isArray(value) && !name.endsWith('[]')) throw mustBe(name, 'a text', value)
  const format = fields.string('response_format') ?? 'json'
  if (!isFormat(format)) throw mustBe('response_format', `one of ${TRANSCRIPT_FORMATS.join(', ')}`, format)
  const stream = readFlag(fields.get('stream'))
  if (stream && format !== 'json' && format !== 'text' && format !== 'diarized_json')
    throw wrong('stream', `goes with the response_format json, text or diarized_json, not ${format}.`)
  const secondsMax = model?.traits.secondsMax ?? Number.POSITIVE_INFINITY
  const { secondsMost, secondsLikely, secondsPossible } = file ? file.facts : quotedFacts(fields)
  const worst = { second: Math.ceil(Math.min(secondsMost, secondsMax)) }
  const usageOf = (value: Json) => secondsOf(value, Math.ceil(Math.min(secondsPossible, secondsMax)))
  const wanted: Wanted = { work, format, stream, fields: json.value, usageOf }
  return {
    product: uid,
    clientFormat: 'openai-audio',
    sent: json.text,
    stream,
    price: {},
    worst,
    likely(outputTokens) {
      // The file's own length may be wrong, but the transcribed text needs a minimum time.
      const heard = (outputTokens * CHARS_PER_TOKEN) / CHARS_PER_SECOND
      return { second: Math.min(Math.max(1, Math.ceil(secondsLikely), Math.floor(heard)), worst.second) }
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

/** The vendor's report, capped at the possible maximum. */
function secondsOf({ usage, duration }: Json, most: number): Usage | undefined {
  const reported = objectOf(usage)
  const details = objectOf(reported.input_token_details)
  const tokens = readCount(details.audio_tokens)
  const seconds =
    positive(reported.seconds) ?? positive(duration) ?? (tokens === undefined ? undefined : tokens / TOKENS_PER_SECOND)
  return seconds === undefined ? undefined : { second: Math.min(Math.ceil(seconds), most) }
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
  const part = (name: string, value: unknown) =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const { response_format: given, stream: _, model: __, ...others } = wanted.fields
  const fields = Object.entries(others).flatMap(([name, value]) => [value].flat().map((one) => part(name, one)))
  return [
    part('model', model),
    ...(given === undefined ? [] : [part('response_format', formatAsked(wanted))]),
    ...(wanted.stream ? [part('stream', 'true')] : []),
    ...fields,
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${file.name}"\r\ncontent-type: ${file.type}\r\n\r\n`,
    ...file.pieces,
    `\r\n--${boundary}--\r\n`,
  ]
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
