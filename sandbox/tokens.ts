// Token counts without a tokenizer: about four Latin characters a token, two tokens for three characters of other
// scripts.

/** What a picture in a prompt counts; vendors charge several hundred tokens for one. */
export const IMAGE_TOKENS = 765

const COUNTED_CHARS = 50_000

export function countTokens(text: string): number {
  if (text.length === 0) return 0
  const counted = Math.min(text.length, COUNTED_CHARS)
  let other = 0
  for (let i = 0; i < counted; i++) if (text.charCodeAt(i) > 0x7f) other++
  const tokens = (counted - other) / 4 + (other * 2) / 3
  return Math.max(1, Math.round((tokens * text.length) / counted))
}

/** The longest beginning of a text that has at most so many tokens; it never ends within a character. */
export function firstTokens(text: string, tokensMax: number): string {
  const tokens = countTokens(text)
  if (tokens <= tokensMax) return text
  let end = Math.floor((text.length * Math.max(0, tokensMax)) / tokens)
  while (end > 0 && countTokens(text.slice(0, end)) > tokensMax) end--
  const last = text.charCodeAt(end - 1)
  if (last >= 0xd800 && last < 0xdc00) end--
  return text.slice(0, end)
}

/** The pieces in which a model would stream a text: words with the space before them. They join to the text exactly. */
export function streamPieces(text: string): string[] {
  return text.match(/\s*\S{1,24}|\s+$/gu) ?? []
}
