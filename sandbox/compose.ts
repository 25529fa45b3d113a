// From a question to an answer with its token counts: pure, and the same every time, but for what is already "cached".
import { createHash } from 'node:crypto'
import { instanceOf, readMentions } from './instance.ts'
import type { Memory } from './memory.ts'
import { writeAnswer, writeReasoning } from './prose.ts'
import { lastUserTurn, type TextAsk, type TextReply, type TextUsage } from './text.ts'
import { countTokens, firstTokens, IMAGE_TOKENS, streamPieces } from './tokens.ts'
import { chooseCalls } from './tools.ts'
import { type Triggers, withoutTriggers } from './trigger.ts'

/** Vendors add a few tokens for the frame of each message. */
const TURN_TOKENS = 4

export function composeReply(ask: TextAsk, triggers: Triggers, memory: Memory): TextReply {
  const calls = chooseCalls(ask, triggers)
  const tokensMax = ask.outputTokensMax ?? Number.POSITIVE_INFINITY
  const wholeReasoning = ask.reasons ? writeReasoning(ask) : ''
  // A small limit still leaves room for some of the answer.
  const reasoning = firstTokens(wholeReasoning, Math.floor(tokensMax / 2))
  const reasoningTokens = countTokens(reasoning)

  let finish: TextReply['finish'] = calls.length > 0 ? 'tool' : 'stop'
  let text = calls.length > 0 ? '' : writeText(ask, triggers)
  const stopSequence = ask.stop.find((sequence) => sequence !== '' && text.includes(sequence))
  if (stopSequence !== undefined) {
    text = text.slice(0, text.indexOf(stopSequence))
    finish = 'stop-sequence'
  }
  const callTokens = calls.reduce((sum, call) => sum + countTokens(call.name + call.arguments) + TURN_TOKENS, 0)
  let textTokens = countTokens(text)
  const room = Math.max(0, tokensMax - reasoningTokens)
  if (calls.length === 0 && textTokens > room) {
    text = firstTokens(text, room)
    textTokens = Math.min(countTokens(text), room)
    finish = 'length'
  }
  const pieces = piecesOf(text, triggers)
  return {
    reasoning,
    text,
    pieces,
    calls,
    finish,
    stopSequence,
    usage: {
      ...countPrompt(ask, triggers, memory),
      output: reasoningTokens + callTokens + textTokens,
      reasoning: reasoningTokens,
    },
  }
}

function writeText(ask: TextAsk, triggers: Triggers): string {
  if (triggers.has('empty')) return ''
  if (ask.format !== undefined) return writeJson(ask)
  const prose = writeAnswer(ask)
  const chunks = triggers.number('chunks')
  const tokens = triggers.number('tokens') ?? chunks
  return tokens === undefined ? prose : stretched(prose, Math.min(tokens, 5_000_000) * 4)
}

/** The text again and again, up to so many characters. */
function stretched(prose: string, chars: number): string {
  return `${prose}\n\n`.repeat(Math.ceil(chars / (prose.length + 2))).slice(0, chars)
}

function writeJson(ask: TextAsk): string {
  const prompt = withoutTriggers(lastUserTurn(ask.turns)?.text ?? '')
  if (ask.format === 'json' || ask.format === undefined) {
    return JSON.stringify({
      answer: `A simulated answer from the Tollgate sandbox to: ${prompt.slice(0, 200)}`,
      simulated: true,
    })
  }
  return JSON.stringify(instanceOf(ask.format, readMentions(prompt)))
}

/** `[[chunks=200]]` asks for exactly that many pieces. */
function piecesOf(text: string, triggers: Triggers): string[] {
  const wanted = triggers.number('chunks')
  if (wanted === undefined || wanted < 1 || text === '') return streamPieces(text)
  const chars = [...text]
  const size = chars.length / wanted
  return Array.from({ length: wanted }, (_, i) =>
    chars.slice(Math.floor(i * size), Math.floor((i + 1) * size)).join(''),
  )
}

/** The least that vendors cache, and the step in which they count it. */
export const CACHED_TOKENS_MIN = 256
const CACHED_TOKENS_STEP = 64

type PromptUsage = Pick<TextUsage, 'input' | 'cached' | 'cacheWrite'>

function countPrompt(ask: TextAsk, triggers: Triggers, memory: Memory): PromptUsage {
  const { input, turns, tools } = inputTokens(ask)
  const cached =
    triggers.number('cached') ??
    ask.cache?.cached ??
    (input < CACHED_TOKENS_MIN ? 0 : cachedTokens(ask, turns, tools, memory))
  const cacheWrite = triggers.number('cache-write') ?? ask.cache?.cacheWrite ?? 0
  return { input: Math.max(input, cached + cacheWrite), cached, cacheWrite }
}

/** What the prompt counts, in all and turn by turn. */
export function inputTokens(ask: TextAsk): { input: number; turns: readonly number[]; tools: number } {
  const tools = ask.tools.length === 0 ? 0 : countTokens(JSON.stringify(ask.tools))
  const turns = ask.turns.map((turn) => countTokens(turn.text) + turn.images * IMAGE_TOKENS + TURN_TOKENS)
  return { input: turns.reduce((sum, tokens) => sum + tokens, tools + 3), turns, tools }
}

/** The longest beginning of the conversation that the sandbox has read before. */
function cachedTokens(ask: TextAsk, turns: readonly number[], tools: number, memory: Memory): number {
  const running = createHash('sha1').update(`${ask.model}\n${tools}`)
  let tokens = tools
  let known = 0
  ask.turns.forEach((turn, i) => {
    running.update(`${turn.role}\n${turn.text}\n`)
    tokens += turns[i] ?? 0
    if (tokens < CACHED_TOKENS_MIN) return
    if (!memory.firstTime(`prefix ${running.copy().digest('base64')}`)) known = tokens
  })
  return known - (known % CACHED_TOKENS_STEP)
}
