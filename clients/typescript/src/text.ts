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

/** A piece of a streamed chat completion. What vendors add beside it stays readable. */
export interface ChatChunk {
  readonly id: string
  readonly object: 'chat.completion.chunk'
  readonly created: number
  readonly model: string
  readonly choices: readonly {
    readonly index: number
    readonly delta: {
      readonly role?: string
      readonly content?: string | null
      readonly refusal?: string | null
      readonly tool_calls?: readonly {
        readonly index: number
        readonly id?: string
        readonly type?: string
        readonly function?: { readonly name?: string; readonly arguments?: string }
      }[]
    }
    readonly finish_reason?: string | null
  }[]
  readonly usage?: ChatAnswer['usage'] | null
  readonly [other: string]: unknown
}

/** An event of a streamed response; which members it has depends on its type. */
export interface ResponsesEvent {
  readonly type: string
  readonly sequence_number?: number
  readonly output_index?: number
  readonly item_id?: string
  /** Of `response.output_text.delta` and others that bring a piece. */
  readonly delta?: string
  readonly response?: Partial<ResponsesAnswer>
  readonly [other: string]: unknown
}

/** An event of a streamed message; which members it has depends on its type. */
export interface MessagesEvent {
  readonly type: string
  readonly index?: number
  readonly message?: Partial<MessagesAnswer>
  readonly content_block?: { readonly type: string; readonly [other: string]: unknown }
  readonly delta?: {
    readonly type?: string
    readonly text?: string
    readonly partial_json?: string
    readonly thinking?: string
    readonly stop_reason?: string | null
    readonly [other: string]: unknown
  }
  readonly usage?: {
    readonly input_tokens?: number
    readonly output_tokens?: number
    readonly [other: string]: unknown
  }
  readonly [other: string]: unknown
}

function endpoint<Request extends object, Result, Event>(transport: Transport, path: string) {
  return {
    create: (body: Request & { stream?: false }, options?: CallOptions) =>
      transport.json<Result>({ method: 'POST', path, body, paid: true }, options),
    /** The events of the format, as they come. */
    async *stream(body: Request, options?: CallOptions): AsyncGenerator<Event> {
      const ask = { method: 'POST', path, body: { ...body, stream: true }, paid: true } as const
      yield* transport.events(ask, options, readJsonEvents<Event>)
    },
  }
}

export const textOf = (transport: Transport) => ({
  chat: endpoint<ChatRequest, ChatAnswer, ChatChunk>(transport, PATHS.chat),
  responses: endpoint<ResponsesRequest, ResponsesAnswer, ResponsesEvent>(transport, PATHS.responses),
  messages: endpoint<MessagesRequest, MessagesAnswer, MessagesEvent>(transport, PATHS.messages),
  embeddings: {
    create: (body: EmbeddingsRequest, options?: CallOptions) =>
      transport.json<EmbeddingsAnswer>({ method: 'POST', path: PATHS.embeddings, body, paid: true }, options),
  },
})
