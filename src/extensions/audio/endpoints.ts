// The audio endpoints: speech to text, and text to speech.
import * as z from 'zod'
import { schemaOf } from '../../catalog/body.ts'
import { having, type JsonSchema, list, loose, number, string } from '../../catalog/endpoint.ts'
import { defineEndpoints } from '../../catalog/generation.ts'

/** The largest request that vendors accept. */
const SPEECH_CHARS_MAX = 4096

/** Counts code points, as vendors do. */
export function countCharacters(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** The kinds of file that speech comes in, and what each is sent as. */
export const SPEECH_TYPES = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const
const SPEECH_FORMATS = Object.keys(SPEECH_TYPES) as (keyof typeof SPEECH_TYPES)[] // They are its keys.

export const speechBody = z
  .looseObject({
    model: z.string().describe('A model from GET /v1/models, such as alpha-speech-1.'),
    input: z
      .string()
      .min(1)
      .refine((text) => countCharacters(text) <= SPEECH_CHARS_MAX, {
        error: ({ input }) => `may have at most ${SPEECH_CHARS_MAX} characters, not ${countCharacters(String(input))}.`,
      })
      .meta({ maxLength: SPEECH_CHARS_MAX, description: 'What to say.' }),
    voice: z
      .union([z.string(), z.looseObject({})], 'the name of a voice')
      .describe('One of the model’s voices, such as alloy.'),
    // Instructions are not charged, so their length is limited.
    instructions: z.string().max(4096).nullish().describe('How to say it, where the model can be told.'),
    response_format: z.enum(SPEECH_FORMATS).nullish().meta({ default: 'mp3' }),
    speed: z.number().nullish().describe('From 0.25 to 4.'),
    stream_format: z.enum(['audio', 'sse']).nullish().meta({ default: 'audio' }),
  })
  .meta({ examples: [{ model: 'alpha-speech-1', input: 'The gate is open.', voice: 'alloy' }] })

const recording: JsonSchema = {
  type: 'string',
  contentMediaType: 'application/octet-stream',
  description:
    'The recording: wav, mp3 (mpga, mpeg), flac, ogg (oga, opus), mp4 (m4a) or webm, of 25 MB at most. In a quote, send `seconds` instead.',
}
export const TRANSCRIPT_FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const

const shared = {
  file: recording,
  model: { type: 'string', description: 'A model from GET /v1/models, such as alpha-transcribe-1.' },
  prompt: { type: 'string', description: 'Words that the model should expect, as a hint.' },
  response_format: {
    type: 'string',
    enum: TRANSCRIPT_FORMATS,
    default: 'json',
    description: 'Some models support only json; diarized_json says who speaks, if the model supports it.',
  },
  temperature: { type: ['number', 'string'], description: 'From 0 to 1.' },
}

const transcript = having('text', {
  text: string,
  usage: loose({ type: string, seconds: number }),
  duration: { type: ['number', 'string'] },
  words: list(loose({ word: string, start: number, end: number })),
  segments: list(loose({ id: { type: ['integer', 'string'] }, start: number, end: number, text: string })),
})

const speechToText = {
  tag: 'Audio',
  surface: 'responses',
  sells: 'transcription',
  largeBody: true,
  form: true,
} as const

export const AUDIO = defineEndpoints({
  transcriptions: {
    ...speechToText,
    route: 'POST /v1/audio/transcriptions',
    aliases: ['/alpha/audio/transcriptions', '/alpha/v1/audio/transcriptions'],
    streams: true,
    title: 'Transcription',
    description:
      'Transcribes a recording. The hold covers the longest recording that the file can contain; the seconds that the vendor reports are charged. An extension of the contract.',
    returns:
      '`{text, usage}`; a text for text, srt and vtt; with `stream: true` events `transcript.text.delta` and `transcript.text.done`.',
    body: {
      ...having('file model', {
        ...shared,
        language: { type: 'string', description: 'Of the recording, as two letters.' },
        stream: { type: ['boolean', 'string'], description: 'With json, text and diarized_json.' },
        'timestamp_granularities[]': {
          ...list({ type: 'string', enum: ['word', 'segment'] }),
          description: 'Which timestamps verbose_json has: `words`, `segments` or both; segments by default.',
        },
        'include[]': list(string),
      }),
      examples: [{ file: '@recording.wav', model: 'alpha-transcribe-1', language: 'en' }],
    },
    answer: transcript,
  },
  translations: {
    ...speechToText,
    route: 'POST /v1/audio/translations',
    aliases: ['/alpha/audio/translations', '/alpha/v1/audio/translations'],
    title: 'Translation into English',
    description: 'Translates a recording into English text. Priced like a transcription. An extension of the contract.',
    returns: '`{text, usage}`, or a text for text, srt and vtt.',
    body: { ...having('file model', shared), examples: [{ file: '@recording.wav', model: 'alpha-transcribe-1' }] },
    answer: transcript,
  },
  speech: {
    route: 'POST /v1/audio/speech',
    aliases: ['/alpha/audio/speech', '/alpha/v1/audio/speech'],
    tag: 'Audio',
    surface: 'responses',
    sells: 'speech',
    streams: true,
    gives: 'audio/*',
    title: 'Speech',
    description: 'Converts a text to speech. Priced by the character of `input`. An extension of the contract.',
    returns:
      'The sound, as it comes; with `stream_format: "sse"` events `speech.audio.delta` with base64 and `speech.audio.done`.',
    body: schemaOf(speechBody),
  },
})
