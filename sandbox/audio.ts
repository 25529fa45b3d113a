// Sound: recordings are "heard" as sentences that depend on their bytes alone, and texts are read aloud as tones of a
// real WAV.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AudioFacts, readAudioFacts } from '../src/extensions/audio/audio-file.ts'
import { isRecord, type Json, parseJson, string } from './json.ts'
import { misbehave, sendWhole } from './misbehave.ts'
import { FormError, type FormPart, readForm } from './multipart.ts'
import { invalid, missing, openaiError, Refusal } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import { dice, hash } from './seed.ts'
import { EventStream } from './stream.ts'
import { readTriggers, type Triggers, withoutTriggers } from './trigger.ts'
import { SAMPLES_PER_SECOND, wavFile } from './wav.ts'

const SENTENCES = [
  'The gate is open.',
  'Please have your toll ready.',
  'The bridge is closed until noon.',
  'A boat passes under the bridge.',
  'Thank you, and have a safe journey.',
] as const
const FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json']
const SEGMENTS_MAX = 20
const SEGMENT_SECONDS = 4

export const transcriptionRoom: Room = {
  name: 'openai-audio',
  match: (method, path) => method === 'POST' && /^\/openai(\/v1)?\/audio\/(transcriptions|translations)$/.test(path),
  serve: (req, res, ctx) => guarded(ctx, () => transcribe(req, res, ctx)),
}

export const speechRoom: Room = {
  name: 'openai-speech',
  match: (method, path) => method === 'POST' && /^\/openai(\/v1)?\/audio\/speech$/.test(path),
  serve: (_req, res, ctx) => guarded(ctx, () => speak(res, ctx)),
}

async function guarded(ctx: RoomContext, serve: () => Promise<void>): Promise<void> {
  try {
    await serve()
  } catch (error) {
    if (error instanceof Refusal) return ctx.refuse(error, openaiError)
    if (!(error instanceof FormError)) throw error
    ctx.json(400, openaiError(400, `Could not parse multipart form: ${error.message}.`))
  }
}

interface Heard {
  readonly facts: AudioFacts
  readonly segments: readonly { id: number; start: number; end: number; text: string }[]
  readonly text: string
}

