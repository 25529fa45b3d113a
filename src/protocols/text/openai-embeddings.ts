// Texts into vectors. The request goes on as it was sent, and the vectors come back unread: a batch has megabytes of them.
import { CONTEXT_TOKENS_DEFAULT, type Model } from '../../catalog/document.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { type JsonText, memberSpan, splice } from '../../kernel/json.ts'
import { readCount } from '../../meter/usage.ts'
import { Fields, type Json, mustBe, shown } from '../check.ts'
import type { Answer, Exchange, PaidRequest, Target } from '../protocol.ts'
import { readErrorBody } from '../vendor-words.ts'
import { readWhole, renamed } from './relay.ts'
import { admitMembers, withoutUnknown } from './request-members.ts'
import { readEmbeddingsUsage } from './tokens.ts'

const INPUTS_MAX = 2048
/** What some tokenizers put around each input. */
const FRAME_TOKENS = 2
const LIKELY_BYTES_PER_TOKEN = 4

/** The answer in the words of another format. Absent: it passes, with the public name of the model. */
type Written = (answer: Json) => Json

export function readEmbeddingsRequest(
  sent: JsonText,
  uid: string,
  model?: Pick<Model, 'limits'>,
  written?: Written,
): PaidRequest {
  /** The most that the model takes of one input. */
  const tokensMax = model?.limits.contextTokens ?? CONTEXT_TOKENS_DEFAULT
  const { json, unknown } = admitMembers('openai-embeddings', sent)
  const fields = new Fields(json)
  const inputs = readInputs(fields.required('input'))
  fields.integer('dimensions', 1)
  fields.string('user')
  const encoding = fields.get('encoding_format')
  if (encoding !== undefined && encoding !== 'float' && encoding !== 'base64')
    throw mustBe('encoding_format', 'float or base64', encoding)
  let most = 0
  let likely = 0
  for (const input of inputs) {
    // A token is at least a byte, so that no honest count is above the hold.
    const tokens = typeof input === 'string' ? Buffer.byteLength(input) : input.length
    most += Math.min(tokens + FRAME_TOKENS, tokensMax)
    likely += Math.min(typeof input === 'string' ? Math.ceil(tokens / LIKELY_BYTES_PER_TOKEN) : tokens, tokensMax)
  }
  return {
    product: uid,
    clientFormat: 'openai-embeddings',
    sent: json.text,
    stream: false,
    price: {},
    worst: { input: most },
    inputTokensLikely: likely,
    // By what the model reads, not by the bytes: a vendor may know of input that we do not.
    inputTokensMost: inputs.length * tokensMax,
    open: (target) =>
      openEmbeddings(target.passesUnknown ? json : withoutUnknown(json, unknown), target, (body) =>
        written ? rewriteVectors(body, written) : passVectors(body, uid),
      ),
  }
}

type Input = string | readonly number[]

/** One text or many, each as it is or as the numbers of its tokens. */
function readInputs(input: unknown): readonly Input[] {
  if (typeof input === 'string') return [readText(input, 'input')]
  if (!Array.isArray(input)) throw mustBe('input', 'a string or an array of strings or of tokens', input)
  if (typeof input[0] === 'number') return [readTokens(input, 'input')]
  if (input.length === 0 || input.length > INPUTS_MAX)
    throw invalid(`"input" must hold 1 to ${INPUTS_MAX} inputs, not ${input.length}.`, 'input')
  return input.map((entry, index) => {
    const at = `input[${index}]`
    if (typeof input[0] === 'string') return readText(entry, at)
    if (Array.isArray(entry)) return readTokens(entry, at)
    throw mustBe(at, 'a string or an array of tokens', entry)
  })
}

function readText(value: unknown, at: string): string {
  if (typeof value !== 'string') throw mustBe(at, 'a string, like the first', value)
  if (value === '') throw invalid(`"${at}" must not be empty.`, at)
  return value
}

function readTokens(values: readonly unknown[], at: string): readonly number[] {
  if (values.length === 0) throw invalid(`"${at}" must not be empty.`, at)
  if (values.every(isToken)) return values
  const wrong = values.findIndex((value) => !isToken(value))
  throw invalid(`"${at}[${wrong}]" must be the number of a token, not ${shown(values[wrong])}.`, at)
}

function isToken(value: unknown): value is number {
  return readCount(value) !== undefined
}

function openEmbeddings(json: JsonText, target: Target, answer: Exchange['answer']): Exchange {
  return {
    call: {
      method: 'POST',
      url: `${target.baseUrl}/embeddings`,
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: splice(json, { replace: { model: JSON.stringify(target.model) } }),
    },
    answer,
    said: readErrorBody,
  }
}

/** Everything but the vectors is read; of these it is only seen that there are some, and where they end. */
function passVectors(body: Buffer, uid: string): Answer {
  const span = memberSpan(body.toString('latin1'), 'data')
  const vectors = body.subarray(...(span ?? [0, 0]))
  const rest = span ? Buffer.concat([body.subarray(0, span[0]), Buffer.from('[]'), body.subarray(span[1])]) : body
  const whole = readWhole(rest)
  const named = Buffer.from(renamed(rest, whole, uid))
  const place = memberSpan(named.toString('latin1'), 'data')
  if (!place || !/^\[\s*\{/.test(vectors.toString('latin1', 0, 100)))
    throw new Fault('upstream_garbled', { internal: { why: 'the answer holds no vectors' } })
  return {
    body: Buffer.concat([named.subarray(0, place[0]), vectors, named.subarray(place[1])]),
    contentType: 'application/json',
    usage: readEmbeddingsUsage(whole.value.usage),
  }
}

function rewriteVectors(body: Buffer, written: Written): Answer {
  const { value } = readWhole(body, 'utf8')
  return {
    body: JSON.stringify(written(value)),
    contentType: 'application/json',
    usage: readEmbeddingsUsage(value.usage),
  }
}
