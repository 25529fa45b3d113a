// What the Messages vendor refuses, by model where the models differ.
import type { IncomingHttpHeaders } from 'node:http'
import { type Json, list, number, record, string } from './json.ts'
import { Refusal } from './refusal.ts'
import { hash } from './seed.ts'

interface ModelTraits {
  readonly outputTokensMax: number
  /** top_p and top_k are refused, and temperature may only be 1. */
  readonly samplingRefused: boolean
  readonly forcedToolsRefused: boolean
  readonly thinksAlways: boolean
  readonly adaptive: boolean
  readonly budgetRefused: boolean
}

function traitsOf(model: string): ModelTraits {
  const found = model.match(/(opus|sonnet|haiku|fable)-(\d+)(?:-(\d)(?!\d))?/)
  const line = found?.[1] ?? ''
  const version = found ? Number(`${found[2]}.${found[3] ?? 0}`) : 4.5
  const newest = line === 'fable' || (line === 'opus' && version >= 5.5)
  return {
    outputTokensMax: version >= 4.6 ? 128_000 : 64_000,
    samplingRefused: version >= 4.7,
    forcedToolsRefused: (line === 'opus' && version >= 5.5) || (line === 'fable' && version >= 5.1),
    thinksAlways: newest,
    adaptive: version >= 4.6,
    budgetRefused: newest,
  }
}

export function thinks(body: Json, model: string): boolean {
  const type = record(body.thinking).type
  return type === 'enabled' || type === 'adaptive' || traitsOf(model).thinksAlways
}

export function checkMessages(body: Json, headers: IncomingHttpHeaders, counting: boolean): void {
  if (headers['anthropic-version'] === undefined) throw refuse('anthropic-version: header is required')
  const model = string(body.model)
  if (model === '') throw refuse('model: Field required')
  const traits = traitsOf(model)
  if (!counting) {
    const tokensMax = number(body.max_tokens)
    if (tokensMax === undefined) throw refuse('max_tokens: Field required')
    if (tokensMax < 0 || !Number.isInteger(tokensMax))
      throw refuse('max_tokens: Input should be greater than or equal to 1')
    if (tokensMax > traits.outputTokensMax) {
      throw refuse(
        `max_tokens: ${tokensMax} > ${traits.outputTokensMax}, which is the maximum allowed number of output tokens for ${model}`,
      )
    }
  }
  checkSampling(body, traits)
  checkThinking(body, model, traits)
  checkTools(body, traits)
  checkTurns(body)
}

function checkSampling(body: Json, traits: ModelTraits): void {
  const { temperature, top_p, top_k, stop_sequences } = body
  if (traits.samplingRefused) {
    if (top_p !== undefined) throw refuse('`top_p` is deprecated for this model.')
    if (top_k !== undefined) throw refuse('`top_k` is deprecated for this model.')
    if (temperature !== undefined && temperature !== 1) throw refuse('`temperature` is deprecated for this model.')
  }
  if (temperature !== undefined && (typeof temperature !== 'number' || temperature < 0 || temperature > 1)) {
    throw refuse('temperature: range: 0..1')
  }
  if (temperature !== undefined && top_p !== undefined) {
    throw refuse('`temperature` and `top_p` cannot both be specified for this model. Please use only one.')
  }
  for (const stop of list(stop_sequences)) {
    if (string(stop).trim() === '') throw refuse('stop_sequences: each stop sequence must contain non-whitespace')
  }
}

