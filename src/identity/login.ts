// Composes the login methods besides passwords.

import type { GuardedFetch } from '../upstream/guard.ts'
import type { LeavingDeps } from './leaving.ts'
import type { Members } from './members.ts'
import { createOidc, type Oidc } from './oidc.ts'
import { createPasskeys, type Passkeys } from './passkeys.ts'
import { createProviders, type ProviderDeps, type Providers } from './providers.ts'
import { createSecondFactors, type SecondFactorDeps, type SecondFactors } from './second-factors.ts'
import { createSso, type Sso } from './sso.ts'

export interface Login {
  readonly factors: SecondFactors
  readonly passkeys: Passkeys
  readonly providers: Providers
  readonly oidc: Oidc
  readonly sso: Sso
}

interface LoginParts extends SecondFactorDeps, LeavingDeps, Pick<ProviderDeps, 'credentials'> {
  readonly guard: Pick<GuardedFetch, 'request' | 'check'>
  readonly members: Members
  readonly publicUrl: () => string
}

export function createLogin(parts: LoginParts): Login {
  const factors = createSecondFactors(parts)
  const providers = createProviders(parts)
  const oidc = createOidc(parts)
  return {
    ...{ factors, providers, oidc },
    passkeys: createPasskeys({ ...parts, factors }),
    sso: createSso({ ...parts, oidc, providers, factors }),
  }
}
