// The chat completions format.
import type { TextFormat } from '../format.ts'
import { formatParts } from '../prompt.ts'
import { ChatReader, ChatWriter, passChatAnswer, readChatReply, writeChatReply } from './answer.ts'
import { ChatObserver, ChunkMender, mendAnswer, passChat, rollUpChat, unrollChat } from './pass.ts'
import { checkChat, readChatConversation, writeChatRequest } from './request.ts'

export const openaiChat: TextFormat = {
  name: 'openai-chat',
  reportsAtEnd: () => true,
  address: ({ baseUrl }) => `${baseUrl}/chat/completions`,
  check: checkChat,
  prompt: (value) => [
    ...[value.messages, value.tools, value.functions, value.documents, value.chat_template_kwargs],
    ...formatParts(value.response_format),
  ],
  pass: passChat,
  passAnswer: passChatAnswer,
  observe(uid, paidRequest, traits) {
    // Calls without an index occur only in requests with tools; the others keep the fast path.
    const quirks = paidRequest.hasTools ? traits.quirks : traits.quirks.filter((quirk) => quirk !== 'tool-index')
    const mender = quirks.length > 0 ? new ChunkMender(quirks) : undefined
    return new ChatObserver({ uid, includeUsage: paidRequest.includeUsage, n: paidRequest.n, traits, mender })
  },
  readConversation: readChatConversation,
  writeReply: writeChatReply,
  writer: (facts) => new ChatWriter(facts),
  writeRequest: writeChatRequest,
  readReply(value, traits) {
    if (traits.quirks.length > 0) mendAnswer(value, traits.quirks)
    return readChatReply(value, traits)
  },
  reader: (traits) => new ChatReader(traits),
  unroll: unrollChat,
  rollUp: rollUpChat,
}
