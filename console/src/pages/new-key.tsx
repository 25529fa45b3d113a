// The only moment a key's value is on screen. It lives in this dialog's properties and nowhere else: closing the dialog,
// or leaving the page, takes it out of the document.
import { useEffect } from 'react'
import { Code, CopyButton } from '../ui/code.tsx'
import { Notice } from '../ui/dialog.tsx'
import { Note } from '../ui/page.tsx'
import type { NewKey } from '../wire.ts'

export function NewKeyDialog({ made, onClose }: { made: NewKey; onClose: () => void }) {
  useEffect(() => {
    window.addEventListener('pagehide', onClose)
    return () => window.removeEventListener('pagehide', onClose)
  }, [onClose])

  const curl = `curl ${window.location.origin}/v1/models \\\n  -H "Authorization: Bearer ${made.key}"`
  return (
    <Notice title="Your new key" wide done="I have copied it" onClose={onClose}>
      <Note tone="warn">
        Copy the key now and keep it somewhere safe. It cannot be shown again; a lost key is replaced by a new one.
      </Note>
      <div className="stack-tight">
        <h3>{made.name}</h3>
        <div className="secret">
          <code data-testid="key-value" data-first tabIndex={0}>
            {made.key}
          </code>
          <CopyButton text={made.key} label="Copy key" small={false} />
        </div>
      </div>
      <div className="stack-tight">
        <h3>Try it</h3>
        <Code label="A first request with this key" text={curl} wrap />
      </div>
    </Notice>
  )
}
