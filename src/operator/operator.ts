// Composes the operator API and the console.
import { join } from 'node:path'
import { playerOf } from '../admission/api-key.ts'
import { createBudgets } from '../admission/budgets.ts'
import type { publicUrlOf } from '../api/server/address.ts'
import type { WebServer } from '../api/server/server.ts'
import type { Database } from '../database/database.ts'
import type { Identity } from '../identity/open.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Recorder } from '../pipeline/hooks.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { ADMIN_PREFIX, mountAdmin, operatorResources, type ResourceDeps, tokenActor } from './admin.ts'
import { type ConsoleDeps, mountConsole } from './console.ts'
import { type ConsoleFiles, mountConsoleFiles } from './console-files.ts'
import { type Delegation, HERE, type Resource } from './resource.ts'
import { type BrandingDeps, mountBranding } from './resources/branding.ts'

const ROOT = join(import.meta.dirname, '..', '..')

interface OperatorApi {
  readonly consoleFiles: ConsoleFiles
  /** For their description. */
  readonly routes: { readonly prefix: string; readonly resources: ReturnType<typeof operatorResources> }
  /** From now on `by` says which resource answers. */
  delegate(by: Delegation): void
}

type OperatorApiParts = Omit<ResourceDeps, 'budgets'> &
  BrandingDeps & {
    readonly config: Parameters<typeof publicUrlOf>[1]
    readonly database: Database
    readonly passwords: Identity['passwords']
    readonly attempts: Identity['attempts']
    readonly flows: Identity['flows']
    readonly ledger: Pick<Ledger, 'posted' | 'grant' | 'returned' | 'recalled'>
    readonly world: World
    readonly secrets: Secrets
    readonly log: Log
    readonly guard: Pick<GuardedFetch, 'request' | 'check'>
    readonly personal: readonly Resource[]
    readonly contents: Recorder | undefined
    readonly offered: ConsoleDeps['offered']
  }

export function openOperatorApi(app: WebServer, parts: OperatorApiParts): OperatorApi {
  const { config, teams, tokens, branding } = parts
  const deps = { ...parts, budgets: createBudgets(parts) }
  const resources = operatorResources(deps)
  app.posted = parts.ledger.posted
  let delegated = HERE
  const delegation: Delegation = { at: (entry, request) => delegated.at(entry, request) }
  mountAdmin(app, resources, tokenActor(tokens), delegation)
  const consoleDeps: ConsoleDeps = {
    ...deps,
    async play({ raw, response }, { account, session, url }) {
      const content = await parts.contents?.ofAccount(account)
      const place = await teams.placeOf(account, session.person.id)
      raw.url = url
      app.dispatch(raw, response, { ...playerOf(account, place), content })
    },
  }
  mountConsole(app, resources, consoleDeps, delegation)
  mountBranding(app, branding)
  const consoleFiles = mountConsoleFiles(app, {
    folder: join(ROOT, 'console', 'dist'),
    https: config.PUBLIC_URL?.startsWith('https:') ?? false,
  })
  return {
    consoleFiles,
    routes: { prefix: ADMIN_PREFIX, resources },
    delegate(by) {
      delegated = by
    },
  }
}
