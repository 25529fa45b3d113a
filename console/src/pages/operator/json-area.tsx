// A plain text area for a long JSON document, with line numbers and a way to jump to a path. Code editors for the web
// bring their own style sheets, which this page's policy does not let in; the browser's own find and undo work here.
import { type Ref, useImperativeHandle, useRef } from 'react'

export interface JsonAreaHandle {
  /** Selects the line of a path such as `models.alpha-5.4.pricing`. */
  show: (path: string) => void
  /** Selects a line, counted from 1. */
  showLine: (line: number) => void
}

export function JsonArea({
  label,
  text,
  onText,
  ref,
}: {
  label: string
  text: string
  onText: (text: string) => void
  ref: Ref<JsonAreaHandle>
}) {
  const area = useRef<HTMLTextAreaElement>(null)
  const gutter = useRef<HTMLPreElement>(null)
  const lines = text.split('\n')

  const select = (line: number | undefined) => {
    const box = area.current
    if (!box || line === undefined) return
    const start = lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0)
    box.focus()
    box.setSelectionRange(start, start + (lines[line]?.length ?? 0))
    box.scrollTop = (box.scrollHeight / lines.length) * line - box.clientHeight / 3
  }
  useImperativeHandle(ref, () => ({
    show: (path) => select(lineOfPath(lines, path)),
    showLine: (line) => select(line - 1),
  }))

  return (
    <div className="json-area">
      <pre ref={gutter} className="json-gutter" aria-hidden="true">
        {lines.map((_, index) => `${index + 1}\n`).join('')}
      </pre>
      <textarea
        ref={area}
        aria-label={label}
        value={text}
        spellCheck={false}
        autoCapitalize="none"
        wrap="off"
        onChange={(event) => onText(event.target.value)}
        onScroll={(event) => {
          if (gutter.current) gutter.current.scrollTop = event.currentTarget.scrollTop
        }}
      />
    </div>
  )
}

/** Follows the path by indentation: the document is formatted, or the nearest parent is found. Names may hold dots. */
function lineOfPath(lines: readonly string[], path: string): number | undefined {
  let rest = path
  let from = 0
  let found: number | undefined
  for (let depth = 1; rest; depth++) {
    const indent = '  '.repeat(depth)
    const parent = '  '.repeat(depth - 1)
    let best: { name: string; line: number } | undefined
    for (let line = from; line < lines.length; line++) {
      const text = lines[line] ?? ''
      if (line > from && found !== undefined && text.startsWith(parent) && /^[}\]]/.test(text.slice(parent.length)))
        break
      const name = /^"((?:[^"\\]|\\.)*)":/.exec(text.startsWith(indent) ? text.slice(indent.length) : '')?.[1]
      if (
        name !== undefined &&
        (rest === name || rest.startsWith(`${name}.`)) &&
        name.length > (best?.name.length ?? -1)
      )
        best = { name, line }
    }
    if (!best) return found
    found = best.line
    from = best.line
    rest = rest.slice(best.name.length + 1)
  }
  return found
}
