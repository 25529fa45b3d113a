// Sign-up and branding: the operator's settings, and the steps of visitors and people.
import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { type Branding, LOGO_BYTES_MAX } from '../../branding/branding.ts'
import { brandingInput, brandingView, publicBranding } from '../../branding/views.ts'
import type { OwnDeletion } from '../../identity/own-deletion.ts'
import type { Browsers } from '../../identity/sessions.ts'
import { DEFAULTS, type SignUp } from '../../identity/sign-up.ts'
import {
  linkView,
  mailAsked,
  mailPreview,
  signUpInvite,
  signUpLink,
  signUpSettings,
  signUpView,
} from '../../identity/views.ts'
import { CREDITS_MAX, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { mergeLimits, showLimits } from '../../ledger/limits.ts'
import { limitsInput } from '../../meter/limits.ts'
import {
  amount,
  email,
  loginCookies,
  NO_SESSION,
  password,
  type Resource,
  resource,
  text,
  WithHeaders,
} from '../resource.ts'

export interface SignUpResourceDeps {
  readonly signUp: SignUp
  readonly branding: Branding
}

const domains = (max: number) => z.array(text(260)).max(max).default([])

const settingsInput = z
  .strictObject({
    mode: signUpSettings.shape.mode.default(DEFAULTS.mode),
    domains: domains(1_000),
    blockedDomains: domains(20_000),
    credits: amount.refine((value) => value >= 0n && value <= CREDITS_MAX, 'must not be negative').default(0n),
    limits: limitsInput.default({}),
    terms: z
      .strictObject({ version: text(60), url: z.url({ protocol: /^https?$/ }).max(500) })
      .nullable()
      .default(null),
    perNetworkPerHour: z.number().int().min(1).max(10_000).default(DEFAULTS.perNetworkPerHour),
    perDomainPerDay: z.number().int().min(1).max(1_000_000).default(DEFAULTS.perDomainPerDay),
  })
  .transform(({ credits, limits, ...rest }) => ({
    ...rest,
    credits: formatCredits(credits),
    limits: showLimits(mergeLimits({}, limits)),
  }))

const LOGO_BASE64_CHARS_MAX = Math.ceil(LOGO_BYTES_MAX / 3) * 4
const logoInput = z.strictObject({
  /** PNG or JPEG in base64. */
  data: z
    .string()
    .max(LOGO_BASE64_CHARS_MAX, `must be a file of at most ${LOGO_BYTES_MAX / 1000} kB`)
    .regex(/^[A-Za-z0-9+/]+={0,2}$/, 'must be base64'),
})

const DOMAINS_BODY_BYTES = 2_000_000

export function signUpResources({ signUp, branding }: SignUpResourceDeps): Resource[] {
  return [
    resource('GET /sign-up', 'sign-up:read', { answer: signUpSettings, run: () => signUp.settings() }),
    resource('PUT /sign-up', 'sign-up:write', {
      body: settingsInput,
      bodyBytesMax: DOMAINS_BODY_BYTES,
      answer: signUpSettings,
      run: ({ body, by }) => signUp.change(body, by),
    }),
    resource('GET /sign-up/invites', 'sign-up:read', {
      answer: page(signUpInvite),
      run: async () => ({ items: await signUp.pending(), next: null }),
    }),
    resource('POST /sign-up/invites', 'sign-up:write', {
      body: z.strictObject({ email }),
      answer: linkView,
      run: async ({ body, by }) => ({ link: await signUp.invite(body.email, by) }),
    }),
    resource('DELETE /sign-up/invites/{inviteId}', 'sign-up:write', {
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, by }) {
        await signUp.withdraw(params.inviteId, by)
        return { withdrawn: params.inviteId }
      },
    }),
    resource('GET /mails', 'branding:read', {
      answer: page(mailPreview),
      run: () => ({ items: signUp.previews(), next: null }),
    }),
    resource('GET /mails/{name}', 'branding:read', {
      answer: mailPreview,
      html: ({ params }) => signUp.previewHtml(params.name),
      run({ params }) {
        const found = signUp.previews().find(({ name }) => name === params.name)
        if (!found) throw new Fault('not_found', { message: 'There is no such mail.' })
        return found
      },
    }),
    resource('GET /branding', 'branding:read', { answer: brandingView, run: () => branding.get() }),
    resource('PUT /branding', 'branding:write', {
      body: brandingInput,
      answer: brandingView,
      run: ({ body, by }) => branding.change(body, by),
    }),
    resource('PUT /branding/logo', 'branding:write', {
      body: logoInput,
      bodyBytesMax: LOGO_BASE64_CHARS_MAX + 1_000,
      answer: brandingView,
      run: ({ body, by }) => branding.changeLogo(Buffer.from(body.data, 'base64'), by),
    }),
    resource('DELETE /branding/logo', 'branding:write', {
      answer: brandingView,
      run: ({ by }) => branding.changeLogo(null, by),
    }),
  ]
}

