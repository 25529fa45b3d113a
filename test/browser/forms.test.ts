// Every form of the console says at the field what is wrong: what is missing, before anything is sent, and what the
// server refuses. What forms send the test itself refuses, in the server's words, so that nothing is changed by what is
// pressed here.
import type { Locator, Route } from 'playwright-core'
import { assert, before, runs, started, test } from '../kit.ts'
import { pageOf, startConsole } from './console.ts'
import { pagesOf, settled } from './pages.ts'
import { askInBatch } from './seed.ts'
import { press, steps } from './steps.ts'

const REFUSED = 'must be something else.'
const FIELDS = ':is(input:not([type=checkbox], [type=radio], [type=file], [role=combobox]), textarea):enabled:visible'
const OPENERS = 'main button:not(form *, [role=switch], [role=tab]):enabled:visible'
/** Buttons that open no form, and some that take long. */
const OTHERS =
  /^(Copy|CSV|Export|PDF|All as|Try again|Test|Check now|Load more|Auto-refresh|Columns|Add filter|Remove the filter|Sign out|.*↕$)/
/** Their forms are on other pages too, or, in the playground, show the answer of a call. */
const isSeen = (path: string) => !/\/playground\/|\?|\/statement$/.test(path)
const MENUS_MAX = 2
/** Of the pages. */
const STRIDE = runs(2, 1)

type Control = { readonly value?: string; readonly ariaLabel: string | null; readonly textContent: string }

let account = ''
let typed: ReadonlySet<string> = new Set()
/** Where in what was sent last stands what was typed, and what of it is refused. */
let sent: readonly string[] = []
let refused = ''
let requests = 0

const home = started(startConsole)
const visitor = started(() => home.signedIn())
const page = pageOf(visitor)
before(async () => {
  const made = await home.account()
  account = made.id
  await askInBatch(home, made.key)
  await page.route('**/console/api/**', refuse)
})

function pathsOf(body: unknown, path: readonly string[] = []): string[] {
  if (typeof body === 'object' && body !== null)
    return Object.entries(body).flatMap(([name, part]) => pathsOf(part, [...path, name]))
  return typed.has(String(body)) ? [path.join('.')] : []
}

function refuse(route: Route): Promise<void> {
  const request = route.request()
  if (request.method() === 'GET') return route.continue()
  const known = new Set(pathsOf({ document: home.gateway.catalog.current.input }))
  requests += 1
  sent = pathsOf(request.postDataJSON()).filter((path) => !known.has(path))
  return route.fulfill({ status: 400, json: { error: { code: 10_000, message: `${refused || 'body'}: ${REFUSED}` } } })
}

/** Something of each field's own kind, unlike what the others have. */
async function fillIn(fields: readonly Locator[]): Promise<void> {
  const texts: string[] = []
  for (const [at, field] of fields.entries()) {
    const [type, mode] = [await field.getAttribute('type'), await field.getAttribute('inputmode')]
    const number = String(21 + at)
    const isDay = (await field.getAttribute('placeholder')) === 'YYYY-MM-DD'
    const text =
      type === 'email'
        ? `v${number}@example.com`
        : type === 'url'
          ? `https://v${number}.example.com`
          : type === 'number' || mode === 'decimal' || mode === 'numeric'
            ? number
            : isDay
              ? `2031-01-${String(1 + at).padStart(2, '0')}`
              : `value-${number}`
    if (!(await field.isEditable())) continue
    await field.fill(text)
    texts.push(text)
  }
  typed = new Set(texts)
}

