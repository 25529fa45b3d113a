// The second half of composition: what operators and people use. The operator API and the console.
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { playerOf } from '../admission/api-key.ts'
import type { Database } from '../database/database.ts'
import { createAttempts } from '../identity/attempts.ts'
import { createMembers } from '../identity/members.ts'
import { createPasswords } from '../identity/password.ts'
import { createPeople, type People } from '../identity/people.ts'
import { createBrowsers, createSessions } from '../identity/sessions.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { createBilling } from '../reports/billing.ts'
import { publicUrlOf } from '../server/address.ts'
import { ADMIN_PREFIX, mountAdmin, operatorResources, type ResourceDeps } from './admin.ts'
import { mountConsole } from './console.ts'
import { type ConsoleFiles, mountConsoleFiles } from './console-files.ts'
import type { Connections } from './resources/session.ts'

const ROOT = join(import.meta.dirname, '..', '..')

interface BackOffice {
  readonly people: People
  readonly consoleFiles: ConsoleFiles
  /** For their description. */
  readonly routes: { readonly prefix: string; readonly resources: ReturnType<typeof operatorResources> }
}

export function openBackOffice(
  app: FastifyInstance,
  parts: Omit<ResourceDeps, 'members' | 'people' | 'publicUrl' | 'billing'> & {
    readonly config: Parameters<typeof publicUrlOf>[1]
    readonly database: Database
    readonly ledger: Pick<Ledger, 'posted'>
    readonly world: World
    readonly operatorToken: string
    readonly browserKey: Buffer
    readonly connections: Connections
  },
): BackOffice {
  const { config, database, world, audit } = parts
  const publicUrl = () => publicUrlOf(app, config)
  const sessions = createSessions({ database, world })
  const browsers = createBrowsers({ key: parts.browserKey, world })
  const identity = {
    database,
    world,
    audit,
    passwords: createPasswords({ world }),
    attempts: createAttempts(database),
    browsers,
    sessions,
  }
  const people = createPeople(identity)
  const billing = createBilling({ database, audit, world })
  const deps = { ...parts, billing, members: createMembers({ ...identity, keys: parts.keys }), people, publicUrl }
  const resources = operatorResources(deps)
  app.posted = parts.ledger.posted
  mountAdmin(app, resources, parts.operatorToken)
  mountConsole(app, resources, {
    ...deps,
    sessions,
    browsers,
    async play(request, reply, { account, url }) {
      const content = await parts.contentRules.ofAccount(account)
      reply.hijack()
      request.raw.url = url
      app.dispatch(request.raw, reply.raw, { ...playerOf(account), content })
    },
  })
  const consoleFiles = mountConsoleFiles(app, {
    folder: join(ROOT, 'console', 'dist'),
    https: config.PUBLIC_URL?.startsWith('https:') ?? false,
  })
  return { people, consoleFiles, routes: { prefix: ADMIN_PREFIX, resources } }
}
