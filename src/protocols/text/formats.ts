// The text formats: those that callers and vendors speak, and in VENDOR_FORMATS whatever a text model may be routed to.
import type { ClientFormatName, ProtocolName, TextProtocolName } from '../../meter/kind.ts'
import { anthropicMessages } from './anthropic-messages/format.ts'
import type { TextFormat, VendorFormat } from './format.ts'
import { gemini } from './gemini/format.ts'
import { openaiChat } from './openai-chat/format.ts'
import { openaiResponses } from './openai-responses/format.ts'

export const FORMATS: Readonly<Record<ClientFormatName, TextFormat>> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  'anthropic-messages': anthropicMessages,
  gemini,
}

/** A format that only vendors speak is added here. */
const OF_TEXT: Readonly<Record<TextProtocolName, VendorFormat>> = FORMATS

export const VENDOR_FORMATS: Readonly<Partial<Record<ProtocolName, VendorFormat>>> = OF_TEXT
