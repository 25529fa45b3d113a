// A reseller's gateway from the console: branding, sign-up, the mail that arrives, one's own account, and leaving.
import { assert, started, test, until } from '../kit.ts'
import { startMailServer } from '../mail-server.ts'
import { PASSWORD, pageOf, startConsole } from './console.ts'
import { setTheme } from './pages.ts'
import { EXACT, enter, FIRST, goTo, press, see, select, sight, steps, tick } from './steps.ts'

const NAME = `Acme <img src=x onerror=alert(1)>`

const post = started(startMailServer)
const mails = () => ({ TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'hello@gateway.example' })
const home = started(() => startConsole({ env: mails() }))
const operator = started(() => home.signedIn())
const page = pageOf(operator)

test('an operator names the gateway, colours it, looks at its mails and opens sign-up', async () => {
  await operator.go('/operator/branding')
  await steps(page, enter('Name', NAME, EXACT), enter('Color', '#ffcc00', EXACT))
  const save = page.getByRole('button', { name: 'Save' })
  await save.click()
  await steps(page, see('cannot be read on light pages'), enter('Color', '#7a1fa2', EXACT))
  await page.getByLabel('Support address').fill('help@acme.example')
  await page.getByLabel('Links').fill('Privacy policy https://acme.example/privacy')
  await save.click()
  await page.getByText('Saved.').first().waitFor()
  await operator.go('/operator/mails')
  await page.frameLocator('iframe').getByText(`You asked for an account at ${NAME}`).waitFor()
  await operator.go('/operator/sign-up')
  await page.getByRole('radio', { name: 'Open Anyone' }).check()
  await steps(page, enter('Starting credits', '12.5'), enter('Terms version', '2026-11'))
  await steps(page, enter('Terms URL', 'https://acme.example/terms'), enter('Requests per minute', '50'))
  await steps(page, enter('Region', 'moon'), press('Save'), see('no ledger lies in "moon"'), enter('Region', ''))
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
  await steps(page, goTo('Sign up'), enter('Email', 'ada@example.com'), press('Send me a link'))
  await page.getByText('a mail is on its way').waitFor()
  const mail = await post.newest('ada@example.com')
  const link = /https?:\S+#token=\S+/.exec(mail.text)![0]
  await page.goto(link)
  await steps(page, enter('Password', PASSWORD), enter('Account name', 'Ada & <b>Co</b>'), press('Create the account'))
  // The browser itself asks for the terms.
  assert.equal(await page.locator('input[type=checkbox]:invalid').count(), 1)
  await steps(page, tick('I accept the'), press('Create the account'), sight('heading', 'Overview'), see('12.5', FIRST))
  await page.goto(link)
  await page.getByText('This link is not valid any more').waitFor()

  await visitor.go('/profile')
  await steps(page, press('Delete my login'), enter('Your email address', 'ada@example.com'))
  const forGood = page.getByRole('button', { name: 'Delete for good' })
  await forGood.click()
  await steps(page, see('has 12.5 credits'), tick('Credits that are left'))
  await forGood.click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.goto(`${home.url}/console/`)
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('a receiver of alerts who has not confirmed yet is shown as waiting', async () => {
  await operator.go('/operator/alerts/rules')
  await steps(page, select('Kind', 'email'), enter('Address', 'stranger@elsewhere.example'), press('Add'))
  await page.getByRole('listitem').filter({ hasText: 'stranger@' }).getByText('Waiting for confirmation').waitFor()
})

test('a gateway that sells nothing also sends whoever forgot a password the mail with a link', async (t) => {
  const bare = await startConsole({ env: { ...mails(), TOLLGATE_EXTENSIONS_OFF: 'sales' } })
  t.after(() => bare.close())
  const owner = await bare.visitor()
  await bare.setUp(owner, 'owner@example.com')
  const { page, go } = await bare.visitor()
  await go('/login')
  await steps(page, goTo('Get a mail'), enter('Email', 'owner@example.com'), press('Send me a link'))
  assert.match((await post.newest('owner@example.com')).text, /#token=/)
})
