// Login besides the password (single sign-on, passkeys, login links), second factors, and the confirmation of identity before sensitive actions.
import * as z from 'zod'
import type { WebServer } from '../../api/server/server.ts'
import { isShared } from '../../identity/mailbox.ts'
import type { Oidc } from '../../extensions/directory/oidc.ts'
import { type Passkeys, passkeyResponse } from '../../extensions/directory/passkeys.ts'
import type { People } from '../../identity/people.ts'
import type { Providers, StoredProvider } from '../../extensions/directory/providers.ts'
import { ACCOUNT_ROLES, OPERATOR_ROLES } from '../../identity/roles.ts'
import type { SecondFactors } from '../../identity/second-factors.ts'
import type { Browsers, Sessions } from '../../identity/sessions.ts'
import { type Sso, ssoLogoutUri, ssoRedirectUri } from '../../extensions/directory/sso.ts'
import type { Tokens } from '../../identity/tokens.ts'
import {
  type LoginProvider,
  linkView,
  loginOptions,
  loginPolicy,
  loginProvider,
  loginStep,
  newToken,
  passkeyOptions,
  providerTest,
  recoveryCodes,
  securityView,
  ssoStep,
  tokenView,
  totpSecret,
} from '../../identity/views.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import { networkOf } from '../../upstream/address.ts'
import { createMinuteBudget, type MinuteBudget } from '../../upstream/budget.ts'
import {
  type Actor,
  email,
  flowCookie,
  linkToken,
  loginCookies,
  may,
  mayGive,
  moment,
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
} from '../resource.ts'

export interface LoginDeps {
  readonly people: People
  readonly sessions: Sessions
  readonly browsers: Browsers
  readonly factors: SecondFactors
  readonly passkeys: Passkeys
  readonly providers: Providers
  readonly oidc: Oidc
  readonly sso: Sso
  readonly world: World
  readonly publicUrl: () => string
}

const code = text(40)
const onward = z.object({ redirect: z.string() })
const parameters = z.string().max(8_000)
const providerId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be small letters, digits and dashes')

/** Marks the browser as known after any login, so that failed logins of others do not lock it out. */
export const signing =
  ({ browsers, sessions }: Pick<LoginDeps, 'browsers' | 'sessions'>) =>
  async ({ session, email: mail }: { session: string; email: string }) => {
    const awaiting = await sessions.awaiting(session)
    const step = { signedIn: !awaiting, needs: [...(awaiting?.proofs ?? [])] }
    return new WithHeaders(step, loginCookies(session, browsers.mark(mail)))
  }

const BEGUN_PER_MINUTE = 120

function requireRoom(budget: MinuteBudget, ip: string): void {
  const wait = budget.spend(networkOf(ip), 1)
  if (wait === undefined) return
  const message = `There were too many tries from this network. Try again in ${wait} s.`
  throw new Fault('rate_limited', { message, retryAfterSeconds: wait })
}

type Caller = Pick<ResourceCall, 'http'>

/** For visitors without a session. */
export function loginResources(deps: LoginDeps): Resource[] {
  const { people, sessions, factors, passkeys, providers, sso } = deps
  const signedIn = signing(deps)
  // A started login is stored for minutes, so the number of started logins is limited per network.
  const budget = createMinuteBudget(deps.world, BEGUN_PER_MINUTE)
  const spend = ({ ip }: ResourceCall['visit']) => requireRoom(budget, ip)
  const awaiting = async ({ http }: Caller) => {
    const waits = await sessions.awaiting(readSession(http.request) ?? '')
    if (!waits) throw new Fault('access_denied', { message: 'No sign-in waits for a second factor. Sign in again.' })
    return waits
  }
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
      body: z.strictObject({ password, code: code.optional() }),
      answer: loginStep,
      run: async ({ body, visit, by, http }) =>
        signedIn(await sso.connect({ ...body, token: readFlow(http.request) }, visit, by)),
    }),
    resource('POST /login/code', 'visitor', {
      body: z.strictObject({ code }),
      answer: loginStep,
      async run({ body, visit, by, http }) {
        const { session, person } = await awaiting({ http })
        await factors.check(person.id, body.code, visit, { ...by, actor: person.email })
        return signedIn({ session: await people.completeLogin(session, person, by), email: person.email })
      },
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
    resource('POST /login/link', 'visitor', {
      body: z.strictObject({ token: linkToken }),
      answer: loginStep,
      run: async ({ body, visit, by }) => signedIn(await people.useLoginLink(body.token, visit, by)),
    }),
  ]
}

/** For people who are signed in: their login methods, and confirming their identity. */
export function securityResources(deps: LoginDeps): Resource[] {
  const { factors, passkeys, sso } = deps
  return [
    resource('GET /security', 'self', {
      answer: securityView,
      async run({ actor }) {
        const { person, factorRequired } = sessionOf(actor)
        const [listed, identities] = await Promise.all([factors.list(person.id), sso.identities(person.id)])
        const { hasPassword } = sessionOf(actor)
        return { ...listed, identities, hasPassword, factorRequired, passkeysPossible: passkeys.possible() }
      },
    }),
    resource('POST /second-factors/totp', 'self', {
      fresh: true,
      answer: totpSecret,
      run: ({ actor }) => factors.beginTotp(sessionOf(actor).person, new URL(deps.publicUrl()).host),
    }),
    resource('PUT /second-factors/totp', 'self', {
      body: z.strictObject({ code }),
      answer: recoveryCodes,
      run: async ({ actor, body, visit, by }) => ({
        codes: await factors.confirmTotp(sessionOf(actor), body.code, visit, by),
      }),
    }),
    resource('DELETE /second-factors/{id}', 'self', {
      fresh: true,
      answer: z.object({ removed: z.string() }),
      async run({ actor, params, by }) {
        await factors.remove(sessionOf(actor).person.id, params.id, by)
        return { removed: params.id }
      },
    }),
    resource('POST /recovery-codes', 'self', {
      fresh: true,
      answer: recoveryCodes,
      run: async ({ actor, by }) => ({ codes: await factors.renewCodes(sessionOf(actor).person.id, by) }),
    }),
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
    ...proofResources(deps),
  ]
}

