// What someone typed survives a reload: kept in this tab's session storage, per account, emptied at sign-out. Passwords
// and keys never come here.
import { useCallback, useEffect, useRef, useState } from 'react'

const PREFIX = 'draft:'
const WRITE_AFTER_MS = 250

export function useDraft<T>(name: string, initial: T): [T, (next: T | ((old: T) => T)) => void] {
  const [value, setValue] = useState<T>(() => readDraft(name, initial))
  const written = useRef(value)

  useEffect(() => {
    if (written.current === value) return
    const write = () => {
      written.current = value
      writeDraft(name, value)
    }
    const timer = window.setTimeout(write, WRITE_AFTER_MS)
    window.addEventListener('pagehide', write)
    return () => {
      window.clearTimeout(timer)
      window.removeEventListener('pagehide', write)
      // The name changes with the account and the component may go: what is pending is written now.
      if (written.current !== value) write()
    }
  }, [name, value])

  return [value, useCallback((next) => setValue(next), [])]
}

function readDraft<T>(name: string, initial: T): T {
  try {
    const text = sessionStorage.getItem(PREFIX + name)
    return text === null ? initial : (JSON.parse(text) as T)
  } catch {
    return initial
  }
}

/** For a form that another page fills in before it is opened. */
export function putDraft(name: string, value: unknown): void {
  writeDraft(name, value)
}

function writeDraft(name: string, value: unknown): boolean {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(value))
    return true
  } catch {
    // The quota is a few megabytes; what does not fit lives until the reload.
    sessionStorage.removeItem(PREFIX + name)
    return false
  }
}

export function clearDrafts(): void {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
  // A key that was pasted into the documentation, in the same tab.
  sessionStorage.removeItem('docs-key')
}