/** What is wrong with how the form says what is wrong. */
async function faultsOf(form: Locator): Promise<string[]> {
  const send = form.locator('button[type=submit]').last()
  const fields = form.locator(FIELDS)
  const marked = form.locator('[aria-invalid=true]')
  if ((await fields.count()) === 0 || (await send.count()) === 0) return []
  const preset = form.getByRole('button', { name: 'Read only' })
  if ((await preset.count()) > 0) await preset.click()
  const faults: string[] = []
  const needed = form.locator(`${FIELDS}:required:not([readonly])`)
  if ((await needed.count()) > 0) {
    for (const field of await needed.all()) await field.fill('')
    if (await send.isDisabled()) faults.push('it cannot be sent while a field is empty, and does not say why')
    else {
      await send.click()
      if ((await needed.first().getAttribute('aria-invalid')) !== 'true') faults.push('an empty field is not marked')
    }
  }
  await fillIn(await fields.all())
  for (const select of await form.locator('select:enabled:visible:required').all())
    await select.selectOption({ index: 1 })
  sent = []
  refused = ''
  const [asked, dialogs] = [requests, await page.locator('dialog[open]').count()]
  await send.click()
  // What is wrong already, as a pattern or a repeated password is, is not sent; some forms only change the page.
  await settled(page)
  if (requests === asked) {
    const gone = !(await send.isVisible()) || (await page.locator('dialog[open]').count()) > dialogs
    return (await marked.count()) > 0 || gone ? faults : [...faults, 'it was not sent, and does not say why']
  }
  for (const path of sent) {
    refused = path
    await send.click()
    await settled(page)
    const texts = await marked.evaluateAll((all) => all.map((one) => (one as unknown as Control).value ?? ''))
    if (!texts.some((text) => typed.has(text) || [...typed].some((one) => text.includes(one))))
      faults.push(`${path} is not marked when the server refuses it`)
  }
  return faults
}

test('every form marks the field that is missing, and the one that the server refuses', async (t) => {
  const found: string[] = []
  let forms = 0
  const paths = [...new Set(pagesOf(account).map((one) => one.path))].filter(isSeen)
  for (const path of paths.filter((_, at) => at % STRIDE === 0)) {
    const look = async (name: string, form: Locator) => {
      forms += 1
      for (const fault of await faultsOf(form)) found.push(`${path} › ${name}: ${fault}`)
    }
    const open = async () => {
      await visitor.follow(path)
      await settled(page)
    }
    await open()
    for (const form of await page.locator('main form').all()) await look('form', form)
    await open()
    const openers = page.locator(OPENERS)
    const names = await openers.evaluateAll((all) =>
      all.map((one) => (one as unknown as Control).ariaLabel ?? (one as unknown as Control).textContent),
    )
    const menus = names.filter((name) => name.startsWith('Actions for')).slice(0, MENUS_MAX)
    for (const [at, name] of names.entries()) {
      if (OTHERS.test(name) || (name.startsWith('Actions for') && !menus.includes(name))) continue
      await openers.nth(at).click()
      const items = await page.getByRole('menuitem').allTextContents()
      for (const [item, said] of items.length > 0 ? items.entries() : [[-1, name] as const]) {
        if (item > 0) {
          await open()
          await openers.nth(at).click()
        }
        if (item >= 0) await page.getByRole('menuitem').nth(item).click()
        const form = page.locator('dialog[open] form').first()
        if ((await form.count()) > 0) await look(said, form)
      }
      if (items.length > 0 || (await page.locator('dialog[open]').count()) > 0 || !page.url().endsWith(path))
        await open()
    }
  }
  t.diagnostic(`${forms} forms`)
  assert.deepEqual(found, [])
  assert.ok(forms * STRIDE > 50)
})

test('a day is typed, or chosen from a month by the pointer or by keys', async () => {
  const from = page.getByLabel('From', { exact: true })
  const at = (day: string) => page.waitForURL((url) => url.searchParams.get('from') === day)
  await visitor.go(`/a/${account}?period=range`)
  await from.fill('2026-01-30')
  await at('2026-01-30')
  // Half a day is none.
  await from.fill('2026-0')
  assert.match(page.url(), /from=2026-01-30/)
  await from.fill('2026-01-30')
  const open = page.getByRole('button', { name: 'Choose a day' }).first()
  await open.click()
  const month = page.getByRole('dialog', { name: 'Choose a day' })
  await month.getByText('January 2026').waitFor()
  assert.deepEqual(await home.violations(page), [])
  for (const key of ['PageDown', 'ArrowRight', 'ArrowUp', 'Enter']) await page.keyboard.press(key)
  await at('2026-02-22')
  assert.equal(await from.inputValue(), '2026-02-22')
  await page.setViewportSize({ width: 390, height: 844 })
  await open.click()
  await steps(month, press('Month after'), press(/^3 Mar/))
  await at('2026-03-03')
})
