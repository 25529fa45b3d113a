// `x-tollgate-json`: a whole answer whose request asked for JSON is repaired, checked against the request's schema, or
// both. It is charged as the vendor billed it, whatever the result.
import { checkValue } from '../../catalog/json-schema.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { edited, isObject, type Json, type JsonText, jsonIn, objects } from '../../kernel/json.ts'
import { isJson, repairJson } from '../../kernel/parsers/json-repair.ts'
import type { ClientFormatName } from '../../meter/kind.ts'
import type { Answer, PaidRequest } from '../protocol.ts'
import type { AnswerFormat } from './canonical.ts'
import type { ClientFormat } from './format.ts'
import { FORMATS } from './formats.ts'

export const JSON_HEADER = 'x-tollgate-json'

export interface JsonWish {
  readonly repair: boolean
  readonly check: boolean
  /** Streams are left alone instead of rejected. */
  readonly wholeOnly?: true
}

const CHECKED_CHARS_MAX = 1_000_000

const isHealing = (plugin: Json) => plugin.id === 'response-healing'

/** From the header, or from OpenRouter's plugin in the request, which is then removed. */
export function readJsonWish(json: JsonText, header: string | undefined): { json: JsonText; wish?: JsonWish } {
  const plugins = json.member('plugins') ? objects(json.value.plugins) : []
  const others = plugins.filter((plugin) => !isHealing(plugin))
  const edit = { plugins: JSON.stringify(others) }
  const isPlugin = plugins.some((plugin) => isHealing(plugin) && plugin.enabled !== false)
  const left = others.length < plugins.length ? edited(json, { replace: edit }) : json
  const wish = wishOf(header) ?? (isPlugin ? { repair: true, check: false, wholeOnly: true } : undefined)
  return wish ? { json: left, wish } : { json: left }
}

/** Undefined: nothing is wished. */
function wishOf(header: string | undefined): JsonWish | undefined {
  if (header === undefined || header.trim() === '' || header.trim() === 'off') return undefined
  const words = header.split(',').map((word) => word.trim())
  if (!words.every((word) => word === 'repair' || word === 'check'))
    throw invalid(`"${JSON_HEADER}" must be repair, check or both with a comma.`, JSON_HEADER)
  return { repair: words.includes('repair'), check: words.includes('check') }
}

/** The request with repair and checks of its answers; unchanged if it does not ask for JSON. */
export function withJsonChecked(
  paidRequest: PaidRequest & { readonly clientFormat: ClientFormatName },
  request: Json,
  wish: JsonWish,
): PaidRequest {
  const client = FORMATS[paidRequest.clientFormat]
  const format = client.wanted(request)
  if (!format) return paidRequest
  if (paidRequest.stream && wish.wholeOnly) return paidRequest
  if (paidRequest.stream)
    throw invalid(`"${JSON_HEADER}" is for whole answers: leave it out, or "stream".`, JSON_HEADER)
  const see = (answer: Answer) => seen(answer, { format, wish, texts: client.texts })
  return {
    ...paidRequest,
    async open(target, options) {
      const exchange = await paidRequest.open(target, options)
      const answered = exchange.answer
      return {
        ...exchange,
        async answer(body, headers) {
          return see(await answered.call(exchange, body, headers))
        },
      }
    },
  }
}

function seen(
  answer: Answer,
  { format, wish, texts }: { format: AnswerFormat; wish: JsonWish; texts: ClientFormat['texts'] },
): Answer {
  const value: unknown = JSON.parse(answer.body.toString())
  if (!isObject(value)) return answer
  let state: 'valid' | 'repaired' = 'valid'
  let problem: string | undefined
  for (const places of texts(value)) {
    const said = places.filter(([holder, member]) => typeof holder[member] === 'string')
    const text = said.map(([holder, member]) => holder[member]).join('')
    // A call of a tool, or a model that declines in a member of its own.
    if (text === '') continue
    const opener = format.kind === 'schema' && format.schema.type === 'array' ? '[' : '{'
    const repaired = wish.repair && !isJson(text) ? repairJson(text, opener) : undefined
    if (repaired !== undefined) {
      state = 'repaired'
      for (const [index, [holder, member]] of said.entries()) holder[member] = index === 0 ? repaired : ''
    }
    problem ??= problemOf(repaired ?? text, format)
  }
  const headers = { ...answer.headers, [JSON_HEADER]: problem === undefined ? state : 'invalid' }
  const body = state === 'repaired' ? JSON.stringify(value) : answer.body
  if (problem === undefined || !wish.check) return { ...answer, body, headers }
  return { ...answer, body, headers, fault: new Fault('answer_unfit', { message: problem }) }
}

function problemOf(text: string, format: AnswerFormat): string | undefined {
  const value = jsonIn(text)
  if (value === undefined) return 'The model’s answer is not JSON. It was charged as the vendor billed it.'
  if (format.kind !== 'schema' || text.length > CHECKED_CHARS_MAX) return undefined
  const wrong = schemaProblem(format.schema, value)
  if (!wrong) return undefined
  const at = wrong.at === '' ? 'it' : `"${wrong.at}"`
  return `The model’s answer does not match the schema: ${at} must ${wrong.must}. It was charged as the vendor billed it.`
}

/** The schema comes from the caller: parts that cannot be read are not checked. */
function schemaProblem(schema: Json, value: unknown) {
  try {
    return checkValue(schema, value)
  } catch {
    return undefined
  }
}
