// What axe finds on a page that is worse than a blemish.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

export type Accessibility = (page: Page, options?: { onlyContrast: boolean }) => Promise<string[]>

/**
 * Contrast is decided by an element's text and by what lies behind it, so it is measured once for all elements with the
 * same chain of names, colours and sizes: the first with each look that was not measured in this document before is
 * marked.
 */
const MARK_NEW_LOOKS = `() => {
  const theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
  const known = (window.knownLooks ??= { light: new Set(), dark: new Set() })[theme]
  const looks = new Map([[null, '']])
  const ids = (window.lookIds ??= new Map())
  const lookOf = (element) => {
    const found = looks.get(element)
    if (found !== undefined) return found
    const { color, fontSize, fontWeight, backgroundColor, backgroundImage, opacity, textShadow, filter, position } =
      getComputedStyle(element)
    const look = [lookOf(element.parentElement), element.localName, element.getAttribute('class'), element.disabled,
      element.ariaDisabled, color, fontSize, fontWeight, backgroundColor, backgroundImage, opacity, textShadow, filter, position].join()
    if (!ids.has(look)) ids.set(look, ids.size)
    looks.set(element, ids.get(look))
    return ids.get(look)
  }
  for (const marked of document.querySelectorAll('[data-new-look]')) marked.removeAttribute('data-new-look')
  const root = document.querySelector('dialog[open]') ?? document.documentElement
  const holders = new Set(root.querySelectorAll('input, select, textarea'))
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) if (texts.currentNode.data.trim()) holders.add(texts.currentNode.parentElement)
  for (const element of holders) {
    if (known.has(lookOf(element)) || !element.checkVisibility()) continue
    known.add(lookOf(element))
    element.setAttribute('data-new-look', '')
  }
}`

const CONFIGURE = `axe.configure({ rules: [{ id: 'color-contrast', selector: '[data-new-look]' }] })`

/** Rules whose breach is a blemish at worst, of those that take their time. */
const BLEMISHES = ['region', 'landmark-unique', 'heading-order', 'aria-allowed-role', 'presentation-role-conflict']
const RULES = Object.fromEntries(BLEMISHES.map((rule) => [rule, { enabled: false }]))

/**
 * Whether everything around the page's own content is built as on a page of this document that was looked at before.
 */
const IS_FRAME_KNOWN = `() => {
  const frame = [...document.body.querySelectorAll(':not(main *)')].map(({ localName, attributes }) =>
    [localName, ...[...attributes].map(({ name }) => name).filter((name) => !/^(aria-current|data-new-look|style)$/.test(name))])
  const known = (window.knownFrames ??= new Set())
  const key = JSON.stringify([frame, document.title === ''])
  return known.has(key) || !known.add(key)
}`

/**
 * What lies behind an open dialog cannot be reached, and has been looked at on its own page. The frame, with its menus,
 * is looked at once: it is half of most pages.
 */
const RUN = `(async (options) => {
  (${MARK_NEW_LOOKS})()
  if (options.runOnly && !document.querySelector('[data-new-look]')) return []
  const root = document.querySelector('dialog[open]') ?? ((${IS_FRAME_KNOWN})() ? document.querySelector('main') : document)
  return (await axe.run(root ?? document, options)).violations
})`

interface Violation {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[]
}

export async function readAxe(): Promise<Accessibility> {
  const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  return async (page, { onlyContrast } = { onlyContrast: false }) => {
    // Evaluated by the debugger, which the page's policy does not bind; the policy is never switched off.
    if (!(await page.evaluate('"axe" in window'))) await page.evaluate(`${axe};${CONFIGURE}`)
    const options = {
      resultTypes: ['violations'],
      preload: false,
      ...(onlyContrast ? { runOnly: ['color-contrast'] } : { rules: RULES }),
    }
    const found = (await page.evaluate(`${RUN}(${JSON.stringify(options)})`)) as Violation[]
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
