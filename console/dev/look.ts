// Looks at every page of the console in a real browser: pictures in light and dark, on a laptop and a phone, and for each
// page axe's serious findings, breaches of the content policy and errors in the log.
//   node console/dev/look.ts <folder> [--only=keys] [--url=http://127.0.0.1:8080 --email=… --password=… --account=acc_…]
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { startMock } from './mock.ts'
import { shots } from './shots.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string' },
    url: { type: 'string' },
    email: { type: 'string', default: '' },
    password: { type: 'string', default: '' },
    account: { type: 'string', default: 'acc_01k9demo' },
    browser: { type: 'string', default: '/usr/bin/chromium' },
    fast: { type: 'boolean', default: false },
  },
})
const folder = positionals[0] ?? 'screenshots'
const VIEWS = [
  { name: 'desktop', width: 1280, height: 800, phone: false },
  { name: 'phone', width: 390, height: 844, phone: true },
] as const
const THEMES = ['light', 'dark'] as const

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
await mkdir(folder, { recursive: true })
const mock = values.url ? undefined : await startMock()
const origin = values.url ?? mock?.url ?? ''
const browser = await chromium.launch({
  ...(existsSync(values.browser) ? { executablePath: values.browser } : {}),
  args: ['--no-sandbox'],
})
const findings: string[] = []

try {
  for (const view of VIEWS)
    for (const theme of values.fast ? (['light'] as const) : THEMES) {
      const context = await browser.newContext({
        viewport: { width: view.width, height: view.height },
        colorScheme: theme,
        isMobile: view.phone,
        hasTouch: view.phone,
        deviceScaleFactor: 1,
        reducedMotion: 'reduce',
        // Lets axe into a page whose policy takes no foreign script; the policy itself is checked by its reports.
        bypassCSP: false,
        permissions: ['clipboard-read', 'clipboard-write'],
      })
      await context.addInitScript({ content: axeSource })
      context.setDefaultTimeout(10_000)
      await signIn(context)
      for (const shot of shots(values.account)) {
        if (values.only && !shot.name.includes(values.only)) continue
        await take(context, shot, `${shot.name}-${view.name}-${theme}`)
      }
      await context.close()
    }
} finally {
  await browser.close()
  mock?.server.closeAllConnections()
  mock?.server.close()
}
process.stdout.write(findings.length ? `${findings.join('\n')}\n` : 'no findings\n')
process.exitCode = findings.length ? 1 : 0

async function signIn(context: BrowserContext): Promise<void> {
  if (!values.email) return
  const page = await context.newPage()
  await page.goto(`${origin}/console/login`)
  await page.getByLabel('Email').fill(values.email)
  await page.getByLabel('Password').fill(values.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL((url) => !url.pathname.endsWith('/login'))
  await page.close()
}

async function take(context: BrowserContext, shot: ReturnType<typeof shots>[number], name: string): Promise<void> {
  const page = await context.newPage()
  const note = (text: string) => findings.push(`${name}: ${text}`)
  page.on('pageerror', (error) => note(`error ${error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error' && !/40[0-9]|50[0-9]/.test(message.text())) note(`log ${message.text()}`)
  })
  try {
    await page.goto(`${origin}/console${shot.path}`)
    await page.locator('h1').first().waitFor()
    await shot.act?.(page)
    await settled(page)
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: !shot.clip })
    for (const found of await audit(page)) note(found)
  } catch (error) {
    note(`could not look: ${(error as Error).message.split('\n')[0]}`)
    await page.screenshot({ path: join(folder, `${name}.png`) }).catch(() => undefined)
  }
  await page.close()
}

async function settled(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle', { timeout: 1500 }).catch(() => undefined)
  await page.waitForFunction(
    () => !globalThis.document.querySelector('.skeleton, .waiting, .button[aria-busy]'),
    undefined,
    {
      timeout: 8000,
    },
  )
}

async function audit(page: Page): Promise<string[]> {
  type Found = { id: string; impact: string | null; nodes: { target: unknown[]; failureSummary?: string }[] }
  const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
    violations: Found[]
  }
  return violations
    .filter((found) => found.impact === 'serious' || found.impact === 'critical')
    .flatMap((found) =>
      found.nodes
        .slice(0, 4)
        .map(
          (node) =>
            `axe ${found.impact} ${found.id} at ${node.target.join(' ')} ${(node.failureSummary ?? '').split('\n')[1] ?? ''}`,
        ),
    )
}
