// Composes the operator API and the console.
import { join } from 'node:path'
import { playerOf } from '../admission/api-key.ts'
import { createBudgets } from '../admission/budgets.ts'
import { publicUrlOf } from '../api/server/address.ts'
import type { WebServer } from '../api/server/server.ts'
import type { Database } from '../database/database.ts'
import { createAttempts } from '../identity/attempts.ts'
import type { Branding } from '../identity/branding/branding.ts'
import { renderMail } from '../identity/branding/mail.ts'
import { createDomains } from '../identity/domains.ts'
import { createFlows } from '../identity/flows.ts'
import { createLogin, type Login } from '../identity/login.ts'
import { createMembers, type LinkMails } from '../identity/members.ts'
import { createOwnDeletion } from '../identity/own-deletion.ts'
import { type Cost, createPasswords } from '../identity/password.ts'
import { createPeople, type People } from '../identity/people.ts'
import { PERSON_MAILS } from '../identity/person-mails.ts'
import { createScim } from '../identity/scim.ts'
import { createBrowsers, createSessions } from '../identity/sessions.ts'
import { createSignUp, type PersonMails, type SignUp } from '../identity/sign-up.ts'
import { createTokens, type Tokens } from '../identity/tokens.ts'
import type { createPersonMails } from '../jobs/person-mails.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Recorder } from '../pipeline/hooks.ts'
import type { ToolConnections } from '../upstream/credentials/tool-connections.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { createReadTxt } from '../upstream/txt.ts'
import { ADMIN_PREFIX, mountAdmin, operatorResources, type ResourceDeps, tokenActor } from './admin.ts'
import { mountAlertMails } from './alert-mails.ts'
import { createChallenge } from './challenge.ts'
import { type ConsoleDeps, mountConsole } from './console.ts'
import { type ConsoleFiles, mountConsoleFiles } from './console-files.ts'
import type { Resource } from './resource.ts'
import { mountBackchannelLogout } from './resources/login.ts'
import { mountBranding } from './resources/sign-up.ts'
import { mountScim } from './scim.ts'

const ROOT = join(import.meta.dirname, '..', '..')

interface OperatorApi {
  readonly people: People
  readonly tokens: Tokens
  readonly signUp: SignUp
  readonly consoleFiles: ConsoleFiles
  /** For their description. */
  readonly routes: { readonly prefix: string; readonly resources: ReturnType<typeof operatorResources> }
}

type OperatorApiParts = Omit<
  ResourceDeps,
  | 'budgets'
  | 'tokens'
  | 'members'
  | 'people'
  | 'domains'
  | 'publicUrl'
  | 'signUp'
  | 'sessions'
  | 'browsers'
  | 'flows'
  | keyof Login
> & {
  readonly config: Parameters<typeof publicUrlOf>[1] & { readonly TOLLGATE_DNS_SERVERS: string }
  readonly database: Database
  readonly ledger: Pick<Ledger, 'posted' | 'grant' | 'returned' | 'recalled'>
  readonly world: World
  readonly secrets: Secrets
  readonly log: Log
  /** Undefined: no mail server is configured. */
  readonly mails: ReturnType<typeof createPersonMails> | undefined
  readonly guard: Pick<GuardedFetch, 'request' | 'check'>
  readonly toolConnections: Pick<ToolConnections, 'leave'>
  readonly personal: readonly Resource[]
  readonly contents: Recorder | undefined
  readonly offered: ConsoleDeps['offered']
  readonly passwordCost: Cost | undefined
}

export function openOperatorApi(app: WebServer, parts: OperatorApiParts): OperatorApi {
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
  const { accounts, keys, teams, toolConnections, branding, mails, log } = parts
  const mailboxKey = parts.secrets.key('mailbox')
  const challenge = createChallenge(parts)
  const signUp = createSignUp({ ...identity, accounts, branding, publicUrl, log, mailboxKey, mails, challenge })
  const ownDeletion = createOwnDeletion({ ...identity, accounts, keys, toolConnections, branding, publicUrl, mails })
  const linkMails = mails && linkMailsOf(mails, branding, publicUrl)
  const members = createMembers({ ...identity, keys, toolConnections, linkMails, publicUrl })
  const factorKey = parts.secrets.key('second-factor')
  const login = createLogin({ ...parts, ...identity, factorKey, members, publicUrl })
  const tokens = createTokens({ database, world, audit, pepper: parts.secrets.key('access-token') })
  const budgets = createBudgets({ ...identity, ledger: parts.ledger })
  const readTxt = createReadTxt(config.TOLLGATE_DNS_SERVERS.split(',').filter(Boolean))
  const domains = createDomains({ database, audit, key: parts.secrets.key('account-domain'), readTxt })
  const own = { domains, budgets, tokens, members, people, signUp, ownDeletion, sessions, browsers, publicUrl }
  const deps = { ...parts, ...login, ...own, flows: identity.flows }
  const resources = operatorResources(deps)
  app.posted = parts.ledger.posted
  mountAdmin(app, resources, tokenActor(tokens))
  const scim = createScim({
    database,
    world,
    audit,
    members,
    sessions,
    keys,
    toolConnections,
    mails: mails !== undefined,
  })
  mountScim(app, { scim, authenticate: tokenActor(tokens), publicUrl })
  mountBackchannelLogout(app, { sso: login.sso, world })
  mountAlertMails(app, parts)
  mountConsole(app, resources, {
    ...deps,
    async play({ raw, response }, { account, session, url }) {
      const content = await parts.contents?.ofAccount(account)
      const place = await teams.placeOf(account, session.person.id)
      raw.url = url
      app.dispatch(raw, response, { ...playerOf(account, place), content })
    },
  })
  mountBranding(app, branding)
  const consoleFiles = mountConsoleFiles(app, {
    folder: join(ROOT, 'console', 'dist'),
    https: config.PUBLIC_URL?.startsWith('https:') ?? false,
  })
  return { people, tokens, signUp, consoleFiles, routes: { prefix: ADMIN_PREFIX, resources } }
}

function linkMailsOf(mails: PersonMails, branding: Pick<Branding, 'get'>, publicUrl: () => string): LinkMails {
  return {
    add(tx, to, name, url) {
      const now = branding.get()
      const mail = renderMail(PERSON_MAILS[name].make({ name: now.name, url }), now, publicUrl())
      return mails.add(tx, { ...mail, to, event: `person.${name}`, about: name })
    },
    wake: () => mails.wake(),
  }
}
