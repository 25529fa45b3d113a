// The browser's own modal dialog: it traps the focus, makes the rest inert, closes on Escape and gives the focus back.
import { type ReactNode, useEffect, useId, useRef } from 'react'
import type { Needs } from '../session.tsx'
import { useSubmit } from './action.ts'
import { Button, IconButton, type Look } from './button.tsx'
import { Fault } from './state.tsx'

const FIRST_FIELD = '.dialog-body :is(input:not([type=checkbox]), select, textarea, [data-first])'

export function Dialog({
  title,
  onClose,
  children,
  wide,
  sheet,
  panel,
  once,
}: {
  title: ReactNode
  onClose: () => void
  children: ReactNode
  wide?: boolean
  /** Comes from the side, for navigation on small screens. */
  sheet?: boolean
  /** The same, for what a row stands for. */
  panel?: boolean
  /** Shows what cannot be shown again: only its own button closes it, neither Escape nor a corner. */
  once?: boolean
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
      className={`dialog${wide ? ' dialog-wide' : ''}${sheet || panel ? ' dialog-sheet' : ''}${panel ? ' dialog-panel' : ''}`}
      aria-labelledby={id}
      // Browsers let a second Escape through where only `cancel` is prevented.
      onKeyDown={(event) => {
        if (once && event.key === 'Escape') event.preventDefault()
      }}
      onCancel={(event) => {
        event.preventDefault()
        if (!once) onClose()
      }}
      onClick={(event) => {
        if ((sheet || panel) && event.target === element.current) onClose()
      }}
    >
      <div className="dialog-box">
        <header className="dialog-head">
          <h2 id={id}>{title}</h2>
          {once ? null : <IconButton icon="close" label="Close" onClick={onClose} />}
        </header>
        {children}
      </div>
    </dialog>
  )
}

export function DialogBody({ children }: { children: ReactNode }) {
  return <div className="dialog-body">{children}</div>
}

function DialogFoot({ children }: { children: ReactNode }) {
  return <footer className="dialog-foot">{children}</footer>
}

/** Says something that has to be seen, and offers nothing but to close it. */
export function Notice({
  title,
  children,
  done = 'Done',
  wide = false,
  panel = false,
  once = false,
  onClose,
}: {
  title: string
  children: ReactNode
  done?: string
  wide?: boolean
  panel?: boolean
  once?: boolean
  onClose: () => void
}) {
  return (
    <Dialog title={title} wide={wide} panel={panel} once={once} onClose={onClose}>
      <DialogBody>{children}</DialogBody>
      <DialogFoot>
        <Button look="primary" onClick={onClose}>
          {done}
        </Button>
      </DialogFoot>
    </Dialog>
  )
}

interface FormDialogProps {
  title: string
  children: ReactNode
  action: string
  look?: Look
  cancel?: string
  wide?: boolean
  disabled?: boolean
  run: (form: FormData) => Promise<unknown>
  onClose: () => void
  /** The caller replaces this dialog itself, so it does not close. */
  stay?: boolean
  right?: Needs['right']
  account?: string | undefined
}

/** A form that stays open and says why when the server refuses. */
export function FormDialog(props: FormDialogProps) {
  const { title, children, action, look = 'primary', cancel = 'Cancel', wide = false, disabled, onClose } = props
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    await props.run(form)
    if (!props.stay) onClose()
  })
  return (
    <Dialog title={title} wide={wide} onClose={onClose}>
      <form onSubmit={onSubmit}>
        <DialogBody>
          {children}
          {error ? <Fault error={error} /> : null}
        </DialogBody>
        <DialogFoot>
          <Button onClick={onClose}>{cancel}</Button>
          <Button type="submit" look={look} busy={busy} disabled={disabled} right={props.right} account={props.account}>
            {action}
          </Button>
        </DialogFoot>
      </form>
    </Dialog>
  )
}

/** Asks before something that cannot be undone. */
export function Confirm({ children, danger, ...rest }: Omit<FormDialogProps, 'look'> & { danger?: boolean }) {
  return (
    <FormDialog {...rest} look={danger ? 'danger' : 'primary'}>
      <div className="prose">{children}</div>
    </FormDialog>
  )
}
