import { useEffect, useState } from 'react'
import { Button } from './button.tsx'
import { toast } from './toast.tsx'

export function CopyButton({ text, label = 'Copy', small = true }: { text: string; label?: string; small?: boolean }) {
  const [done, setDone] = useState(false)
  useEffect(() => {
    if (!done) return
    const timer = window.setTimeout(() => setDone(false), 2000)
    return () => window.clearTimeout(timer)
  }, [done])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setDone(true)
    } catch {
      toast('The browser did not allow copying. Select the text and copy it by hand.', { bad: true })
    }
  }
  return (
    <>
      <Button small={small} icon={done ? 'check' : 'copy'} onClick={copy}>
        {done ? 'Copied' : label}
      </Button>
      <span className="sr-only" role="status">
        {done ? 'Copied' : ''}
      </span>
    </>
  )
}

/** Text as it is, with a copy button; never interpreted. */
export function Code({ text, label, wrap }: { text: string; label: string; wrap?: boolean }) {
  return (
    <div className="code">
      <div className="code-head">
        <span>{label}</span>
        <CopyButton text={text} />
      </div>
      <pre className={wrap ? 'code-wrap' : undefined} tabIndex={0} aria-label={label} role="region">
        {text}
      </pre>
    </div>
  )
}
