// Something that the server does for us and may refuse: once at a time, with the error of the last try.
import { type FormEvent, useEffect, useRef, useState } from 'react'
import type { ApiError } from '../api.ts'
import type { Control } from './field.tsx'

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

/** Others have no place for a text beside them. */
const isInField = (one: unknown): one is Control =>
  one instanceof Element && one.matches('.field :is(input, select, textarea)')

/** Names of models have points too. */
function valueAt(all: unknown, steps: readonly string[]): unknown {
  if (steps.length === 0) return all
  const ends = steps.map((_, at) => at + 1).filter((end) => Object(all)[steps.slice(0, end).join('.')] !== undefined)
  return ends.map((end) => valueAt(Object(all)[steps.slice(0, end).join('.')], steps.slice(end))).find((one) => one)
}

/** By its name, or else the only one that holds what the server was sent at this path. */
function fieldAt(form: HTMLFormElement, path: string, sent: unknown): Control | undefined {
  const steps = path.split('.')
  const named = [path, ...steps.toReversed()].map((name) => form.elements.namedItem(name)).find(isInField)
  const value = String(valueAt(sent, steps) ?? '')
  const holds = (text: string) => text.trim() === value || text.split(/[\s,]+/).includes(value)
  const holding = value === '' || named ? [] : [...form.elements].filter(isInField).filter((one) => holds(one.value))
  return holding.length === 1 ? holding[0] : named
}

/**
 * "issuer.country: must be …" is shown at its field, as if the browser had found it. False: the form shows no such
 * field.
 */
function isMarked(form: HTMLFormElement, line: string, sent: unknown): boolean {
  const [, path = '', text = ''] = /^([^\s:]+): (.+)$/s.exec(line) ?? []
  const field = path && fieldAt(form, path, sent)
  if (!field) return false
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
      const { message, sent } = problem as ApiError // or another error, of which nothing was sent
      if (message.split('\n').filter((line) => !isMarked(form, line, sent)).length > 0) throw problem
      return
    }
    // What was typed into password fields does not stay in the document once it has been used.
    for (const field of form.querySelectorAll<HTMLInputElement>('[type=password]')) field.value = ''
  })
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const wrong = event.currentTarget.querySelector<HTMLElement>('[data-wrong]')
    if (wrong) wrong.focus()
    else void go(event.currentTarget)
  }
  return { busy, error, onSubmit }
}
