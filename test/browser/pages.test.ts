// Every page as somebody sees it who needs contrast, a keyboard or a small screen; and how much the first one weighs.
import { type Permission, RIGHTS, roleMay } from '../../src/identity/roles.ts'
import { assert, before, runs, started, test } from '../kit.ts'
import { PASSWORD, startConsole, type Visitor } from './console.ts'
import { DOORS, pagesOf, setTheme, settled } from './pages.ts'
import { askInBatch } from './seed.ts'

const THEMES = ['light', 'dark'] as const
/** Scripts and styles; the font comes after the first text is shown. */
const FIRST_BYTES_MAX = 130 * 1024
const FONT_BYTES_MAX = 32 * 1024

const isRight = (name: string): name is Permission => RIGHTS.some(({ permission }) => permission === name)

let visitor: Visitor
let account = ''

const home = started(startConsole)
before(async () => {
  const made = await home.account()
  account = made.id
  for (const model of ['alpha-5.4', 'beta-opus-5', 'no-such-model'])
    await home.call('/v1/chat-completions', made.key, { model, messages: [{ role: 'user', content: 'Hello!' }] })
  await askInBatch(home, made.key)
  visitor = await home.visitor()
})

/** What the page on screen was made of, by what the network would carry. */
async function weigh({ page }: Visitor) {
  const weights = (await page.evaluate(`performance.getEntriesByType('resource').map(
    ({ name, encodedBodySize, decodedBodySize }) => ({ name, encodedBodySize, decodedBodySize }))`)) as {
    name: string
    encodedBodySize: number
    decodedBodySize: number
  }[]
  const scripts = weights.filter(({ name }) => name.endsWith('.js'))
  const sum = (list: typeof weights) => list.reduce((total, { encodedBodySize }) => total + encodedBodySize, 0)
  const fonts = weights.filter(({ name }) => name.endsWith('.woff2'))
  // What the API answers grows with the account.
  const files = weights.filter(({ name }) => !name.includes('/api/') && !name.endsWith('.woff2'))
  assert.deepEqual([fonts.length, sum(fonts) < FONT_BYTES_MAX], [1, true], `${sum(fonts)} bytes of fonts`)
  assert.ok(sum(scripts) > 0 && sum(files) < FIRST_BYTES_MAX, `${sum(files)} bytes`)
  assert.ok(scripts.some(({ encodedBodySize, decodedBodySize }) => encodedBodySize < decodedBodySize / 2))
  return `${sum(scripts)} bytes of scripts, ${sum(files) - sum(scripts)} of other files`
}

test('the first page needs few bytes, compressed, and one small font', async (t) => {
  await visitor.go('/login')
  t.diagnostic(await weigh(visitor))
})

test('pages that need no login pass the accessibility check in light and dark', async () => {
  for (const { name, path } of DOORS) {
    await visitor.go(path)
    await check(name)
  }
})

test('the check itself finds text that is too pale in either theme, and a field without a name', async () => {
  const { page } = visitor
  await visitor.go('/login')
  await check('login')
  for (const [theme, color] of [
    ['light', '#dddddd'],
    ['dark', '#333333'],
  ] as const) {
    await setTheme(page, theme)
    await page.evaluate(`document.querySelector('h1').style.color = '${color}'`)
    const found = await home.violations(page, { onlyContrast: true })
    assert.deepEqual([found.length, found[0]?.startsWith('color-contrast at h1')], [1, true], `${theme}: ${found}`)
  }
  await page.evaluate(`document.querySelector('form').append(document.createElement('input'))`)
  const found = await home.violations(page)
  assert.ok(found.length === 1 && found[0]?.startsWith('label at'), found.join('\n'))
})

/** What does not fit its frame: the page, or a table of ours; an answer has as many columns as it has. */
const WIDER = `[document.documentElement, ...document.querySelectorAll('.table-frame:not(.bench .table-frame)')]
  .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1)
  .map(({ tagName, scrollWidth, clientWidth }) => tagName + ' ' + scrollWidth + ' > ' + clientWidth)`

