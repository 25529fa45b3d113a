// Composes the operator API and the console.
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { playerOf } from '../admission/api-key.ts'
import { createBudgets } from '../admission/budgets.ts'
import { createTeams } from '../admission/teams.ts'
import type { Database, Queryable } from '../database/database.ts'
import { createAttempts } from '../identity/attempts.ts'
import { createFlows } from '../identity/flows.ts'
import { createLogin, type Login } from '../identity/login.ts'
import { createMembers } from '../identity/members.ts'
import { createOwnDeletion } from '../identity/own-deletion.ts'
import { type Cost, createPasswords } from '../identity/password.ts'
import { createPeople, type People } from '../identity/people.ts'
import { createScim } from '../identity/scim.ts'
import { createBrowsers, createSessions } from '../identity/sessions.ts'
import { createSignUp, type PersonMail, type SignUp } from '../identity/sign-up.ts'
import { createTokens, type Tokens } from '../identity/tokens.ts'
import type { Deliveries } from '../jobs/deliveries.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import { newId, type World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { createCodes } from '../sales/codes.ts'
import { openSales, type Selling } from '../sales/open.ts'
import type { Payments } from '../sales/payments.ts'
import type { ProviderName } from '../sales/provider.ts'
import { publicUrlOf } from '../server/address.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { ADMIN_PREFIX, mountAdmin, operatorResources, type ResourceDeps, tokenActor } from './admin.ts'
import { mountConsole } from './console.ts'
import { type ConsoleFiles, mountConsoleFiles } from './console-files.ts'
import { mountBackchannelLogout } from './resources/login.ts'
import type { Connections } from './resources/session.ts'
import { mountBranding } from './resources/sign-up.ts'
import { mountScim } from './scim.ts'

const ROOT = join(import.meta.dirname, '..', '..')

interface OperatorApi {
  readonly people: People
  readonly tokens: Tokens
  readonly sales: Selling
  readonly signUp: SignUp
  readonly consoleFiles: ConsoleFiles
  /** For their description. */
  readonly routes: { readonly prefix: string; readonly resources: ReturnType<typeof operatorResources> }
}

type OperatorApiParts = Omit<
  ResourceDeps,
  | 'sales'
  | 'codes'
  | 'budgets'
  | 'teams'
  | 'tokens'
  | 'members'
  | 'people'
  | 'publicUrl'
  | 'signUp'
  | 'sessions'
  | 'browsers'
  | 'flows'
  | keyof Login
> & {
  readonly config: Parameters<typeof publicUrlOf>[1] & { readonly TOLLGATE_STRIPE_URL?: string | undefined }
  readonly database: Database
  readonly ledger: Pick<Ledger, 'posted' | 'grant' | 'returned' | 'recalled'>
  readonly world: World
  readonly secrets: Secrets
  readonly log: Log
  readonly deliveries: Deliveries
  /** Whether a mail server is configured. */
  readonly mails: boolean
  readonly guard: Pick<GuardedFetch, 'request' | 'check'>
  readonly connections: Connections
  readonly passwordCost: Cost | undefined
}

export function openOperatorApi(app: FastifyInstance, parts: OperatorApiParts): OperatorApi {
  const { config, database, world, audit } = parts
  const publicUrl = () => publicUrlOf(app, config)
  const sessions = createSessions({ database, world })
  const browsers = createBrowsers({ key: parts.secrets.key('browser'), world })
  const identity = {
    flows: createFlows({ database, world }),
    database,
    world,
    audit,
    passwords: createPasswords({ world, cost: parts.passwordCost }),
    attempts: createAttempts(database),
    browsers,
    sessions,
  }
  const people = createPeople(identity)
  const mails = parts.mails ? personMails(parts) : undefined
  const { accounts, keys, toolConnections, branding, log } = parts
  const mailboxKey = parts.secrets.key('mailbox')
  const signUp = createSignUp({ ...identity, accounts, branding, publicUrl, log, mailboxKey, mails })
  const ownDeletion = createOwnDeletion({ ...identity, accounts, keys, toolConnections, branding, publicUrl, mails })
  const members = createMembers({ ...identity, keys, toolConnections })
  const factorKey = parts.secrets.key('second-factor')
  const login = createLogin({ ...parts, ...identity, factorKey, members, publicUrl })
  const tokens = createTokens({ database, world, audit, pepper: parts.secrets.key('access-token') })
  const codes = createCodes({ ...identity, ledger: parts.ledger })
  const sales = openSales({ ...parts, mails, publicUrl, stripeUrl: config.TOLLGATE_STRIPE_URL })
  const budgets = createBudgets({ ...identity, ledger: parts.ledger })
  const teams = createTeams(identity)
  const own = { sales, codes, budgets, tokens, members, people, signUp, ownDeletion, sessions, browsers, publicUrl }
  const deps = { ...parts, ...login, ...own, teams, flows: identity.flows }
  const resources = operatorResources(deps)
  app.posted = parts.ledger.posted
  mountPaymentWebhooks(app, sales.payments)
  mountAdmin(app, resources, tokenActor(tokens))
  const scim = createScim({ database, world, audit, members, sessions })
  mountScim(app, { scim, authenticate: tokenActor(tokens), publicUrl })
  mountBackchannelLogout(app, { sso: login.sso, world })
  mountConsole(app, resources, {
    ...deps,
    async play(request, reply, { account, session, url }) {
      const content = await parts.contentRules.ofAccount(account)
      const place = await teams.placeOf(account, session.person.id)
      reply.hijack()
      request.raw.url = url
      app.dispatch(request.raw, reply.raw, { ...playerOf(account, place), content })
    },
  })
  mountBranding(app, branding)
  const consoleFiles = mountConsoleFiles(app, {
    folder: join(ROOT, 'console', 'dist'),
    https: config.PUBLIC_URL?.startsWith('https:') ?? false,
  })
  return { people, sales, tokens, signUp, consoleFiles, routes: { prefix: ADMIN_PREFIX, resources } }
}

/** Mails to people go through the queue of deliveries, as the gateway's own. */
function personMails({ deliveries, world }: { deliveries: Deliveries; world: World }) {
  return {
    add: (tx: Queryable, { to, event, about, subject, text, html }: PersonMail) =>
      deliveries.add(tx, [
        {
          id: `msg_${newId(world)}`,
          account: '',
          kind: 'email',
          event,
          subject: about,
          to,
          title: subject,
          body: text,
          html,
        },
      ]),
    forget: deliveries.forgetMails,
    wake: deliveries.wake,
  }
}

// Webhooks of payment providers. Size and time are bounded, and nothing in them is used before the signature is verified.

const BODY_BYTES_MAX = 262_144
const PATHS: Readonly<Record<string, ProviderName>> = { '/webhooks/stripe': 'stripe', '/webhooks/payments': 'webhook' }
const NOTHING = Buffer.alloc(0)

function mountPaymentWebhooks(app: FastifyInstance, payments: Pick<Payments, 'receive'>): void {
  for (const [url, provider] of Object.entries(PATHS))
    app.route({
      ...{ method: 'POST', url, bodyLimit: BODY_BYTES_MAX },
      onRequest: async (_request, reply) => app.bodyDeadline(reply.raw),
      handler: async ({ body, headers }) => {
        const single = Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(' ') : value]),
        )
        await payments.receive(provider, Buffer.isBuffer(body) ? body : NOTHING, single)
        return { received: true }
      },
    })
}
