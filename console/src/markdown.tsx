// The little of Markdown that models use in answers, turned into React nodes. The text is hostile: nothing in it is ever
// parsed as HTML, and only http(s) links become links.
import { Fragment, type ReactNode } from 'react'
import { Code } from './ui/code.tsx'

type Block =
  | { kind: 'code'; language: string; text: string }
  | { kind: 'heading'; level: number; text: string }
  | { kind: 'list'; ordered: boolean; start: number; items: string[] }
  | { kind: 'quote'; text: string }
  | { kind: 'table'; rows: string[][] }
  | { kind: 'rule' }
  | { kind: 'text'; text: string }

export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      {blocksOf(text).map((block, index) => (
        <Fragment key={index}>{renderBlock(block)}</Fragment>
      ))}
    </div>
  )
}

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

function renderBlock(block: Block): ReactNode {
  switch (block.kind) {
    case 'code':
      return <Code label={block.language || 'Code'} text={block.text} />
    case 'heading':
      // An answer's headings stand below the page's own, whatever level the model chose.
      return block.level <= 2 ? <h3>{inline(block.text)}</h3> : <h4>{inline(block.text)}</h4>
    case 'list': {
      const items = block.items.map((item, index) => <li key={index}>{inline(item)}</li>)
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>
    }
    case 'quote':
      return <blockquote>{inline(block.text)}</blockquote>
    case 'table':
      return <MarkdownTable rows={block.rows} />
    case 'rule':
      return <hr />
    case 'text':
      return <p>{inline(block.text)}</p>
  }
}

function MarkdownTable({ rows }: { rows: string[][] }) {
  const [head, ...body] = rows
  return (
    <div className="table-frame">
      <table className="plain-table">
        <thead>
          <tr>
            {head?.map((cell) => (
              <th key={cell}>{inline(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row) => (
            <tr key={row.join('|')}>
              {row.map((cell, index) => (
                <td key={index}>{inline(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const INLINE =
  /(`+)([^`]+?)\1|\*\*(.+?)\*\*|__(.+?)__|\*([^*\s][^*]*)\*|\[([^\]]*)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>")\]]+)/g

function inline(text: string): ReactNode[] {
  const nodes: ReactNode[] = []
  let from = 0
  for (const found of text.matchAll(INLINE)) {
    if (found.index > from) nodes.push(text.slice(from, found.index))
    from = found.index + found[0].length
    const [whole, , code, strong, strong2, slanted, label, address, bare] = found
    const key = found.index
    if (code !== undefined) nodes.push(<code key={key}>{code}</code>)
    else if (strong ?? strong2) nodes.push(<strong key={key}>{inline(strong ?? strong2 ?? '')}</strong>)
    else if (slanted !== undefined) nodes.push(<em key={key}>{slanted}</em>)
    else
      nodes.push(<Fragment key={key}>{link(address ?? bare ?? '', label || (address ?? bare ?? ''), whole)}</Fragment>)
  }
  nodes.push(text.slice(from))
  return nodes
}

function link(address: string, label: string, whole: string): ReactNode {
  if (!/^https?:\/\//i.test(address)) return whole
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {label}
    </a>
  )
}
