// Wrong bodies of the text formats, made from good ones: each value of them in turn is left out or replaced, and each
// member that a format knows is added with values of every kind. What is rejected, and with which words, is kept in
// test/fixtures/golden/rejections.
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { readTextTraits } from '../src/catalog/traits.ts'
import { Fault } from '../src/kernel/fault.ts'
import { readJson } from '../src/kernel/json.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { readModelName, readTextRequest } from '../src/protocols/text/text.ts'
import { FORMATS } from './formats.ts'
import { words } from './lists.ts'
import { FIXTURES, fixture, UID } from './text-replay.ts'

type Json = Record<string, any>

/** As they are sent: JSON has numbers that a computer has not. */
const VALUES = words('null true 0 -0 -1 1.5 1e-400 1e400 "" "x" [] ["a"] [1] [{}] {}')
const PLACE = '\u{1F4CD}'

/** Members that the good bodies of the fixtures do not have. */
const MORE: Record<ClientFormatName, Json> = {
  'openai-chat': { logit_bias: {}, audio: {}, prediction: {}, thinking: { type: 'disabled' }, n: 1, top_logprobs: 1 },
  'openai-responses': { include: [], max_tool_calls: 1, prompt: { id: 'p' }, conversation: { id: 'conv_1' } },
  'anthropic-messages': { thread: { type: 'new' }, output_format: {}, cache_control: {}, system: 'Be brief.' },
  gemini: {
    labels: {},
    generationConfig: {
      candidateCount: 1,
      seed: 7,
      presencePenalty: 0.5,
      frequencyPenalty: 0.5,
      responseModalities: ['TEXT'],
      thinkingConfig: { thinkingBudget: 100 },
    },
  },
}

export interface Rejection {
  /** What was replaced, and by what. */
  readonly at: string
  readonly value: string
  readonly words: string
}

/** Undefined: it is accepted. */
export type Ask = (body: Buffer) => void

export const asked =
  (format: ClientFormatName): Ask =>
  (body) => {
    const json = readJson(body)
    readModelName(json)
    const limits = { outputTokensReserve: 4096, outputTokensFloor: 64 }
    readTextRequest(format, json, { uid: UID, traits: readTextTraits({ vendorState: true }), limits })
  }

export function* rejections(format: ClientFormatName, names: Iterable<string>, ask: Ask): Generator<Rejection> {
  const small = { model: UID, ...FORMATS[format].body('Hello', 100) }
  for (const name of globSync('request-*.json', { cwd: join(FIXTURES, format) }).sort())
    yield* rejectionsOf(JSON.parse(fixture(format, name).toString()), ask)
  yield* rejectionsOf({ ...small, ...MORE[format] }, ask)
  for (const name of names)
    for (const value of VALUES) yield* rejectionOf({ ...small, [name]: PLACE }, name, value, ask)
}

function* rejectionsOf(body: Json, ask: Ask): Generator<Rejection> {
  for (const path of pathsOf(body)) {
    const at = path
      .reduce<string>((before, step) => (typeof step === 'number' ? `${before}[${step}]` : `${before}.${step}`), '')
      .slice(1)
    yield* rejectionOf(replaced(body, path, undefined), at, 'nothing', ask)
    for (const value of VALUES) yield* rejectionOf(replaced(body, path, PLACE), at, value, ask)
  }
}

function* rejectionOf(body: unknown, at: string, value: string, ask: Ask): Generator<Rejection> {
  try {
    ask(Buffer.from(JSON.stringify(body).replace(`"${PLACE}"`, value)))
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { kind, status, code, message, details } = error
    const usual = kind === 'request_invalid' && status === 400 && message.startsWith(`"${details.param}"`)
    yield { at, value, words: usual ? message : `${message} (${status} ${code} ${kind} ${details.param})` }
  }
}

type Path = readonly (string | number)[]

function* pathsOf(value: unknown, before: Path = []): Generator<Path> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    const path = [...before, Array.isArray(value) ? Number(name) : name]
    yield path
    yield* pathsOf(inner, path)
  }
}

function replaced(value: any, [step, ...rest]: Path, by: unknown): unknown {
  if (step === undefined) return by
  const copy = Array.isArray(value) ? [...value] : { ...value }
  copy[step] = replaced(value[step], rest, by)
  return copy
}

/**
 * A line for each value that was replaced and what was said; the words of the first value stand for those that differ
 * only in it.
 */
export function told(all: Iterable<Rejection>): string {
  const lines = new Map<string, { at: string; words: string; values: string[] }>()
  for (const { at, value, words } of all) {
    const key = `${at} ${words.replace(/not [^;]*\.$/, '').replace(/: (?:the string ".*?"|an? \w+( \w+)?|true|[-\d.]+) may/, '')}`
    const line = lines.get(key)
    if (!line) lines.set(key, { at, words, values: [value] })
    else if (!line.values.includes(value)) line.values.push(value)
  }
  return [...lines.values()].map(({ at, words, values }) => `${at} = ${values.join(' ')}\n  ${words}\n`).join('')
}
