// Helpers for this format: members in camel or snake case, and foreign proofs packed into its signatures.

import { isObject, type Json, objectOf, objects, text } from '../../kernel/json.ts'
import {
  JSON_INSTRUCTION,
  type OutputPart,
  PACKED,
  type Proof,
  unpackExtra,
  unpackProof,
} from '../../protocols/text/canonical.ts'
import { member } from './endpoints.ts'

export const objectAt = (object: Json, name: string): Json => objectOf(member(object, name))
export const objectsAt = (object: Json, name: string): Json[] => objects(member(object, name))
export const textAt = (object: Json, name: string): string | undefined => text(member(object, name))

/** Signatures must be base64 here, because clients in other languages decode them. */
export function toSignature(packed: string): string {
  return Buffer.from(packed).toString('base64')
}

/** The prefix of every signature that was not made by a vendor of this format. */
export const FOREIGN = toSignature(PACKED)

function unpacked(signature: string): string | undefined {
  return signature.startsWith(FOREIGN) ? Buffer.from(signature, 'base64').toString('utf8') : undefined
}

/** A thought or a text; the signature of a text follows it. */
export function readSaid(said: string, isThought: boolean, signature: string | undefined): OutputPart[] {
  const packed = signature === undefined ? undefined : unpacked(signature)
  const own: Proof = signature === undefined ? {} : { google: signature }
  const proof = packed === undefined ? own : (unpackProof(packed) ?? {})
  if (isThought) return [{ kind: 'thought', text: said, proof }]
  const parts: OutputPart[] = said === '' ? [] : [{ kind: 'text', text: said }]
  return Object.keys(proof).length > 0 ? [...parts, { kind: 'thought', text: '', proof }] : parts
}

/** The signature of a call in the chat format's form, which vendors of this family also use. */
export function readExtra(signature: string | undefined): unknown {
  if (signature === undefined) return undefined
  const packed = unpacked(signature)
  return packed === undefined ? { google: { thought_signature: signature } } : unpackExtra(packed)?.extra
}

/** The signature that a chat vendor of this family attaches. */
export function signatureOf(extra: unknown): string | undefined {
  return isObject(extra) && isObject(extra.google) ? text(extra.google.thought_signature) : undefined
}

// The parts of a request that become the prompt, in the form that measurePrompt expects.

export function geminiPrompt(value: Json): readonly unknown[] {
  const tools = member(value, 'tools')
  const config = objectAt(value, 'generationConfig')
  return [
    measured(member(value, 'systemInstruction')),
    objects(value.contents).map(measured),
    ...[tools, member(config, 'responseSchema'), member(config, 'responseJsonSchema')].map(own),
    textAt(config, 'responseMimeType') === 'application/json' ? JSON_INSTRUCTION : undefined,
    // Tools at the vendor bring in content that is not in the request.
    hasVendorTools(value) ? { type: 'web_search_call' } : undefined,
  ]
}

/** Only the functions that a request declares are run by the caller. */
export function hasVendorTools(value: Json): boolean {
  return objects([value.tools].flat()).some((tool) =>
    Object.keys(tool).some((name) => !/^function_?declarations$/i.test(name)),
  )
}

function measured(content: unknown): unknown {
  if (!isObject(content)) return content
  return { role: content.role ?? 'user', content: objects(content.parts).map(measuredPart) }
}

/** Parts have no type in this format: everything except media is measured as the caller's own JSON. */
function measuredPart(part: unknown): unknown {
  if (!isObject(part)) return own(part)
  const { text: said, inlineData, inline_data, fileData, file_data, ...others } = part
  const { functionResponse, function_response, ...rest } = others
  return [
    typeof said === 'string' ? said : own(said),
    Object.keys(rest).length > 0 ? { input: rest } : undefined,
    media(inlineData ?? inline_data),
    media(fileData ?? file_data),
    result(functionResponse ?? function_response),
  ]
}

function result(response: unknown): unknown {
  if (!isObject(response) || !Array.isArray(response.parts)) return own(response)
  const { parts, ...rest } = response
  return [{ input: rest }, parts.map(measuredPart)]
}

const own = (value: unknown) => (value === undefined || value === null ? undefined : { input: value })

function media(held: unknown): unknown {
  if (!isObject(held)) return own(held)
  const { data, fileUri, file_uri, ...rest } = held
  const type = textAt(held, 'mimeType') ?? ''
  const kind = type.startsWith('image/') ? 'image' : type.startsWith('audio/') ? 'audio' : 'file'
  const format = type.slice(type.indexOf('/') + 1)
  return [{ type: kind, data, url: fileUri ?? file_uri, format }, { input: rest }]
}
