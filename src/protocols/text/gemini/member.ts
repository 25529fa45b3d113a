// How this format is written: members by their names in either case, and what others pack into its signatures.
import { isObject, type Json, objects, text } from '../../check.ts'
import { PACKED, unpackExtra, unpackProof } from '../carry.ts'
import type { Proof } from '../dialogue.ts'

/** `maxOutputTokens` or `max_output_tokens`: its vendors take both. */
export function member(object: Json, name: string): unknown {
  return object[name] ?? object[inSnakeCase(name)] ?? undefined
}

export function inSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

export function objectAt(object: Json, name: string): Json {
  const value = member(object, name)
  return isObject(value) ? value : {}
}

export function objectsAt(object: Json, name: string): Json[] {
  return objects(member(object, name))
}

export function textAt(object: Json, name: string): string | undefined {
  return text(member(object, name))
}

/** Signatures are base64 here, and clients in other languages decode them. */
export function toSignature(packed: string): string {
  return Buffer.from(packed).toString('base64')
}

/** What every signature begins with that was not made by a vendor of this format. */
export const FOREIGN = toSignature(PACKED)

function unpacked(signature: string): string | undefined {
  return signature.startsWith(FOREIGN) ? Buffer.from(signature, 'base64').toString('utf8') : undefined
}

/** Of a thought or a text. */
export function readProof(signature: string | undefined): Proof {
  if (signature === undefined) return {}
  const packed = unpacked(signature)
  return packed === undefined ? { google: signature } : (unpackProof(packed) ?? {})
}

/** Of a call: in the words of the chat format, which vendors of this family speak as well. */
export function readExtra(signature: string | undefined): unknown {
  if (signature === undefined) return undefined
  const packed = unpacked(signature)
  return packed === undefined ? { google: { thought_signature: signature } } : unpackExtra(packed)?.extra
}

/** The signature that a chat vendor of this family would have attached. */
export function signatureOf(extra: unknown): string | undefined {
  return isObject(extra) && isObject(extra.google) ? text(extra.google.thought_signature) : undefined
}
