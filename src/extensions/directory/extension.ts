// Logins that a company manages: single sign-on, people and groups by SCIM, the mail domains that are an account's, and
// passkeys.
import type { WebServer } from '../../api/server/server.ts'
import type { Config } from '../../config.ts'
import { defineExtension } from '../../extension.ts'
import type { Secrets } from '../../kernel/secret.ts'
import { tokenActor } from '../../operator/admin.ts'
import { withCommands } from '../../operator/command.ts'
import { DIRECTORY_COMMANDS } from './commands.ts'
import { createDomains } from './domains.ts'
import { createOidc } from './oidc.ts'
import { createPasskeys } from './passkeys.ts'
import { createProviders } from './providers.ts'
import {
  type DirectoryDeps,
  domainResources,
  mountBackchannelLogout,
  ownResources,
  providerResources,
  visitorResources,
} from './resources.ts'
import { createScim } from './scim.ts'
import { mountScim } from './scim-routes.ts'
import { createSso } from './sso.ts'
import { createReadTxt } from './txt.ts'

type Core = Parameters<typeof createOidc>[0] &
  Parameters<typeof createProviders>[0] &
  Parameters<typeof createPasskeys>[0] &
  Omit<Parameters<typeof createSso>[0], 'oidc' | 'providers'> &
  Omit<Parameters<typeof createScim>[0], 'mails'> &
  Pick<DirectoryDeps, 'people'> & {
    readonly config: Pick<Config, 'TOLLGATE_DNS_SERVERS'>
    readonly secrets: Secrets
    readonly tokens: Parameters<typeof tokenActor>[0]
    /** Undefined: no mail server is configured. */
    readonly mails: object | undefined
  }

export const directory = defineExtension({
  name: 'directory',
  proofs: ['passkey', 'sso'],
  open(core: Core) {
    const [oidc, providers] = [createOidc(core), createProviders(core)]
    const readTxt = createReadTxt(core.config.TOLLGATE_DNS_SERVERS.split(',').filter(Boolean))
    return {
      oidc,
      providers,
      passkeys: createPasskeys(core),
      sso: createSso({ ...core, oidc, providers }),
      domains: createDomains({ ...core, key: core.secrets.key('account-domain'), readTxt }),
      scim: createScim({ ...core, mails: core.mails !== undefined }),
    }
  },
  resources: (all) => withCommands([...domainResources(all), ...providerResources(all)], DIRECTORY_COMMANDS),
  personal: (all) => [...visitorResources(all), ...ownResources(all)],
  endpoints({ tokens, ...all }, { app }: { readonly app: WebServer }) {
    mountScim(app, { ...all, authenticate: tokenActor(tokens) })
    mountBackchannelLogout(app, all)
  },
  security: async ({ sso, passkeys }, person) => ({
    identities: await sso.identities(person),
    passkeysPossible: passkeys.possible(),
  }),
})