function checkThinking(body: Json, model: string, traits: ModelTraits): void {
  const { type, budget_tokens } = record(body.thinking)
  if (type === 'disabled' && traits.thinksAlways) throw refuse(`thinking: ${model} does not support disabling thinking`)
  if (type === 'adaptive' && !traits.adaptive) throw refuse('adaptive thinking is not supported on this model')
  if (type !== 'enabled') return
  if (traits.budgetRefused)
    throw refuse(
      `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`,
    )
  const budget = number(budget_tokens)
  if (budget === undefined || budget < 1024)
    throw refuse('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
  if (budget >= (number(body.max_tokens) ?? Number.POSITIVE_INFINITY))
    throw refuse('`max_tokens` must be greater than `thinking.budget_tokens`.')
  if (body.temperature !== undefined && body.temperature !== 1)
    throw refuse('`temperature` may only be set to 1 when thinking is enabled.')
  if (body.top_k !== undefined) throw refuse('`top_k` must be unset when thinking is enabled.')
}

function checkTools(body: Json, traits: ModelTraits): void {
  for (const [i, given] of list(body.tools).entries()) {
    const tool = record(given)
    const custom = tool.type === undefined || tool.type === 'custom'
    if (string(tool.name) === '') throw refuse(`tools.${i}.custom.name: Field required`)
    if (custom && record(tool.input_schema).type !== 'object')
      throw refuse(`tools.${i}.custom.input_schema.type: Field required`)
  }
  const { type } = record(body.tool_choice)
  if (type !== 'any' && type !== 'tool') return
  if (traits.forcedToolsRefused) throw refuse('tool_choice forces tool use is not compatible with this model.')
  const { type: thinking } = record(body.thinking)
  if (thinking === 'enabled' || thinking === 'adaptive') {
    throw refuse('Thinking may not be enabled when tool_choice forces tool use.')
  }
}

function checkTurns(body: Json): void {
  const messages = list(body.messages)
  if (!Array.isArray(body.messages)) throw refuse('messages: Field required')
  if (messages.length === 0) throw refuse('messages: at least one message is required')
  let open: string[] = []
  for (const [i, given] of messages.entries()) {
    const { role, content } = record(given)
    if (role !== 'user' && role !== 'assistant' && role !== 'system') {
      throw refuse(`messages: Unexpected role "${String(role)}". Allowed roles are "user", "assistant" and "system".`)
    }
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content).map(record)
    if (role === 'user') checkUserBlocks(blocks, i)
    const answered = new Set(blocks.filter((b) => b.type === 'tool_result').map((b) => string(b.tool_use_id)))
    const unanswered = open.filter((id) => !answered.has(id))
    if (unanswered.length > 0) {
      throw refuse(
        `messages.${i - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${unanswered.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      )
    }
    for (const id of answered) {
      if (!open.includes(id))
        throw refuse(
          `messages.${i}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
        )
    }
    open = role === 'assistant' ? blocks.filter((b) => b.type === 'tool_use').map((b) => string(b.id)) : []
    if (role === 'assistant') checkThinkingBlocks(blocks, i, record(body.thinking).type === 'enabled')
  }
  if (open.length > 0)
    throw refuse(
      `messages.${messages.length - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}.`,
    )
  const { system } = body
  if (typeof system === 'string' && system !== '' && system.trim() === '')
    throw refuse('system: text content blocks must contain non-whitespace text')
  if (list(system).some((block) => string(record(block).text).trim() === ''))
    throw refuse('system: text content blocks must be non-empty')
}

function checkUserBlocks(blocks: readonly Json[], i: number): void {
  if (blocks.length === 0) throw refuse(`messages.${i}: user messages must have non-empty content`)
  for (const block of blocks) {
    if (block.type !== 'text') continue
    if (block.text === '') throw refuse(`messages.${i}: text content blocks must be non-empty`)
    if (blocks.length === 1 && string(block.text).trim() === '') {
      throw refuse(`messages.${i}: text content blocks must contain non-whitespace text`)
    }
  }
}

function checkThinkingBlocks(blocks: readonly Json[], i: number, mustThink: boolean): void {
  for (const [k, block] of blocks.entries()) {
    if (block.type === 'text' && block.text === '' && blocks.length > 1) {
      throw refuse(`messages.${i}: text content blocks must be non-empty`)
    }
    if (block.type !== 'thinking') continue
    // With the text omitted there is nothing to check the signature against.
    if (block.thinking !== '' && block.signature !== sign(string(block.thinking))) {
      throw refuse(`messages.${i}.content.${k}: Invalid \`signature\` in \`thinking\` block`)
    }
  }
  const first = string(blocks[0]?.type)
  if (mustThink && blocks.some((b) => b.type === 'tool_use') && !/thinking/.test(first)) {
    throw refuse(
      `messages.${i}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
    )
  }
}

/** The vendor signs what its model thought, so that nobody can put thoughts into it. */
export function sign(thinking: string): string {
  return Buffer.from(`simulated-signature-${hash(thinking).toString(16)}`).toString('base64')
}

function refuse(message: string): Refusal {
  return new Refusal(400, message)
}
