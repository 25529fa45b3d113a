// Google's API for generating content: whole answers, streams, and what it refuses.
import type { ServerResponse } from 'node:http'
import { inputTokens } from './compose.ts'
import { isRecord, type Json, list, number, parseJson, record, string } from './json.ts'
import { googleError, invalid } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import { hash } from './seed.ts'
import { EventStream } from './stream.ts'
import type { TextAsk, TextTurn, ToolChoice } from './text.ts'
import { type TextAnswer, textRoom, wholeText } from './text-room.ts'
import { streamPieces } from './tokens.ts'
import { geminiUsage } from './usage.ts'

const PATH = /^\/google(?:\/v1beta)?\/models\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/

export const geminiRoom: Room = textRoom({
  name: 'gemini',
  path: /^\/google(?:\/v1beta)?\/models\/[^/:]+:(?:g|streamG)enerateContent$/,
  error: googleError,
  // The address says what other formats say in the body.
  resume(body, ctx) {
    const [, model = '', method] = PATH.exec(ctx.path) ?? []
    return { ...body, model: decodeURIComponent(model), stream: method === 'streamGenerateContent' }
  },
  read: readContents,
  check: checkContents,
  whole: wholeContent,
  stream: streamContent,
})

export const geminiCountRoom: Room = {
  name: 'gemini-count-tokens',
  match: (method, path) => method === 'POST' && PATH.exec(path)?.[2] === 'countTokens',
  async serve(_req, _res, ctx) {
    const body = parseJson((await ctx.body()).toString('utf8'))
    if (!isRecord(body)) return ctx.json(400, googleError(400, 'The body is not JSON.'))
    ctx.json(200, { totalTokens: inputTokens(readContents(body)).input })
  },
}

function readContents(body: Json): TextAsk {
  const turns: TextTurn[] = []
  const system = partsText(record(body.systemInstruction).parts)
  if (system !== '') turns.push({ role: 'system', text: system, images: 0 })
  for (const given of list(body.contents)) {
    const { role, parts } = record(given)
    for (const part of list(parts).map(record)) {
      if (!isRecord(part.functionResponse)) continue
      const { name, response } = part.functionResponse
      const said = record(response)
      const text = typeof said.output === 'string' ? said.output : JSON.stringify(said)
      turns.push({ role: 'tool', text, images: 0, toolName: string(name) })
    }
    const text = partsText(parts)
    const images = list(parts).filter((part) => record(part).inlineData || record(part).fileData).length
    if (role !== 'model' && text === '' && images === 0) continue
    turns.push({ role: role === 'model' ? 'assistant' : 'user', text, images })
  }
  const config = record(body.generationConfig)
  const json = config.responseMimeType === 'application/json'
  const schema = config.responseJsonSchema ?? config.responseSchema
  return {
    model: string(body.model),
    turns,
    tools: list(body.tools).flatMap((tool) =>
      list(record(tool).functionDeclarations).map((given) => {
        const { name, description, parametersJsonSchema, parameters } = record(given)
        return {
          name: string(name),
          description: string(description),
          schema: record(parametersJsonSchema ?? inLowerCase(parameters)),
        }
      }),
    ),
    toolChoice: readChoice(record(record(body.toolConfig).functionCallingConfig)),
    parallelTools: true,
    format: json ? (isRecord(schema) ? record(inLowerCase(schema)) : 'json') : undefined,
    outputTokensMax: number(config.maxOutputTokens),
    stop: list(config.stopSequences).map(string),
    reasons: record(config.thinkingConfig).includeThoughts === true,
    seed: number(config.seed),
  }
}

/** The vendor's own kind of schema has its types in capitals. */
function inLowerCase(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema ?? {}), (name, value) =>
    name === 'type' && typeof value === 'string' ? value.toLowerCase() : value,
  )
}

function partsText(parts: unknown): string {
  return list(parts)
    .map((part) => (record(part).thought === true ? '' : string(record(part).text)))
    .filter((text) => text !== '')
    .join('\n')
}

function readChoice({ mode, allowedFunctionNames }: Json): ToolChoice {
  const [only] = list(allowedFunctionNames)
  if (mode === 'ANY') return typeof only === 'string' ? { name: only } : 'required'
  return mode === 'NONE' ? 'none' : 'auto'
}

/** Of a length that base64 does not pad, so that every signature begins with it. */
const SIGNED = 'sandbox::'
const SIGNATURE = Buffer.from(SIGNED).toString('base64')
/** What the vendor documents for calls that come from elsewhere. */
const SKIP = 'skip_thought_signature_validator'

function sign(text: string): string {
  return Buffer.from(`${SIGNED}${hash(text)}`).toString('base64')
}

