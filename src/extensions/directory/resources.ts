// Signing in at login providers and by passkeys; for operators, the providers; for accounts, the mail domains that are
// theirs.
import * as z from 'zod'
import type { WebServer } from '../../api/server/server.ts'
import { isShared } from '../../identity/mailbox.ts'
import { ACCOUNT_ROLES, OPERATOR_ROLES } from '../../identity/roles.ts'
import { loginStep, recoveryCodes } from '../../identity/views.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import {
  beforeFactor,
  flowCookie,
  mayGive,
  NO_FLOW,
  password,
  type Resource,
  type ResourceCall,
  readFlow,
  readSession,
  resource,
  secret,
  sessionOf,
  text,
  WithHeaders,
} from '../../operator/resource.ts'
import { type LoginDeps, signing } from '../../operator/resources/login.ts'
import { networkOf } from '../../upstream/address.ts'
import { createMinuteBudget, type MinuteBudget } from '../../upstream/budget.ts'
import type { Domains } from './domains.ts'
import type { Oidc } from './oidc.ts'
import { type Passkeys, passkeyResponse } from './passkeys.ts'
import type { Providers, StoredProvider } from './providers.ts'
import { type Sso, ssoLogoutUri, ssoRedirectUri } from './sso.ts'
import {
  domainView,
  type LoginProvider,
  loginOptions,
  loginProvider,
  passkeyOptions,
  providerTest,
  ssoStep,
} from './views.ts'

export interface DirectoryDeps extends Pick<LoginDeps, 'people' | 'sessions' | 'browsers' | 'publicUrl'> {
  readonly passkeys: Passkeys
  readonly providers: Providers
  readonly oidc: Oidc
  readonly sso: Sso
  readonly domains: Domains
  readonly world: World
}

const onward = z.object({ redirect: z.string() })
const parameters = z.string().max(8_000)
const providerId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be small letters, digits and dashes')

const BEGUN_PER_MINUTE = 120

function requireRoom(budget: MinuteBudget, ip: string): void {
  const wait = budget.spend(networkOf(ip), 1)
  if (wait === undefined) return
  const message = `There were too many tries from this network. Try again in ${wait} s.`
  throw new Fault('rate_limited', { message, retryAfterSeconds: wait })
}

/** For visitors without a session. */
export function visitorResources(deps: DirectoryDeps): Resource[] {
  const { people, sessions, passkeys, providers, sso } = deps
  const signedIn = signing(deps)
  // A started login is stored for minutes, so the number of started logins is limited per network.
  const budget = createMinuteBudget(deps.world, BEGUN_PER_MINUTE)
  const spend = ({ ip }: ResourceCall['visit']) => requireRoom(budget, ip)
  return [
    resource('GET /login', 'visitor', {
      answer: loginOptions,
      async run() {
        const all = (await providers.list()).filter((one) => one.enabled)
        return { providers: all.map(({ id, name }) => ({ id, name })), passkeys: passkeys.possible() }
      },
    }),
    resource('POST /login/sso', 'visitor', {
      body: z.strictObject({ provider: providerId }),
      answer: onward,
      async run({ body, visit }) {
        spend(visit)
        const { url, token } = await sso.begin(body.provider, 'login')
        return new WithHeaders({ redirect: url }, flowCookie(token))
      },
    }),
    resource('POST /login/sso/finish', 'visitor', {
      body: z.strictObject({ provider: providerId, parameters }),
      answer: ssoStep,
      async run({ body, visit, by, http }) {
        const cookie = readSession(http.request)
        const session = cookie === undefined ? undefined : await sessions.find(cookie)
        const done = await sso.finish({ ...body, token: readFlow(http.request) }, session, visit, by)
        if (done.kind === 'signed-in') {
          const { data, headers } = await signedIn(done)
          return new WithHeaders({ ...data, result: done.kind }, headers)
        }
        if (done.kind === 'password')
          return new WithHeaders({ signedIn: false, needs: done.needs, result: done.kind }, flowCookie(done.token))
        return new WithHeaders({ signedIn: true, needs: [], result: done.kind }, NO_FLOW)
      },
    }),
    resource('POST /login/connect', 'visitor', {
      body: z.strictObject({ password, code: text(40).optional() }),
      answer: loginStep,
      run: async ({ body, visit, by, http }) =>
        signedIn(await sso.connect({ ...body, token: readFlow(http.request) }, visit, by)),
    }),
    resource('POST /login/passkey/options', 'visitor', {
      answer: passkeyOptions,
      async run({ http, visit }) {
        spend(visit)
        const waits = await sessions.awaiting(readSession(http.request) ?? '')
        const { options, token } = await passkeys.ask(waits?.person.id)
        return new WithHeaders({ options }, flowCookie(token))
      },
    }),
    resource('POST /login/passkey', 'visitor', {
      body: z.strictObject({ response: passkeyResponse }),
      answer: loginStep,
      async run({ body, visit, by, http }) {
        const person = await passkeys.verify(readFlow(http.request), body.response)
        const waits = await sessions.awaiting(readSession(http.request) ?? '')
        // As the second factor of a started login, or as a login of its own.
        const session =
          waits?.person.id === person.id
            ? await people.completeLogin(waits.session, person, by)
            : await people.logInBy('passkey', person, visit, by)
        return signedIn({ session, email: person.email })
      },
    }),
  ]
}

