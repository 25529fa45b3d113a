// Rerank and moderations: simulated judgements, the same for the same texts.
import type { ServerResponse } from 'node:http'
import { isRecord, type Json, list, number, parseJson, record, string } from './json.ts'
import { misbehave, sendWhole } from './misbehave.ts'
import { missing, openaiError } from './refusal.ts'
import type { Room, RoomContext } from './room.ts'
import { dice, hash } from './seed.ts'
import { countTokens } from './tokens.ts'
import { readTriggers, type Triggers } from './trigger.ts'

function judge(name: string, path: RegExp, answer: (body: Json, triggers: Triggers) => Json): Room {
  return {
    name,
    match: (method, asked) => method === 'POST' && path.test(asked),
    serve: (_req, res, ctx) => serve(res, ctx, answer),
  }
}

async function serve(res: ServerResponse, ctx: RoomContext, answer: (body: Json, triggers: Triggers) => Json) {
  const body = parseJson((await ctx.body()).toString('utf8'))
  if (!isRecord(body)) return ctx.json(400, openaiError(400, 'We could not parse the JSON body of your request.'))
  ctx.call.model = string(body.model)
  const texts = [body.query, body.input, ...list(body.input), body.model].map(string)
  const triggers = readTriggers({ texts, headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
  if (await misbehave(res, ctx, triggers, openaiError)) return
  try {
    await sendWhole(res, ctx, triggers, answer(body, triggers))
  } catch (error) {
    ctx.refuse(error, openaiError)
  }
}

export const rerankRoom = judge('rerank', /^\/openai(\/v1)?\/rerank$/, (body, triggers) => {
  const query = string(body.query)
  if (query === '') throw missing('query')
  const documents = list(body.documents).map((one) => string(isRecord(one) ? one.text : one))
  const wanted = words(query)
  const results = documents
    .map((text, index) => {
      const shared = words(text).filter((word) => wanted.includes(word)).length
      const score = Math.min(0.99, shared / Math.max(1, wanted.length) + (hash(`${query} ${text}`) % 100) / 1e4)
      return { index, relevance_score: score, ...(body.return_documents === true ? { document: { text } } : {}) }
    })
    .sort((a, b) => b.relevance_score - a.relevance_score)
    .slice(0, number(body.top_n))
  const tokens = documents.reduce((sum, text) => sum + countTokens(text) + countTokens(query), 0)
  const reported = {
    usage: { total_tokens: tokens },
    meta: { billed_units: { search_units: Math.ceil(documents.length / 100) } },
  }
  return { id: `rerank-${hash(query)}`, model: body.model, results, ...(triggers.has('no-usage') ? {} : reported) }
})

function words(text: string): string[] {
  return text.toLowerCase().match(/\p{L}+/gu) ?? []
}

const CATEGORIES = ['harassment', 'hate', 'illicit', 'self-harm', 'sexual', 'violence']

export const moderationsRoom = judge('moderations', /^\/openai(\/v1)?\/moderations$/, (body) => {
  const given = list(body.input)
  const isParts = given.some((entry) => isRecord(entry))
  const inputs = typeof body.input === 'string' ? [body.input] : isParts ? [partsText(given)] : given.map(string)
  return { id: `modr-${hash(inputs.join(' '))}`, model: body.model, results: inputs.map(moderated) }
})

function partsText(parts: readonly unknown[]): string {
  return parts.map((part) => string(record(part).text)).join(' ')
}

/** Whoever names a category is taken for an example of it. */
function moderated(text: string): Json {
  const chance = dice(hash(text))
  const named = CATEGORIES.map((name) => [name, text.toLowerCase().includes(name)] as const)
  const scores = named.map(([name, found]) => [name, found ? 0.97 : Number.parseInt(chance.hex(4), 16) / 1e8] as const)
  return {
    flagged: named.some(([, found]) => found),
    categories: Object.fromEntries(named),
    category_scores: Object.fromEntries(scores),
    category_applied_input_types: Object.fromEntries(CATEGORIES.map((name) => [name, ['text']])),
  }
}