test('the first page of whoever is signed in needs few bytes too', async (t) => {
  visitor = await home.signedIn()
  for (const path of [`/a/${account}`, '/operator/home']) {
    await visitor.go(path)
    await settled(visitor.page)
    t.diagnostic(`${path.split('/')[1]}: ${await weigh(visitor)}`)
  }
})

test('every page passes the accessibility check, in light and dark, and fits a phone', async (t) => {
  for (const { name, path, act } of pagesOf(account))
    await t.test(name, async () => {
      await visitor.page.setViewportSize({ width: 1280, height: 800 })
      await visitor.follow(path)
      await act?.(visitor.page)
      await settled(visitor.page)
      await check(name)
      const wide = (await visitor.page.evaluate(WIDER)) as string[]
      assert.deepEqual(wide, [], `${name} has to be scrolled sideways on a laptop`)
      await visitor.page.setViewportSize({ width: 390, height: 844 })
      const width = (await visitor.page.evaluate('document.documentElement.scrollWidth')) as number
      assert.ok(width <= 390, `${name} is ${width} pixels wide on a phone`)
    })
})

/** What can be pressed on the page: by its declared right, or by what says that it changes something. */
const CONTROLS = `[...document.querySelectorAll('main :is([data-right], button[type=submit], [role=switch], .button-primary)')]
  .filter((one) => !one.matches(':disabled') && one.checkVisibility())
  .map((one) => (one.dataset.right ?? '') + ' ' + (one.textContent || one.getAttribute('aria-label')))`

/** Of the pages that a role can see, which are looked at. */
const STRIDE = runs(2, 1)

test('roles that only read find nothing on any page that would be refused', async () => {
  const paths = [...new Set(pagesOf(account).map(({ path }) => path))]
  const operatorPages = paths.filter((path) => path.startsWith('/operator'))
  // All tabs of the playground are behind one right.
  const isTab = (path: string) => /\/playground\/(?!chat$)/.test(path)
  const accountPages = paths.filter((path) => path.startsWith('/a/') && !isTab(path))
  const controls = async (on: Visitor, path: string) => {
    await on.follow(path)
    await settled(on.page)
    return (await on.page.evaluate(CONTROLS)) as string[]
  }
  // The operator, who is signed in, has them: what is looked for is there.
  assert.ok((await controls(visitor, `/a/${account}/keys`)).some((one) => one.startsWith('keys:write ')))
  assert.ok((await controls(visitor, '/operator/branding')).some((one) => one.endsWith('Save')))
  for (const [role, path, pages] of [
    ['support', '/operator-invites', operatorPages],
    ['auditor', '/operator-invites', ['/operator/audit', '/operator/system', '/operator/ledger', '/operator/login']],
    ['viewer', `/accounts/${account}/invites`, accountPages],
  ] as const) {
    const { data } = await home.operator<{ link: string }>('POST', path, { email: `${role}@reads.example`, role })
    const person = await home.visitor()
    await person.page.goto(data.link)
    await person.page.locator('input[name=password]').fill(PASSWORD)
    await person.page.getByRole('button', { name: 'Accept and sign in' }).click()
    await person.page.waitForURL((url) => !url.pathname.endsWith('/invite'))
    const found: string[] = []
    for (const one of pages.filter((_, at) => at % STRIDE === 0))
      for (const control of await controls(person, one)) {
        const right = control.split(' ')[0] ?? ''
        if (!isRight(right) || !roleMay(role, right)) found.push(`${role} at ${one}: ${control}`)
      }
    assert.deepEqual(found, [])
    await person.close()
  }
})

async function check(name: string): Promise<void> {
  const { page } = visitor
  for (const [at, theme] of THEMES.entries()) {
    await setTheme(page, theme)
    // Only colours differ.
    assert.deepEqual(await home.violations(page, { onlyContrast: at > 0 }), [], `${name} in ${theme}`)
  }
}
