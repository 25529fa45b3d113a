// What axe finds on a page that is worse than a blemish.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

export type Accessibility = (page: Page, options?: { onlyContrast: boolean }) => Promise<string[]>

/**
 * The first element with each look among those that hold text. Contrast is decided by an element's text and by what lies
 * behind it, so it is measured once for all elements with the same chain of names, colours and sizes; a look that was
 * measured in this document before is left out. Whoever finds nothing new gets an empty list.
 */
const NEW_LOOKS = `(root, theme) => {
  const known = (window.knownLooks ??= {})[theme] ??= new Set()
  const looks = new Map()
  const lookOf = (element) => {
    if (!element) return ''
    const found = looks.get(element)
    if (found !== undefined) return found
    const { color, fontSize, fontWeight, backgroundColor, backgroundImage, opacity, textShadow, filter, position, visibility } =
      getComputedStyle(element)
    const own = [element.localName, element.getAttribute('class'), element.disabled, element.ariaDisabled, color, fontSize, fontWeight,
      backgroundColor, backgroundImage, opacity, textShadow, filter, position, visibility].join()
    const look = lookOf(element.parentElement) + '/' + own
    looks.set(element, look)
    return look
  }
  const fresh = []
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  const holders = new Set(root.querySelectorAll('input, select, textarea'))
  while (texts.nextNode()) if (texts.currentNode.data.trim()) holders.add(texts.currentNode.parentElement)
  for (const element of holders) {
    if (!element.checkVisibility()) continue
    const look = lookOf(element)
    if (known.has(look)) continue
    known.add(look)
    fresh.push(element)
  }
  return fresh
}`

/** What lies behind an open dialog cannot be reached, and has been looked at on its own page. */
const ROOT = `document.querySelector('dialog[open]') ?? document.documentElement`

const CONTRAST = `(async () => {
  const theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
  const include = (${NEW_LOOKS})(${ROOT}, theme)
  if (include.length === 0) return []
  return (await axe.run({ include }, { resultTypes: ['violations'], runOnly: ['color-contrast'] })).violations
})()`

const REST = `(async () => {
  const rules = { 'color-contrast': { enabled: false } }
  return (await axe.run(document.querySelector('dialog[open]') ?? document, { resultTypes: ['violations'], rules })).violations
})()`

interface Violation {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[]
}

export async function readAxe(): Promise<Accessibility> {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  return async (page, { onlyContrast } = { onlyContrast: false }) => {
    // Evaluated by the debugger, which the page's policy does not bind; the policy is never switched off.
    if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe)
    const found = onlyContrast ? [] : ((await page.evaluate(REST)) as Violation[])
    found.push(...((await page.evaluate(CONTRAST)) as Violation[]))
    return found
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) =>
        nodes.map(
          ({ target, failureSummary }) =>
            `${id} at ${target.join(' ')}: ${(failureSummary ?? '').split('\n').slice(1).join(' ').trim()}`,
        ),
      )
  }
}
