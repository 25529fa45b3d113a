// Setting up, signing in, second factors, and the confirmation of identity before sensitive actions. Extensions add
// ways to sign in.
import * as z from 'zod'
import type { AskedMails } from '../../identity/asked-mails.ts'
import type { Members } from '../../identity/members.ts'
import type { People } from '../../identity/people.ts'
import { ACCOUNT_ROLES, OPERATOR_ROLES } from '../../identity/roles.ts'
import type { SecondFactors } from '../../identity/second-factors.ts'
import type { Browsers, Sessions } from '../../identity/sessions.ts'
import type { Tokens } from '../../identity/tokens.ts'
import {
  inviteView,
  linkView,
  loginPolicy,
  loginStep,
  mailAsked,
  newToken,
  recoveryCodes,
  type SecurityView,
  securityView,
  setupView,
  tokenView,
  totpSecret,
} from '../../identity/views.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import {
  type Actor,
  email,
  linkToken,
  loginCookies,
  may,
  mayGive,
  moment,
  password,
  type Resource,
  readSession,
  resource,
  sessionOf,
  text,
  WithHeaders,
} from '../resource.ts'

export interface LoginDeps {
  readonly people: People
  /** Mails that visitors ask for. */
  readonly asked: AskedMails
  readonly members: Members
  readonly sessions: Sessions
  readonly browsers: Browsers
  readonly factors: SecondFactors
  /** What extensions say of a person's ways in. */
  readonly security: (person: string) => Promise<Partial<SecurityView>>
  readonly publicUrl: () => string
}

const code = text(40)
/** Marks the browser as known after any login, so that failed logins of others do not lock it out. */
export const signing =
  ({ browsers, sessions }: Pick<LoginDeps, 'browsers' | 'sessions'>) =>
  async ({ session, email: mail }: { session: string; email: string }) => {
    const awaiting = await sessions.awaiting(session)
    const step = { signedIn: !awaiting, needs: [...(awaiting?.proofs ?? [])] }
    return new WithHeaders(step, loginCookies(session, browsers.mark(mail)))
  }

/** For visitors without a session. */
export function visitorResources(deps: LoginDeps): Resource[] {
  const { people, asked, members, sessions, factors } = deps
  const signedIn = signing(deps)
  return [
    resource('GET /setup', 'visitor', {
      answer: setupView,
      run: async () => ({ open: await people.setupOpen(), passwordByMail: asked.byMail }),
    }),
    resource('POST /setup', 'visitor', {
      body: z.strictObject({ token: linkToken, email, password }),
      answer: loginStep,
      run: async ({ body, visit, by }) => signedIn({ session: await people.setUp(body, visit, by), email: body.email }),
    }),
    resource('POST /login', 'visitor', {
      body: z.strictObject({ email, password }),
      answer: loginStep,
      run: async ({ body, visit, by }) => signedIn({ session: await people.logIn(body, visit, by), email: body.email }),
    }),
    resource('GET /invites/{token}', 'visitor', {
      answer: inviteView,
      run: ({ params }) => members.look(params.token),
    }),
    resource('POST /invites/{token}', 'visitor', {
      body: z.strictObject({ password, endOthers: z.boolean().optional() }),
      answer: loginStep,
      run: async ({ params, body, visit, by }) => signedIn(await members.accept(params.token, body, visit, by)),
    }),
    resource('POST /login/code', 'visitor', {
      body: z.strictObject({ code }),
      answer: loginStep,
      async run({ body, visit, by, http }) {
        const waits = await sessions.awaiting(readSession(http.request) ?? '')
        if (!waits)
          throw new Fault('access_denied', { message: 'No sign-in waits for a second factor. Sign in again.' })
        const { session, person } = waits
        await factors.check(person.id, body.code, visit, { ...by, actor: person.email })
        return signedIn({ session: await people.completeLogin(session, person, by), email: person.email })
      },
    }),
    resource('POST /public/password', 'visitor', {
      body: z.strictObject({ email }),
      answer: mailAsked,
      async run({ body, visit }) {
        await asked.requestPassword(body.email, visit)
        return { sent: true as const }
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
  const { people, factors } = deps
  return [
    resource('GET /security', 'self', {
      answer: securityView,
      async run({ actor }) {
        const { person, hasPassword, factorRequired } = sessionOf(actor)
        const [listed, added] = await Promise.all([factors.list(person.id), deps.security(person.id)])
        return { ...listed, hasPassword, factorRequired, passkeysPossible: false, identities: [], ...added }
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
    resource('POST /proof', 'self', {
      body: z.strictObject({ code: code.optional(), password: password.optional() }),
      answer: z.object({ proved: z.boolean() }),
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
  ]
}

/** For operators: who needs a second factor, and help for those who cannot sign in. */
export function loginPolicyResources({ people, factors, publicUrl }: LoginDeps): Resource[] {
  return [
    resource('GET /login-policy', 'login-providers:read', {
      title: 'Show the login policy',
      answer: loginPolicy,
      run: () => factors.policy(),
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
      run: ({ body, actor, by }) => factors.changePolicy(body, mayGive(actor), by),
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
