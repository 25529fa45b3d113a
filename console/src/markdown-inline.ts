// Emphasis, code and links within a line, found by walking once. Regular expressions with back references take cubic time
// on a page of backticks, and a model's answer is somebody else's text.

export type Span =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'slanted'; spans: Span[] }
  | { kind: 'link'; address: string; text: string }

const DEPTH_MAX = 4
const LABEL_MAX = 500
const ADDRESS_MAX = 2000
const BARE = /https?:\/\/[^\s<>"')\]]+/y

export function spansOf(text: string, depth = 0): Span[] {
  const spans: Span[] = []
  /** Marks that have no partner from here on, so that they are not sought again and again. */
  const alone = new Set<string>()
  let plain = 0
  let at = 0

  const take = (end: number, span: Span) => {
    if (at > plain) spans.push({ kind: 'text', text: text.slice(plain, at) })
    spans.push(span)
    at = end
    plain = end
  }
  const partner = (mark: string, from: number): number => {
    if (alone.has(mark)) return -1
    const found = text.indexOf(mark, from)
    if (found < 0) alone.add(mark)
    return found
  }

  while (at < text.length) {
    const char = text[at]
    if (char === '`') {
      const mark = run(text, at)
      const end = partner(mark, at + mark.length)
      if (end > 0) take(end + mark.length, { kind: 'code', text: text.slice(at + mark.length, end) })
      else at += mark.length
    } else if ((char === '*' || char === '_') && depth < DEPTH_MAX) {
      const double = text[at + 1] === char
      const mark = double ? char + char : char
      const end = double || char === '*' ? partner(mark, at + mark.length) : -1
      const inner = text.slice(at + mark.length, Math.max(end, 0))
      if (end > 0 && inner && !/^\s/.test(inner))
        take(end + mark.length, { kind: double ? 'strong' : 'slanted', spans: spansOf(inner, depth + 1) })
      else at += mark.length
    } else if (char === '[') {
      const found = linkAt(text, at)
      if (found) take(found.end, found.span)
      else at++
    } else if (char === 'h') {
      BARE.lastIndex = at
      const address = BARE.exec(text)?.[0]
      if (address) take(at + address.length, { kind: 'link', address, text: address })
      else at++
    } else at++
  }
  if (at > plain) spans.push({ kind: 'text', text: text.slice(plain) })
  return spans
}

function run(text: string, from: number): string {
  let end = from
  while (text[end] === '`') end++
  return text.slice(from, end)
}

/** `[label](address)`, only for http(s); anything else stays the text that it is. */
function linkAt(text: string, at: number): { end: number; span: Span } | undefined {
  const label = text.slice(at + 1, at + LABEL_MAX)
  const close = label.indexOf('](')
  if (close < 0) return undefined
  const from = at + 1 + close + 2
  const rest = text.slice(from, from + ADDRESS_MAX)
  const end = rest.indexOf(')')
  const address = rest.slice(0, Math.max(end, 0))
  if (end < 0 || !/^https?:\/\/[^\s]+$/i.test(address)) return undefined
  return { end: from + end + 1, span: { kind: 'link', address, text: label.slice(0, close) || address } }
}
