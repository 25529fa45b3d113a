// Composes the login methods besides passwords.

import type { GuardedFetch } from '../upstream/guard.ts'
import type { LeavingDeps } from './leaving.ts'
import type { Members } from './members.ts'
import { createOidc, type Oidc } from '../extensions/directory/oidc.ts'
import { createPasskeys, type Passkeys } from '../extensions/directory/passkeys.ts'
import { createProviders, type ProviderDeps, type Providers } from '../extensions/directory/providers.ts'
import type { SecondFactorDeps, SecondFactors } from './second-factors.ts'
import { createSso, type Sso } from '../extensions/directory/sso.ts'

export interface Login {
  readonly passkeys: Passkeys
  readonly providers: Providers
  readonly oidc: Oidc
  readonly sso: Sso
}

interface LoginParts extends Omit<SecondFactorDeps, 'factorKey'>, LeavingDeps, Pick<ProviderDeps, 'credentials'> {
  readonly guard: Pick<GuardedFetch, 'request' | 'check'>
  readonly members: Members
  readonly factors: SecondFactors
  readonly publicUrl: () => string
}

export function createLogin(parts: LoginParts): Login {
  const providers = createProviders(parts)
  const oidc = createOidc(parts)
  return { ...{ providers, oidc }, passkeys: createPasskeys(parts), sso: createSso({ ...parts, oidc, providers }) }
}
