// What the Messages endpoint refuses before any vendor is called.
import { Fault, invalid } from '../../../kernel/fault.ts'
import { type Fields, isObject, mustBe } from '../../check.ts'
import type { CheckedAsk } from '../format.ts'

const ROLES = ['user', 'assistant', 'system']

export function checkMessages(fields: Fields): CheckedAsk {
  checkPrompt(fields)
  fields.required('max_tokens')
  // Zero warms the cache: it is a request of its own.
  const tokensMax = fields.integer('max_tokens', 0)
  for (const name of ['temperature', 'top_p']) fields.number(name)
  fields.integer('top_k', 0)
  fields.strings('stop_sequences')
  for (const name of ['metadata', 'output_config', 'context_management', 'cache_control', 'thread']) fields.object(name)
  fields.string('service_tier')
  const thread = fields.get('thread')
  const previous = isObject(thread) && thread.type === 'continue' ? thread.previous_message_id : undefined
  return {
    keeps: thread !== undefined,
    continues: previous === undefined ? undefined : [{ id: String(previous), unknown: threadUnknown() }],
    stream: fields.boolean('stream') ?? false,
    includeUsage: true,
    n: 1,
    tokensMax,
    hasTools: (fields.list('tools')?.length ?? 0) > 0,
  }
}

/** SDKs know the code, and begin the thread anew with the whole conversation. */
function threadUnknown(): Fault {
  return new Fault('not_found', {
    message: 'There is no thread that ends with this message. Send the whole conversation to begin one.',
    errorDetails: { error_code: 'thread_not_found' },
  })
}

/** The part that count_tokens shares. */
export function checkPrompt(fields: Fields): void {
  const messages = fields.required('messages')
  if (!Array.isArray(messages)) throw mustBe('messages', 'an array of objects', messages)
  if (messages.length === 0) throw invalid('"messages" must hold at least one message.', 'messages')
  messages.forEach((message, i) => {
    const at = `messages[${i}]`
    if (!isObject(message)) throw mustBe(at, 'an object', message)
    if (typeof message.role !== 'string' || !ROLES.includes(message.role))
      throw mustBe(`${at}.role`, `one of ${ROLES.join(', ')}`, message.role)
    checkContent(message.content, `${at}.content`)
  })
  const system = fields.get('system')
  if (system !== undefined) checkContent(system, 'system')
  for (const [i, tool] of (fields.list('tools') ?? []).entries())
    if (typeof tool.name !== 'string' && typeof tool.type !== 'string')
      throw invalid(`"tools[${i}].name" must be a string.`, `tools[${i}].name`)
  fields.object('tool_choice')
  checkBudget(fields.object('thinking')?.budget_tokens)
}

function checkContent(content: unknown, at: string): void {
  if (typeof content === 'string') return
  if (!Array.isArray(content)) throw mustBe(at, 'a string or an array of blocks', content)
  content.forEach((block, j) => {
    if (!isObject(block) || typeof block.type !== 'string')
      throw invalid(`"${at}[${j}]" must be an object with a "type".`, `${at}[${j}]`)
    if (block.type === 'text' && typeof block.text !== 'string')
      throw mustBe(`${at}[${j}].text`, 'a string', block.text)
    if (block.type === 'tool_result' && typeof block.tool_use_id !== 'string')
      throw mustBe(`${at}[${j}].tool_use_id`, 'a string', block.tool_use_id)
  })
}

function checkBudget(budget: unknown): void {
  if (budget === undefined || budget === null) return
  if (!Number.isSafeInteger(budget) || (budget as number) < 1)
    throw mustBe('thinking.budget_tokens', 'a whole number of at least 1', budget)
}
