// What people come to the documentation for: from its first page to code that runs, and a call from the page itself.
import { assert, before, started, test } from '../kit.ts'
import { runProgram } from '../sdk/cache.ts'
import { pageOf, startConsole } from './console.ts'
import { DOCS_PAGES, setTheme } from './pages.ts'
import { EXACT, enter, FIRST, goTo, press, sight, steps } from './steps.ts'

let key = ''

const home = started(startConsole)
const reader = started(() => home.visitor())
const page = pageOf(reader)
before(async () => {
  key = (await home.account()).key
})

test('docs to a call in Python takes three clicks, with this gateway’s own address in it', async () => {
  await page.goto(`${home.url}/docs`)
  await steps(page, goTo(/Look something up/), goTo('POST /v1/chat-completions'), sight('heading', 'Chat completion'))
  await page.getByText('Python · openai', { exact: true }).click()
  const code = (await page.locator('.panel pre').filter({ visible: true }).textContent()) ?? ''
  assert.match(code, new RegExp(`OpenAI\\(base_url="${home.url}/v1", api_key=os\\.environ\\["TOLLGATE_KEY"\\]\\)`))
  const compiled = await runProgram('python3', ['-c', `compile(${JSON.stringify(code)}, 'page', 'exec')`])
  // The long tests run it with the package.
  if (compiled.code !== 127) assert.equal(compiled.code, 0, compiled.err)
  // The language is remembered on the next page.
  await steps(page, goTo('Create a response', { ...EXACT, ...FIRST }), sight('heading', 'Create a response', EXACT))
  assert.match((await page.locator('.panel pre').filter({ visible: true }).textContent()) ?? '', /responses\.create/)
})

test('a call is made from a page with a pasted key, which stays in the tab and out of every address', async () => {
  const addresses: string[] = []
  page.on('request', (request) => addresses.push(request.url()))
  await page.goto(`${home.url}/docs/api/chat`)
  await steps(page, enter('API key', key), press('Send', EXACT))
  await page
    .getByRole('status')
    .getByText(/^200 .* credits · req_/)
    .waitFor()
  assert.match((await page.getByRole('status').textContent()) ?? '', /chat\.completion/)
  await page.goto(`${home.url}/docs/api/social-users`)
  assert.equal(await page.getByLabel('API key').inputValue(), key)
  await page.getByLabel('username').fill('walker137')
  await page.keyboard.press('Enter')
  await page.getByRole('status').getByText(/^200 /).waitFor()
  await steps(page, enter('API key', 'tg_live_nobody'), press('Send', EXACT))
  await page.getByRole('status').getByText(/^401 /).waitFor()
  assert.ok(addresses.every((address) => !address.includes(key)))
  assert.equal(await page.evaluate('localStorage.length'), 0)
  const other = await home.visitor()
  await other.page.goto(`${home.url}/docs/api/chat`)
  assert.equal(await other.page.getByLabel('API key').inputValue(), '')
  await other.close()
})

test('an old address of an operation leads to its page', async () => {
  await page.goto(`${home.url}/docs/api#siteanalytics_websites_backlinks`)
  await page.waitForURL(/\/docs\/api\/siteanalytics-websites-backlinks$/)
})

test('the documentation passes the accessibility check in light and dark, and fits a phone', async () => {
  for (const path of DOCS_PAGES) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.goto(home.url + path)
    await setTheme(page, 'light')
    assert.deepEqual(await home.violations(page), [], `${path} in light`)
    await setTheme(page, 'dark')
    assert.deepEqual(await home.violations(page, { onlyContrast: true }), [], `${path} in dark`)
    for (const width of [1024, 390]) {
      await page.setViewportSize({ width, height: 844 })
      const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
      assert.ok(wide <= width, `${path} is ${wide} pixels wide at ${width}`)
    }
    const elements = Number(await page.evaluate('document.querySelectorAll("*").length'))
    assert.ok(elements < 6_000, `${path} has ${elements} elements`)
  }
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto(`${home.url}/docs`)
  await page.getByText('Menu', { exact: true }).click()
  await page.getByRole('navigation').getByRole('link', { name: 'Text', exact: true }).click()
  await page.getByRole('heading', { name: 'Streaming', exact: true }).waitFor()
})