/** For people who are signed in: their passkeys and logins at providers, and confirming by these who they are. */
export function ownResources({ people, passkeys, sso }: DirectoryDeps): Resource[] {
  return beforeFactor([
    resource('POST /passkeys/options', 'self', {
      fresh: true,
      answer: passkeyOptions,
      async run({ actor }) {
        const { options, token } = await passkeys.askNew(sessionOf(actor).person)
        return new WithHeaders({ options }, flowCookie(token))
      },
    }),
    resource('POST /passkeys', 'self', {
      body: z.strictObject({ name: text(60), response: passkeyResponse }),
      answer: recoveryCodes,
      run: async ({ actor, body, by, http }) => ({
        codes: await passkeys.add(sessionOf(actor), { ...body, token: readFlow(http.request) }, by),
      }),
    }),
    resource('POST /identities', 'self', {
      fresh: true,
      body: z.strictObject({ provider: providerId }),
      answer: onward,
      async run({ actor, body }) {
        const { url, token } = await sso.begin(body.provider, 'connect', sessionOf(actor))
        return new WithHeaders({ redirect: url }, flowCookie(token))
      },
    }),
    resource('DELETE /identities/{id}', 'self', {
      fresh: true,
      answer: z.object({ removed: z.string() }),
      async run({ actor, params, by }) {
        await sso.disconnect(sessionOf(actor), params.id, by)
        return { removed: params.id }
      },
    }),
    resource('POST /proof/passkey/options', 'self', {
      answer: passkeyOptions,
      async run({ actor }) {
        const { options, token } = await passkeys.ask(sessionOf(actor).person.id)
        return new WithHeaders({ options }, flowCookie(token))
      },
    }),
    resource('POST /proof/passkey', 'self', {
      body: z.strictObject({ response: passkeyResponse }),
      answer: z.object({ proved: z.boolean() }),
      async run({ actor, body, by, http }) {
        const session = sessionOf(actor)
        const { id } = await passkeys.verify(readFlow(http.request), body.response)
        if (id !== session.person.id) throw new Fault('access_denied', { message: 'This passkey is not yours.' })
        await people.proved(session, { strong: true }, by)
        return { proved: true }
      },
    }),
    resource('POST /proof/sso', 'self', {
      answer: onward,
      async run({ actor }) {
        const session = sessionOf(actor)
        const [identity] = await sso.identities(session.person.id)
        const provider = session.provider ?? identity?.provider
        if (!provider)
          throw new Fault('conflict', { message: 'You have no login at a provider. Sign in again instead.' })
        const { url, token } = await sso.begin(provider, 'proof', session)
        return new WithHeaders({ redirect: url }, flowCookie(token))
      },
    }),
  ])
}

const domain = z
  .string()
  .transform((value) => value.trim().toLowerCase())
  .refine((value) => /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/.test(value), {
    error: 'must be a domain such as example.com',
    abort: true,
  })
  .refine((value) => !isShared(value), 'is shared by many organizations, so it cannot be mapped to one account')
const account = z.string().regex(/^[\w-]{1,100}$/)
const accountRole = z.enum(ACCOUNT_ROLES)
const MAPPINGS_MAX = 500

