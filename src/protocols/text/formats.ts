// The text formats: those that callers and vendors speak, and in VENDOR_FORMATS whatever a text model may be routed to.
// The contract has three; extensions add theirs at the start.
import type { Surface } from '../../catalog/endpoint.ts'
import type { ClientFormatName, ProtocolName } from '../../meter/kind.ts'
import { anthropicMessages } from './anthropic-messages/format.ts'
import type { ClientFormat, FormatSurface, TextFormat, VendorFormat } from './format.ts'
import { openaiChat } from './openai-chat/format.ts'
import { openaiResponses } from './openai-responses/format.ts'

// Plain objects with one member for each name: a call looks one up and builds nothing.
const formats: Partial<Record<ProtocolName, TextFormat>> = {}
const surfaces: Partial<Record<Surface, FormatSurface>> = {}

// Who asks for one has an endpoint or a route of it.
export const FORMATS = formats as Readonly<Record<ClientFormatName, TextFormat>>
export const VENDOR_FORMATS: Readonly<Partial<Record<ProtocolName, VendorFormat>>> = formats
export const CALLERS_FORMATS: Readonly<Partial<Record<ProtocolName, ClientFormat>>> = formats
/** The surfaces that are read by SDKs of one format alone. */
export const SURFACES: Readonly<Partial<Record<Surface, FormatSurface>>> = surfaces

/** Also those of extensions that are switched off: their endpoints and routes are not there. */
export function addFormats(added: readonly TextFormat[]): void {
  for (const one of added) {
    formats[one.name] = one
    if (one.surface) surfaces[one.surface.name] = one.surface
  }
}

addFormats([openaiChat, openaiResponses, anthropicMessages])
