// A chat request that goes to a chat vendor: the caller's own text, with the few members exchanged that must differ.

import type { TextTraits } from '../../../catalog/traits.ts'
import { type JsonText, splice } from '../../../kernel/json.ts'
import { isObject, type Json, objects } from '../../check.ts'
import type { CheckedAsk, PassOptions } from '../format.ts'
import { chooseByWord } from './tool-choice.ts'

export function passChat(json: JsonText, ask: CheckedAsk, options: PassOptions): string {
  const { traits } = options
  const replace: Record<string, string> = { model: JSON.stringify(options.model) }
  const add: Record<string, string> = {}
  const remove: string[] = []
  const put = (name: string, value: string) => {
    if (json.member(name)) replace[name] = value
    else add[name] = value
  }
  for (const name of traits.dropParams) if (json.member(name)) remove.push(name)
  for (const entry of traits.addParams) {
    const equals = entry.indexOf('=')
    put(entry.slice(0, equals), entry.slice(equals + 1))
  }
  limitOutput(json, ask, options, { put, remove })
  const chosen = traits.namedToolChoice ? undefined : chooseByWord(json.value)
  for (const [name, value] of Object.entries(chosen ?? {})) put(name, JSON.stringify(value))
  // For metering the vendor is always asked for usage; the caller sees it only when the caller asked.
  if (ask.stream && !ask.includeUsage) put('stream_options', withUsage(json.value.stream_options))
  const messages = editedMessages(json, traits)
  if (messages !== undefined) replace.messages = messages
  return splice(json, { replace, add, remove })
}

function limitOutput(
  json: JsonText,
  ask: CheckedAsk,
  { traits, outputTokensCap }: PassOptions,
  edit: { put(name: string, value: string): void; remove: string[] },
): void {
  const { max_tokens: plain, max_completion_tokens: completion } = json.value
  const limit = ask.tokensMax ?? outputTokensCap
  if (traits.tokensField === 'either') {
    if (limit === ask.tokensMax) return
    const field = isGiven(completion) ? 'max_completion_tokens' : 'max_tokens'
    if (isGiven(completion) && isGiven(plain)) edit.put('max_tokens', String(limit))
    edit.put(field, String(limit))
    return
  }
  const other = traits.tokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
  if (json.member(other)) edit.remove.push(other)
  if (limit !== undefined && limit !== json.value[traits.tokensField]) edit.put(traits.tokensField, String(limit))
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

function withUsage(options: unknown): string {
  return JSON.stringify({ ...(isObject(options) ? options : {}), include_usage: true })
}

/**
 * The messages written anew, when a family needs a role renamed, a key left out or one put back that the caller's client
 * has dropped; undefined when nothing changes.
 */
function editedMessages(json: JsonText, traits: TextTraits): string | undefined {
  const strip = traits.stripKeys.filter((key) => json.text.includes(`"${key}"`))
  const rename = !traits.developerRole && json.text.includes('"developer"')
  const replay = (traits.reasoningReplay || traits.callExtra !== undefined) && json.text.includes('"tool_calls"')
  if (strip.length === 0 && !rename && !replay) return undefined
  const messages = json.value.messages as Json[]
  return JSON.stringify(
    messages.map((message) => {
      const copy = without(message, strip)
      if (rename && copy.role === 'developer') copy.role = 'system'
      if (Array.isArray(copy.content))
        copy.content = copy.content.map((part) => (isObject(part) ? without(part, strip) : part))
      const calls = objects(copy.tool_calls).map((call) => without(call, strip))
      if (calls.length > 0) copy.tool_calls = calls
      if (replay && calls[0]) {
        if (traits.reasoningReplay) copy.reasoning_content ??= ''
        if (traits.callExtra !== undefined) calls[0].extra_content ??= JSON.parse(traits.callExtra)
      }
      return copy
    }),
  )
}

function without(object: Json, keys: readonly string[]): Json {
  const copy = { ...object }
  for (const key of keys) delete copy[key]
  return copy
}
