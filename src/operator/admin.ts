// The operator API: every resource, for requests with an operator token.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Budgets } from '../admission/budgets.ts'
import type { Keys } from '../admission/keys.ts'
import type { Teams } from '../admission/teams.ts'
import { FIRST, type Tokens } from '../identity/tokens.ts'
import { Fault } from '../kernel/fault.ts'
import { type Actor, mountResources, type Resource } from './resource.ts'
import {
  type AccountDeps,
  accountResources,
  keyResources,
  type MemberDeps,
  memberResources,
} from './resources/accounts.ts'
import { type AlertDeps, alertResources, type DeliveryDeps, deliveryResources } from './resources/alerts.ts'
import { budgetResources } from './resources/budgets.ts'
import { type CallDeps, callResources } from './resources/calls.ts'
import { type ConnectDeps, catalogResources, connectResources } from './resources/connect.ts'
import { type ExportDeps, exportResources, type VendorReportDeps, vendorReportResources } from './resources/exports.ts'
import { type FiguresDeps, figureResources } from './resources/figures.ts'
import { type FinanceDeps, financeResources, type InvoiceDeps, invoiceResources } from './resources/finance.ts'
import { guardrailResources } from './resources/guardrails.ts'
import { type LoginDeps, loginProviderResources, type TokenDeps, tokenResources } from './resources/login.ts'
import { type OperationsDeps, operationsResources } from './resources/operations.ts'
import { type PaymentDeps, type PlanDeps, paymentResources, planResources } from './resources/payments.ts'
import { type PriceDeps, priceResources } from './resources/prices.ts'
import { productResources } from './resources/products.ts'
import { type SignUpResourceDeps, signUpResources } from './resources/sign-up.ts'
import { teamResources } from './resources/teams.ts'
import { type ToolConnectionDeps, toolConnectionResources } from './resources/tool-connections.ts'
import { type ToolServerDeps, toolServerResources } from './resources/tool-servers.ts'
import {
  type BatchResourceDeps,
  batchResources,
  type ContentDeps,
  contentResources,
  type UsageDeps,
  usageResources,
} from './resources/usage.ts'
import { vendorEditResources } from './resources/vendor.ts'
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
    ContentDeps,
    ConnectDeps,
    FiguresDeps,
    FinanceDeps,
    PaymentDeps,
    InvoiceDeps,
    ExportDeps,
    PlanDeps,
    PriceDeps,
    VendorReportDeps,
    AlertDeps,
    DeliveryDeps,
    BatchResourceDeps,
    VendorDeps,
    ToolServerDeps,
    ToolConnectionDeps,
    ByokKeyDeps,
    OperationsDeps,
    TokenDeps,
    SignUpResourceDeps,
    LoginDeps,
    MemberDeps {
  readonly keys: Keys
  readonly budgets: Budgets
  readonly teams: Teams
}

/** The resources of both the operator API and the console. */
export function operatorResources(deps: ResourceDeps): Resource[] {
  return [
    ...accountResources(deps),
    ...keyResources(deps),
    ...budgetResources(deps),
    ...teamResources(deps),
    ...usageResources(deps),
    ...callResources(deps),
    ...batchResources(deps),
    ...contentResources(deps),
    ...figureResources(deps),
    ...financeResources(deps),
    ...invoiceResources(deps),
    ...exportResources(deps),
    ...paymentResources(deps),
    ...planResources(deps),
    ...vendorReportResources(deps),
    ...alertResources(deps),
    ...deliveryResources(deps),
    ...catalogResources(deps),
    ...connectResources(deps),
    ...productResources(deps),
    ...priceResources(deps),
    ...guardrailResources(),
    ...vendorResources(deps),
    ...vendorCredentialResources(deps),
    ...vendorEditResources(deps),
    ...toolServerResources(deps),
    ...toolConnectionResources(deps),
    ...byokKeyResources(deps),
    ...operationsResources(deps),
    ...memberResources(deps),
    ...tokenResources(deps),
    ...signUpResources(deps),
    ...loginProviderResources(deps),
  ]
}

export const ADMIN_PREFIX = '/admin/v1'

/** The actor behind a token. */
export function tokenActor(tokens: Pick<Tokens, 'use'>): (request: FastifyRequest) => Promise<Actor> {
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
  app: FastifyInstance,
  resources: readonly Resource[],
  authenticate: ReturnType<typeof tokenActor>,
): void {
  app.register(
    async (scope) => {
      scope.addHook('onRequest', async (_request, reply) => {
        reply.header('cache-control', 'no-store')
      })
      mountResources(scope, resources, authenticate)
    },
    { prefix: ADMIN_PREFIX },
  )
}
