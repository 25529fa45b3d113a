import { useSyncExternalStore } from 'react'

export type Theme = 'auto' | 'light' | 'dark'
const listeners = new Set<() => void>()

function theme(): Theme {
  const chosen = document.documentElement.dataset.theme
  return chosen === 'light' || chosen === 'dark' ? chosen : 'auto'
}

export function setTheme(next: Theme): void {
  if (next === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  try {
    if (next === 'auto') localStorage.removeItem('theme')
    else localStorage.setItem('theme', next)
  } catch {
    // Without storage the choice lasts until the reload.
  }
  for (const run of listeners) run()
}

export function useTheme(): Theme {
  return useSyncExternalStore((run) => {
    listeners.add(run)
    return () => listeners.delete(run)
  }, theme)
}
