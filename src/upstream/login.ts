// Logins of vendors that take no plain credential. An extension opens them; a vendor that wants one cannot be called
// without it.
import type { Login } from '../catalog/document.ts'
import type { AwsCredentials } from '../kernel/aws-signature.ts'
import { Fault } from '../kernel/fault.ts'
import type { Upstream } from './call.ts'

/** What a call is sent with. `drop`: the vendor refuses the token before its end. True: the login brings another. */
export type LoggedIn =
  | { readonly token: string; readonly drop?: () => boolean }
  | { readonly aws: AwsCredentials; readonly service: string }

export interface LoginAbout {
  readonly secret: string | undefined
  /** Where the token will be sent. */
  readonly baseUrl: string
  /** The credential is an account's own: no address inside it is called. */
  readonly isForeign?: boolean
}

export interface Logins {
  /** At once while the token is fresh. Rejects with upstream_unavailable; `loginProblem` says what is wrong. */
  open(login: Login, about: LoginAbout): LoggedIn | Promise<LoggedIn>
}

/** What the machine's administrator allows, and where it is. */
export interface Workload {
  readonly allows: ReadonlySet<string>
  /** Hosts that get the machine's tokens besides those of the clouds themselves. */
  readonly hosts: ReadonlySet<string>
  /** The variables by which clouds tell a program who it is. */
  readonly environment: (name: string) => string | undefined
  /** May reach the metadata of the machine. */
  readonly metadata: Upstream
}

export const NO_LOGINS: Logins = {
  open: async () => {
    throw loginFault('This gateway opens no logins of clouds: its extension "logins" is switched off.')
  },
}

/** `refused`: the owner of the credential must correct it. */
export const loginFault = (login: string, { cause, refused = false }: { cause?: unknown; refused?: boolean } = {}) =>
  new Fault('upstream_unavailable', { internal: { login, refused }, cause })

/** What is wrong with a login, for an operator; undefined: the fault is another. */
export function loginProblem({ details: { internal } }: Fault): string | undefined {
  return typeof internal?.login === 'string' ? internal.login : undefined
}

export function isLoginRefused({ details: { internal } }: Fault): boolean {
  return internal?.login !== undefined && internal.refused === true
}
