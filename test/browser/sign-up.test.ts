// A reseller's gateway from the console: branding, sign-up, the mail that arrives, one's own account, and leaving.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { startMailServer } from '../mail-server.ts'
import { started } from '../started.ts'
import { until } from '../until.ts'
import { PASSWORD, startConsole, type Visitor } from './console.ts'
import { setTheme } from './pages.ts'

const NAME = `Acme <img src=x onerror=alert(1)>`

let operator: Visitor

const post = started(startMailServer)
const mails = () => ({ TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'hello@gateway.example' })
const home = started(() => startConsole({ env: mails() }))
before(async () => {
  operator = await home.visitor()
  await home.setUp(operator, 'op@example.com')
})

test('an operator names the gateway, colours it, looks at its mails and opens sign-up', async () => {
  const { page } = operator
  await operator.go('/operator/branding')
  await page.getByLabel('Name', { exact: true }).fill(NAME)
  await page.getByLabel('Color', { exact: true }).fill('#ffcc00')
  const save = page.getByRole('button', { name: 'Save' })
  await save.click()
  await page.getByText('cannot be read on light pages').waitFor()
  await page.getByLabel('Color', { exact: true }).fill('#7a1fa2')
  await page.getByLabel('Support address').fill('help@acme.example')
  await page.getByLabel('Links').fill('Privacy policy https://acme.example/privacy')
  await save.click()
  await page.getByText('Saved.').first().waitFor()
  await operator.go('/operator/mails')
  await page.frameLocator('iframe').getByText(`You asked for an account at ${NAME}`).waitFor()
  await operator.go('/operator/sign-up')
  await page.getByRole('radio', { name: 'Open Anyone' }).check()
  await page.getByLabel('Starting credits').fill('12.5')
  await page.getByLabel('Terms version').fill('2026-11')
  await page.getByLabel('Terms URL').fill('https://acme.example/terms')
  await page.getByLabel('Requests per minute').fill('50')
  await save.click()
  await page.getByText('Saved.').first().waitFor()
})

test('somebody signs up, confirms by the mail that arrived, and has an account with credits', async (t) => {
  const visitor = await home.visitor()
  t.after(() => visitor.close())
  const { page } = visitor
  await visitor.go('/login')
  await until(async () => (await page.title()).startsWith('Sign in · Acme <img'))
  for (const theme of ['light', 'dark'] as const) {
    await setTheme(page, theme)
    assert.deepEqual(
      await home.violations(page, { onlyContrast: theme === 'dark' }),
      [],
      `the chosen colour in ${theme}`,
    )
  }
  await page.getByRole('link', { name: 'Sign up' }).click()
  await page.getByLabel('Email').fill('ada@example.com')
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.getByText('a mail is on its way').waitFor()
  const mail = await post.newest('ada@example.com')
  const link = /https?:\S+#token=\S+/.exec(mail.text)![0]
  await page.goto(link)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByLabel('Account name').fill('Ada & <b>Co</b>')
  await page.getByRole('button', { name: 'Create the account' }).click()
  // The browser itself asks for the terms.
  assert.equal(await page.locator('input[type=checkbox]:invalid').count(), 1)
  await page.getByLabel('I accept the').check()
  await page.getByRole('button', { name: 'Create the account' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByText('12.5').first().waitFor()
  await page.goto(link)
  await page.getByText('This link is not valid any more').waitFor()

  await visitor.go('/profile')
  await page.getByRole('button', { name: 'Delete my login' }).click()
  await page.getByLabel('Your email address').fill('ada@example.com')
  const forGood = page.getByRole('button', { name: 'Delete for good' })
  await forGood.click()
  await page.getByText('has 12.5 credits').waitFor()
  await page.getByLabel('Credits that are left').check()
  await forGood.click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.goto(`${home.url}/console/`)
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('a receiver of alerts who has not confirmed yet is shown as waiting', async () => {
  const { page } = operator
  await operator.go('/operator/alerts/rules')
  await page.getByLabel('Kind').selectOption('email')
  await page.getByLabel('Address').fill('stranger@elsewhere.example')
  await page.getByRole('button', { name: 'Add' }).click()
  await page.getByRole('listitem').filter({ hasText: 'stranger@' }).getByText('Waiting for confirmation').waitFor()
})

test('nothing broke the content policy, raised an error or asked another host', () => {
  assert.deepEqual(home.mishaps, [])
})

test('a gateway that sells nothing also sends whoever forgot a password the mail with a link', async (t) => {
  const bare = await startConsole({ env: { ...mails(), TOLLGATE_EXTENSIONS_OFF: 'sales' } })
  t.after(() => bare.close())
  const owner = await bare.visitor()
  await bare.setUp(owner, 'owner@example.com')
  const { page, go } = await bare.visitor()
  await go('/login')
  await page.getByRole('link', { name: 'Get a mail' }).click()
  await page.getByLabel('Email').fill('owner@example.com')
  await page.getByRole('button', { name: 'Send me a link' }).click()
  assert.match((await post.newest('owner@example.com')).text, /#token=/)
})
