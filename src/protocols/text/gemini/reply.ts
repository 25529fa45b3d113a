// A whole answer of this format: read into neutral words, and written from them.
import { Fault } from '../../../kernel/fault.ts'
import { given, isObject, type Json, objects, text } from '../../check.ts'
import { packExtra, packProof } from '../carry.ts'
import {
  type AnswerFacts,
  answerId,
  type Finish,
  inputObject,
  type OutputPart,
  type Proof,
  type Reply,
} from '../dialogue.ts'
import { readGeminiUsage, type TokenCounts, writeGeminiUsage } from '../tokens.ts'
import { objectAt, readExtra, readProof, signatureOf, textAt, toSignature } from './member.ts'

const FILTERED = /SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|LANGUAGE|MODEL_ARMOR|JAILBREAK|IMAGE_/

/** Why a candidate ended, or the whole request was blocked; calls end like anything else here. */
export function readGeminiFinish(reason: string, called: boolean): Finish {
  if (called) return 'calls'
  if (reason === 'MAX_TOKENS') return 'length'
  return FILTERED.test(reason) ? 'filter' : 'stop'
}

export function finishReason(finish: Finish, refused: boolean): string {
  if (refused || finish === 'filter') return 'SAFETY'
  return finish === 'length' ? 'MAX_TOKENS' : 'STOP'
}

/** The reason for which a prompt was not answered at all; undefined when it was. */
export function blockReason(value: Json): string | undefined {
  const reason = textAt(objectAt(value, 'promptFeedback'), 'blockReason')
  return reason === undefined ? undefined : `SAFETY ${reason}`
}

export function readGeminiReply(value: Json): Reply {
  const blocked = blockReason(value)
  const candidate = objects(value.candidates)[0]
  if (!candidate && blocked === undefined) throw new Fault('upstream_garbled', { internal: { why: 'no candidate' } })
  const parts = readGeminiParts(objectAt(candidate ?? {}, 'content'), text(value.responseId) ?? '')
  const called = parts.some((part) => part.kind === 'call')
  return {
    parts,
    finish: readGeminiFinish(text(candidate?.finishReason) ?? blocked ?? 'STOP', called),
    tokens: readGeminiUsage(value.usageMetadata),
  }
}

/** `from`: how many calls came before, so that those without an id get one of their own. */
export function readGeminiParts(content: Json, responseId: string, from = 0): OutputPart[] {
  let calls = from
  return objects(content.parts).flatMap((part): OutputPart[] => {
    const signature = textAt(part, 'thoughtSignature')
    const called = part.functionCall
    if (isObject(called))
      return [
        given({
          kind: 'call' as const,
          id: text(called.id) ?? `call_${responseId.slice(0, 40)}_${calls++}`,
          name: text(called.name) ?? '',
          input: JSON.stringify(called.args ?? {}),
          extra: readExtra(signature),
        }) as OutputPart, // Only what was attached may be absent.
      ]
    const said = text(part.text)
    if (said === undefined) return [] // What the vendor's own tools did is in the text.
    const proof = readProof(signature)
    if (part.thought === true) return [{ kind: 'thought', text: said, proof }]
    const parts: OutputPart[] = said === '' ? [] : [{ kind: 'text', text: said }]
    return Object.keys(proof).length > 0 ? [...parts, { kind: 'thought', text: '', proof }] : parts
  })
}

export function writeGeminiReply(reply: Reply, facts: AnswerFacts): Json {
  const refused = reply.parts.some((part) => part.kind === 'refusal')
  return answer(facts, reply.parts.flatMap(writePart), finishReason(reply.finish, refused), reply.tokens)
}

function writePart(part: OutputPart): Json[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ text: part.text }]
    case 'thought':
      return writeThought(part.text, part.proof)
    case 'call':
      return [writeCall(part.id, part.name, part.input, part.extra)]
  }
}

/** A vendor of this format signs its texts; what others sign comes along with their thoughts. */
export function writeThought(said: string, proof: Proof): Json[] {
  const signature = proof.google ?? (Object.keys(proof).length > 0 ? toSignature(packProof(proof)) : undefined)
  if (said === '' && signature === undefined) return []
  const shown = said === '' && proof.google !== undefined ? { text: '' } : { text: said, thought: true }
  return [{ ...shown, ...(signature === undefined ? {} : { thoughtSignature: signature }) }]
}

export function writeCall(id: string, name: string, input: string, extra: unknown): Json {
  const signature = signatureOf(extra) ?? (extra === undefined ? undefined : toSignature(packExtra(id, extra)))
  return {
    functionCall: { id, name, args: inputObject(input) },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
  }
}

/** One object of the format: the whole answer, or a piece of a stream, which has no reason to end. */
export function answer(facts: AnswerFacts, parts: readonly Json[], reason?: string, tokens?: TokenCounts): Json {
  return {
    candidates: [
      { content: { parts, role: 'model' }, ...(reason === undefined ? {} : { finishReason: reason }), index: 0 },
    ],
    ...(tokens ? { usageMetadata: writeGeminiUsage(tokens) } : {}),
    modelVersion: facts.uid,
    responseId: answerId('', facts),
  }
}
