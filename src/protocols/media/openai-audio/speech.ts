// Text to speech: the audio is relayed to the caller as it comes. It is charged by the character of `input`, so the price is known before the
// call.
import { countCharacters, SPEECH_TYPES, speechBody } from '../../../catalog/audio.ts'
import { Fault } from '../../../kernel/fault.ts'
import type { JsonText } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { readBody } from '../../check.ts'
import { type Exchange, jsonCall, type PaidRequest, type Target } from '../../protocol.ts'
import { PassRelay } from '../../text/relay.ts'
import { readErrorBody } from '../../vendor-words.ts'
import { AudioObserver } from './events.ts'

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

interface Wanted {
  readonly json: JsonText
  readonly worst: Usage
  readonly events: boolean
  readonly type: string
}

function openSpeech({ json, worst, events, type }: Wanted, target: Target): Exchange {
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
