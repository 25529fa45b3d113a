// The pages to look at, and what to do on each before the picture is taken.
import type { Page } from 'playwright-core'

export interface Shot {
  name: string
  path: string
  act?: (page: Page) => Promise<void>
  /** Only what fits the window: dialogs and pages that scroll inside. */
  clip?: boolean
}

/** Replaces one passage of the long document, as someone typing would. */
async function edit(page: Page, before: string, after: string): Promise<void> {
  await page.getByLabel('Catalogue document').evaluate((element, text) => {
    const area = element as unknown as {
      value: string
      focus(): void
      setSelectionRange(from: number, to: number): void
    }
    const at = area.value.indexOf(text)
    area.focus()
    area.setSelectionRange(at, at + text.length)
  }, before)
  await page.keyboard.insertText(after)
}

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click()

export function shots(account: string): Shot[] {
  const base = `/a/${account}`
  return [
    { name: 'login', path: '/login' },
    { name: 'setup', path: '/setup#token=one-time' },
    { name: 'invite', path: '/invite#token=one-time' },
    { name: 'overview', path: base },
    { name: 'overview-day', path: `${base}?days=1` },
    { name: 'overview-empty', path: '/a/acc_01k9new0' },
    { name: 'overview-broken', path: '/a/broken' },
    { name: 'keys', path: `${base}/keys` },
    { name: 'keys-empty', path: '/a/acc_01k9new0/keys' },
    {
      name: 'key-form',
      path: `${base}/keys?new=1`,
      clip: true,
      async act(page) {
        await page.getByLabel('Name').fill('website')
        await page.getByText('Restrictions and limits').click()
        await page.getByLabel('All models and data endpoints').uncheck()
      },
    },
    {
      name: 'key-once',
      path: `${base}/keys?new=1`,
      clip: true,
      async act(page) {
        await page.getByLabel('Name').fill('website')
        await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
        await page.getByText('Your new key').waitFor()
      },
    },
    {
      name: 'key-menu',
      path: `${base}/keys`,
      clip: true,
      act: (page) => press(page, /Actions for nightly/),
    },
    { name: 'models', path: `${base}/models` },
    { name: 'model', path: `${base}/models/alpha-5.4` },
    { name: 'model-image', path: `${base}/models/alpha-image-2` },
    { name: 'model-endpoint', path: `${base}/models/siteanalytics%2Fwebsites%2Fvisits` },
    { name: 'play-chat-empty', path: `${base}/playground/chat`, clip: true },
    {
      name: 'play-chat',
      path: `${base}/playground/chat`,
      clip: true,
      async act(page) {
        await page.getByLabel('Message', { exact: true }).fill('What does a gateway do?')
        await press(page, 'Send')
        await page.getByRole('link', { name: 'Arithmetic' }).waitFor({ timeout: 15_000 })
      },
    },
    {
      name: 'play-chat-tools',
      path: `${base}/playground/chat`,
      clip: true,
      async act(page) {
        await page.getByText('Tools', { exact: true }).click()
        await press(page, 'Insert an example')
        await page.getByLabel('Message', { exact: true }).fill('How is the weather in Oslo?')
        await press(page, 'Send')
        await page.getByLabel('Result of get_weather').waitFor()
      },
    },
    {
      name: 'play-chat-fault',
      path: `${base}/playground/chat`,
      clip: true,
      async act(page) {
        await page.getByLabel('Message', { exact: true }).fill('Please fail')
        await press(page, 'Send')
        await page.getByText('Not enough credits').waitFor()
      },
    },
    {
      name: 'play-image',
      path: `${base}/playground/image`,
      async act(page) {
        await page.getByLabel('Prompt').fill('A lighthouse at dusk, watercolour, warm window light')
        await page.getByLabel('Address of an image').fill('https://example.com/reference.png')
        await press(page, 'Add')
        await press(page, 'Make the image')
        await page.locator('.picture img').waitFor({ timeout: 20_000 })
        await page.locator('.picture img').evaluate((img) => (img as unknown as { decode(): Promise<void> }).decode())
      },
    },
    {
      name: 'play-video',
      path: `${base}/playground/video`,
      async act(page) {
        await page.getByLabel('Prompt').fill('A paper boat drifts down a stream in spring')
        await press(page, 'Make the video')
        await page.getByText('In the making').first().waitFor()
        await page.locator('.progress-now').waitFor()
      },
    },
    {
      name: 'play-social',
      path: `${base}/playground/social?endpoint=social%2Fusers`,
      async act(page) {
        await page.getByLabel('username').first().fill('jack')
        await press(page, 'Run')
        await page.getByRole('tab', { name: 'JSON' }).waitFor()
      },
    },
    {
      name: 'play-analytics',
      path: `${base}/playground/analytics?endpoint=siteanalytics%2Fwebsites%2Fvisits%2Ftrend`,
      async act(page) {
        await page.getByLabel('keys').fill('example.com')
        await press(page, 'Run')
        await page.getByRole('tab', { name: 'JSON' }).waitFor()
      },
    },
    {
      name: 'play-analytics-table',
      path: `${base}/playground/analytics?endpoint=siteanalytics%2Fwebsites%2Fgeography`,
      async act(page) {
        await page.getByLabel('keys').fill('example.com')
        await press(page, 'Run')
        await page.getByRole('tab', { name: /Table/ }).click()
      },
    },
    { name: 'usage', path: `${base}/usage` },
    { name: 'usage-empty', path: `${base}/usage?outcome=expired&product=socialapi` },
    {
      name: 'call',
      path: `${base}/usage`,
      async act(page) {
        await page
          .getByRole('link', { name: /alpha-5.4|beta-opus-5/ })
          .first()
          .click()
        await page.getByText('How the charge came about').waitFor()
      },
    },
    { name: 'jobs', path: `${base}/jobs` },
    {
      name: 'job',
      path: `${base}/jobs`,
      async act(page) {
        await page
          .getByRole('link', { name: /paper boat drifts down a rain/ })
          .first()
          .click()
        await page.locator('video').waitFor()
        await page.waitForFunction(
          () => (globalThis.document.querySelector('video') as unknown as { readyState: number })?.readyState >= 1,
        )
      },
    },
    { name: 'statement', path: `${base}/statement` },
    { name: 'members', path: `${base}/members` },
    {
      name: 'member-invite',
      path: `${base}/members`,
      clip: true,
      async act(page) {
        await press(page, 'Invite')
        await page.getByLabel('Email').fill('lena@northwind.example')
        await press(page, 'Make the link')
        await page.getByText('Pass this link on').waitFor()
      },
    },
    { name: 'profile', path: '/profile' },
    {
      name: 'menu',
      path: base,
      clip: true,
      act: async (page) => {
        const button = page.getByRole('button', { name: 'More' })
        if (await button.isVisible()) await button.click()
      },
    },
    {
      name: 'picker',
      path: base,
      clip: true,
      act: async (page) => {
        await page
          .getByRole('button', { name: /Northwind/ })
          .locator('visible=true')
          .first()
          .click()
        await page.getByText('Harbor 1').first().waitFor()
      },
    },
    { name: 'operator-accounts', path: '/operator/accounts' },
    { name: 'operator-account', path: `/operator/accounts/${account}` },
    { name: 'operator-account-keys', path: `/operator/accounts/${account}/keys` },
    {
      name: 'operator-credits',
      path: `/operator/accounts/${account}`,
      clip: true,
      async act(page) {
        await press(page, 'Credits')
        await page.getByLabel('Amount').fill('500')
        await page.getByLabel('Note').fill('Invoice 2026-014')
      },
    },
    { name: 'operator-catalogue', path: '/operator/catalogue' },
    {
      name: 'operator-price',
      path: '/operator/catalogue',
      clip: true,
      act: (page) => press(page, 'Price'),
    },
    { name: 'operator-document', path: '/operator/catalogue/document', clip: true },
    {
      name: 'operator-diff',
      path: '/operator/catalogue/document',
      clip: true,
      async act(page) {
        await edit(page, '"Alpha 5.4"', '"Alpha 5.4 (new)"')
        await edit(page, '"250"', '"240"')
        await press(page, 'Check and preview')
        await page.getByText('What will change').waitFor()
      },
    },
    {
      name: 'operator-problems',
      path: '/operator/catalogue/document',
      clip: true,
      async act(page) {
        await edit(page, '"vendor": "alpha"', '"vendor": "nobody"')
        await press(page, 'Check and preview')
        await page.getByText('Nothing was applied').waitFor()
      },
    },
    { name: 'operator-versions', path: '/operator/catalogue/versions' },
    {
      name: 'operator-vendors',
      path: '/operator/vendors',
      async act(page) {
        await press(page, 'Test')
        await page.getByText('Reachable').waitFor()
      },
    },
    { name: 'operator-live', path: '/operator/live' },
    {
      name: 'operator-ledger',
      path: '/operator/ledger',
      async act(page) {
        await press(page, 'Check now')
        await page.getByText('in order').waitFor()
      },
    },
    { name: 'operator-audit', path: '/operator/audit' },
    { name: 'operator-system', path: '/operator/system' },
    { name: 'lost', path: '/nowhere' },
  ]
}