export interface SignUpPageDeps extends SignUpResourceDeps {
  readonly browsers: Browsers
  readonly ownDeletion: OwnDeletion
}

const SENT = { sent: true } as const
const signingView = z.object({ signedIn: z.boolean() })

/** For visitors without a session. */
export function signUpVisitorResources({ signUp, branding, browsers }: SignUpPageDeps): Resource[] {
  return [
    resource('GET /public/branding', 'visitor', {
      answer: publicBranding,
      run() {
        const { sender: _, ...shown } = branding.get()
        return shown
      },
    }),
    resource('GET /public/sign-up', 'visitor', { answer: signUpView, run: () => signUp.view() }),
    resource('POST /public/sign-up', 'visitor', {
      body: z.strictObject({ email }),
      answer: mailAsked,
      async run({ body, visit }) {
        await signUp.request(body.email, visit)
        return SENT
      },
    }),
    resource('POST /public/password', 'visitor', {
      body: z.strictObject({ email }),
      answer: mailAsked,
      async run({ body, visit }) {
        await signUp.requestPassword(body.email, visit)
        return SENT
      },
    }),
    resource('GET /public/sign-up/{token}', 'visitor', {
      answer: signUpLink,
      run: ({ params }) => signUp.look(params.token),
    }),
    resource('POST /public/sign-up/{token}', 'visitor', {
      body: z.strictObject({ password, name: text(100).optional(), terms: text(60).optional() }),
      answer: signingView,
      async run({ params, body, visit, by }) {
        const { session, email: mine } = await signUp.finish(params.token, body, visit, by)
        return new WithHeaders({ signedIn: true }, loginCookies(session, browsers.mark(mine)))
      },
    }),
  ]
}

/** For people who are signed in, about themselves. */
export function ownDeletionResources({ ownDeletion }: SignUpPageDeps): Resource[] {
  return [
    resource('POST /me/delete', 'self', {
      // Needs a recent confirmation, so that a stolen session is not enough, and the typed address, so that it does not happen by mistake.
      fresh: true,
      body: z.strictObject({ email, forfeit: z.boolean().default(false) }),
      answer: signingView,
      async run({ actor, body, by }) {
        if (!actor.session) throw new Fault('key_unknown', { message: 'You are not signed in.' })
        const { person } = actor.session
        if (body.email !== person.email) throw invalid('email: type the address of your own login.', 'email')
        await ownDeletion.delete(person, body.forfeit, by)
        return new WithHeaders({ signedIn: false }, NO_SESSION)
      },
    }),
  ]
}

const FILE_HEADERS = {
  // Opened directly, an image is a document of its own, so its policy must forbid everything.
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'cross-origin',
}

/** The logo and colours for pages and mails. */
export function mountBranding(app: FastifyInstance, branding: Branding): void {
  app.get('/branding/logo', (_request, reply) => {
    const logo = branding.logo()
    if (!logo) throw new Fault('not_found')
    return reply
      .headers({ ...FILE_HEADERS, 'cache-control': 'public, max-age=3600' })
      .type(`image/${logo.type}`)
      .send(logo.bytes)
  })
  app.get('/branding/style.css', (_request, reply) =>
    reply
      .headers({ ...FILE_HEADERS, 'cache-control': 'no-cache' })
      .type('text/css; charset=utf-8')
      .send(branding.css()),
  )
}