function checkContents(body: Json): void {
  const contents = list(body.contents)
  if (contents.length === 0) throw invalid('* GenerateContentRequest.contents: contents is not specified')
  for (const name of Object.keys(body))
    if (!KNOWN.includes(name))
      throw invalid(`Invalid JSON payload received. Unknown name "${name}": Cannot find field.`)
  contents.forEach((content, i) => {
    const parts = list(record(content).parts).map(record)
    if (parts.length === 0) throw invalid(`* GenerateContentRequest.contents[${i}].parts: must not be empty`)
    for (const { thoughtSignature } of parts)
      if (typeof thoughtSignature === 'string' && thoughtSignature !== SKIP && !thoughtSignature.startsWith(SIGNATURE))
        throw invalid('Thought signature is not valid.')
    const first = parts.find((part) => part.functionCall)
    if (first && first.thoughtSignature === undefined)
      throw invalid(`Function call is missing a thought_signature in functionCall parts, position ${i}.`)
  })
}

const KNOWN = [
  'model',
  'stream',
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'safetySettings',
  'generationConfig',
  'cachedContent',
  'labels',
  'serviceTier',
]

const REASONS = { stop: 'STOP', 'stop-sequence': 'STOP', length: 'MAX_TOKENS', tool: 'STOP' } as const

function wholeContent(answer: TextAnswer): Json {
  if (answer.triggers.has('blocked'))
    return frame(answer, { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, true)
  const parts = [...thoughtParts(answer, [answer.reply.reasoning]), ...lastParts(answer, wholeText(answer))]
  return frame(answer, { candidates: [candidate(answer, parts, true)] }, true)
}

function thoughtParts({ reply }: TextAnswer, pieces: readonly string[]): Json[] {
  return reply.reasoning === '' ? [] : pieces.map((text) => ({ text, thought: true }))
}

/** The text with its signature, or the calls, of which the first has one. */
function lastParts({ reply }: TextAnswer, text: string): Json[] {
  if (reply.calls.length === 0) return [{ text, ...(reply.reasoning === '' ? {} : { thoughtSignature: sign(text) }) }]
  return reply.calls.map((call, i) => ({
    functionCall: { id: call.id, name: call.name, args: parseJson(call.arguments) },
    ...(i === 0 ? { thoughtSignature: sign(call.id) } : {}),
  }))
}

function candidate({ reply, triggers }: TextAnswer, parts: readonly Json[], last: boolean): Json {
  const reason = triggers.has('safety') ? 'SAFETY' : REASONS[reply.finish]
  const ends = last && !triggers.has('empty') && !triggers.has('no-finish')
  const searches = Array.from({ length: triggers.number('searches') ?? 0 }, (_, i) => `simulated search ${i + 1}`)
  const grounded = last && searches.length > 0 ? { groundingMetadata: { webSearchQueries: searches } } : {}
  return { content: { parts, role: 'model' }, ...(ends ? { finishReason: reason } : {}), ...grounded, index: 0 }
}

function frame({ ask, id, reply, triggers }: TextAnswer, members: Json, last: boolean): Json {
  const usage = geminiUsage(reply.usage, triggers, last)
  return {
    ...members,
    ...(usage === undefined ? {} : { usageMetadata: usage }),
    modelVersion: ask.model,
    responseId: id,
  }
}

async function streamContent(res: ServerResponse, ctx: RoomContext, answer: TextAnswer): Promise<void> {
  const { reply, triggers } = answer
  const out = new EventStream(res, ctx, triggers)
  const errorAfter = triggers.number('error-in-stream')
  const send = (parts: readonly Json[], last = false) =>
    out.data(frame(answer, { candidates: [candidate(answer, parts, last)] }, last))
  if (triggers.has('blocked')) {
    await out.data(wholeContent(answer))
    return out.end()
  }
  if (triggers.has('huge-line')) {
    await out.write('data: {"')
    await out.fill(triggers.number('huge-line') ?? 64_000_000, (text) => text)
  }
  const thoughts = thoughtParts(answer, streamPieces(reply.reasoning))
  for (const part of [...thoughts, ...reply.pieces.map((text): Json => ({ text }))]) {
    if (errorAfter !== undefined && ctx.call.chunks >= errorAfter) {
      await out.data(googleError(503, 'The model is overloaded (simulated).'))
      return out.end()
    }
    await send([part])
    if (out.over) return
  }
  await out.fill(
    triggers.number('big') ?? 0,
    (text) =>
      `data: ${JSON.stringify(frame(answer, { candidates: [candidate(answer, [{ text }], false)] }, false))}\n\n`,
  )
  await send(lastParts(answer, ''), true)
  out.end()
}
