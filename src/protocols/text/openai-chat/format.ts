// The chat format, on both sides.
import { chatBody } from '../../../catalog/text-bodies.ts'
import { isObject, type Json, type JsonText, objectOf, objects, withMembers } from '../../../kernel/json.ts'
import type { TextFormat } from '../format.ts'
import { readFormat } from '../openai.ts'
import { formatParts } from '../prompt.ts'
import { membersOf } from '../request-members.ts'
import { ChatReader, ChatWriter, passChatAnswer, readChatReply, writeChatReply } from './answer.ts'
import { ChatObserver, ChunkRepairer, repairAnswer, rollUpChat, unrollChat } from './pass.ts'
import { checkChat, passChat, readChatConversation, writeChatRequest } from './request.ts'

export const openaiChat: TextFormat = {
  name: 'openai-chat',
  address: ({ baseUrl }) => `${baseUrl}/chat/completions`,
  body: chatBody,
  members: membersOf(chatBody),
  extras: {
    tools: ['web_search'],
    search: 'web_search_options',
    uncounted: (units, n) => (units.length > 0 ? { webSearch: n } : undefined),
    media: { member: 'modalities', wanted: (value) => value, bound },
  },
  check: checkChat,
  smallest: (question, tokens) => ({ messages: [{ role: 'user', content: question }], max_tokens: tokens }),
  lenient,
  wanted: ({ response_format: format }) => readFormat(objectOf(format), objectOf(objectOf(format).json_schema)),
  texts: ({ choices }) => objects(choices).map(({ message }) => [[objectOf(message), 'content']]),
  prompt: (value) => [
    value.messages,
    value.tools,
    value.functions,
    ...(value.documents || value.chat_template_kwargs ? [templated(value)] : []),
    ...(value.response_format ? formatParts(value.response_format) : []),
  ],
  pass: passChat,
  passAnswer: passChatAnswer,
  observe(uid, paidRequest, traits) {
    // Calls without an index occur only in requests with tools; the others keep the fast path.
    const quirks = paidRequest.hasTools ? traits.quirks : traits.quirks.filter((quirk) => quirk !== 'tool-index')
    const mender = quirks.length > 0 ? new ChunkRepairer(quirks) : undefined
    return new ChatObserver({ uid, includeUsage: paidRequest.includeUsage, n: paidRequest.n, traits, mender })
  },
  readConversation: readChatConversation,
  writeReply: writeChatReply,
  writer: (facts) => new ChatWriter(facts),
  writeRequest: writeChatRequest,
  readReply(value, traits) {
    if (traits.quirks.length > 0) repairAnswer(value, traits.quirks)
    return readChatReply(value, traits)
  },
  reader: (traits) => new ChatReader(traits),
  unroll: unrollChat,
  rollUp: rollUpChat,
}

function bound(json: JsonText, tokensMost: number): JsonText {
  const { max_tokens: plain, max_completion_tokens: completion } = json.value
  return (plain ?? completion ?? undefined) === undefined ? withMembers(json, { max_tokens: String(tokensMost) }) : json
}

/** The caller's own JSON, which the vendor's template writes into the prompt. */
const templated = ({ documents, chat_template_kwargs: more }: Json) => ({ input: [documents, more] })

/** Mistral's clients leave out the type of a tool, and write the address of an image without an object around it. */
function lenient({ value, text }: JsonText): ReadonlyArray<[name: string, value: unknown]> {
  const edits: Array<[name: string, value: unknown]> = []
  const isUntyped = (tool: unknown): tool is Json =>
    isObject(tool) && (tool.type === undefined || tool.type === null) && isObject(tool.function)
  if (Array.isArray(value.tools) && value.tools.some(isUntyped))
    edits.push(['tools', value.tools.map((tool) => (isUntyped(tool) ? { ...tool, type: 'function' } : tool))])
  if (!/"image_url"\s*:\s*"(?!\s*[,}])/.test(text)) return edits
  const isBare = (part: unknown): part is Json => isObject(part) && typeof part.image_url === 'string'
  const mended = (content: unknown) =>
    Array.isArray(content)
      ? content.map((part) => (isBare(part) ? { ...part, image_url: { url: part.image_url } } : part))
      : content
  const isMeant = objects(value.messages).some(({ content }) => Array.isArray(content) && content.some(isBare))
  if (isMeant && Array.isArray(value.messages))
    edits.push([
      'messages',
      value.messages.map((message) => (isObject(message) ? { ...message, content: mended(message.content) } : message)),
    ])
  return edits
}
