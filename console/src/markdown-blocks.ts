// The little of Markdown that models use in answers, as blocks. A text that is still streaming in is cut at any point.

export type Block =
  | { kind: 'code'; language: string; text: string }
  | { kind: 'heading'; level: number; text: string }
  | { kind: 'list'; ordered: boolean; start: number; items: string[] }
  | { kind: 'quote'; text: string }
  | { kind: 'table'; rows: string[][] }
  | { kind: 'rule' }
  | { kind: 'text'; text: string }

export function blocksOf(text: string): Block[] {
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  const blocks: Block[] = []
  let at = 0
  const take = (wanted: RegExp) => {
    const found: string[] = []
    while (at < lines.length && wanted.test(lines[at] ?? '')) found.push(lines[at++] ?? '')
    return found
  }
  while (at < lines.length) {
    const line = lines[at] ?? ''
    const fence = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/.exec(line)
    const heading = /^(#{1,6})\s+(.*)$/.exec(line)
    const list = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+/.exec(line)
    if (fence) {
      const close = new RegExp(`^ {0,3}${fence[1]?.[0] === '`' ? '`' : '~'}{${fence[1]?.length ?? 3},}\\s*$`)
      const body: string[] = []
      at++
      // A fence that is still open while the answer streams runs to the end.
      while (at < lines.length && !close.test(lines[at] ?? '')) body.push(lines[at++] ?? '')
      at++
      blocks.push({ kind: 'code', language: fence[2] ?? '', text: body.join('\n') })
    } else if (heading) {
      blocks.push({ kind: 'heading', level: heading[1]?.length ?? 1, text: heading[2] ?? '' })
      at++
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      blocks.push({ kind: 'rule' })
      at++
    } else if (list) {
      const items: string[] = []
      for (const entry of take(/^\s*(?:[-*+]|\d{1,9}[.)])\s+|^\s{2,}\S/)) {
        const item = /^\s*(?:[-*+]|\d{1,9}[.)])\s+(.*)$/.exec(entry)
        if (item) items.push(item[1] ?? '')
        else items.push(`${items.pop() ?? ''}\n${entry.trim()}`)
      }
      blocks.push({ kind: 'list', ordered: list[1] !== undefined, start: Number(list[1] ?? 1), items })
    } else if (/^\s*>/.test(line)) {
      blocks.push({
        kind: 'quote',
        text: take(/^\s*>/)
          .map((one) => one.replace(/^\s*>\s?/, ''))
          .join('\n'),
      })
    } else if (/^\s*\|.*\|\s*$/.test(line) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[at + 1] ?? '')) {
      const rows = take(/^\s*\|.*\|\s*$/).map((row) =>
        row
          .trim()
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      )
      blocks.push({ kind: 'table', rows: rows.filter((_, index) => index !== 1) })
    } else if (line.trim() === '') {
      at++
    } else {
      const body = [line]
      at++
      body.push(...take(/^(?!\s*$)(?! {0,3}(```|~~~))(?!#{1,6}\s)(?!\s*[-*+]\s)(?!\s*\d{1,9}[.)]\s)(?!\s*>)/))
      blocks.push({ kind: 'text', text: body.join('\n') })
    }
  }
  return blocks
}
