// Every page of the console, and what to do on it before somebody looks.
import type { Page } from 'playwright-core'
import { wavFile } from '../../sandbox/wav.ts'
import { rowAction } from './console.ts'

export type PageToSee = { readonly name: string; readonly path: string; readonly act?: (page: Page) => Promise<void> }

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
async function editCatalog(page: Page, edits: Readonly<Record<string, string>>): Promise<void> {
  await page.getByLabel('Catalog document').waitFor()
  await page.evaluate(`(() => {
    const area = document.querySelector('textarea[aria-label="Catalog document"]')
    const text = Object.entries(${JSON.stringify(edits)}).reduce((text, [old, next]) => text.replace(old, next), area.value)
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(area, text)
    area.dispatchEvent(new Event('input', { bubbles: true }))
  })()`)
  await press(page, 'Check and preview')
}

const see = (name: string, path: string, act?: PageToSee['act']): PageToSee => ({ name, path, ...(act && { act }) })

export function pagesOf(account: string): readonly PageToSee[] {
  const base = `/a/${account}`
  return [
    see('overview', base, (page) => page.getByText('Spend', { exact: true }).first().waitFor()),
    see('keys', `${base}/keys`),
    see('invoices', `${base}/invoices`),
    see('purses', `${base}/purses`),
    see('purse-form', `${base}/purses`, (page) => press(page, 'New purse')),
    see('purse-prices', `${base}/purse-prices`),
    see('purse-payments', `${base}/purse-payments`),
    see('key-form', `${base}/keys?new=1`, async (page) => {
      await page.getByLabel('Name').fill('website')
      await page.getByText('Restrictions and limits').click()
      await page.getByLabel('All models and data endpoints').uncheck()
      await page.getByLabel('All endpoints').uncheck()
      await page.getByLabel('Search endpoints').fill('site')
    }),
    see('content-logging', `${base}/content-logging`),
    see('content-logging-confirm', `${base}/content-logging`, async (page) => {
      await press(page, 'Turn on logging')
      await page.getByRole('dialog').waitFor()
    }),
    see('key-once', `${base}/keys?new=1`, async (page) => {
      await page.getByLabel('Name').fill('website')
      await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
      await page.getByText('Your new key').waitFor()
    }),
    see('models', `${base}/models`),
    see('model', `${base}/models/alpha-5.4`),
    see('endpoint', `${base}/models/siteanalytics%2Fwebsites%2Fvisits%2Ftrend`),
    see('chat', `${base}/playground/chat`, async (page) => {
      await page.getByLabel('Message', { exact: true }).fill('Explain what a hold is, in two sentences.')
      await press(page, 'Send')
      await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    }),
    see('chat-tools', `${base}/playground/chat`, async (page) => {
      // Open already when this tab has tools from an earlier look.
      const example = page.getByRole('button', { name: 'Insert an example' })
      if (!(await example.isVisible())) await page.getByText('Tools', { exact: true }).click()
      await example.click()
      await page.getByLabel('Message', { exact: true }).fill('How is the weather in Oslo?')
      await press(page, 'Send')
      await page.getByLabel('Result of get_weather').waitFor()
    }),
    see('compare', `${base}/playground/compare`, async (page) => {
      await page.getByLabel('Question').fill('Explain what a hold is, in two sentences.')
      await press(page, 'Ask all 2')
      await page.getByText(/, cheapest/).waitFor()
    }),
    see('chat-model', `${base}/playground/chat`, async (page) => {
      await press(page, /^Model/)
      await page.getByLabel('Search models').fill('alpha')
    }),
    see('embedding', `${base}/playground/embedding`, async (page) => {
      await page
        .getByLabel('Texts')
        .fill('The toll gate opens at dawn\nToll gates open at dawn\nA recipe for onion soup')
      await press(page, /^Embed$/)
      await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    }),
    see('rerank', `${base}/playground/rerank`, async (page) => {
      await page.getByLabel('Query').fill('When does the gate open?')
      await page.getByLabel('Documents').fill('The toll gate opens at dawn\nA recipe for onion soup')
      await press(page, /^Rerank$/)
      await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    }),
    see('ocr', `${base}/playground/ocr`, async (page) => {
      await page.getByLabel('Address').fill('https://example.com/contract.pdf')
      await page.getByLabel('Pages').fill('0-1')
      await press(page, /^Read$/)
      await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    }),
    see('moderation', `${base}/playground/moderation`, async (page) => {
      await page.getByLabel('Texts').fill('A kind word\nAn example of hate')
      await press(page, /^Moderate$/)
      await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    }),
    see('transcription', `${base}/playground/transcription`, async (page) => {
      await page
        .getByLabel('Recording')
        .setInputFiles({ name: 'a.wav', mimeType: 'audio/wav', buffer: wavFile(Buffer.alloc(48_000)) })
      await press(page, /^Transcribe$/)
      await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    }),
    see('speech', `${base}/playground/speech`, async (page) => {
      await page.getByLabel('Text', { exact: true }).fill('The gate is open.')
      await press(page, /^Speak$/)
      await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    }),
    see('image', `${base}/playground/image`, async (page) => {
      await page.getByLabel('Prompt').fill('A lighthouse at dusk, watercolour, warm window light')
      await press(page, 'Generate image')
      await page.locator('.picture img').waitFor()
      await page.locator('.picture img').evaluate((image) => (image as unknown as { decode(): unknown }).decode())
    }),
    see('video', `${base}/playground/video`, async (page) => {
      await page.getByLabel('Prompt').fill('A paper boat drifts down a stream in spring')
      await press(page, 'Generate video')
      await videoLoaded(page)
    }),
    see('social', `${base}/playground/social?endpoint=social%2Fusers`, async (page) => {
      await page.getByLabel('username').first().fill('jack')
      await press(page, 'Run')
      await page.getByRole('tab', { name: 'JSON' }).waitFor()
    }),
    see(
      'analytics',
      `${base}/playground/analytics?endpoint=siteanalytics%2Fwebsites%2Fvisits%2Ftrend`,
      async (page) => {
        await page.getByRole('textbox', { name: 'keys' }).fill('example.com')
        await press(page, 'Run')
        await page.getByRole('tab', { name: 'Chart' }).waitFor()
      },
    ),
    see(
      'analytics-table',
      `${base}/playground/analytics?endpoint=siteanalytics%2Fwebsites%2Fgeography`,
      async (page) => {
        await page.getByRole('textbox', { name: 'keys' }).fill('example.com')
        await press(page, 'Run')
        await page.getByRole('tab', { name: /Table/ }).click()
      },
    ),
    see('usage', `${base}/usage`),
    see('usage-filters', `${base}/usage?minMs=1&sort=duration&period=7d`),
    see('usage-chart', `${base}/usage?view=chart&sum=calls&period=24h`),
    see('usage-latency', `${base}/usage?view=latency&by=vendor&period=24h`),
    see('usage-labels', `${base}/usage?view=labels&label=user`),
    see('call', `${base}/usage`, async (page) => {
      await page
        .getByRole('link', { name: /alpha-5\.4/ })
        .first()
        .click()
      await page.getByText('How the charge was calculated').waitFor()
    }),
    see('jobs', `${base}/jobs`),
    see('job', `${base}/jobs`, async (page) => {
      await page
        .getByRole('link', { name: /paper boat/ })
        .first()
        .click()
      await videoLoaded(page)
    }),
    see('batches', `${base}/batches`, (page) => page.getByRole('link', { name: 'questions.jsonl' }).waitFor()),
    see('batch', `${base}/batches`, async (page) => {
      await page.getByRole('link', { name: 'questions.jsonl' }).click()
      await page.getByRole('table', { name: 'Failed lines' }).waitFor()
    }),
    see('batch-problems', `${base}/batches`, async (page) => {
      const text = '{"custom_id":"a","method":"GET","url":"/v1/chat/completions","body":{}}\nno JSON'
      await press(page, 'New batch')
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'lines.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(text) })
      await press(page, 'Upload and check')
      await page.getByRole('table', { name: 'Problems' }).waitFor()
    }),
    see('billing', `${base}/billing`),
    see('statement', `${base}/statement`),
    see('movements', `${base}/statement/movements`),
    see('buy', `${base}/buy`),
    see('alerts', `${base}/alerts`),
    see('deliveries', `${base}/deliveries`),
    see('alert-rules', `${base}/alerts/rules`, (page) => page.getByRole('heading', { name: 'Receivers' }).waitFor()),
    see('budgets', `${base}/budgets`),
    see('teams', `${base}/teams`),
    see('agents', `${base}/agents`),
    see('members', `${base}/members`),
    see('tokens', `${base}/tokens`),
    see('actions', '/actions'),
    see('actions-form', '/actions?do=PATCH%20%2Fkeys%2F%7Bid%7D'),
    see('profile', '/profile'),
    see('profile-totp', '/profile', async (page) => {
      await press(page, 'Add an authenticator app')
      await page.getByLabel('Code', { exact: true }).waitFor()
    }),
    see('operator-home', '/operator/home'),
    see('operator-operators', '/operator/operators'),
    see('operator-tokens', '/operator/tokens'),
    see('operator-login', '/operator/login', (page) => page.getByText('Required second factor').waitFor()),
    see('operator-login-form', '/operator/login?open=new', (page) =>
      page.getByRole('dialog').getByLabel('Issuer').fill('https://login.example.com'),
    ),
    see('operator-calls', '/operator/calls'),
    see('operator-accounts', '/operator/accounts'),
    see('operator-account', `/operator/accounts/${account}`),
    see('operator-account-statement', `/operator/accounts/${account}/statement`),
    see('operator-account-close', `/operator/accounts/${account}`, (page) => press(page, 'Close account')),
    see('operator-margin', `/operator/finance?from=${new Date().toISOString().slice(0, 7)}`),
    see('operator-payments', '/operator/payments'),
    see('operator-payment-settings', '/operator/payments/settings'),
    see('operator-plans', '/operator/plans'),
    see('sign-ins', `${base}/sign-ins`),
    see('operator-products', '/operator/products'),
    see('operator-product-new', '/operator/products/new', async (page) => {
      await page.getByLabel('OpenAPI document', { exact: true }).last().fill(SMALL_OPENAPI)
      await press(page, 'Import')
      await page.getByRole('row', { name: /upload/ }).waitFor()
      await page.getByLabel('Price per call (credits)').fill('0.5')
    }),
    see('operator-product-operation', '/operator/products/new', async (page) => {
      await page.getByText('Preset', { exact: true }).click()
      await press(page, /^Add \d+ operation/)
      await press(page, 'Edit')
      await page.getByLabel('Per row returned').fill('0.1')
      await page.getByLabel('What is counted as rows').fill('size(answer.web.results)')
      await page.getByText(/has no upper bound/).waitFor()
    }),
    see('operator-guardrails', '/operator/guardrails'),
    see('operator-guardrail-redaction', '/operator/guardrails/new', async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('no-personal-data')
      await page.getByLabel('Email addresses').check()
      await press(page, 'Add a pattern')
      await page.getByLabel('Word 1').fill('ticket')
      await page.getByLabel('Pattern 1', { exact: true }).fill('TCK-(')
      await page.getByText('is no pattern').waitFor()
      await page.getByText('Found: Email addresses: 1.').waitFor()
    }),
    see('operator-guardrail-hook', '/operator/guardrails/new', async (page) => {
      await page.getByRole('radio', { name: /^HTTP hook/ }).check()
      await press(page, 'Show the secret')
      await page.getByText('whsec_').waitFor()
    }),
    see('operator-guardrail-moderation', '/operator/guardrails/new', async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('be-kind')
      await page.getByRole('radio', { name: /^Moderation model/ }).check()
      await page.getByLabel('Model', { exact: true }).selectOption('alpha-moderation-1')
      await press(page, 'Preview the change')
      await page.getByText('Guardrail be-kind is added').waitFor()
    }),
    see('operator-tools', '/operator/tools?open=new'),
    see('operator-exports', '/operator/finance/exports?open=new'),
    see('operator-vendor-reports', '/operator/finance/vendor-reports?open=new'),
    see('operator-invoices', '/operator/finance/invoices'),
    see('operator-statements', `/operator/finance/statements?month=${new Date().toISOString().slice(0, 7)}`),
    see('operator-catalog', '/operator/catalog'),
    see('operator-price', '/operator/catalog', (page) => rowAction(page, 'Price')),
    see('operator-diff', '/operator/catalog/document', async (page) => {
      await editCatalog(page, { '"Alpha 5.4"': '"Alpha 5.4 (new)"', '"250"': '"240"' })
      await page.getByText('What will change').waitFor()
      await page.getByText('Show the JSON').click()
    }),
    see('operator-problems', '/operator/catalog/document', async (page) => {
      await editCatalog(page, { '"vendor": "alpha"': '"vendor": "nobody"' })
      await page.getByText('Nothing was applied').waitFor()
    }),
    see('operator-versions', '/operator/catalog/versions'),
    see('operator-list-prices', '/operator/catalog/list-prices'),
    see('operator-connect', '/operator/vendors/new', async (page) => {
      await page.getByRole('radio', { name: 'Azure' }).first().check()
      await page.getByLabel('Login').selectOption('entra')
      await page.getByLabel('Tenant').waitFor()
    }),
    see('operator-vendors', '/operator/vendors'),
    see('operator-vendor-remove', '/operator/vendors/gamma', async (page) => {
      await press(page, 'Remove')
      await page.getByRole('dialog').waitFor()
    }),
    see('operator-vendor', '/operator/vendors/alpha', async (page) => {
      await press(page, /^Test$/)
      await page.getByText('It works.').waitFor()
    }),
    see('operator-live', '/operator/live'),
    see('operator-alerts', '/operator/alerts'),
    see('operator-deliveries', '/operator/deliveries', (page) => page.getByLabel('Add filter').first().waitFor()),
    see('operator-ledger', '/operator/ledger', async (page) => {
      await press(page, 'Check now')
      await page.getByText('in order').waitFor()
    }),
    see('operator-audit', '/operator/audit'),
    see('operator-system', '/operator/system'),
    see('operator-sign-up', '/operator/sign-up'),
    see('operator-branding', '/operator/branding'),
    see('operator-mails', '/operator/mails', (page) =>
      page.frameLocator('iframe').getByText('Confirm').first().waitFor(),
    ),
    see('lost', '/nowhere'),
  ]
}

type Dom = { readonly document: { querySelector(selector: string): { readonly readyState?: number } | null } }

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
