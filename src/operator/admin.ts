// The operator API: every resource, for requests with an operator token.
import type { Budgets } from '../admission/budgets.ts'
import type { Keys } from '../admission/keys.ts'
import type { Teams } from '../admission/teams.ts'
import type { WebServer } from '../api/server/server.ts'
import type { WebRequest } from '../api/server/web.ts'
import { FIRST, type Tokens } from '../identity/tokens.ts'
import { Fault } from '../kernel/fault.ts'
import { type Commands, withCommands } from './command.ts'
import { ACCOUNT_COMMANDS } from './commands/accounts.ts'
import { CALL_COMMANDS } from './commands/calls.ts'
import { SETTINGS_COMMANDS } from './commands/settings.ts'
import { VENDOR_COMMANDS } from './commands/vendors.ts'
import { type Actor, type Delegation, mountResources, type Resource } from './resource.ts'
import {
  type AccountDeps,
  accountResources,
  keyResources,
  type MemberDeps,
  memberResources,
} from './resources/accounts.ts'
import { type BillingDeps, billingResources } from './resources/billing.ts'
import { budgetResources } from './resources/budgets.ts'
import { type CallDeps, callResources } from './resources/calls.ts'
import { catalogResources } from './resources/catalog.ts'
import { type DeliveryDeps, deliveryResources } from './resources/deliveries.ts'
import { type FiguresDeps, figureResources } from './resources/figures.ts'
import { type LoginDeps, loginPolicyResources, type TokenDeps, tokenResources } from './resources/login.ts'
import { type OperationsDeps, operationsResources } from './resources/operations.ts'
import { teamResources } from './resources/teams.ts'
import { type UsageDeps, usageResources } from './resources/usage.ts'
import {
  type ByokKeyDeps,
  byokKeyResources,
  type VendorDeps,
  vendorCredentialResources,
  vendorResources,
} from './resources/vendors.ts'

export interface ResourceDeps
  extends AccountDeps,
    UsageDeps,
    CallDeps,
    FiguresDeps,
    BillingDeps,
    DeliveryDeps,
    VendorDeps,
    ByokKeyDeps,
    OperationsDeps,
    TokenDeps,
    LoginDeps,
    MemberDeps {
  readonly keys: Keys
  readonly budgets: Budgets
  readonly teams: Teams
  /** Of extensions. */
  readonly added: readonly Resource[]
}

const COMMANDS: Commands = { ...ACCOUNT_COMMANDS, ...CALL_COMMANDS, ...SETTINGS_COMMANDS, ...VENDOR_COMMANDS }

/** The resources of both the operator API and the console, with the commands that reach them. */
export function operatorResources(deps: ResourceDeps): Resource[] {
  return [...withCommands(resourcesOf(deps), COMMANDS), ...deps.added]
}

function resourcesOf(deps: ResourceDeps): Resource[] {
  return [
    ...accountResources(deps),
    ...keyResources(deps),
    ...budgetResources(deps),
    ...teamResources(deps),
    ...usageResources(deps),
    ...callResources(deps),
    ...figureResources(deps),
    ...billingResources(deps),
    ...deliveryResources(deps),
    ...catalogResources(deps),
    ...vendorResources(deps),
    ...vendorCredentialResources(deps),
    ...byokKeyResources(deps),
    ...operationsResources(deps),
    ...memberResources(deps),
    ...tokenResources(deps),
    ...loginPolicyResources(deps),
  ]
}

export const ADMIN_PREFIX = '/admin/v1'

/** The actor behind a token. */
export function tokenActor(tokens: Pick<Tokens, 'use'>): (request: WebRequest) => Promise<Actor> {
  return async (request) => {
    const { authorization } = request.headers
    if (authorization === undefined)
      throw new Fault('key_missing', {
        message: 'No operator token was given. Send it as "Authorization: Bearer <token>".',
      })
    const token = await tokens.use(/^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '', request.ip)
    const { person, role, account, accountRole } = token
    const roles = new Map(account !== null && accountRole !== null ? [[account, accountRole]] : [])
    return { name: person?.email ?? FIRST, role, roles, session: null, token }
  }
}

/** `resources`: the result of `operatorResources`, which mounting and OpenAPI share. */
export function mountAdmin(
  app: WebServer,
  resources: readonly Resource[],
  authenticate: ReturnType<typeof tokenActor>,
  delegation: Delegation,
): void {
  const enter = (request: WebRequest) => {
    request.response.setHeader('cache-control', 'no-store')
    return authenticate(request)
  }
  mountResources(app, ADMIN_PREFIX, resources, { authenticate: enter, delegation })
}