async function transcribe(req: IncomingMessage, res: ServerResponse, ctx: RoomContext): Promise<void> {
  const parts = await readForm(req, string(req.headers['content-type']))
  ctx.call.bodyBytes = parts.reduce((sum, part) => sum + part.bytes, 0)
  const file = parts.find(({ name }) => name === 'file')
  const fields = Object.fromEntries(
    parts.filter((part) => part !== file).map(({ name, head }) => [name, head.toString('utf8')]),
  )
  ctx.call.body = JSON.stringify({
    ...fields,
    file: file && { filename: file.filename, type: file.type, bytes: file.bytes },
  })
  ctx.call.model = string(fields.model)
  ctx.call.stream = fields.stream === 'true'
  const texts = [string(fields.prompt), string(fields.model)]
  const triggers = readTriggers({ texts, headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
  if (await misbehave(res, ctx, triggers, openaiError)) return
  if (!file) throw missing('file')
  const format = fields.response_format ?? 'json'
  if (!FORMATS.includes(format)) throw invalid(`Invalid 'response_format': ${format}.`, 'response_format', null)
  const heard = listen(file)
  const usage = usageOf(heard, triggers)
  if (ctx.call.stream && !triggers.has('no-stream')) return streamTranscript(res, ctx, heard, { triggers, usage })
  // In forms a list is a name that ends in brackets, given as often as the list is long.
  const named = parts
    .filter(({ name }) => name === 'timestamp_granularities[]')
    .map(({ head }) => head.toString('utf8'))
  const said = written(heard, format, { usage, granularities: named.length > 0 ? named : ['segment'] })
  if (typeof said !== 'string') return sendWhole(res, ctx, triggers, said)
  res.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(said)
}

function listen({ head, bytes }: FormPart): Heard {
  const facts = readAudioFacts(head, head, bytes)
  if (!facts) throw invalid('Invalid file format.', 'file', 'invalid_value')
  const chance = dice(hash(head.toString('latin1')))
  const count = Math.min(SEGMENTS_MAX, Math.max(1, Math.ceil(facts.secondsLikely / SEGMENT_SECONDS)))
  const each = facts.secondsLikely / count
  const segments = Array.from({ length: count }, (_, id) => ({
    id,
    start: rounded(id * each),
    end: rounded((id + 1) * each),
    text: chance.pick(SENTENCES),
  }))
  return { facts, segments, text: segments.map(({ text }) => text).join(' ') }
}

const rounded = (seconds: number) => Math.round(seconds * 1000) / 1000

function usageOf({ facts }: Heard, triggers: Triggers): Json {
  if (triggers.has('no-usage')) return {}
  const tokens = Math.ceil(facts.secondsLikely * 10)
  if (triggers.has('tokens'))
    return {
      usage: { type: 'tokens', input_tokens: tokens, input_token_details: { text_tokens: 0, audio_tokens: tokens } },
    }
  return { usage: { type: 'duration', seconds: triggers.number('bad-usage') ?? Math.ceil(facts.secondsLikely) } }
}

/** Each word of a segment takes a share of its time by its length. */
function wordsOf({ segments }: Heard): Json[] {
  return segments.flatMap(({ start, end, text }) => {
    const each = (end - start) / (text.length + 1)
    return [...text.matchAll(/[\p{L}\p{N}'’-]+/gu)].map(({ 0: word, index }) => ({
      word,
      start: rounded(start + index * each),
      end: rounded(start + (index + word.length) * each),
    }))
  })
}

interface Wish {
  readonly usage: Json
  /** To what times are given, in verbose_json. */
  readonly granularities: readonly string[]
}

function written(heard: Heard, format: string, { usage, granularities }: Wish): Json | string {
  const { facts, segments, text } = heard
  const duration = Object.keys(usage).length > 0 ? { duration: rounded(facts.secondsLikely) } : {}
  switch (format) {
    case 'text':
      return `${text}\n`
    case 'srt':
      return segments
        .map(({ id, text, ...at }) => `${id + 1}\n${clock(at.start, ',')} --> ${clock(at.end, ',')}\n${text}\n`)
        .join('\n')
    case 'vtt':
      return `WEBVTT\n\n${segments.map(({ text, start, end }) => `${clock(start, '.')} --> ${clock(end, '.')}\n${text}\n`).join('\n')}`
    case 'verbose_json':
      return {
        task: 'transcribe',
        language: 'english',
        ...duration,
        text,
        ...(granularities.includes('word') ? { words: wordsOf(heard) } : {}),
        ...(granularities.includes('segment') ? { segments } : {}),
        ...usage,
      }
    case 'diarized_json':
      return {
        task: 'transcribe',
        ...duration,
        text,
        segments: segments.map((one) => ({
          type: 'transcript.text.segment',
          ...one,
          id: `seg_${one.id}`,
          speaker: one.id % 2 ? 'B' : 'A',
        })),
        ...usage,
      }
    default:
      return { text, ...usage }
  }
}

function clock(seconds: number, mark: string): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  const milliseconds = String(Math.round((seconds % 1) * 1000)).padStart(3, '0')
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}${mark}${milliseconds}`
}

async function streamTranscript(
  res: ServerResponse,
  ctx: RoomContext,
  { segments, text }: Heard,
  { triggers, usage }: { triggers: Triggers; usage: Json },
): Promise<void> {
  const stream = new EventStream(res, ctx, triggers)
  for (const [place, one] of segments.entries())
    await stream.data({ type: 'transcript.text.delta', delta: place === 0 ? one.text : ` ${one.text}` })
  if (triggers.has('stream-error'))
    await stream.data({
      type: 'error',
      error: { message: 'The server had an error (simulated).', type: 'server_error' },
    })
  else await stream.data({ type: 'transcript.text.done', text, ...usage })
  stream.end()
}

const SAMPLES_PER_CHARACTER = 400
const PIECE_BYTES = 4_096

async function speak(res: ServerResponse, ctx: RoomContext): Promise<void> {
  const body = parseJson((await ctx.body()).toString('utf8'))
  if (!isRecord(body)) throw new Refusal(400, 'We could not parse the JSON body of your request.')
  ctx.call.model = string(body.model)
  const texts = [string(body.input), string(body.instructions), string(body.model)]
  const triggers = readTriggers({ texts, headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
  if (await misbehave(res, ctx, triggers, openaiError)) return
  const input = withoutTriggers(string(body.input))
  if (string(body.voice) === '' && !isRecord(body.voice)) throw missing('voice')
  const sound = tones(input)
  // No encoder is here: whatever is asked for, it is a WAV, or its bare samples.
  const bytes = body.response_format === 'pcm' ? sound : wavFile(sound)
  const isEvents = body.stream_format === 'sse'
  const type = body.response_format === 'pcm' ? 'audio/pcm' : 'audio/wav'
  const stream = new EventStream(res, ctx, triggers, isEvents ? {} : { 'content-type': type })
  for (let at = 0; at < bytes.length && !stream.over; at += PIECE_BYTES) {
    const piece = bytes.subarray(at, at + PIECE_BYTES)
    await (isEvents
      ? stream.data({ type: 'speech.audio.delta', audio: piece.toString('base64') })
      : stream.write(piece))
  }
  if (isEvents) {
    const tokens = Math.ceil(input.length / 4)
    const usage = { input_tokens: tokens, output_tokens: tokens * 5, total_tokens: tokens * 6 }
    await stream.data({ type: 'speech.audio.done', usage })
  }
  stream.end()
}

/** A short tone for each character, higher for later letters, silent for blanks. */
function tones(text: string): Buffer {
  const characters = [...text]
  const samples = Buffer.alloc(Math.max(1, characters.length) * SAMPLES_PER_CHARACTER * 2)
  characters.forEach((character, place) => {
    const code = character.codePointAt(0) ?? 32
    if (code <= 32) return
    const pitch = 200 + (code % 64) * 8
    for (let i = 0; i < SAMPLES_PER_CHARACTER; i++) {
      const fade = Math.sin((Math.PI * i) / SAMPLES_PER_CHARACTER)
      const value = Math.sin((2 * Math.PI * pitch * i) / SAMPLES_PER_SECOND) * fade * 8_000
      samples.writeInt16LE(Math.round(value), (place * SAMPLES_PER_CHARACTER + i) * 2)
    }
  })
  return samples
}
