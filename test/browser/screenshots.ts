// `npm run screenshots`: every page in light and dark, on a laptop and a phone. All of them go to a temporary folder,
// those that pages show to docs/screenshots.
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startEmbedded } from '../../src/extensions/postgres/embedded.ts'
import { SERVER_VARIABLE } from '../database.ts'
import { startConsole, type TestConsole, type Visitor } from './console.ts'
import { DOORS, type PageToSee, pagesOf, setTheme, settled } from './pages.ts'
import { seed } from './seed.ts'

const DOCS = resolve(import.meta.dirname, '..', '..', 'docs', 'screenshots')
const VIEWS = [
  { name: 'desktop', viewport: { width: 1280, height: 800 } },
  { name: 'phone', viewport: { width: 390, height: 844 } },
] as const
const THEMES = ['light', 'dark'] as const
/** What the README shows. */
const KEPT = ['overview-desktop-light']

const only = process.argv[2]
const folder = await mkdtemp(join(tmpdir(), 'tollgate-screenshots-'))
const store = await mkdtemp(join(tmpdir(), 'tollgate-store-'))
const server = await startEmbedded({ dataDirectory: store, log: () => {} })
process.env[SERVER_VARIABLE] = JSON.stringify(server.connection)
const home = await startConsole({ mayHappen: () => true })
try {
  await takeAll(home)
  for (const note of home.mishaps) process.stdout.write(`${note}\n`)
  await mkdir(DOCS, { recursive: true })
  for (const name of KEPT)
    if (!only || name.includes(only)) await copyFile(join(folder, `${name}.png`), join(DOCS, `${name}.png`))
  process.stdout.write(`All pictures are in ${folder}, ${KEPT.length} of them in docs/screenshots.\n`)
} finally {
  await home.close()
  await server.stop()
  await rm(store, { recursive: true, force: true })
}

async function takeAll(console: TestConsole): Promise<void> {
  const { account, addHistory } = await seed(console)
  const stranger = await console.visitor()
  for (const page of DOORS) await take(stranger, page)
  const operator = await console.visitor()
  await console.setUp(operator, 'op@example.com')
  await operator.page.evaluate(`localStorage.setItem('account', '${account}')`)
  const pages = pagesOf(account)
  for (const page of pages) if (page.name !== 'overview') await take(operator, page)
  await addHistory()
  for (const page of pages) if (page.name === 'overview') await take(operator, page)
}

async function take(visitor: Visitor, { name, path, act }: PageToSee): Promise<void> {
  if (only && !name.includes(only)) return
  const { page } = visitor
  for (const view of VIEWS) {
    await page.setViewportSize(view.viewport)
    try {
      await visitor.go(path)
      await act?.(page)
      await settled(page)
    } catch (error) {
      // The picture shows why, and the others are still taken.
      process.stdout.write(
        `${name} on the ${view.name}: ${(error as Error).message.split('\n').slice(0, 4).join(' ')}\n`,
      )
      process.exitCode = 1
    }
    for (const colorScheme of THEMES) {
      await setTheme(page, colorScheme)
      await page.screenshot({ path: join(folder, `${name}-${view.name}-${colorScheme}.png`) })
    }
  }
}
