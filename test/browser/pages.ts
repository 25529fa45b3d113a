// Every page of the console, and what to do on it before somebody looks.
import type { Page } from 'playwright-core'
import { wavFile } from '../../sandbox/wav.ts'

export interface PageToSee {
  readonly name: string
  readonly path: string
  readonly act?: (page: Page) => Promise<void>
}

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click()

/** For whoever is not signed in. */
export const DOORS: readonly PageToSee[] = [
  { name: 'login', path: '/login' },
  { name: 'sso', path: '/sso/corp?code=none&state=none', act: (page) => page.locator('.fault').waitFor() },
  { name: 'setup', path: '/setup#token=not-a-token-that-would-work-anywhere' },
  { name: 'invite', path: '/invite#token=not-a-token-that-would-work-anywhere' },
  { name: 'sign-up', path: '/sign-up' },
  { name: 'sign-up-link', path: '/sign-up#token=not-a-token-that-would-work-anywhere' },
  { name: 'forgot', path: '/forgot' },
]

/** Of the documentation: the landing page, the index, one page of each kind. */
export const DOCS_PAGES: readonly string[] = [
  '/docs',
  '/docs/api',
  '/docs/api/chat',
  '/docs/api/siteanalytics-websites-visits',
  '/docs/api/files-create',
  '/docs/api/operator-get-accounts',
  '/docs/guides/quick-start',
  '/docs/reference/errors',
  '/docs/reference/command-line',
  '/docs/search?q=vision',
]

const SMALL_OPENAPI = `openapi: 3.1.0
info: { title: Maps }
servers: [{ url: https://maps.example.com }]
paths:
  /search:
    get:
      operationId: searchPlaces
      summary: Search places
      parameters: [{ name: q, in: query, required: true, schema: { type: string } }]
      responses: { "200": { description: Places } }
  /upload:
    post:
      operationId: upload
      requestBody: { required: true, content: { multipart/form-data: { schema: { type: object } } } }
      responses: { "200": { description: Ok } }
`

/** At once, as pasting does: typed by the browser's editor, eighty kilobytes take many seconds. */
async function editCatalogue(page: Page, edits: Readonly<Record<string, string>>): Promise<void> {
  await page.getByLabel('Catalog document').waitFor()
  await page.evaluate(`(() => {
    const area = document.querySelector('textarea[aria-label="Catalog document"]')
    const text = Object.entries(${JSON.stringify(edits)}).reduce((text, [old, next]) => text.replace(old, next), area.value)
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(area, text)
    area.dispatchEvent(new Event('input', { bubbles: true }))
  })()`)
  await press(page, 'Check and preview')
}

