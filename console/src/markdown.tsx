// Blocks of Markdown as React nodes. The text is hostile: nothing in it is ever parsed as HTML, and only http(s) links
// become links.
import { Fragment, type ReactNode } from 'react'
import { type Block, blocksOf } from './markdown-blocks.ts'
import { type Span, spansOf } from './markdown-inline.ts'
import { Code } from './ui/code.tsx'

export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      {blocksOf(text).map((block, index) => (
        <Fragment key={index}>{renderBlock(block)}</Fragment>
      ))}
    </div>
  )
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

/** One line: a description with code in it. */
export function Words({ text }: { text: string }) {
  return <>{inline(text)}</>
}

function inline(text: string): ReactNode[] {
  return spansOf(text).map(renderSpan)
}

function renderSpan(span: Span, index: number): ReactNode {
  switch (span.kind) {
    case 'text':
      return span.text
    case 'code':
      return <code key={index}>{span.text}</code>
    case 'strong':
      return <strong key={index}>{span.spans.map(renderSpan)}</strong>
    case 'slanted':
      return <em key={index}>{span.spans.map(renderSpan)}</em>
    case 'link':
      return (
        <a key={index} href={span.address} target="_blank" rel="noopener noreferrer nofollow">
          {span.text}
        </a>
      )
  }
}
