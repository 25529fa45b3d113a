// A gateway with its console, and a browser that writes down whatever must not happen.
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { buildConsole } from '../../console/build.ts'
import { none, started, startGateway, type TestGateway } from '../gateway.ts'
import { type Accessibility, readAxe } from './axe.ts'
import { launchChromium } from './chromium.ts'

export const PASSWORD = 'seven grey herons wait for rain'
/**
 * A guard against waiting for ever: whatever is waited for comes long before, also on a machine that is busy or slow.
 */
const WAIT_MS = 120_000

export interface Visitor {
  readonly context: BrowserContext
  readonly page: Page
  /** Goes to a page of the console, by its path below /console. */
  go(path: string): Promise<void>
  /**
   * The same inside the app, without loading it anew, as a link does. What was read before may be seen for a moment.
   */
  follow(path: string): Promise<void>
  close(): Promise<void>
}

export interface TestConsole extends TestGateway {
  readonly browser: Browser
  /** Breaches of the content policy, dialogs, errors of scripts, and requests to other hosts. */
  readonly mishaps: string[]
  visitor(options?: BrowserContextOptions): Promise<Visitor>
  /** Makes the operator's login by the one-time link and leaves the visitor signed in. */
  setUp(visitor: Visitor, email: string): Promise<void>
  /** A visitor who is signed in with that login. */
  signedIn(options?: BrowserContextOptions): Promise<Visitor>
  logIn(visitor: Visitor, email: string): Promise<void>
  /** What axe finds on the page that is worse than a blemish. */
  readonly violations: Accessibility
}

interface Mishaps {
  /** Any other fails the tests when all have run. */
  readonly mayHappen?: (mishap: string) => boolean
}

export async function startConsole({
  mayHappen = () => false,
  ...options
}: Parameters<typeof startGateway>[0] & Mishaps = {}): Promise<TestConsole> {
  await buildConsole({ ifStale: true, say: () => {} })
  const [browser, violations] = await Promise.all([launchChromium(), readAxe()])
  // Pages show what vendors wrote, and these tests read the pages.
  const gateway = await startGateway({ plain: true, ...options }).catch(async (error: unknown) => {
    // A browser that is left open would keep the file from ending.
    await browser.close()
    throw error
  })
  const mishaps: string[] = []

  const made: TestConsole = {
    ...gateway,
    browser,
    mishaps,
    async visitor(contextOptions = {}) {
      const context = await browser.newContext({ reducedMotion: 'reduce', ...contextOptions })
      context.setDefaultTimeout(WAIT_MS)
      await watch(context, gateway.url, mishaps)
      const page = await context.newPage()
      const go = async (path: string) => {
        await page.goto(`${gateway.url}/console${path}`)
        await page.locator('h1').first().waitFor()
      }
      return {
        context,
        page,
        go,
        async follow(path) {
          const url = `${gateway.url}/console${path}`
          // From a page to itself nothing would happen.
          if (new URL(page.url()).pathname === new URL(url).pathname) return go(path)
          await page.evaluate(follow, url)
          await page.locator('h1').first().waitFor()
        },
        close: () => context.close(),
      }
    },
    async setUp({ page }, email) {
      const token = await gateway.gateway.people.openSetup()
      await page.goto(`${gateway.url}/console/setup#token=${token}`)
      await page.getByLabel('Email').fill(email)
      await page.locator('input[name=password]').fill(PASSWORD)
      await page.getByLabel('Password again').fill(PASSWORD)
      await page.getByRole('button', { name: 'Create the operator’s login' }).click()
      await page.waitForURL((url) => !url.pathname.endsWith('/setup'))
    },
    async signedIn(contextOptions) {
      const visitor = await made.visitor(contextOptions)
      await made.setUp(visitor, 'op@example.com')
      return visitor
    },
    async logIn({ page }, email) {
      await page.goto(`${gateway.url}/console/login`)
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL((url) => !url.pathname.endsWith('/login'))
    },
    violations,
    async close() {
      await browser.close()
      await gateway.close()
      none(mishaps, (text) => !mayHappen(text), 'broke the content policy, raised an error or asked another host')
    },
    [Symbol.asyncDispose]: () => made.close(),
  }
  return made
}

/** Of a visitor who is there before the tests, closed with it. */
export const pageOf = (visitor: Visitor): Page =>
  started(
    () => visitor.page,
    () => {},
  )

/** A device that keeps passkeys, and that answers by itself. */
export async function addPasskeyDevice({ context, page }: Visitor): Promise<void> {
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

/** Of a list that has filters in a menu. */
export async function addFilter(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Add filter' }).click()
  await page.getByRole('menuitem', { name, exact: true }).click()
}

/** From the menu of the first row, or of the one that is named. */
export async function rowAction(page: Page, name: string, row = ''): Promise<void> {
  await page
    .locator('main')
    .getByRole('button', { name: `Actions for ${row}` })
    .first()
    .click()
  await page.getByRole('menuitem', { name, exact: true }).click()
}

/** A change that is previewed, as a form or a switch proposes it. */
export async function applyChange(page: Page): Promise<void> {
  const dialog = page.getByRole('dialog', { name: 'What will change' })
  await dialog.getByRole('button', { name: /^Apply/ }).click()
  await dialog.waitFor({ state: 'detached' })
}

/** In the page: what the browser's own back button makes the app do. */
function follow(url: string): void {
  const { history, PopStateEvent, dispatchEvent } = globalThis as unknown as {
    history: { pushState(state: null, title: string, url: string): void }
    PopStateEvent: typeof Event
    dispatchEvent(event: Event): void
  }
  history.pushState(null, '', url)
  dispatchEvent(new PopStateEvent('popstate'))
}

async function watch(context: BrowserContext, origin: string, mishaps: string[]): Promise<void> {
  await context.exposeBinding('noteBreach', (_source, text: string) => {
    mishaps.push(`policy: ${text}`)
  })
  await context.addInitScript(() => {
    const page = globalThis as unknown as {
      noteBreach(text: string): void
      addEventListener(name: string, run: (event: Record<string, string>) => void, capture: boolean): void
    }
    page.addEventListener(
      'securitypolicyviolation',
      ({ effectiveDirective, blockedURI, sample, sourceFile }) =>
        page.noteBreach(`${effectiveDirective} ${blockedURI} ${sample} ${sourceFile}`),
      true,
    )
  })
  context.on('request', (request) => {
    const url = new URL(request.url())
    if (url.origin !== origin && url.protocol !== 'data:' && url.protocol !== 'blob:')
      mishaps.push(`request: ${url.href}`)
  })
  context.on('page', (page) => {
    page.on('dialog', (dialog) => {
      mishaps.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('pageerror', (error) => mishaps.push(`error: ${error.stack ?? error.message}`))
    page.on('console', (message) => {
      // A refusal of the API is logged by the browser itself; the tests that provoke one look at what the page says.
      if (message.type() === 'error' && !/the server responded with a status of 4\d\d/.test(message.text()))
        mishaps.push(`log: ${message.text()}`)
    })
  })
}