export function pagesOf(account: string): readonly PageToSee[] {
  const base = `/a/${account}`
  return [
    { name: 'overview', path: base, act: (page) => page.getByText('Spend', { exact: true }).first().waitFor() },
    { name: 'keys', path: `${base}/keys` },
    { name: 'invoices', path: `${base}/invoices` },
    {
      name: 'key-form',
      path: `${base}/keys?new=1`,
      async act(page) {
        await page.getByLabel('Name').fill('website')
        await page.getByText('Restrictions and limits').click()
        await page.getByLabel('All models and data endpoints').uncheck()
        await page.getByLabel('All endpoints').uncheck()
        await page.getByLabel('Search endpoints').fill('site')
      },
    },
    { name: 'content-logging', path: `${base}/content-logging` },
    {
      name: 'content-logging-confirm',
      path: `${base}/content-logging`,
      async act(page) {
        await press(page, 'Turn on logging')
        await page.getByRole('dialog').waitFor()
      },
    },
    {
      name: 'key-once',
      path: `${base}/keys?new=1`,
      async act(page) {
        await page.getByLabel('Name').fill('website')
        await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
        await page.getByText('Your new key').waitFor()
      },
    },
    { name: 'models', path: `${base}/models` },
    { name: 'model', path: `${base}/models/alpha-5.4` },
    { name: 'endpoint', path: `${base}/models/siteanalytics%2Fwebsites%2Fvisits%2Ftrend` },
    {
      name: 'chat',
      path: `${base}/playground/chat`,
      async act(page) {
        await page.getByLabel('Message', { exact: true }).fill('Explain what a hold is, in two sentences.')
        await press(page, 'Send')
        await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
      },
    },
    {
      name: 'chat-tools',
      path: `${base}/playground/chat`,
      async act(page) {
        // Open already when this tab has tools from an earlier look.
        const example = page.getByRole('button', { name: 'Insert an example' })
        if (!(await example.isVisible())) await page.getByText('Tools', { exact: true }).click()
        await example.click()
        await page.getByLabel('Message', { exact: true }).fill('How is the weather in Oslo?')
        await press(page, 'Send')
        await page.getByLabel('Result of get_weather').waitFor()
      },
    },
    {
      name: 'compare',
      path: `${base}/playground/compare`,
      async act(page) {
        await page.getByLabel('Question').fill('Explain what a hold is, in two sentences.')
        await press(page, 'Ask all 2')
        await page.getByText(/, cheapest/).waitFor()
      },
    },
    {
      name: 'chat-model',
      path: `${base}/playground/chat`,
      async act(page) {
        await press(page, /^Model/)
        await page.getByLabel('Search models').fill('alpha')
      },
    },
    {
      name: 'embedding',
      path: `${base}/playground/embedding`,
      async act(page) {
        await page
          .getByLabel('Texts')
          .fill('The toll gate opens at dawn\nToll gates open at dawn\nA recipe for onion soup')
        await press(page, /^Embed$/)
        await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
      },
    },
    {
      name: 'rerank',
      path: `${base}/playground/rerank`,
      async act(page) {
        await page.getByLabel('Query').fill('When does the gate open?')
        await page.getByLabel('Documents').fill('The toll gate opens at dawn\nA recipe for onion soup')
        await press(page, /^Rerank$/)
        await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
      },
    },
    {
      name: 'ocr',
      path: `${base}/playground/ocr`,
      async act(page) {
        await page.getByLabel('Address').fill('https://example.com/contract.pdf')
        await page.getByLabel('Pages').fill('0-1')
        await press(page, /^Read$/)
        await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
      },
    },
    {
      name: 'moderation',
      path: `${base}/playground/moderation`,
      async act(page) {
        await page.getByLabel('Texts').fill('A kind word\nAn example of hate')
        await press(page, /^Moderate$/)
        await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
      },
    },
    {
      name: 'transcription',
      path: `${base}/playground/transcription`,
      async act(page) {
        await page
          .getByLabel('Recording')
          .setInputFiles({ name: 'a.wav', mimeType: 'audio/wav', buffer: wavFile(Buffer.alloc(48_000)) })
        await press(page, /^Transcribe$/)
        await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
      },
    },
    {
      name: 'speech',
      path: `${base}/playground/speech`,
      async act(page) {
        await page.getByLabel('Text', { exact: true }).fill('The gate is open.')
        await press(page, /^Speak$/)
        await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
      },
    },
    {
      name: 'image',
      path: `${base}/playground/image`,
      async act(page) {
        await page.getByLabel('Prompt').fill('A lighthouse at dusk, watercolour, warm window light')
        await press(page, 'Generate image')
        await page.locator('.picture img').waitFor()
        await page.locator('.picture img').evaluate((image) => (image as unknown as { decode(): unknown }).decode())
      },
    },
    {
      name: 'video',
      path: `${base}/playground/video`,
      async act(page) {
        await page.getByLabel('Prompt').fill('A paper boat drifts down a stream in spring')
        await press(page, 'Generate video')
        await videoLoaded(page)
      },
    },
    {
      name: 'social',
      path: `${base}/playground/social?endpoint=social%2Fusers`,
      async act(page) {
        await page.getByLabel('username').first().fill('jack')
        await press(page, 'Run')
        await page.getByRole('tab', { name: 'JSON' }).waitFor()
      },
    },
    {
      name: 'analytics',
      path: `${base}/playground/analytics?endpoint=siteanalytics%2Fwebsites%2Fvisits%2Ftrend`,
      async act(page) {
        await page.getByRole('textbox', { name: 'keys' }).fill('example.com')
        await press(page, 'Run')
        await page.getByRole('tab', { name: 'Chart' }).waitFor()
      },
    },
    {
      name: 'analytics-table',
      path: `${base}/playground/analytics?endpoint=siteanalytics%2Fwebsites%2Fgeography`,
      async act(page) {
        await page.getByRole('textbox', { name: 'keys' }).fill('example.com')
        await press(page, 'Run')
        await page.getByRole('tab', { name: /Table/ }).click()
      },
    },
    { name: 'usage', path: `${base}/usage` },
    { name: 'usage-filters', path: `${base}/usage?minMs=1&sort=duration&period=7d` },
    { name: 'usage-chart', path: `${base}/usage?view=chart&sum=calls&period=24h` },
    { name: 'usage-latency', path: `${base}/usage?view=latency&by=vendor&period=24h` },
    { name: 'usage-labels', path: `${base}/usage?view=labels&label=user` },
    {
      name: 'call',
      path: `${base}/usage`,
      async act(page) {
        await page
          .getByRole('link', { name: /alpha-5\.4/ })
          .first()
          .click()
        await page.getByText('How the charge was calculated').waitFor()
      },
    },
    { name: 'jobs', path: `${base}/jobs` },
    {
      name: 'job',
      path: `${base}/jobs`,
      async act(page) {
        await page
          .getByRole('link', { name: /paper boat/ })
          .first()
          .click()
        await videoLoaded(page)
      },
    },
    {
      name: 'batches',
      path: `${base}/batches`,
      act: (page) => page.getByRole('link', { name: 'questions.jsonl' }).waitFor(),
    },
    {
      name: 'batch',
      path: `${base}/batches`,
      async act(page) {
        await page.getByRole('link', { name: 'questions.jsonl' }).click()
        await page.getByRole('table', { name: 'Failed lines' }).waitFor()
      },
    },
    {
      name: 'batch-problems',
      path: `${base}/batches`,
      async act(page) {
        const text = '{"custom_id":"a","method":"GET","url":"/v1/chat/completions","body":{}}\nno JSON'
        await press(page, 'New batch')
        await page
          .locator('input[type=file]')
          .setInputFiles({ name: 'lines.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(text) })
        await press(page, 'Upload and check')
        await page.getByRole('table', { name: 'Problems' }).waitFor()
      },
    },
    { name: 'billing', path: `${base}/billing` },
    { name: 'statement', path: `${base}/statement` },
    { name: 'movements', path: `${base}/statement/movements` },
    { name: 'buy', path: `${base}/buy` },
    { name: 'alerts', path: `${base}/alerts` },
    { name: 'deliveries', path: `${base}/deliveries` },
    {
      name: 'alert-rules',
      path: `${base}/alerts/rules`,
      act: (page) => page.getByRole('heading', { name: 'Receivers' }).waitFor(),
    },
    { name: 'budgets', path: `${base}/budgets` },
    { name: 'teams', path: `${base}/teams` },
    { name: 'agents', path: `${base}/agents` },
    { name: 'members', path: `${base}/members` },
    { name: 'tokens', path: `${base}/tokens` },
    { name: 'profile', path: '/profile' },
    {
      name: 'profile-totp',
      path: '/profile',
      async act(page) {
        await press(page, 'Add an authenticator app')
        await page.getByLabel('Code', { exact: true }).waitFor()
      },
    },
    { name: 'operator-home', path: '/operator/home' },
    { name: 'operator-operators', path: '/operator/operators' },
    { name: 'operator-tokens', path: '/operator/tokens' },
    {
      name: 'operator-login',
      path: '/operator/login',
      act: (page) => page.getByText('Required second factor').waitFor(),
    },
    {
      name: 'operator-login-form',
      path: '/operator/login?open=new',
      act: (page) => page.getByRole('dialog').getByLabel('Issuer').fill('https://login.example.com'),
    },
    { name: 'operator-calls', path: '/operator/calls' },
    { name: 'operator-accounts', path: '/operator/accounts' },
    { name: 'operator-account', path: `/operator/accounts/${account}` },
    { name: 'operator-account-statement', path: `/operator/accounts/${account}/statement` },
    {
      name: 'operator-account-close',
      path: `/operator/accounts/${account}`,
      act: (page) => press(page, 'Close account'),
    },
    { name: 'operator-margin', path: `/operator/finance?from=${new Date().toISOString().slice(0, 7)}` },
    { name: 'operator-payments', path: '/operator/payments' },
    { name: 'operator-payment-settings', path: '/operator/payments/settings' },
    { name: 'operator-plans', path: '/operator/plans' },
    { name: 'sign-ins', path: `${base}/sign-ins` },
    { name: 'operator-products', path: '/operator/products' },
    {
      name: 'operator-product-new',
      path: '/operator/products/new',
      async act(page) {
        await page.getByLabel('OpenAPI document', { exact: true }).last().fill(SMALL_OPENAPI)
        await press(page, 'Import')
        await page.getByRole('row', { name: /upload/ }).waitFor()
        await page.getByLabel('Price per call (credits)').fill('0.5')
      },
    },
    {
      name: 'operator-product-operation',
      path: '/operator/products/new',
      async act(page) {
        await page.getByText('Preset', { exact: true }).click()
        await press(page, /^Take \d+ operation/)
        await press(page, 'Edit')
        await page.getByLabel('Per row returned').fill('0.1')
        await page.getByLabel('What is counted as rows').fill('size(answer.web.results)')
        await page.getByText(/has no upper bound/).waitFor()
      },
    },
    { name: 'operator-guardrails', path: '/operator/guardrails' },
    {
      name: 'operator-guardrail-redaction',
      path: '/operator/guardrails/new',
      async act(page) {
        await page.getByLabel('Name', { exact: true }).fill('no-personal-data')
        await page.getByLabel('Email addresses').check()
        await press(page, 'Add a pattern')
        await page.getByLabel('Word 1').fill('ticket')
        await page.getByLabel('Pattern 1', { exact: true }).fill('TCK-(')
        await page.getByText('is no pattern').waitFor()
        await page.getByText('Found: Email addresses: 1.').waitFor()
      },
    },
    {
      name: 'operator-guardrail-hook',
      path: '/operator/guardrails/new',
      async act(page) {
        await page.getByRole('radio', { name: /^HTTP hook/ }).check()
        await press(page, 'Show the secret')
        await page.getByText('whsec_').waitFor()
      },
    },
    {
      name: 'operator-guardrail-moderation',
      path: '/operator/guardrails/new',
      async act(page) {
        await page.getByLabel('Name', { exact: true }).fill('be-kind')
        await page.getByRole('radio', { name: /^Moderation model/ }).check()
        await page.getByLabel('Model', { exact: true }).selectOption('alpha-moderation-1')
        await press(page, 'Preview the change')
        await page.getByText('Guardrail be-kind is added').waitFor()
      },
    },
    { name: 'operator-tools', path: '/operator/tools?open=new' },
    { name: 'operator-exports', path: '/operator/finance/exports?open=new' },
    { name: 'operator-vendor-reports', path: '/operator/finance/vendor-reports?open=new' },
    { name: 'operator-invoices', path: '/operator/finance/invoices' },
    { name: 'operator-statements', path: `/operator/finance/statements?month=${new Date().toISOString().slice(0, 7)}` },
    { name: 'operator-catalogue', path: '/operator/catalogue' },
    { name: 'operator-price', path: '/operator/catalogue', act: (page) => press(page, 'Price') },
    {
      name: 'operator-diff',
      path: '/operator/catalogue/document',
      async act(page) {
        await editCatalogue(page, { '"Alpha 5.4"': '"Alpha 5.4 (new)"', '"250"': '"240"' })
        await page.getByText('What will change').waitFor()
        await page.getByText('Show the JSON').click()
      },
    },
    {
      name: 'operator-problems',
      path: '/operator/catalogue/document',
      async act(page) {
        await editCatalogue(page, { '"vendor": "alpha"': '"vendor": "nobody"' })
        await page.getByText('Nothing was applied').waitFor()
      },
    },
    { name: 'operator-versions', path: '/operator/catalogue/versions' },
    { name: 'operator-list-prices', path: '/operator/catalogue/list-prices' },
    {
      name: 'operator-connect',
      path: '/operator/vendors/new',
      act: async (page) => {
        await page.getByRole('combobox', { name: 'Vendor' }).selectOption('azure')
        await page.getByLabel('Login').selectOption('entra')
        await page.getByLabel('Tenant').waitFor()
      },
    },
    { name: 'operator-vendors', path: '/operator/vendors' },
    {
      name: 'operator-vendor-remove',
      path: '/operator/vendors/gamma',
      async act(page) {
        await press(page, 'Remove')
        await page.getByRole('dialog').waitFor()
      },
    },
    {
      name: 'operator-vendor',
      path: '/operator/vendors/alpha',
      async act(page) {
        await press(page, /^Test$/)
        await page.getByText('It works.').waitFor()
      },
    },
    { name: 'operator-live', path: '/operator/live' },
    { name: 'operator-alerts', path: '/operator/alerts' },
    { name: 'operator-deliveries', path: '/operator/deliveries', act: (page) => page.getByLabel('Kind').waitFor() },
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
    { name: 'operator-sign-up', path: '/operator/sign-up' },
    { name: 'operator-branding', path: '/operator/branding' },
    {
      name: 'operator-mails',
      path: '/operator/mails',
      act: (page) => page.frameLocator('iframe').getByText('Confirm').first().waitFor(),
    },
    { name: 'lost', path: '/nowhere' },
  ]
}

interface Dom {
  readonly document: { querySelector(selector: string): { readonly readyState?: number } | null }
}

// What is waited for is given as functions: text would be evaluated by the page, which its policy forbids.

/** Until the player knows how long the video is. */
export async function videoLoaded(page: Page): Promise<void> {
  await page.locator('video').waitFor()
  await page.waitForFunction(() => {
    const { document } = globalThis as unknown as Dom
    return (document.querySelector('video')?.readyState ?? 0) >= 1
  })
}

/** Until nothing is loading any more. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const { document } = globalThis as unknown as Dom
    return document.querySelector('.skeleton, .waiting, .button[aria-busy]') === null
  })
}

/** Colours change over a tenth of a second. */
export async function setTheme(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    .then(() => Promise.allSettled(document.getAnimations()
      .filter(({ effect }) => effect.getComputedTiming().endTime < 2000)
      .map(({ finished }) => finished)))
    .then(() => undefined)`)
}
