// The browser's own modal dialog: it traps the focus, makes the rest inert, closes on Escape and gives the focus back.
import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Button, IconButton } from './button.tsx'
import { Fault } from './state.tsx'

const FIRST_FIELD = '.dialog-body :is(input:not([type=checkbox]), select, textarea, [data-first])'

export function Dialog({
  title,
  onClose,
  children,
  wide,
  sheet,
}: {
  title: ReactNode
  onClose: () => void
  children: ReactNode
  wide?: boolean
  /** Comes from the side, for navigation on small screens. */
  sheet?: boolean
}) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()

  useEffect(() => {
    const dialog = element.current
    if (!dialog) return
    const before = document.activeElement
    dialog.showModal()
    // The browser would choose the close button; whoever opens a form wants its first field.
    dialog.querySelector<HTMLElement>(FIRST_FIELD)?.focus()
    return () => {
      dialog.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])

  return (
    <dialog
      ref={element}
      className={`dialog${wide ? ' dialog-wide' : ''}${sheet ? ' dialog-sheet' : ''}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        if (sheet && event.target === element.current) onClose()
      }}
    >
      <div className="dialog-box">
        <header className="dialog-head">
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  )
}

export function DialogBody({ children }: { children: ReactNode }) {
  return <div className="dialog-body">{children}</div>
}

export function DialogFoot({ children }: { children: ReactNode }) {
  return <footer className="dialog-foot">{children}</footer>
}

/** Asks before something that cannot be undone; stays open and says why when the server refuses. */
export function Confirm({
  title,
  children,
  action,
  danger,
  run,
  onClose,
  stay,
}: {
  title: string
  children: ReactNode
  action: string
  danger?: boolean
  run: () => Promise<unknown>
  onClose: () => void
  /** The caller replaces this dialog itself, so it does not close. */
  stay?: boolean
}) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const go = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await run()
      if (!stay) onClose()
    } catch (problem) {
      setError(problem as Error)
      setBusy(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <DialogBody>
        <div className="prose">{children}</div>
        {error ? <Fault error={error} /> : null}
      </DialogBody>
      <DialogFoot>
        <Button onClick={onClose}>Cancel</Button>
        <Button look={danger ? 'danger' : 'primary'} busy={busy} onClick={go}>
          {action}
        </Button>
      </DialogFoot>
    </Dialog>
  )
}
