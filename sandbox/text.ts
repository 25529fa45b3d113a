// What the three text formats have in common: a question in neutral words, and the answer that the sandbox composes.
import type { Json } from './json.ts'

export interface TextTool {
  readonly name: string
  readonly description: string
  readonly schema: Json
  /** The group in which Responses clients offer the tools of one server. */
  readonly namespace?: string
  /** It takes text instead of JSON. */
  readonly custom?: true
}

export interface TextTurn {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly text: string
  readonly images: number
  /** On a tool turn: the name of the tool that answered, where the conversation tells. */
  readonly toolName?: string
}

export type ToolChoice = 'none' | 'auto' | 'required' | { readonly name: string }

export interface TextAsk {
  readonly model: string
  readonly turns: readonly TextTurn[]
  readonly tools: readonly TextTool[]
  readonly toolChoice: ToolChoice
  readonly parallelTools: boolean
  /** The JSON schema that the answer must follow; `json` for any object. */
  readonly format: Json | 'json' | undefined
  readonly outputTokensMax: number | undefined
  readonly stop: readonly string[]
  /** The model reasons before it answers. */
  readonly reasons: boolean
  readonly seed: number | undefined
  /** Where the format lets the caller say what to cache; otherwise repeated beginnings are. */
  readonly cache?: { readonly cached: number; readonly cacheWrite: number }
}

export interface TextCall {
  readonly id: string
  readonly name: string
  /** JSON; of a custom tool, text. */
  readonly arguments: string
  readonly namespace?: string
  readonly custom?: true
}

export interface TextUsage {
  /** All of the prompt, with what was cached. */
  readonly input: number
  readonly cached: number
  readonly cacheWrite: number
  /** All of the output, with reasoning. */
  readonly output: number
  readonly reasoning: number
}

export interface TextReply {
  readonly reasoning: string
  readonly text: string
  /** The text in the pieces in which it is streamed. */
  readonly pieces: readonly string[]
  readonly calls: readonly TextCall[]
  readonly finish: 'stop' | 'stop-sequence' | 'length' | 'tool'
  readonly stopSequence: string | undefined
  readonly usage: TextUsage
}

/** Blocks that coding agents put beside or into what a person wrote. */
const REMINDERS = ['system-reminder', 'environment_context']

/** What a person wrote, without the reminders of the program that they use. */
function written(turn: TextTurn): TextTurn {
  return turn.role === 'user' && turn.text.includes('<')
    ? { ...turn, text: REMINDERS.reduce(withoutBlocks, turn.text).trim() }
    : turn
}

/** One pass over the text: a pattern would look for the end of each beginning anew. */
function withoutBlocks(text: string, name: string): string {
  const end = `</${name}>`
  const [before = '', ...parts] = text.split(`<${name}>`)
  let open = ''
  let rest = ''
  for (const part of parts) {
    const at = part.indexOf(end)
    open += `<${name}>${part}`
    if (at === -1) continue
    rest += part.slice(at + end.length)
    open = ''
  }
  return before + rest + open
}

/** The turn that the answer is to, and what tools said after it. */
export function lastUserTurn(turns: readonly TextTurn[]): TextTurn | undefined {
  const users = turns.filter((turn) => turn.role === 'user').map(written)
  return users.findLast((turn) => turn.text !== '') ?? users.at(-1)
}

/** A reminder after them is nothing that a person has said since. */
export function toolResults(turns: readonly TextTurn[]): readonly TextTurn[] {
  const isReminder = (turn: TextTurn) => turn.text !== '' && turn.images === 0 && written(turn).text === ''
  const said = turns.filter((turn) => turn.role !== 'user' || !isReminder(turn))
  return said.slice(said.findLastIndex((turn) => turn.role !== 'tool') + 1)
}

/**
 * Where triggers are looked for: the newest question and the system prompt, so that an old fault does not haunt a chat.
 */
export function triggerTexts(ask: Pick<TextAsk, 'model' | 'turns'>): string[] {
  const system = ask.turns.filter((turn) => turn.role === 'system').map((turn) => turn.text)
  return [lastUserTurn(ask.turns)?.text ?? '', ask.model, ...system]
}
