import { isObject, type JsonText } from '../../kernel/json.ts'
import { checkBody, mustBe } from '../../protocols/check.ts'
import { measurePrompt } from '../../protocols/text/prompt.ts'
import { geminiPrompt } from './endpoints.ts'
import { geminiFormat, listsOf } from './format.ts'

/** For :countTokens, which takes only the contents or a whole request. */
export function countGeminiTokens({ value }: JsonText): number {
  const whole = value.generateContentRequest ?? undefined
  if (whole !== undefined && !isObject(whole)) throw mustBe('generateContentRequest', 'an object', whole)
  const sent = whole ?? value
  const request = { ...sent, ...Object.fromEntries(listsOf(sent)) }
  checkBody(geminiPrompt, request)
  return measurePrompt(geminiFormat.prompt(request), request).likely
}
