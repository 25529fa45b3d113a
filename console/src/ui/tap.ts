// What a pointer reads by resting on it, a finger reads by tapping: exact amounts, whole ids, times in full.
import { toast } from './toast.tsx'

export function showTitlesOnTap(): void {
  document.addEventListener('click', (event) => {
    if (!(event instanceof PointerEvent) || event.pointerType !== 'touch' || !(event.target instanceof Element)) return
    const named = event.target.closest('[title]')
    const words = named?.getAttribute('title')
    if (words && !event.target.closest('a, button, input, select, textarea')) toast(words)
  })
}
