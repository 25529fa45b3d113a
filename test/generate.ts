// Writes everything in the repository that is made from something else. `npm run generate` runs it;
// test/generated.test.ts fails when a file is not what this would write.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { ANALYTICS } from '../src/catalog/analytics.ts'
import { checkDocument } from '../src/catalog/document.ts'
import { SOCIAL } from '../src/catalog/social.ts'
import { readDefaultCatalog } from '../src/compose.ts'
import { analyticsReference, socialReference } from '../src/extensions/docs/reference.ts'
import { startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { writeClients } from './clients/write.ts'
import { freshDatabase, SERVER_VARIABLE } from './database.ts'
import { CASTS_FILE, castsFile } from './house.ts'
import { answersFile } from './pages/answers.ts'
import { chartSchema } from './pages/chart.ts'
import { commandsFile } from './pages/commands.ts'
import { configurationPage } from './pages/configuration.ts'
import { decisionsPage } from './pages/decisions.ts'
import { endpointsPage } from './pages/endpoints.ts'
import { errorsPage } from './pages/errors.ts'
import { metricsPage } from './pages/metrics.ts'
import { operatorApiPage, rolesPage } from './pages/operator-api.ts'
import { dumpSchema } from './pages/schema.ts'
import { vendorsPage } from './pages/vendors.ts'

export const ROOT = resolve(import.meta.dirname, '..')

/** Paths and the text that each should have. Needs the test server. */
export async function generatedFiles(): Promise<Map<string, string>> {
  const catalog = checkDocument(await readDefaultCatalog())
  if (!catalog.ok) throw new Error(`The shipped catalog is not valid: ${catalog.problems.join('; ')}`)
  // It reads what is generated first.
  const { commandLinePage } = await import('./pages/command-line.ts')
  return new Map([
    ['docs/decisions/README.md', decisionsPage(join(ROOT, 'docs/decisions'))],
    ['docs/reference/endpoints.md', endpointsPage()],
    ['docs/reference/analytics.md', analyticsReference(ANALYTICS)],
    ['docs/reference/social.md', socialReference(SOCIAL)],
    ['docs/reference/errors.md', errorsPage()],
    ['docs/reference/operator-api.md', operatorApiPage()],
    ['docs/reference/roles.md', rolesPage()],
    ['src/cli/commands.json', commandsFile()],
    ['docs/reference/command-line.md', commandLinePage()],
    ['docs/reference/configuration.md', configurationPage(catalog.document)],
    ['docs/reference/vendors.md', await vendorsPage()],
    ['docs/reference/metrics.md', await metricsPage()],
    ['docs/reference/schema.sql', await schema()],
    ['src/extensions/docs/answers.json', await answersFile()],
    ['deploy/helm/tollgate/values.schema.json', chartSchema()],
    [CASTS_FILE, castsFile()],
  ])
}

async function schema(): Promise<string> {
  await using fresh = await freshDatabase()
  await using database = fresh.open({ connectionsMax: 1 })
  return await dumpSchema(database)
}

async function write(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-generate-'))
  const server = await startEmbedded({ dataDirectory: join(directory, 'data'), log: () => undefined })
  process.env[SERVER_VARIABLE] = JSON.stringify(server.connection)
  try {
    await writeFile(join(ROOT, 'src/cli/commands.json'), commandsFile())
    await writeClients()
    for (const [path, text] of await generatedFiles()) {
      const file = join(ROOT, path)
      if ((await readFile(file, 'utf8').catch(() => undefined)) === text) continue
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
      console.log(`wrote ${path}`)
    }
  } finally {
    await server.stop()
    await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  }
}

if (import.meta.main) await write()
