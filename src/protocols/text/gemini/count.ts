import { geminiPrompt } from '../../../catalog/gemini.ts'
import { isObject, type JsonText } from '../../../kernel/json.ts'
import { checkBody, mustBe } from '../../check.ts'
import { measurePrompt } from '../prompt.ts'
import { gemini, listsOf } from './format.ts'

/** For :countTokens, which takes only the contents or a whole request. */
export function countGeminiTokens({ value }: JsonText): number {
  const whole = value.generateContentRequest ?? undefined
  if (whole !== undefined && !isObject(whole)) throw mustBe('generateContentRequest', 'an object', whole)
  const sent = whole ?? value
  const request = { ...sent, ...Object.fromEntries(listsOf(sent)) }
  checkBody(geminiPrompt, request)
  return measurePrompt(gemini.prompt(request), request).likely
}
