// Text into speech: the sound goes to the caller as it comes. Paid by the character of `input`, so that its price is known before.
import { INSTRUCTIONS_CHARS_MAX, SPEECH_CHARS_MAX } from '../../../catalog/audio.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { type JsonText, splice } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { Fields, isObject, mustBe } from '../../check.ts'
import type { Exchange, PaidRequest, Target } from '../../protocol.ts'
import { PassRelay } from '../../text/relay.ts'
import { readErrorBody } from '../../vendor-words.ts'
import { AudioObserver } from './events.ts'

const TYPES: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
}

export function readSpeechRequest(json: JsonText, uid: string): PaidRequest {
  const fields = new Fields(json)
  const input = fields.required('input')
  if (typeof input !== 'string') throw mustBe('input', 'a string', input)
  const characters = countCharacters(input)
  if (characters === 0) throw invalid('"input" must not be empty.', 'input')
  if (characters > SPEECH_CHARS_MAX)
    throw invalid(`"input" may have at most ${SPEECH_CHARS_MAX} characters, not ${characters}.`, 'input')
  // What is said beside the input is not charged, so that it has to be short.
  if ((fields.string('instructions') ?? '').length > INSTRUCTIONS_CHARS_MAX)
    throw invalid(`"instructions" may have at most ${INSTRUCTIONS_CHARS_MAX} characters.`, 'instructions')
  const voice = fields.required('voice')
  if (typeof voice !== 'string' && !isObject(voice)) throw mustBe('voice', 'the name of a voice', voice)
  fields.number('speed')
  const format = fields.string('response_format') ?? 'mp3'
  if (!Object.hasOwn(TYPES, format)) throw mustBe('response_format', `one of ${Object.keys(TYPES).join(', ')}`, format)
  const framing = fields.string('stream_format') ?? 'audio'
  if (framing !== 'audio' && framing !== 'sse') throw mustBe('stream_format', 'audio or sse', framing)
  const worst = { character: characters }
  return {
    product: uid,
    clientFormat: 'openai-speech',
    sent: json.text,
    stream: framing === 'sse',
    price: {},
    worst,
    open: (target) => openSpeech({ json, worst, events: framing === 'sse', type: TYPES[format] ?? '' }, target),
  }
}

/** As people count them, and vendors: a character beyond the first 65,536 is one. */
function countCharacters(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}

interface Wanted {
  readonly json: JsonText
  readonly worst: Usage
  readonly events: boolean
  readonly type: string
}

function openSpeech({ json, worst, events, type }: Wanted, target: Target): Exchange {
  return {
    call: {
      method: 'POST',
      url: `${target.baseUrl}/audio/speech`,
      headers: { 'content-type': 'application/json', accept: events ? 'text/event-stream' : '*/*' },
      body: splice(json, { replace: { model: JSON.stringify(target.model) } }),
    },
    answer(body, headers) {
      return { body, contentType: soundType(headers, type), usage: worst }
    },
    passesAsItComes: true,
    pass: (headers) => ({ contentType: soundType(headers, type), usage: worst }),
    ...(events ? { stream: () => new PassRelay(new AudioObserver(() => worst)) } : {}),
    said: readErrorBody,
  }
}

/** As the vendor says, or as was asked for; what is neither sound nor unnamed bytes is not what was paid for. */
function soundType(headers: Readonly<Record<string, string>>, wanted: string): string {
  const given = headers['content-type'] ?? ''
  if (/^audio\/[\w.+-]{1,40}(?:;[ \w=.-]{0,60})?$/i.test(given)) return given
  if (given === '' || /^application\/octet-stream/i.test(given)) return wanted
  throw new Fault('upstream_garbled', { internal: { why: 'the answer is no sound', contentType: given.slice(0, 60) } })
}
