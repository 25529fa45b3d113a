// The operator's branding: the name, the logo and where customers get help. Colours come as a style sheet of their own.
import { useEffect } from 'react'
import { api } from './api.ts'
import { useQuery } from './query.ts'
import type { PublicBranding } from './wire.ts'

/** Undefined until it is known: nothing is called by a name that is not its own, not even for a moment. */
export function useBranding(): PublicBranding | undefined {
  return useQuery('branding/public', api.publicBranding).data
}

/** The title of the tab. */
export function useTitle(title: string): void {
  const branding = useBranding()
  const name = branding?.name
  const icon = branding?.logo?.url
  useEffect(() => {
    document.title = name === undefined ? title : `${title} · ${name}`
  }, [title, name])
  useEffect(() => {
    const link = document.querySelector<HTMLLinkElement>('link[rel=icon]')
    if (icon === undefined || !link) return
    link.removeAttribute('type')
    link.href = icon
  }, [icon])
}
