// What the addresses of single sign-on, passkeys and directories answer.
import * as z from 'zod'
import { loginStep } from '../../identity/views.ts'
import { time } from '../../kernel/view.ts'

/** A mail domain of an account; proved once the TXT record has the value. */
export const domainView = z.object({
  domain: z.string(),
  record: z.string(),
  value: z.string(),
  provedAt: time.nullable(),
})
export type DomainView = z.infer<typeof domainView>

const domainMapping = z.strictObject({
  domain: z.string(),
  /** People whose verified email address is of this domain join this account; null: nobody joins by it. */
  account: z.string().nullable(),
  role: z.string().nullable(),
  /** People of this domain can sign in by this provider only. */
  ssoOnly: z.boolean(),
})
const groupMapping = z.strictObject({
  group: z.string(),
  /** Null: a gateway role. */
  account: z.string().nullable(),
  role: z.string(),
})

/** An OpenID Connect provider that people sign in by. */
export const loginProvider = z.object({
  id: z.string(),
  name: z.string(),
  issuer: z.string(),
  clientId: z.string(),
  hasSecret: z.boolean(),
  scopes: z.array(z.string()),
  /** The claim that lists a person's groups. */
  groupsClaim: z.string(),
  /** The provider checks a second factor itself, so the gateway asks for none. */
  provesSecondFactor: z.boolean(),
  enabled: z.boolean(),
  domains: z.array(domainMapping),
  groups: z.array(groupMapping),
  /** To be registered at the provider. */
  redirectUri: z.string(),
  backchannelLogoutUri: z.string(),
  updatedAt: time,
})
export type LoginProvider = z.infer<typeof loginProvider>

/** The result of reading the provider's metadata. */
export const providerTest = z.object({ ok: z.boolean(), message: z.string() })
export type ProviderTest = z.infer<typeof providerTest>

/** What the login page offers. */
export const loginOptions = z.object({
  providers: z.array(z.object({ id: z.string(), name: z.string() })),
  passkeys: z.boolean(),
})
export type LoginOptions = z.infer<typeof loginOptions>

export const ssoStep = loginStep.extend({ result: z.enum(['signed-in', 'password', 'connected', 'proved']) })
export type SsoStep = z.infer<typeof ssoStep>

/** The options for `navigator.credentials`. */
export const passkeyOptions = z.object({ options: z.record(z.string(), z.unknown()) })
export type PasskeyOptions = z.infer<typeof passkeyOptions>
