// Something that the server does for us and may refuse: once at a time, with the error of the last try.
import { type FormEvent, useEffect, useRef, useState } from 'react'

interface Action<Input> {
  busy: boolean
  error: Error | undefined
  go: (input: Input) => Promise<void>
}

/** The signal aborts when its component leaves the page. */
export function useAction<Input = void>(run: (signal: AbortSignal, input: Input) => Promise<unknown>): Action<Input> {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const aborter = useRef<AbortController>(undefined)
  useEffect(() => () => aborter.current?.abort(), [])
  const go = async (input: Input) => {
    const control = new AbortController()
    aborter.current = control
    setBusy(true)
    setError(undefined)
    try {
      await run(control.signal, input)
    } catch (problem) {
      // Nothing here throws anything but errors.
      if (!control.signal.aborted) setError(problem as Error)
    }
    setBusy(false)
  }
  return { busy, error, go }
}

interface Submit extends Omit<Action<never>, 'go'> {
  onSubmit: (event: FormEvent<HTMLFormElement>) => void
}

/** "issuer.country: must be …" is shown at the field of this name, as if the browser had found it. False: the form shows no such field. */
function isMarked(form: HTMLFormElement, message: string): boolean {
  const [, path = '', text = ''] = /^([\w.]+): (.+)$/s.exec(message) ?? []
  const control = [path, path.split('.').at(-1) ?? ''].map((name) => form.elements.namedItem(name)).find(Boolean)
  if (!(control instanceof Element) || !('setCustomValidity' in control)) return false
  const field = control as HTMLInputElement // whatever has this method has those of an input
  field.setCustomValidity(text)
  field.checkValidity()
  field.setCustomValidity('')
  return true
}

/** The same for a form. */
export function useSubmit(run: (form: FormData) => Promise<unknown>): Submit {
  const { busy, error, go } = useAction(async (_signal, form: HTMLFormElement) => {
    try {
      await run(new FormData(form))
    } catch (problem) {
      if (!isMarked(form, (problem as Error).message)) throw problem // as above
      return
    }
    // What was typed into password fields does not stay in the document once it has been used.
    for (const field of form.querySelectorAll<HTMLInputElement>('[type=password]')) field.value = ''
  })
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    void go(event.currentTarget)
  }
  return { busy, error, onSubmit }
}
