// Sign-up and branding: the operator's settings, and the steps of visitors.
import * as z from 'zod'
import { type Branding, LOGO_BYTES_MAX } from '../../../identity/branding/branding.ts'
import { brandingInput, brandingView } from '../../../identity/branding/views.ts'
import type { Browsers } from '../../../identity/sessions.ts'
import { linkView, mailAsked } from '../../../identity/views.ts'
import { CREDITS_MAX, formatCredits } from '../../../kernel/credits.ts'
import { Fault } from '../../../kernel/fault.ts'
import { page } from '../../../kernel/view.ts'
import { mergeLimits, showLimits } from '../../../ledger/limits.ts'
import { limitsInput } from '../../../meter/limits.ts'
import {
  amount,
  email,
  loginCookies,
  password,
  type Resource,
  requireCredits,
  resource,
  text,
  WithHeaders,
} from '../../../operator/resource.ts'
import { DEFAULTS, type SignUp } from './sign-up.ts'
import {
  mailPreview,
  type SignUpSettings,
  signUpInvite,
  signUpLink,
  signUpSettings,
  signUpSettingsView,
  signUpView,
} from './views.ts'

const domains = (max: number, description: string, option: string) =>
  z.array(text(260)).max(max).default([]).meta({ description, option, none: 'none' })

const settingsInput = z
  .strictObject({
    mode: signUpSettings.shape.mode.default(DEFAULTS.mode).describe('off, invitation, domain or open'),
    domains: domains(1_000, 'For "domain": a,b or @file; subdomains are included', 'domains'),
    blockedDomains: domains(20_000, 'Blocked mail domains: a,b or @file', 'blocked'),
    credits: amount
      .refine((value) => value >= 0n && value <= CREDITS_MAX, 'must not be negative')
      .default(0n)
      .describe('Starting credits, once for each mailbox'),
    limits: limitsInput.default({}),
    terms: z
      .strictObject({
        version: text(60).meta({ description: 'What people accept', option: 'terms-version' }),
        url: z
          .url({ protocol: /^https?$/ })
          .max(500)
          .meta({ description: 'Where the terms are', option: 'terms-url' }),
      })
      .nullable()
      .default(null),
    perNetworkPerHour: z
      .number()
      .int()
      .min(1)
      .max(10_000)
      .default(DEFAULTS.perNetworkPerHour)
      .meta({ description: 'Mails that one network may ask for in an hour', option: 'per-network' }),
    perDomainPerDay: z
      .number()
      .int()
      .min(1)
      .max(1_000_000)
      .default(DEFAULTS.perDomainPerDay)
      .meta({ description: 'Sign-ups with mailboxes of one domain in a day', option: 'per-domain' }),
    challengeUrl: z
      .url({ protocol: /^https?$/ })
      .max(500)
      .nullable()
      .default(null)
      .meta({ description: 'Asked whether a sign-up is accepted', option: 'challenge' }),
    region: text(30).nullable().default(null).describe('In which the accounts stay: that of some ledger'),
  })
  .transform(({ credits, limits, ...rest }) => ({
    ...rest,
    credits: formatCredits(credits),
    limits: showLimits(mergeLimits({}, limits)),
  }))

const LOGO_BASE64_CHARS_MAX = Math.ceil(LOGO_BYTES_MAX / 3) * 4
const logoInput = z.strictObject({
  data: z
    .string()
    .max(LOGO_BASE64_CHARS_MAX, `must be a file of at most ${LOGO_BYTES_MAX / 1000} kB`)
    .regex(/^[A-Za-z0-9+/]+={0,2}$/, 'must be base64')
    .meta({ description: 'PNG or JPEG in base64', option: 'file', read: 'base64' }),
})

const DOMAINS_BODY_BYTES = 2_000_000

export function signUpResources({ signUp, branding }: { signUp: SignUp; branding: Branding }): Resource[] {
  const withMailServer = (settings: SignUpSettings) => ({ ...settings, mailServer: signUp.hasMailServer })
  return [
    resource('GET /sign-up', 'sign-up:read', {
      title: 'Show the sign-up settings',
      answer: signUpSettingsView,
      run: async () => withMailServer(await signUp.settings()),
    }),
    resource('PUT /sign-up', 'sign-up:write', {
      title: 'Change the sign-up settings',
      body: settingsInput,
      bodyBytesMax: DOMAINS_BODY_BYTES,
      answer: signUpSettingsView,
      async run({ body, actor, by }) {
        if (body.credits !== '0' && body.credits !== (await signUp.settings()).credits) requireCredits(actor)
        return withMailServer(await signUp.change(body, by))
      },
    }),
    resource('GET /sign-up/invites', 'sign-up:read', {
      title: 'List open invitations to sign up',
      answer: page(signUpInvite),
      run: async () => ({ items: await signUp.pending(), next: null }),
    }),
    resource('POST /sign-up/invites', 'sign-up:write', {
      title: 'Invite somebody to sign up',
      body: z.strictObject({ email }),
      answer: linkView,
      run: async ({ body, by }) => ({ link: await signUp.invite(body.email, by) }),
    }),
    resource('DELETE /sign-up/invites/{inviteId}', 'sign-up:write', {
      title: 'Withdraw an invitation to sign up',
      answer: z.object({ withdrawn: z.string() }),
      async run({ params, by }) {
        await signUp.withdraw(params.inviteId, by)
        return { withdrawn: params.inviteId }
      },
    }),
    resource('GET /mails', 'branding:read', {
      title: 'List the mails that are sent',
      answer: page(mailPreview),
      run: () => ({ items: signUp.previews(), next: null }),
    }),
    resource('GET /mails/{name}', 'branding:read', {
      title: 'Show a mail as people get it',
      answer: mailPreview,
      html: ({ params }) => signUp.previewHtml(params.name),
      run({ params }) {
        const found = signUp.previews().find(({ name }) => name === params.name)
        if (!found) throw new Fault('not_found', { message: 'There is no such mail.' })
        return found
      },
    }),
    resource('GET /branding', 'branding:read', {
      title: 'Show the branding',
      answer: brandingView,
      run: () => branding.get(),
    }),
    resource('PUT /branding', 'branding:write', {
      title: 'Change the branding',
      body: brandingInput,
      answer: brandingView,
      run: ({ body, by }) => branding.change(body, by),
    }),
    resource('PUT /branding/logo', 'branding:write', {
      title: 'Set the logo',
      body: logoInput,
      bodyBytesMax: LOGO_BASE64_CHARS_MAX + 1_000,
      answer: brandingView,
      run: ({ body, by }) => branding.changeLogo(Buffer.from(body.data, 'base64'), by),
    }),
    resource('DELETE /branding/logo', 'branding:write', {
      title: 'Remove the logo',
      answer: brandingView,
      run: ({ by }) => branding.changeLogo(null, by),
    }),
  ]
}

const SENT = { sent: true } as const
const signingView = z.object({ signedIn: z.boolean() })

/** For visitors without a session. */
export function signUpVisitorResources({ signUp, browsers }: { signUp: SignUp; browsers: Browsers }): Resource[] {
  return [
    resource('GET /public/sign-up', 'visitor', { answer: signUpView, run: () => signUp.view() }),
    resource('POST /public/sign-up', 'visitor', {
      body: z.strictObject({ email, challenge: text(4_000).optional() }),
      answer: mailAsked,
      async run({ body, visit }) {
        await signUp.request(body.email, visit, body.challenge)
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
