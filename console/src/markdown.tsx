// Tokens of Markdown as React nodes. The text is hostile: nothing in it is ever parsed as HTML, only http(s) and mailto
// links become links, and a picture is a link too, because the page loads nothing from elsewhere.
import type { MarkedToken, Token, Tokens } from 'marked'
import { Fragment, memo, type ReactNode } from 'react'
import { blocksOf, inlineOf, known, safeAddress, sectionsOf } from './markdown-tokens.ts'
import { Code } from './ui/code.tsx'

export function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      {sectionsOf(text).map((section, index) => (
        <Section key={index} text={section} />
      ))}
    </div>
  )
}

const Section = memo(({ text }: { text: string }) => render(blocksOf(text)))

/** One line: a description with code in it. */
export function InlineMarkdown({ text }: { text: string }) {
  return render(inlineOf(text))
}

function render(tokens: Token[]): ReactNode {
  return known(tokens).map((token, index) => <Fragment key={index}>{renderToken(token)}</Fragment>)
}

function renderToken(token: MarkedToken): ReactNode {
  switch (token.type) {
    case 'code':
      return <Code label={token.lang || 'Code'} text={token.text} />
    case 'heading':
      // An answer's headings stand below the page's own, whatever level the model chose.
      return token.depth <= 2 ? <h3>{render(token.tokens)}</h3> : <h4>{render(token.tokens)}</h4>
    case 'list': {
      const items = token.items.map(({ tokens }, index) => <li key={index}>{render(tokens)}</li>)
      return token.ordered ? <ol start={token.start || 0}>{items}</ol> : <ul>{items}</ul>
    }
    case 'blockquote':
      return <blockquote>{render(token.tokens)}</blockquote>
    case 'table':
      return <MarkdownTable table={token} />
    case 'hr':
      return <hr />
    case 'paragraph':
      return <p>{render(token.tokens)}</p>
    case 'html':
      return token.block ? <p>{token.text}</p> : token.text
    case 'text':
      return token.tokens ? render(token.tokens) : token.text
    case 'escape':
      return token.text
    case 'codespan':
      return <code>{token.text}</code>
    case 'strong':
      return <strong>{render(token.tokens)}</strong>
    case 'em':
      return <em>{render(token.tokens)}</em>
    case 'del':
      return <del>{render(token.tokens)}</del>
    case 'br':
      return <br />
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ '
    case 'link':
    case 'image':
      return <Link token={token} />
    case 'space':
    case 'def':
    case 'list_item':
      return null
  }
}

function Link({ token }: { token: Tokens.Link | Tokens.Image }) {
  const address = safeAddress(token.href)
  if (!address) return token.raw
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {token.type === 'image' ? token.text || address : render(token.tokens)}
    </a>
  )
}

function MarkdownTable({ table }: { table: Tokens.Table }) {
  const cells = (row: Tokens.TableCell[], Cell: 'th' | 'td') => (
    <tr>
      {row.map(({ tokens, align }, index) => (
        <Cell key={index} className={align === 'right' ? 'cell-right' : undefined}>
          {render(tokens)}
        </Cell>
      ))}
    </tr>
  )
  return (
    <div className="table-frame">
      <table className="plain-table">
        <thead>{cells(table.header, 'th')}</thead>
        <tbody>
          {table.rows.map((row, index) => (
            <Fragment key={index}>{cells(row, 'td')}</Fragment>
          ))}
        </tbody>
      </table>
    </div>
  )
}