const providerInput = z.strictObject({
  name: text(60),
  issuer: z.url({ protocol: /^https?$/ }).max(500),
  clientId: text(300),
  secret: secret.optional().meta({ description: 'The client secret. Absent: as it is stored', read: 'sealed' }),
  scopes: z
    .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/))
    .max(20)
    .default(['openid', 'email', 'profile']),
  groupsClaim: text(200).default('groups'),
  provesSecondFactor: z.boolean().default(false),
  enabled: z.boolean().default(true),
  domains: z
    .array(
      z
        .strictObject({
          domain,
          account: account.nullable().default(null),
          role: accountRole.nullable().default(null),
          ssoOnly: z.boolean().default(false),
        })
        .refine(
          (one) => (one.account === null) === (one.role === null),
          'an account needs a role, and a role an account',
        ),
    )
    .max(MAPPINGS_MAX)
    .default([]),
  groups: z
    .array(
      z
        .strictObject({
          group: text(500),
          account: account.nullable().default(null),
          role: z.enum([...OPERATOR_ROLES, ...ACCOUNT_ROLES]),
        })
        .refine(
          (one) => (one.account === null ? OPERATOR_ROLES : ACCOUNT_ROLES).some((role) => role === one.role),
          'this role does not exist here: with an account give a role of an account, without one a role of the gateway',
        ),
    )
    .max(MAPPINGS_MAX)
    .default([]),
})

/** For operators: login providers, and which accounts and roles they give. */
export function providerResources({ providers, oidc, publicUrl }: DirectoryDeps): Resource[] {
  const view = (provider: StoredProvider): LoginProvider => ({
    ...provider,
    hasSecret: providers.hasSecret(provider.id),
    redirectUri: ssoRedirectUri(publicUrl(), provider.id),
    backchannelLogoutUri: ssoLogoutUri(publicUrl(), provider.id),
  })
  return [
    resource('GET /login-providers', 'login-providers:read', {
      title: 'List login providers',
      answer: page(loginProvider),
      run: async () => ({ items: (await providers.list()).map(view), next: null }),
    }),
    resource('PUT /login-providers/{id}', 'login-providers:write', {
      title: 'Add or change a login provider',
      body: providerInput,
      answer: loginProvider,
      async run({ params, body, actor, by }) {
        const id = providerId.safeParse(params.id)
        if (!id.success) throw invalid('id: must be small letters, digits and dashes, at most 40.', 'id')
        return view(await providers.put(id.data, body, mayGive(actor), by))
      },
    }),
    resource('DELETE /login-providers/{id}', 'login-providers:write', {
      title: 'Remove a login provider',
      answer: z.object({ removed: z.string() }),
      async run({ params, actor, by }) {
        await providers.remove(params.id, mayGive(actor), by)
        return { removed: params.id }
      },
    }),
    resource('POST /login-providers/{id}/test', 'login-providers:read', {
      title: 'Test a login provider',
      answer: providerTest,
      async run({ params }) {
        const problem = await oidc.problem(providers.clientOf(await providers.get(params.id)))
        return {
          ok: problem === undefined,
          message: problem ?? 'It answers, and its metadata has everything that is needed.',
        }
      },
    }),
  ]
}

/** Mail domains whose people a directory of the account may create. */
export function domainResources({ domains }: DirectoryDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/domains', 'scim:read', {
      title: 'List the mail domains of an account',
      answer: page(domainView),
      run: async ({ params }) => ({ items: await domains.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/domains', 'scim:write', {
      title: 'Add or prove a mail domain of an account',
      body: z.strictObject({ domain: text(253) }),
      answer: domainView,
      run: ({ params, body, by }) => domains.prove(params.id, body.domain, by),
    }),
    resource('DELETE /accounts/{id}/domains', 'scim:write', {
      title: 'Remove a mail domain of an account',
      query: z.strictObject({ domain: text(253) }),
      answer: z.object({ removed: z.string() }),
      async run({ params, query, by }) {
        await domains.remove(params.id, query.domain, by)
        return { removed: query.domain }
      },
    }),
  ]
}

const LOGOUT_BYTES_MAX = 32_768
const LOGOUTS_PER_MINUTE = 120

/**
 * OpenID Connect Back-Channel Logout 1.0: a provider reports that a person has signed out. The signed token
 * authenticates it.
 */
export function mountBackchannelLogout(app: WebServer, { sso, world }: { sso: Sso; world: World }): void {
  const budget = createMinuteBudget(world, LOGOUTS_PER_MINUTE)
  app.add('POST', '/sso/{provider}/logout', async (request) => {
    requireRoom(budget, request.ip)
    const body = await request.body(LOGOUT_BYTES_MAX)
    const token = new URLSearchParams(body.toString('utf8')).get('logout_token')
    if (!token) throw invalid('It takes a form with a logout_token.', 'logout_token')
    await sso.logOut(request.params.provider ?? '', token)
    return { headers: { 'cache-control': 'no-store' } }
  })
}