const proved = z.object({ proved: z.boolean() })

/** Confirmation before a sensitive action: the second factor; without one, the password or the login provider. */
function proofResources({ people, factors, passkeys, sso }: LoginDeps): Resource[] {
  return [
    resource('POST /proof', 'self', {
      body: z.strictObject({ code: code.optional(), password: password.optional() }),
      answer: proved,
      async run({ actor, body, visit, by }) {
        const session = sessionOf(actor)
        if (body.code !== undefined) {
          await factors.check(session.person.id, body.code, visit, by)
          await people.proved(session, { strong: true }, by)
        } else if (body.password !== undefined) await people.provePassword(session, body.password, visit, by)
        else throw invalid('It takes a code or a password.')
        return { proved: true }
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
      answer: proved,
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
  ]
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
export function loginProviderResources({ people, factors, providers, oidc, publicUrl }: LoginDeps): Resource[] {
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
    resource('GET /login-policy', 'login-providers:read', {
      title: 'Show the login policy',
      answer: loginPolicy,
      run: () => providers.policy(),
    }),
    resource('PUT /login-policy', 'login-providers:write', {
      title: 'Change the login policy',
      body: z.strictObject({
        secondFactorRoles: z
          .array(z.enum([...OPERATOR_ROLES, ...ACCOUNT_ROLES]))
          .max(20)
          .meta({ option: 'roles', none: 'none' }),
      }),
      answer: loginPolicy,
      run: ({ body, actor, by }) => providers.changePolicy(body, mayGive(actor), by),
    }),
    resource('POST /login-links', 'login-links:write', {
      title: 'Create a login link',
      body: z.strictObject({ email }),
      answer: linkView,
      run: async ({ body, actor, by }) => ({
        link: `${publicUrl()}/console/login#token=${await people.loginLink(body.email, mayGive(actor), by)}`,
      }),
    }),
    resource('POST /second-factor-resets', 'login-links:write', {
      title: 'Reset a person’s second factors',
      body: z.strictObject({ email }),
      answer: z.object({ email: z.string() }),
      async run({ body, actor, by }) {
        await factors.reset(body.email, mayGive(actor), by)
        return { email: body.email }
      },
    }),
  ]
}

const LOGOUT_BYTES_MAX = 32_768
const LOGOUTS_PER_MINUTE = 120

/** OpenID Connect Back-Channel Logout 1.0: a provider reports that a person has signed out. The signed token authenticates it. */
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

// Tokens of the operator API, for the whole gateway and for one account.

export interface TokenDeps {
  readonly tokens: Tokens
}

const creation = z
  .strictObject({
    name: text(100),
    scopes: z
      .array(text(100))
      .min(1, 'must name at least one right; * is everything')
      .max(200)
      .describe('Rights such as keys:read, whole resources such as keys, or * for everything'),
    expiresAt: moment
      .nullable()
      .optional()
      .meta({ description: 'When it ends; never by default', option: 'expires', value: 'time' }),
    ipRanges: z
      .array(text(64))
      .min(1, 'must name at least one range; null allows all')
      .max(100)
      .nullable()
      .optional()
      .meta({ description: 'From where it may be used; from anywhere by default', option: 'addresses' }),
  })
  .transform(({ expiresAt, ...rest }) => ({ ...rest, ...(expiresAt === undefined ? {} : { expiresAtMs: expiresAt }) }))

const makerOf = (actor: Actor, account?: string) => ({
  may: (permission: Parameters<typeof may>[1]) => may(actor, permission, account),
  person: actor.session?.person.id ?? actor.token?.person?.id ?? null,
  token: actor.token ?? undefined,
})

export function tokenResources({ tokens }: TokenDeps): Resource[] {
  return [
    resource('GET /tokens', 'tokens:read', {
      title: 'List tokens of the gateway',
      answer: page(tokenView),
      run: async () => ({ items: await tokens.list(null), next: null }),
    }),
    resource('POST /tokens', 'tokens:write', {
      title: 'Create a token of the gateway',
      body: creation,
      answer: newToken,
      run: ({ body, actor, by }) => tokens.create(null, body, makerOf(actor), by),
    }),
    resource('DELETE /tokens/{tokenId}', 'tokens:write', {
      title: 'Revoke a token of the gateway',
      answer: tokenView,
      run: ({ params, actor, by }) => tokens.revoke(null, params.tokenId, makerOf(actor).may, by),
    }),
    resource('GET /accounts/{id}/tokens', 'tokens:read', {
      title: 'List the tokens of an account',
      answer: page(tokenView),
      run: async ({ params }) => ({ items: await tokens.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/tokens', 'tokens:write', {
      title: 'Create a token of an account',
      body: creation,
      answer: newToken,
      run: ({ params, body, actor, by }) => tokens.create(params.id, body, makerOf(actor, params.id), by),
    }),
    resource('DELETE /accounts/{id}/tokens/{tokenId}', 'tokens:write', {
      title: 'Revoke a token of an account',
      answer: tokenView,
      run: ({ params, actor, by }) => tokens.revoke(params.id, params.tokenId, makerOf(actor, params.id).may, by),
    }),
  ]
}
