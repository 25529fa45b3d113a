// Embeddings for Google's clients. Embedding vendors use another format, so texts and vectors are converted.
import type { Model } from '../../catalog/document.ts'
import { isObject, type Json, type JsonText, number, objectOf, objects, readJson } from '../../kernel/json.ts'
import { mustBe, wrong } from '../../protocols/check.ts'
import { garbled, type PaidRequest } from '../../protocols/protocol.ts'
import { readEmbeddingsRequest } from '../embeddings/request.ts'
import { EMBED_REQUESTS_MAX, embedBody, member } from './endpoints.ts'
import { checkSpelling } from './request.ts'

export type Shape = 'one' | 'batch'

interface EmbedRequest {
  readonly text: string
  readonly dimensions: number | undefined
}

export function readGeminiEmbeddingsRequest(
  { value }: JsonText,
  uid: string,
  model: Pick<Model, 'limits'> | undefined,
  shape: Shape,
): PaidRequest {
  checkSpelling(value, '')
  const requests = shape === 'one' ? [readRequest(value, '')] : readRequests(value, uid)
  const dimensions = requests[0]?.dimensions
  const other = requests.findIndex((request) => request.dimensions !== dimensions)
  if (other >= 0) {
    const at = `requests[${other}].outputDimensionality`
    throw wrong(at, 'must be the same in all requests.')
  }
  const input = requests.map(({ text }) => text)
  const asked = { model: uid, input, ...(dimensions === undefined ? {} : { dimensions }) }
  return readEmbeddingsRequest(readJson(Buffer.from(JSON.stringify(asked))), uid, model, (answer) =>
    writeVectors(answer, input.length, shape),
  )
}

function readRequests(value: Json, uid: string): EmbedRequest[] {
  const { requests } = value
  if (requests === undefined || requests === null) throw wrong('requests', 'is required.')
  if (!Array.isArray(requests)) throw mustBe('requests', 'an array of objects', requests)
  if (requests.length === 0 || requests.length > EMBED_REQUESTS_MAX)
    throw wrong('requests', `must hold 1 to ${EMBED_REQUESTS_MAX} requests, not ${requests.length}.`)
  return requests.map((request, i) => {
    const at = `requests[${i}]`
    if (!isObject(request)) throw mustBe(at, 'an object', request)
    const { model } = request
    // The model in the path is the one that is called and charged.
    if (model !== undefined && model !== null && model !== `models/${uid}` && model !== uid)
      throw wrong(`${at}.model`, `must be the model of the address, models/${uid}.`)
    return readRequest(request, `${at}.`)
  })
}

function readRequest(request: Json, before: string): EmbedRequest {
  const problem = embedBody.problem(request)
  if (problem) throw wrong(before + problem.at, problem.words)
  const at = `${before}content`
  const texts = objects(objectOf(request.content).parts).map((part, i) => {
    if (typeof part.text !== 'string')
      throw wrong(`${at}.parts[${i}]`, 'must have "text": only texts are embedded here.')
    return part.text
  })
  const text = texts.join('\n')
  if (text.trim() === '') throw wrong(at, 'must have a text that is not empty.')
  return { text, dimensions: number(member(request, 'outputDimensionality')) }
}

function writeVectors(answer: Json, count: number, shape: Shape): Json {
  const found = objects(answer.data)
  const embeddings = Array.from({ length: count }, (_, i) => {
    // Vectors without an index are in order.
    const values = (found.find(({ index }) => index === i) ?? found[i])?.embedding
    if (found.length !== count || !Array.isArray(values) || !values.every((entry) => typeof entry === 'number'))
      throw garbled('the answer does not hold a vector for each text')
    return { values }
  })
  const usage = objectOf(answer.usage)
  const promptTokenCount = usage.prompt_tokens ?? usage.total_tokens
  const usageMetadata = typeof promptTokenCount === 'number' ? { usageMetadata: { promptTokenCount } } : {}
  return shape === 'one' ? { embedding: embeddings[0], ...usageMetadata } : { embeddings, ...usageMetadata }
}
