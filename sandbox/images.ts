// The image API: generations in JSON, edits as a multipart form, both whole or streamed.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readImageFacts } from '../src/kernel/parsers/image-file.ts'
import { type ImageAsk, type ImageReference, readImageAsk } from './image-ask.ts'
import { isRecord, type Json, parseJson, string } from './json.ts'
import { misbehave, sendWhole } from './misbehave.ts'
import { FormError, type FormPart, readForm } from './multipart.ts'
import { type PictureOrder, paint } from './picture.ts'
import { invalid, missing, openaiError, Refusal } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import { EventStream } from './stream.ts'
import { readTriggers, type Triggers, withoutTriggers } from './trigger.ts'

const PATH = /^\/openai(\/v1)?\/images\/(generations|edits)$/

export const imagesRoom: Room = {
  name: 'openai-images',
  match: (method, path) => method === 'POST' && PATH.test(path),
  serve,
}

async function serve(req: IncomingMessage, res: ServerResponse, ctx: RoomContext): Promise<void> {
  try {
    const { fields, references } = ctx.path.endsWith('/edits') ? await readEdit(req, ctx) : await readGeneration(ctx)
    ctx.call.model = string(fields.model)
    ctx.call.stream = fields.stream === true || fields.stream === 'true'
    const texts = [string(fields.prompt), string(fields.model)]
    const triggers = readTriggers({ texts, headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
    if (await misbehave(res, ctx, triggers, openaiError)) return
    if (triggers.has('reject'))
      throw invalid('Your request was rejected by the safety system (simulated).', null, 'moderation_blocked')
    const ask = readImageAsk(fields, references)
    if (ctx.call.stream) await streamImages(res, ctx, ask, triggers)
    else await answerImages(res, ctx, ask, triggers)
  } catch (error) {
    if (error instanceof Refusal) return ctx.refuse(error, openaiError)
    if (error instanceof FormError)
      return ctx.json(400, openaiError(400, `Could not parse multipart form: ${error.message}.`))
    throw error
  }
}

interface ImageRequest {
  readonly fields: Json
  readonly references: readonly ImageReference[]
}

async function readGeneration(ctx: RoomContext): Promise<ImageRequest> {
  const body = parseJson((await ctx.body()).toString('utf8'))
  if (!isRecord(body)) throw new Refusal(400, 'We could not parse the JSON body of your request.')
  return { fields: body, references: [] }
}

const FILE_BYTES_MAX = 50_000_000
const FILES_MAX = 16
const TYPES = ['image/jpeg', 'image/png', 'image/webp']

async function readEdit(req: IncomingMessage, ctx: RoomContext): Promise<ImageRequest> {
  const parts = await readForm(req, string(req.headers['content-type']))
  ctx.call.bodyBytes = parts.reduce((sum, part) => sum + part.bytes, 0)
  const fields: Record<string, unknown> = {}
  const files: FormPart[] = []
  let mask: FormPart | undefined
  for (const part of parts) {
    if (part.name === 'mask') mask = part
    else if (part.name === 'image' || part.name === 'image[]') files.push(part)
    else if (part.filename === undefined) fields[part.name] = part.head.toString('utf8')
  }
  const listed = mask ? [...files, mask] : files
  ctx.call.body = JSON.stringify({ ...fields, files: listed.map(({ head: _, ...file }) => file) })
  if (files.length === 0) throw missing('image')
  const long = `Invalid 'image': array too long. Expected at most ${FILES_MAX} images, but got ${files.length}.`
  if (files.length > FILES_MAX) throw invalid(long, 'image', 'array_above_max_length')
  const references = files.map(readReference)
  if (mask) checkMask(mask, references[0]!) // There is at least one: see above.
  return { fields, references }
}

function checkMask({ head, type }: FormPart, { width, height }: ImageReference): void {
  const facts = readImageFacts([head])
  if (facts?.type !== 'png' || type !== 'image/png')
    throw invalid("Invalid file 'mask': only 'image/png' is supported.", 'mask', 'unsupported_file_mimetype')
  if (facts.width !== width || facts.height !== height)
    throw invalid('Invalid mask image format - mask size does not match image size.', 'mask', 'invalid_image_file')
}

function readReference(file: FormPart, i: number): ImageReference {
  const facts = readImageFacts([file.head])
  const refuse = (why: string, code: string) => invalid(`Invalid file 'image[${i}]': ${why}`, `image[${i}]`, code)
  if (!facts || !TYPES.includes(file.type))
    throw refuse(
      `unsupported mimetype ('${file.type}'). Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'.`,
      'unsupported_file_mimetype',
    )
  const type = `image/${facts.type}`
  if (type !== file.type) throw refuse(`its content is ${type}, but it was sent as ${file.type}.`, 'invalid_image_file')
  if (file.bytes > FILE_BYTES_MAX) throw refuse('the image must be less than 50MB.', 'image_too_large')
  return { ...facts, type, bytes: file.bytes }
}

function orderOf(ask: ImageAsk, number: number, note: string): PictureOrder {
  const { width, height, format, quality, model } = ask
  return {
    prompt: withoutTriggers(ask.prompt),
    model,
    width,
    height,
    format,
    quality,
    seed: ask.seed + number,
    references: ask.references.map(({ type, width: w, height: h, bytes }) => ({
      label: `${type.slice(6).toUpperCase()} ${w}x${h} ${bytes < 10_000 ? `${bytes} B` : `${Math.round(bytes / 1000)} kB`}`,
    })),
    note,
  }
}

async function paintBase64(order: PictureOrder, triggers: Triggers): Promise<string> {
  const big = triggers.number('big')
  if (big !== undefined) return 'A'.repeat(Math.ceil(big / 4) * 4)
  if (triggers.has('bad-image'))
    return Buffer.from('<svg onload="alert(1)"/> is not the picture you ordered').toString('base64')
  return (await paint(order)).toString('base64')
}

function shape(ask: ImageAsk): Json {
  return {
    background: ask.background,
    output_format: ask.format,
    quality: ask.quality,
    size: `${ask.width}x${ask.height}`,
  }
}

function usageOf(ask: ImageAsk, triggers: Triggers): { usage?: Json } {
  if (triggers.has('no-usage')) return {}
  const { text, image, output } = triggers.has('zero-usage') ? { text: 0, image: 0, output: 0 } : ask.tokens
  const bad = triggers.number('bad-usage')
  return {
    usage: {
      input_tokens: bad ?? text + image,
      input_tokens_details: { text_tokens: text, image_tokens: image },
      output_tokens: bad ?? output,
      output_tokens_details: { image_tokens: output, text_tokens: 0 },
      total_tokens: text + image + output,
    },
  }
}

async function answerImages(res: ServerResponse, ctx: RoomContext, ask: ImageAsk, triggers: Triggers): Promise<void> {
  const data: Json[] = []
  for (let i = 0; i < ask.n; i++) data.push({ b64_json: await paintBase64(orderOf(ask, i, ''), triggers) })
  const created = Math.floor(ctx.world.nowMs() / 1000)
  await sendWhole(res, ctx, triggers, {
    created,
    ...shape(ask),
    data: triggers.has('empty') ? [] : data,
    ...usageOf(ask, triggers),
  })
}

async function streamImages(res: ServerResponse, ctx: RoomContext, ask: ImageAsk, triggers: Triggers): Promise<void> {
  const name = ask.references.length > 0 ? 'image_edit' : 'image_generation'
  const out = new EventStream(res, ctx, triggers)
  const common = { created_at: Math.floor(ctx.world.nowMs() / 1000), ...shape(ask) }
  const errorAfter = triggers.number('error-in-stream') ?? Number.POSITIVE_INFINITY
  for (let i = 0; i < ask.partials; i++) {
    if (i >= errorAfter) break
    const b64_json = await paintBase64(orderOf(ask, 0, `partial ${i + 1} of ${ask.partials}`), triggers)
    const type = `${name}.partial_image`
    await out.event(type, { type, ...common, partial_image_index: i, b64_json })
  }
  if (errorAfter !== Number.POSITIVE_INFINITY) {
    await out.event('error', { type: 'error', ...openaiError(500, 'The picture could not be finished (simulated).') })
    return out.end()
  }
  if (!triggers.has('empty') && !triggers.has('no-finish')) {
    const b64_json = await paintBase64(orderOf(ask, 0, ''), triggers)
    const type = `${name}.completed`
    await out.event(type, { type, ...common, b64_json, ...usageOf(ask, triggers) })
  }
  out.end()
}
