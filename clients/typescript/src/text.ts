// Text, for programs that need no more than a call. Whoever wants more takes the official SDKs: see sdks.ts.
import {
  type ChatAnswer,
  type ChatRequest,
  type EmbeddingsAnswer,
  type EmbeddingsRequest,
  type MessagesAnswer,
  type MessagesRequest,
  PATHS,
  type ResponsesAnswer,
  type ResponsesRequest,
} from './generated.ts'
import { readJsonEvents } from './sse.ts'
import type { CallOptions, Transport } from './transport.ts'

function endpoint<Request extends object, Result>(transport: Transport, path: string) {
  return {
    create: (body: Request & { stream?: false }, options?: CallOptions) =>
      transport.json<Result>({ method: 'POST', path, body, paid: true }, options),
    /** The events of the format, as they come. */
    async *stream(body: Request, options?: CallOptions): AsyncGenerator<Record<string, unknown>> {
      const ask = { method: 'POST', path, body: { ...body, stream: true }, paid: true } as const
      yield* transport.events(ask, options, readJsonEvents<Record<string, unknown>>)
    },
  }
}

export const textOf = (transport: Transport) => ({
  chat: endpoint<ChatRequest, ChatAnswer>(transport, PATHS.chat),
  responses: endpoint<ResponsesRequest, ResponsesAnswer>(transport, PATHS.responses),
  messages: endpoint<MessagesRequest, MessagesAnswer>(transport, PATHS.messages),
  embeddings: {
    create: (body: EmbeddingsRequest, options?: CallOptions) =>
      transport.json<EmbeddingsAnswer>({ method: 'POST', path: PATHS.embeddings, body, paid: true }, options),
  },
})
